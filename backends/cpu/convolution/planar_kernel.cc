// SPDX-License-Identifier: Apache-2.0
//
// SelectPlanar and its kernel: a convolution of planes, as products whose rows are the windows of
// one line of the result: of each row of a window, the elements next to each other are one piece.
// Some lines at a time, what their windows see is copied with its padding, so that it stays in the
// cache and may come from any address.

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "backends/cpu/convolution/grid.h"
#include "backends/cpu/convolution/kernel.h"
#include "backends/cpu/convolution/recipe.h"
#include "backends/cpu/gemm/gemm.h"

namespace onnxifi::convolution {
namespace {

using base::Code;
using base::Status;

// More channels are worth bringing next to each other.
constexpr int64_t kMostChannels = 4;

int64_t WindowRows(const Convolution& convolution) {
  return convolution.in_channels * convolution.kernel_height;
}

int64_t WindowDepth(const Convolution& convolution) {
  return WindowRows(convolution) * convolution.kernel_width;
}

int64_t PanelsOf(const Convolution& convolution) {
  return (convolution.out_channels + gemm::PanelColumns() - 1) / gemm::PanelColumns();
}

// A copy of what the windows of some lines see: for each channel as many rows.
struct Strip {
  int64_t lines;  // of the result
  int64_t rows;
  int64_t width;
  int64_t size;  // in floats
};

Strip StripOf(const Convolution& convolution) {
  constexpr int64_t kFloats = int64_t{1} << 13;
  Strip strip{};
  strip.width = (convolution.out_width - 1) * convolution.stride_x +
                (convolution.kernel_width - 1) * convolution.dilation_x + 1;
  const int64_t floats_per_line =
      std::max<int64_t>(1, convolution.in_channels * convolution.stride_y * strip.width);
  strip.lines = std::clamp<int64_t>(kFloats / floats_per_line, 1,
                                    std::max<int64_t>(1, convolution.out_height));
  strip.rows = (strip.lines - 1) * convolution.stride_y +
               (convolution.kernel_height - 1) * convolution.dilation_y + 1;
  strip.size = convolution.in_channels * strip.rows * strip.width;
  return strip;
}

class BoundPlanar final : public device::BoundKernel {
 public:
  BoundPlanar(const device::BoundStep& step, const Convolution& convolution, PackedWeights weights,
              runtime::Runtime& runtime)
      : runtime_(runtime),
        convolution_(convolution),
        batch_(step.domain[0]),
        weights_(std::move(weights)),
        images_(step, convolution),
        plane_stride_(step.reads[0].strides[1]),
        strip_(StripOf(convolution)) {
    const bool is_row_whole = convolution.dilation_x == 1;
    depth_ = is_row_whole ? convolution.kernel_width : 1;
    for (int64_t row = 0; row < WindowRows(convolution); ++row) {
      const int64_t c = row / convolution.kernel_height;
      const int64_t y = row % convolution.kernel_height * convolution.dilation_y;
      for (int64_t x = 0; x < (is_row_whole ? 1 : convolution.kernel_width); ++x) {
        pieces_.push_back((c * strip_.rows + y) * strip_.width + x * convolution.dilation_x);
      }
    }
  }

  // The weights are packed.
  bool ReadsAtRun(int read) const override { return read != 1; }

  Status Run(device::Addresses addresses) const override {
    const Images images = images_.At(addresses);
    const gemm::Epilogue epilogue = images_.EpilogueAt(addresses);
    threads::ThreadPool& pool = runtime_.pool();
    const int64_t strips = batch_ * ((convolution_.out_height + strip_.lines - 1) / strip_.lines);
    const Grid grid = ChooseGrid(
        {strips, strip_.lines * convolution_.out_width, WindowDepth(convolution_), /*panels=*/1},
        pool.thread_count());
    ONNXIFI_ASSIGN_OR_RETURN(const runtime::WorkMemory::Lease lease,
                             runtime_.work_memory().Lend(grid.row_parts * strip_.size *
                                                         static_cast<int64_t>(sizeof(float))));
    pool.For(grid.row_parts, /*grain=*/1, [&](int64_t begin, int64_t end) {
      for (int64_t part = begin; part < end; ++part) {
        float* copy = reinterpret_cast<float*>(lease.data()) + part * strip_.size;
        const int64_t end_strip = strips * (part + 1) / grid.row_parts;
        for (int64_t strip = strips * part / grid.row_parts; strip < end_strip; ++strip) {
          RunStrip(images, epilogue, strip, copy);
        }
      }
    });
    return base::Ok();
  }

  std::string Detail() const override {
    return "strips of " + std::to_string(strip_.lines) + " lines, " +
           std::to_string(pieces_.size()) + " pieces of " + std::to_string(depth_);
  }

 private:
  void RunStrip(const Images& images, const gemm::Epilogue& epilogue, int64_t strip,
                float* copy) const {
    const int64_t strips_per_image = (convolution_.out_height + strip_.lines - 1) / strip_.lines;
    const int64_t n = strip / strips_per_image;
    const int64_t first = strip % strips_per_image * strip_.lines;
    const int64_t lines = std::min(strip_.lines, convolution_.out_height - first);
    const int64_t rows = (lines - 1) * convolution_.stride_y +
                         (convolution_.kernel_height - 1) * convolution_.dilation_y + 1;
    for (int64_t c = 0; c < convolution_.in_channels; ++c) {
      const float* plane = images.source + images.source_strides.At(n, 0, 0) + c * plane_stride_;
      for (int64_t row = 0; row < rows; ++row) {
        CopyRow(plane, images.source_strides.row,
                first * convolution_.stride_y + row - convolution_.pad_top,
                copy + (c * strip_.rows + row) * strip_.width);
      }
    }
    for (int64_t line = 0; line < lines; ++line) {
      const int64_t y = first + line;
      gemm::Epilogue own = epilogue;
      if (images.addend != nullptr) {
        own.addend = images.addend + images.addend_strides.At(n, y, 0);
        own.addend_stride = images.addend_strides.pixel;
      }
      gemm::Multiply({copy + line * convolution_.stride_y * strip_.width, convolution_.stride_x,
                      Floats(weights_), images.result + images.result_strides.At(n, y, 0),
                      images.result_strides.pixel, convolution_.out_width, depth_,
                      convolution_.out_channels, pieces_},
                     own, 0, PanelsOf(convolution_));
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
  const PackedWeights weights_;
  const BoundImages images_;
  const int64_t plane_stride_;
  const Strip strip_;
  int64_t depth_ = 0;            // of a piece
  std::vector<int64_t> pieces_;  // of a window, in a strip
};

class PlanarKernel final : public device::Kernel {
 public:
  PlanarKernel(const Convolution& convolution, runtime::Runtime& runtime)
      : convolution_(convolution), runtime_(runtime) {}

  base::Result<std::unique_ptr<device::BoundKernel>> Bind(const device::BoundStep& step,
                                                          device::Addresses constants) override {
    const device::BoundView& view = step.reads[1];
    const float* data = reinterpret_cast<const float*>(constants[view.buffer]) + view.offset;
    const int64_t depth = WindowDepth(convolution_);
    const int64_t columns = convolution_.out_channels;
    ONNXIFI_ASSIGN_OR_RETURN(
        PackedWeights packed,
        weights_.Find(
            /*layout=*/0, runtime_.memory(), gemm::PackedSize(depth, columns), [&](float* to) {
              for (int64_t row = 0; row < WindowRows(convolution_); ++row) {
                const float* first = data + row / convolution_.kernel_height * view.strides[1] +
                                     row % convolution_.kernel_height * view.strides[2];
                gemm::PackRows({first, view.strides[3], view.strides[0]}, convolution_.kernel_width,
                               columns, row * convolution_.kernel_width, depth, 0,
                               PanelsOf(convolution_), to);
              }
            }));
    return std::unique_ptr<device::BoundKernel>(
        std::make_unique<BoundPlanar>(step, convolution_, std::move(packed), runtime_));
  }

 private:
  const Convolution convolution_;
  runtime::Runtime& runtime_;
  WeightStore weights_;
};

std::unique_ptr<device::Kernel> BuildPlanar(const Convolution& convolution,
                                            runtime::Runtime& runtime) {
  return std::make_unique<PlanarKernel>(convolution, runtime);
}

}  // namespace

SelectResult SelectPlanar(const device::Facts& facts) {
  ONNXIFI_ASSIGN_OR_RETURN(const Convolution convolution, DescribePlanar(facts));
  if (convolution.group > 1 || convolution.in_channels > kMostChannels) {
    return Status(Code::kUnsupportedShape,
                  "The input has " + std::to_string(convolution.in_channels) + " channels in " +
                      std::to_string(convolution.group) + " groups; planes are taken up to " +
                      std::to_string(kMostChannels) + " of one.");
  }
  return std::unique_ptr<const device::Recipe>(
      std::make_unique<Recipe>("planar", convolution, BuildPlanar));
}

}  // namespace onnxifi::convolution
