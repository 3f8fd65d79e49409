// SPDX-License-Identifier: Apache-2.0
//
// SelectPointwise and its kernel: a convolution of 1 x 1 is a product of pixels and weights, per
// group. Pixels that strides leave apart are copied together first.

#include <algorithm>
#include <string>
#include <utility>

#include "backends/cpu/convolution/kernel.h"
#include "backends/cpu/convolution/pointwise.h"
#include "backends/cpu/convolution/recipe.h"
#include "backends/cpu/convolution/window_product.h"
#include "backends/cpu/gemm/gemm.h"
#include "backends/cpu/gemm/grid.h"
#include "backends/cpu/processor/processor.h"

namespace onnxifi::convolution {
namespace {

using base::Code;
using base::Status;

// The pixels of the result as rows of products: `count` runs of `rows` neighbours each. One run
// where nothing lies between the ends of rows and images.
struct PixelRuns {
  int64_t count;
  int64_t rows;
};

bool IsOneRun(const PixelStrides& strides, const Convolution& convolution, int64_t batch) {
  return (convolution.out_height == 1 || strides.row == convolution.out_width * strides.pixel) &&
         (batch == 1 ||
          strides.image == convolution.out_height * convolution.out_width * strides.pixel);
}

PixelRuns PixelRunsOf(const Convolution& convolution, int64_t batch, const Images& images) {
  const bool is_one_run =
      IsOneRun(images.source_strides, convolution, batch) &&
      IsOneRun(images.result_strides, convolution, batch) &&
      (images.addend == nullptr || IsOneRun(images.addend_strides, convolution, batch));
  if (is_one_run) return {1, batch * convolution.out_height * convolution.out_width};
  return {batch * convolution.out_height, convolution.out_width};
}

class BoundPointwise final : public device::BoundKernel {
 public:
  BoundPointwise(const device::BoundStep& step, const Convolution& convolution,
                 WindowOrder /*layout*/, runtime::PackedWeights weights, runtime::Runtime& runtime)
      : runtime_(runtime),
        convolution_(convolution),
        batch_(step.domain[0]),
        weights_(std::move(weights)),
        images_(step, convolution) {}

  // The weights are packed.
  bool ReadsAtRun(int read) const override { return read != 1; }

  Status Run(device::Addresses addresses) const override {
    Images images = images_.At(addresses);
    const gemm::Epilogue epilogue = images_.EpilogueAt(addresses);
    const bool is_copied = convolution_.stride_y > 1 || convolution_.stride_x > 1;
    const int64_t pixels = batch_ * convolution_.out_height * convolution_.out_width;
    images.result_exceeds_cache = pixels * convolution_.out_channels >= kCacheExceedingFloats;
    ONNXIFI_ASSIGN_OR_RETURN(
        const runtime::WorkMemory::Lease lease,
        runtime_.work_memory().Lend(is_copied ? pixels * convolution_.in_channels *
                                                    static_cast<int64_t>(sizeof(float))
                                              : 0));
    if (is_copied) CopyPixels(images, reinterpret_cast<float*>(lease.data()));
    const PixelRuns runs = PixelRunsOf(convolution_, batch_, images);
    const int64_t depth = WindowDepth(convolution_);
    const int64_t panels = GroupPanels(convolution_);
    const bool is_one_run = runs.count == 1;
    // The only run is divided anywhere, several runs are not.
    const int64_t rows = is_one_run ? 1 : runs.rows;
    const gemm::Work work = {is_one_run ? runs.rows : runs.count, rows, depth, panels};
    gemm::ForParts(work, gemm::ChooseGrid(work, runtime_.pool().thread_count()), runtime_.pool(),
                   [&](int64_t /*thread*/, const gemm::Part& part) {
                     if (is_one_run) {
                       RunPixels(images, epilogue, {0, 0, part.first_block},
                                 part.end_block - part.first_block, part);
                       return;
                     }
                     for (int64_t run = part.first_block; run < part.end_block; ++run) {
                       RunPixels(images, epilogue,
                                 {run / convolution_.out_height, run % convolution_.out_height, 0},
                                 runs.rows, part);
                     }
                   });
    return base::Ok();
  }

  std::string Detail() const override { return processor::VectorName(); }

 private:
  struct Pixel {
    int64_t n, y, x;
  };

  // Copies the pixels that the windows see next to each other, and has `images` read them there.
  void CopyPixels(Images& images, float* copy) const {
    const int64_t channels = convolution_.in_channels;
    const int64_t width = convolution_.out_width;
    const int64_t grain = std::max<int64_t>(1, processor::kFloatsWorthAThread / (width * channels));
    runtime_.pool().For(batch_ * convolution_.out_height, grain, [&](int64_t begin, int64_t end) {
      for (int64_t run = begin; run < end; ++run) {
        const float* source =
            images.source +
            images.source_strides.At(run / convolution_.out_height,
                                     run % convolution_.out_height * convolution_.stride_y, 0);
        for (int64_t x = 0; x < width; ++x) {
          std::copy_n(source + x * convolution_.stride_x * images.source_strides.pixel, channels,
                      copy + (run * width + x) * channels);
        }
      }
    });
    images.source = copy;
    images.source_strides = DensePixels(convolution_.out_height, width, channels);
  }

  // So many pixels from `first` on, over the panels of a part.
  void RunPixels(const Images& images, const gemm::Epilogue& epilogue, const Pixel& first,
                 int64_t count, const gemm::Part& part) const {
    static constexpr int64_t kOnePiece[] = {0};
    const auto at = [&](const PixelStrides& strides) {
      return strides.At(first.n, first.y, first.x);
    };
    const WindowRow run = {images.source + at(images.source_strides), images.source_strides.pixel,
                           at(images.result_strides), at(images.addend_strides), count};
    const int64_t depth = WindowDepth(convolution_);
    for (int64_t group = 0; group < convolution_.group; ++group) {
      MultiplyRow(convolution_, {depth, kOnePiece}, runtime::Floats(weights_), images, epilogue,
                  run, group, group * depth, part.first_panel, part.end_panel);
    }
  }

  runtime::Runtime& runtime_;
  const Convolution convolution_;
  const int64_t batch_;
  const runtime::PackedWeights weights_;
  const BoundImages images_;
};

}  // namespace

Status CheckPointwise(const Convolution& convolution) {
  if (convolution.kernel_height != 1 || convolution.kernel_width != 1) {
    return Status(Code::kUnsupportedAttribute,
                  "The kernel is " + std::to_string(convolution.kernel_height) + " x " +
                      std::to_string(convolution.kernel_width) + ", not 1 x 1.");
  }
  const bool stays_inside =
      convolution.pad_top == 0 && convolution.pad_left == 0 &&
      (convolution.out_height - 1) * convolution.stride_y < convolution.in_height &&
      (convolution.out_width - 1) * convolution.stride_x < convolution.in_width;
  if (!stays_inside) {
    return Status(Code::kUnsupportedShape, "The windows reach into the padding.");
  }
  return CheckGroups(convolution);
}

runtime::RecipeResult SelectPointwise(const ConvolutionQuery& described) {
  ONNXIFI_RETURN_IF_ERROR(described.axes_status);
  ONNXIFI_RETURN_IF_ERROR(described.nhwc_status);
  ONNXIFI_RETURN_IF_ERROR(CheckPointwise(described.convolution));
  return MakeRecipe<BoundPointwise, PointwisePacking>("pointwise", described.convolution);
}

}  // namespace onnxifi::convolution
