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
    const int64_t pixels = batch_ * convolution_.out_height * convolution_.out_width;
    images.result_exceeds_cache = pixels * convolution_.out_channels >= kCacheExceedingFloats;
    Images dense = images;
    if (IsCopied()) {
      dense.source_strides =
          DensePixels(convolution_.out_height, convolution_.out_width, convolution_.in_channels);
    }
    const PixelRuns runs = PixelRunsOf(convolution_, batch_, dense);
    const int64_t depth = WindowDepth(convolution_);
    const int64_t panels = GroupPanels(convolution_);
    const bool is_one_run = runs.count == 1;
    // The only run is divided anywhere, several runs are not.
    const int64_t rows = is_one_run ? 1 : runs.rows;
    threads::ThreadPool& pool = runtime_.pool();
    const gemm::Work work = {is_one_run ? runs.rows : runs.count, rows, depth, panels};
    const gemm::Grid grid = gemm::ChooseGrid(work, pool.thread_count());
    const int64_t chunk = ChunkOf(is_one_run ? pixels : rows);
    const int64_t copy_floats = IsCopied() ? chunk * convolution_.in_channels : 0;
    ONNXIFI_ASSIGN_OR_RETURN(const runtime::WorkMemory::Lease lease,
                             runtime_.work_memory().Lend(gemm::ThreadsOf(grid, pool) * copy_floats *
                                                         static_cast<int64_t>(sizeof(float))));
    auto* const copies = reinterpret_cast<float*>(lease.data());
    gemm::ForParts(work, grid, pool, [&](int64_t thread, const gemm::Part& part) {
      const auto run_pixels = [&](const Pixel& first, int64_t count) {
        if (!IsCopied()) {
          const float* const source =
              images.source + images.source_strides.At(first.n, first.y, first.x);
          return RunPixels(images, epilogue, {source, images.source_strides.pixel}, first, count,
                           part);
        }
        float* const copy = copies + thread * copy_floats;
        for (int64_t done = 0; done < count; done += chunk) {
          const Pixel from = {first.n, first.y, first.x + done};
          const int64_t copied = std::min(chunk, count - done);
          CopyPixels(images, from, copied, copy);
          RunPixels(images, epilogue, {copy, convolution_.in_channels}, from, copied, part);
        }
      };
      if (is_one_run) {
        return run_pixels({0, 0, part.first_block}, part.end_block - part.first_block);
      }
      for (int64_t run = part.first_block; run < part.end_block; ++run) {
        run_pixels({run / convolution_.out_height, run % convolution_.out_height, 0}, runs.rows);
      }
    });
    return base::Ok();
  }

  std::string Detail() const override {
    const int64_t pixels = batch_ * convolution_.out_height * convolution_.out_width;
    return (IsCopied() ? "copies of " + std::to_string(ChunkOf(pixels)) + " pixels, " : "") +
           processor::VectorName();
  }

 private:
  // The first of neighbours of the result; `x` may go beyond the row, on into the next ones.
  struct Pixel {
    int64_t n, y, x;
  };
  struct Source {
    const float* first;
    int64_t pixel;
  };

  bool IsCopied() const { return convolution_.stride_y > 1 || convolution_.stride_x > 1; }

  // Pixels that a thread copies together, so that they stay in its cache: whole blocks of rows.
  int64_t ChunkOf(int64_t most) const {
    const int64_t blocks = processor::L2Floats() / 8 /
                           std::max<int64_t>(1, convolution_.in_channels * gemm::BlockRows());
    return std::clamp<int64_t>(std::max<int64_t>(1, blocks) * gemm::BlockRows(), 1,
                               std::max<int64_t>(1, most));
  }

  // Copies the pixels that `count` windows see next to each other.
  void CopyPixels(const Images& images, const Pixel& first, int64_t count, float* copy) const {
    const int64_t channels = convolution_.in_channels;
    const int64_t width = convolution_.out_width, height = convolution_.out_height;
    const int64_t pixel = convolution_.stride_x * images.source_strides.pixel;
    int64_t number = (first.n * height + first.y) * width + first.x;
    for (const int64_t end = number + count; number < end;) {
      const int64_t row = number / width, x = number % width;
      const float* source =
          images.source +
          images.source_strides.At(row / height, row % height * convolution_.stride_y, 0) +
          x * pixel;
      const int64_t in_row = std::min(width - x, end - number);
      for (int64_t k = 0; k < in_row; ++k) {
        copy = std::copy_n(source, channels, copy);
        source += pixel;
      }
      number += in_row;
    }
  }

  // So many pixels from `first` on, over the panels of a part.
  void RunPixels(const Images& images, const gemm::Epilogue& epilogue, const Source& source,
                 const Pixel& first, int64_t count, const gemm::Part& part) const {
    static constexpr int64_t kOnePiece[] = {0};
    const auto at = [&](const PixelStrides& strides) {
      return strides.At(first.n, first.y, first.x);
    };
    const WindowRow run = {source.first, source.pixel, at(images.result_strides),
                           at(images.addend_strides), count};
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
