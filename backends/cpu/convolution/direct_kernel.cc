// SPDX-License-Identifier: Apache-2.0
//
// SelectDirect and its kernel: a convolution as products whose rows are the windows of one row of
// the result. Windows of neighbours overlap in memory, so nothing is gathered; where windows reach
// into the padding, a padded copy of the input is made first.

#include <algorithm>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "backends/cpu/convolution/kernel.h"
#include "backends/cpu/convolution/recipe.h"
#include "backends/cpu/convolution/window_product.h"
#include "backends/cpu/gemm/grid.h"
#include "backends/cpu/processor/processor.h"

namespace onnxifi::convolution {
namespace {

using base::Code;
using base::Status;

// So few take ten microseconds or less; to compile a kernel of oneDNN's takes most of a
// millisecond.
constexpr int64_t kFewMultiplyAdds = int64_t{1} << 20;

int64_t MultiplyAdds(const Convolution& convolution) {
  return convolution.batch * convolution.out_height * convolution.out_width *
         convolution.out_channels * WindowDepth(convolution);
}

// The part of the padded input that windows see.
struct Frame {
  int64_t height, width;
};

Frame FrameOf(const Convolution& convolution) {
  return {(convolution.out_height - 1) * convolution.stride_y +
              (convolution.kernel_height - 1) * convolution.dilation_y + 1,
          (convolution.out_width - 1) * convolution.stride_x +
              (convolution.kernel_width - 1) * convolution.dilation_x + 1};
}

class BoundDirect final : public device::BoundKernel {
 public:
  BoundDirect(const device::BoundStep& step, const Convolution& convolution, WindowOrder /*layout*/,
              runtime::PackedWeights weights, runtime::Runtime& runtime)
      : runtime_(runtime),
        convolution_(convolution),
        batch_(step.domain[0]),
        weights_(std::move(weights)),
        images_(step, convolution),
        frame_(FrameOf(convolution)),
        is_copied_(convolution.pad_top > 0 || convolution.pad_left > 0 ||
                   frame_.height > convolution.in_height || frame_.width > convolution.in_width),
        strides_(is_copied_ ? DensePixels(frame_.height, frame_.width, convolution.in_channels)
                            : images_.source_strides()) {
    const int64_t depth = convolution.in_channels / convolution.group;
    // The pixels of a row of a window are one piece where nothing lies between them.
    const bool is_row_whole = convolution.dilation_x == 1 && strides_.pixel == depth;
    depth_ = is_row_whole ? convolution.kernel_width * depth : depth;
    for (int64_t y = 0; y < convolution.kernel_height; ++y) {
      for (int64_t x = 0; x < (is_row_whole ? 1 : convolution.kernel_width); ++x) {
        pieces_.push_back(strides_.At(0, y * convolution.dilation_y, x * convolution.dilation_x));
      }
    }
  }

  // The weights are packed.
  bool ReadsAtRun(int read) const override { return read != 1; }

  Status Run(device::Addresses addresses) const override {
    Images images = images_.At(addresses);
    const gemm::Epilogue epilogue = images_.EpilogueAt(addresses);
    const int64_t copy_bytes =
        is_copied_ ? batch_ * strides_.image * static_cast<int64_t>(sizeof(float)) : 0;
    ONNXIFI_ASSIGN_OR_RETURN(const runtime::WorkMemory::Lease lease,
                             runtime_.work_memory().Lend(copy_bytes));
    threads::ThreadPool& pool = runtime_.pool();
    if (is_copied_) {
      auto* copy = reinterpret_cast<float*>(lease.data());
      const int64_t grain = std::max<int64_t>(1, processor::kFloatsWorthAThread / strides_.row);
      pool.For(batch_ * frame_.height, grain, [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) {
          CopyRow(images, row, copy + row * strides_.row);
        }
      });
      images.source = copy;
    }
    images.source_strides = strides_;
    const gemm::Work work = {batch_ * convolution_.out_height, convolution_.out_width,
                             WindowDepth(convolution_), GroupPanels(convolution_)};
    gemm::ForParts(
        work, gemm::ChooseGrid(work, pool.thread_count()), pool,
        [&](int64_t /*thread*/, const gemm::Part& part) { RunRows(images, epilogue, part); });
    return base::Ok();
  }

  std::string Detail() const override {
    return std::string(is_copied_ ? "padded copy, " : "") + std::to_string(pieces_.size()) +
           " pieces of " + std::to_string(depth_) + ", " + processor::VectorName();
  }

 private:
  // One row of the padded input.
  void CopyRow(const Images& images, int64_t row, float* target) const {
    const int64_t channels = convolution_.in_channels;
    const int64_t y = row % frame_.height - convolution_.pad_top;
    if (y < 0 || y >= convolution_.in_height) {
      std::fill(target, target + strides_.row, 0.0F);
      return;
    }
    const int64_t left = std::min(frame_.width, convolution_.pad_left);
    const int64_t width = std::min(convolution_.in_width, frame_.width - left);
    float* to = std::fill_n(target, left * channels, 0.0F);
    const float* from = images.source + images.source_strides.At(row / frame_.height, y, 0);
    for (int64_t x = 0; x < width; ++x) {
      to = std::copy_n(from + x * images.source_strides.pixel, channels, to);
    }
    std::fill(to, target + strides_.row, 0.0F);
  }

  // Panel by panel, so many rows of the result at a time that what they read stays in the cache.
  void RunRows(const Images& images, const gemm::Epilogue& epilogue, const gemm::Part& part) const {
    const int64_t most_floats = processor::L2Floats() / 8;
    const int64_t at_once = std::max<int64_t>(
        1, most_floats / std::max<int64_t>(1, strides_.row * convolution_.stride_y));
    for (int64_t begin = part.first_block; begin < part.end_block; begin += at_once) {
      for (int64_t panel = part.first_panel; panel < part.end_panel; ++panel) {
        for (int64_t row = begin; row < std::min(part.end_block, begin + at_once); ++row) {
          RunRow(images, epilogue, row, panel);
        }
      }
    }
  }

  void RunRow(const Images& images, const gemm::Epilogue& epilogue, int64_t number,
              int64_t panel) const {
    const int64_t n = number / convolution_.out_height;
    const int64_t y = number % convolution_.out_height;
    const WindowRow row = {
        images.source + images.source_strides.At(n, y * convolution_.stride_y, 0),
        images.source_strides.pixel * convolution_.stride_x, images.result_strides.At(n, y, 0),
        images.addend_strides.At(n, y, 0), convolution_.out_width};
    const WindowPieces pieces = PiecesOf(y);
    for (int64_t group = 0; group < convolution_.group; ++group) {
      MultiplyRow(convolution_, pieces, runtime::Floats(weights_), images, epilogue, row, group,
                  group * (convolution_.in_channels / convolution_.group), panel, panel + 1);
    }
  }

  // Of the windows of row `y` of the result, without the rows of the kernel that meet nothing but
  // padding there: with wide dilations that is most of a kernel. All if that would leave none.
  WindowPieces PiecesOf(int64_t y) const {
    const int64_t top = y * convolution_.stride_y - convolution_.pad_top;
    const int64_t dilation = convolution_.dilation_y;
    const int64_t first = top < 0 ? (dilation - 1 - top) / dilation : 0;
    const int64_t rows = convolution_.in_height - top;
    const int64_t end = std::min(convolution_.kernel_height, (rows + dilation - 1) / dilation);
    if (first >= end) return {depth_, pieces_};
    const auto in_row = static_cast<int64_t>(pieces_.size()) / convolution_.kernel_height;
    return {depth_,
            std::span(pieces_).subspan(static_cast<size_t>(first * in_row),
                                       static_cast<size_t>((end - first) * in_row)),
            first * in_row};
  }

  runtime::Runtime& runtime_;
  const Convolution convolution_;
  const int64_t batch_;
  const runtime::PackedWeights weights_;
  const BoundImages images_;
  const Frame frame_;
  const bool is_copied_;
  const PixelStrides strides_;   // of what the products read
  int64_t depth_ = 0;            // of a piece
  std::vector<int64_t> pieces_;  // of a window
};

// Whether no window has the first or the last taps of the kernel inside of the image.
bool HasIdleTaps(const Convolution& c) {
  const auto has = [](int64_t in, int64_t out, int64_t kernel, int64_t stride, int64_t dilation,
                      int64_t pad) {
    return (out - 1) * stride < pad || (kernel - 1) * dilation - pad >= in;
  };
  return has(c.in_height, c.out_height, c.kernel_height, c.stride_y, c.dilation_y, c.pad_top) ||
         has(c.in_width, c.out_width, c.kernel_width, c.stride_x, c.dilation_x, c.pad_left);
}

}  // namespace

runtime::RecipeResult SelectDirect(const ConvolutionQuery& described) {
  ONNXIFI_RETURN_IF_ERROR(described.axes_status);
  ONNXIFI_RETURN_IF_ERROR(described.nhwc_status);
  const Convolution& convolution = described.convolution;
  if (!convolution.has_gaps && MultiplyAdds(convolution) > kFewMultiplyAdds) {
    return Status(
        Code::kUnsupportedShape,
        "The tensors have no gaps, which oneDNN reads and writes as fast, and there are " +
            std::to_string(MultiplyAdds(convolution)) + " multiply-adds, more than " +
            std::to_string(kFewMultiplyAdds) + ".");
  }
  if (HasIdleTaps(convolution)) {
    return Status(Code::kUnsupportedShape,
                  "Some weights meet padding alone, and are left out where windows are gathered.");
  }
  ONNXIFI_RETURN_IF_ERROR(CheckGroups(convolution));
  return MakeRecipe<BoundDirect, WindowPacking<WindowOrder::kRowColumnChannel>>("direct",
                                                                                convolution);
}

}  // namespace onnxifi::convolution
