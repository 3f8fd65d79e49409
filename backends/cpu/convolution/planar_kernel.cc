// SPDX-License-Identifier: Apache-2.0
//
// SelectPlanar and its kernel: a convolution of planes, as products whose rows are the windows of
// one row of the result: of each row of a window, the elements next to each other are one piece.
// Some rows at a time, what their windows see is copied with its padding, so that it stays in the
// cache and may come from any address.

#include <algorithm>
#include <cstring>
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

// More channels are worth bringing next to each other.
constexpr int64_t kMaxChannels = 4;

// A copy of what the windows of some rows see: for each channel as many rows.
struct Strip {
  int64_t out_rows;  // of the result
  int64_t in_rows;
  int64_t width;
  int64_t size;  // in floats
};

// Of `batch` images there are strips enough for several parts of each of `threads` threads.
Strip StripOf(const Convolution& convolution, int64_t batch, int64_t threads) {
  const int64_t most_floats = processor::L1Floats() * 2 / 3;
  Strip strip{};
  strip.width = (convolution.out_width - 1) * convolution.stride_x +
                (convolution.kernel_width - 1) * convolution.dilation_x + 1;
  const int64_t floats_per_row =
      std::max<int64_t>(1, convolution.in_channels * convolution.stride_y * strip.width);
  const int64_t parts = threads > 1 ? threads * threads::ThreadPool::kPartsPerThread : 1;
  const int64_t most_rows =
      std::min(convolution.out_height, (batch * convolution.out_height + parts - 1) / parts);
  strip.out_rows =
      std::clamp<int64_t>(most_floats / floats_per_row, 1, std::max<int64_t>(1, most_rows));
  strip.in_rows = (strip.out_rows - 1) * convolution.stride_y +
                  (convolution.kernel_height - 1) * convolution.dilation_y + 1;
  strip.size = convolution.in_channels * strip.in_rows * strip.width;
  return strip;
}

class BoundPlanar final : public device::BoundKernel {
 public:
  BoundPlanar(const device::BoundStep& step, const Convolution& convolution, WindowOrder /*layout*/,
              runtime::PackedWeights weights, runtime::Runtime& runtime)
      : runtime_(runtime),
        convolution_(convolution),
        batch_(step.domain[0]),
        weights_(std::move(weights)),
        images_(step, convolution),
        strip_(StripOf(convolution, batch_, runtime.pool().thread_count())) {
    const bool is_row_whole = convolution.dilation_x == 1;
    depth_ = is_row_whole ? convolution.kernel_width : 1;
    const int64_t rows = convolution.in_channels * convolution.kernel_height;
    for (int64_t row = 0; row < rows; ++row) {
      const int64_t c = row / convolution.kernel_height;
      const int64_t y = row % convolution.kernel_height * convolution.dilation_y;
      for (int64_t x = 0; x < (is_row_whole ? 1 : convolution.kernel_width); ++x) {
        pieces_.push_back((c * strip_.in_rows + y) * strip_.width + x * convolution.dilation_x);
      }
    }
  }

  // The weights are packed.
  bool ReadsAtRun(int read) const override { return read != 1; }

  Status Run(device::Addresses addresses) const override {
    const Images images = images_.At(addresses);
    const gemm::Epilogue epilogue = images_.EpilogueAt(addresses);
    threads::ThreadPool& pool = runtime_.pool();
    const int64_t strips =
        batch_ * ((convolution_.out_height + strip_.out_rows - 1) / strip_.out_rows);
    // To write a sum takes as long as so many multiply-adds: of a kernel of few taps, most of it.
    constexpr int64_t kMultiplyAddsPerSum = 16;
    const gemm::Work work = {strips, strip_.out_rows * convolution_.out_width,
                             WindowDepth(convolution_) + kMultiplyAddsPerSum,
                             GroupPanels(convolution_), /*are_panels_divided=*/false};
    const gemm::Grid grid = gemm::ChooseGrid(work, pool.thread_count());
    ONNXIFI_ASSIGN_OR_RETURN(const runtime::WorkMemory::Lease lease,
                             runtime_.work_memory().Lend(gemm::ThreadsOf(grid, pool) * strip_.size *
                                                         static_cast<int64_t>(sizeof(float))));
    gemm::ForParts(work, grid, pool, [&](int64_t thread, const gemm::Part& part) {
      float* copy = reinterpret_cast<float*>(lease.data()) + thread * strip_.size;
      for (int64_t strip = part.first_block; strip < part.end_block; ++strip) {
        RunStrip(images, epilogue, strip, copy);
      }
    });
    return base::Ok();
  }

  std::string Detail() const override {
    return "strips of " + std::to_string(strip_.out_rows) + " rows, " +
           std::to_string(pieces_.size()) + " pieces of " + std::to_string(depth_) + ", " +
           processor::VectorName();
  }

 private:
  void RunStrip(const Images& images, const gemm::Epilogue& epilogue, int64_t strip,
                float* copy) const {
    const int64_t strips_per_image =
        (convolution_.out_height + strip_.out_rows - 1) / strip_.out_rows;
    const int64_t n = strip / strips_per_image;
    const int64_t first = strip % strips_per_image * strip_.out_rows;
    const int64_t out_rows = std::min(strip_.out_rows, convolution_.out_height - first);
    const int64_t in_rows = (out_rows - 1) * convolution_.stride_y +
                            (convolution_.kernel_height - 1) * convolution_.dilation_y + 1;
    for (int64_t c = 0; c < convolution_.in_channels; ++c) {
      const float* plane =
          images.source + images.source_strides.At(n, 0, 0) + c * images.source_strides.channel;
      for (int64_t row = 0; row < in_rows; ++row) {
        CopyRow(plane, images.source_strides.row,
                first * convolution_.stride_y + row - convolution_.pad_top,
                copy + (c * strip_.in_rows + row) * strip_.width);
      }
    }
    for (int64_t y = 0; y < out_rows; ++y) {
      const WindowRow row = {copy + y * convolution_.stride_y * strip_.width, convolution_.stride_x,
                             images.result_strides.At(n, first + y, 0),
                             images.addend_strides.At(n, first + y, 0), convolution_.out_width};
      MultiplyRow(convolution_, {depth_, pieces_}, runtime::Floats(weights_), images, epilogue, row,
                  /*group=*/0, /*group_offset=*/0, 0, GroupPanels(convolution_));
    }
  }

  // Row y of a plane, which may be in the padding.
  void CopyRow(const float* plane, int64_t row_stride, int64_t y, float* target) const {
    float* end = target + strip_.width;
    if (y < 0 || y >= convolution_.in_height) {
      std::fill(target, end, 0.0F);
      return;
    }
    const int64_t left = std::min(strip_.width, convolution_.pad_left);
    const int64_t width = std::min(convolution_.in_width, strip_.width - left);
    target = std::fill_n(target, left, 0.0F);
    std::memcpy(target, plane + y * row_stride, static_cast<size_t>(width) * sizeof(float));
    std::fill(target + width, end, 0.0F);
  }

  runtime::Runtime& runtime_;
  const Convolution convolution_;
  const int64_t batch_;
  const runtime::PackedWeights weights_;
  const BoundImages images_;
  const Strip strip_;
  int64_t depth_ = 0;            // of a piece
  std::vector<int64_t> pieces_;  // of a window, in a strip
};

}  // namespace

runtime::RecipeResult SelectPlanar(const ConvolutionQuery& described) {
  ONNXIFI_RETURN_IF_ERROR(described.axes_status);
  ONNXIFI_RETURN_IF_ERROR(described.nchw_status);
  const Convolution& convolution = described.convolution;
  if (convolution.group > 1 || convolution.in_channels > kMaxChannels) {
    return Status(Code::kUnsupportedShape,
                  "The input has " + std::to_string(convolution.in_channels) + " channels in " +
                      std::to_string(convolution.group) + " groups; planes are taken up to " +
                      std::to_string(kMaxChannels) + " of one.");
  }
  return MakeRecipe<BoundPlanar, WindowPacking<WindowOrder::kChannelRowColumn>>("planar",
                                                                                convolution);
}

}  // namespace onnxifi::convolution
