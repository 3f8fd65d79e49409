// SPDX-License-Identifier: Apache-2.0
//
// SelectPlanar and its kernel: a convolution of planes, row by row of the result. Windows that
// never reach into padding are read where they lie; else, some rows at a time, what they see is
// copied with its padding, and stays in the cache. Windows further apart than planar_row.h has them
// are the rows of a product, of which neighbours in a row of a window are one piece.

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "backends/cpu/convolution/kernel.h"
#include "backends/cpu/convolution/planar_row.h"
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

// What the windows of some rows see: for each channel as many rows.
struct Strip {
  int64_t out_rows;  // of the result
  int64_t in_rows;
  int64_t width;
  int64_t size;  // of a copy, in floats; 0 where the image is read where it lies
};

// The part of a padded plane that windows see.
struct Frame {
  int64_t height, width;
};

Frame FrameOf(const Convolution& convolution, int64_t out_rows) {
  return {(out_rows - 1) * convolution.stride_y +
              (convolution.kernel_height - 1) * convolution.dilation_y + 1,
          (convolution.out_width - 1) * convolution.stride_x +
              (convolution.kernel_width - 1) * convolution.dilation_x + 1};
}

bool ReachesIntoPadding(const Convolution& convolution) {
  const Frame frame = FrameOf(convolution, convolution.out_height);
  return convolution.pad_top > 0 || convolution.pad_left > 0 ||
         frame.height > convolution.in_height || frame.width > convolution.in_width;
}

// Of `batch` images there are strips enough for several parts of each of `threads` threads.
Strip StripOf(const Convolution& convolution, int64_t batch, int64_t threads) {
  if (!ReachesIntoPadding(convolution)) return {.out_rows = 1};
  const int64_t most_floats = processor::L1Floats() * 2 / 3;
  Strip strip{};
  strip.width = FrameOf(convolution, 1).width;
  const int64_t floats_per_row =
      std::max<int64_t>(1, convolution.in_channels * convolution.stride_y * strip.width);
  const int64_t parts = threads > 1 ? threads * threads::ThreadPool::kPartsPerThread : 1;
  const int64_t most_rows =
      std::min(convolution.out_height, (batch * convolution.out_height + parts - 1) / parts);
  strip.out_rows =
      std::clamp<int64_t>(most_floats / floats_per_row, 1, std::max<int64_t>(1, most_rows));
  strip.in_rows = FrameOf(convolution, strip.out_rows).height;
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
        strip_(StripOf(convolution, batch_, runtime.pool().thread_count())),
        strides_(IsCopied() ? PixelStrides{0, strip_.in_rows * strip_.width, strip_.width, 1}
                            : images_.source_strides()) {
    const bool has_planar_row = HasPlanarRow(convolution.stride_x);
    // Neighbours in a row of a window.
    depth_ = convolution.dilation_x == 1 ? convolution.kernel_width : 1;
    for (int64_t c = 0; c < convolution.in_channels; ++c) {
      for (int64_t y = 0; y < convolution.kernel_height; ++y) {
        const int64_t row = c * strides_.channel + y * convolution.dilation_y * strides_.row;
        for (int64_t x = 0; x < convolution.kernel_width; x += depth_) {
          const int64_t first = row + x * convolution.dilation_x;
          if (!has_planar_row) pieces_.push_back(first);
          for (int64_t tap = 0; has_planar_row && tap < depth_; tap += kMaxPlanarTaps) {
            taps_.push_back({first + tap, std::min(kMaxPlanarTaps, depth_ - tap)});
          }
        }
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
    return (IsCopied() ? "strips of " + std::to_string(strip_.out_rows) + " rows, "
                       : "in place, ") +
           std::to_string(WindowDepth(convolution_) / depth_) + " pieces of " +
           std::to_string(depth_) + ", " + processor::VectorName();
  }

 private:
  bool IsCopied() const { return strip_.size > 0; }

  void RunStrip(const Images& images, const gemm::Epilogue& epilogue, int64_t strip,
                float* copy) const {
    const int64_t strips_per_image =
        (convolution_.out_height + strip_.out_rows - 1) / strip_.out_rows;
    const int64_t n = strip / strips_per_image;
    const int64_t first = strip % strips_per_image * strip_.out_rows;
    const int64_t out_rows = std::min(strip_.out_rows, convolution_.out_height - first);
    const float* source = copy;
    if (IsCopied()) {
      CopyRows(images, n, first, out_rows, copy);
    } else {
      source = images.source + images.source_strides.At(n, first * convolution_.stride_y, 0);
    }
    for (int64_t y = 0; y < out_rows; ++y) {
      const float* const windows = source + y * convolution_.stride_y * strides_.row;
      const int64_t result = images.result_strides.At(n, first + y, 0);
      const int64_t addend = images.addend_strides.At(n, first + y, 0);
      if (!taps_.empty()) {
        ConvolvePlanarRow(
            {windows, taps_, WindowDepth(convolution_), convolution_.stride_x,
             runtime::Floats(weights_), images.result + result, images.result_strides.pixel,
             convolution_.out_width, convolution_.out_channels},
            images.EpilogueOf(epilogue, n, first + y), 0, GroupPanels(convolution_));
        continue;
      }
      MultiplyRow(convolution_, {depth_, pieces_}, runtime::Floats(weights_), images, epilogue,
                  {windows, convolution_.stride_x, result, addend, convolution_.out_width},
                  /*group=*/0, /*group_offset=*/0, 0, GroupPanels(convolution_));
    }
  }

  // What the windows of rows [first, first + out_rows) of an image see.
  void CopyRows(const Images& images, int64_t n, int64_t first, int64_t out_rows,
                float* copy) const {
    const int64_t in_rows = FrameOf(convolution_, out_rows).height;
    for (int64_t c = 0; c < convolution_.in_channels; ++c) {
      const float* const plane =
          images.source + images.source_strides.At(n, 0, 0) + c * images.source_strides.channel;
      for (int64_t row = 0; row < in_rows; ++row) {
        CopyRow(plane, images.source_strides.row,
                first * convolution_.stride_y + row - convolution_.pad_top,
                copy + c * strides_.channel + row * strides_.row);
      }
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
  const PixelStrides strides_;    // of what is read
  int64_t depth_ = 0;             // of a piece
  std::vector<int64_t> pieces_;   // of a window, where its rows have no kernels of their own
  std::vector<PlanarTaps> taps_;  // of a window, where they have
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
