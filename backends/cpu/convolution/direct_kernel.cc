// SPDX-License-Identifier: Apache-2.0
//
// SelectDirect and its kernel: a convolution as products whose rows are the windows of one line of
// the result. Windows of neighbours overlap in memory, so nothing is gathered; where windows reach
// into the padding, a padded copy of the input is made first.

#include <algorithm>
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

// Fewer channels per group leave most of a vector unused.
constexpr int64_t kLeastPerGroup = 8;

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
  BoundDirect(const device::BoundStep& step, const Convolution& convolution, PackedWeights weights,
              runtime::Runtime& runtime)
      : runtime_(runtime),
        convolution_(convolution),
        batch_(step.domain[0]),
        weights_(std::move(weights)),
        images_(step, convolution),
        frame_(FrameOf(convolution)),
        is_copied_(convolution.pad_top > 0 || convolution.pad_left > 0 ||
                   frame_.height > convolution.in_height || frame_.width > convolution.in_width) {
    strides_ = is_copied_
                   ? PixelStrides{frame_.height * frame_.width * convolution.in_channels,
                                  frame_.width * convolution.in_channels, convolution.in_channels}
                   : PixelStridesOf(step.reads[0]);
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
      // A line is worth less than a thread's waking; some thousand floats are more.
      const int64_t grain = std::max<int64_t>(1, 16384 / strides_.row);
      pool.For(batch_ * frame_.height, grain, [&](int64_t begin, int64_t end) {
        for (int64_t line = begin; line < end; ++line) {
          CopyLine(images, line, copy + line * strides_.row);
        }
      });
      images.source = copy;
    }
    images.source_strides = strides_;
    const int64_t lines = batch_ * convolution_.out_height;
    const Grid grid =
        ChooseGrid({lines, convolution_.out_width, WindowDepth(), Panels()}, pool.thread_count());
    pool.For(grid.row_parts * grid.panel_parts, /*grain=*/1, [&](int64_t begin, int64_t end) {
      for (int64_t part = begin; part < end; ++part) {
        const int64_t row_part = part / grid.panel_parts;
        const int64_t panel_part = part % grid.panel_parts;
        RunLines(images, epilogue, lines * row_part / grid.row_parts,
                 lines * (row_part + 1) / grid.row_parts, Panels() * panel_part / grid.panel_parts,
                 Panels() * (panel_part + 1) / grid.panel_parts);
      }
    });
    return base::Ok();
  }

  std::string Detail() const override {
    return std::string(is_copied_ ? "padded copy, " : "") + std::to_string(pieces_.size()) +
           " pieces of " + std::to_string(depth_);
  }

 private:
  int64_t WindowDepth() const { return depth_ * static_cast<int64_t>(pieces_.size()); }
  int64_t Columns() const { return convolution_.out_channels / convolution_.group; }
  int64_t Panels() const { return (Columns() + gemm::PanelColumns() - 1) / gemm::PanelColumns(); }

  // One line of the padded input.
  void CopyLine(const Images& images, int64_t line, float* target) const {
    const int64_t channels = convolution_.in_channels;
    const int64_t y = line % frame_.height - convolution_.pad_top;
    if (y < 0 || y >= convolution_.in_height) {
      std::fill(target, target + strides_.row, 0.0F);
      return;
    }
    const int64_t left = std::min(frame_.width, convolution_.pad_left);
    const int64_t width = std::min(convolution_.in_width, frame_.width - left);
    float* to = std::fill_n(target, left * channels, 0.0F);
    const float* from = images.source + images.source_strides.At(line / frame_.height, y, 0);
    for (int64_t x = 0; x < width; ++x) {
      to = std::copy_n(from + x * images.source_strides.pixel, channels, to);
    }
    std::fill(to, target + strides_.row, 0.0F);
  }

  // Lines [first, end) of the result, panel by panel, so many lines at a time that what they read
  // stays in the cache.
  void RunLines(const Images& images, const gemm::Epilogue& epilogue, int64_t first, int64_t end,
                int64_t first_panel, int64_t end_panel) const {
    constexpr int64_t kLinesFloats = int64_t{1} << 16;
    const int64_t at_once = std::max<int64_t>(
        1, kLinesFloats / std::max<int64_t>(1, strides_.row * convolution_.stride_y));
    for (int64_t begin = first; begin < end; begin += at_once) {
      for (int64_t panel = first_panel; panel < end_panel; ++panel) {
        for (int64_t line = begin; line < std::min(end, begin + at_once); ++line) {
          for (int64_t group = 0; group < convolution_.group; ++group) {
            RunLine(images, epilogue, line, group, panel);
          }
        }
      }
    }
  }

  void RunLine(const Images& images, const gemm::Epilogue& epilogue, int64_t line, int64_t group,
               int64_t panel) const {
    const int64_t n = line / convolution_.out_height;
    const int64_t y = line % convolution_.out_height;
    const int64_t columns = Columns();
    gemm::Epilogue own = epilogue;
    if (own.bias != nullptr) own.bias += group * columns;
    if (images.addend != nullptr) {
      own.addend = images.addend + images.addend_strides.At(n, y, 0) + group * columns;
      own.addend_stride = images.addend_strides.pixel;
    }
    gemm::Multiply({images.source + images.source_strides.At(n, y * convolution_.stride_y, 0) +
                        group * (convolution_.in_channels / convolution_.group),
                    images.source_strides.pixel * convolution_.stride_x,
                    Floats(weights_) + group * gemm::PackedSize(WindowDepth(), columns),
                    images.result + images.result_strides.At(n, y, 0) + group * columns,
                    images.result_strides.pixel, convolution_.out_width, depth_, columns, pieces_},
                   own, panel, panel + 1);
  }

  runtime::Runtime& runtime_;
  const Convolution convolution_;
  const int64_t batch_;
  const PackedWeights weights_;
  const BoundImages images_;
  const Frame frame_;
  const bool is_copied_;
  PixelStrides strides_;         // of what the products read
  int64_t depth_ = 0;            // of a piece
  std::vector<int64_t> pieces_;  // of a window
};

class DirectKernel final : public device::Kernel {
 public:
  DirectKernel(const Convolution& convolution, runtime::Runtime& runtime)
      : convolution_(convolution), runtime_(runtime) {}

  base::Result<std::unique_ptr<device::BoundKernel>> Bind(const device::BoundStep& step,
                                                          device::Addresses constants) override {
    const int64_t taps = convolution_.kernel_height * convolution_.kernel_width;
    const int64_t depth = convolution_.in_channels / convolution_.group;
    const int64_t columns = convolution_.out_channels / convolution_.group;
    const int64_t size = gemm::PackedSize(taps * depth, columns);
    const int64_t panels = (columns + gemm::PanelColumns() - 1) / gemm::PanelColumns();
    const device::BoundView& view = step.reads[1];
    const float* data = reinterpret_cast<const float*>(constants[view.buffer]) + view.offset;
    ONNXIFI_ASSIGN_OR_RETURN(
        PackedWeights packed,
        weights_.Find(/*layout=*/0, runtime_.memory(), convolution_.group * size, [&](float* to) {
          runtime_.pool().For(
              convolution_.group * panels, /*grain=*/1, [&](int64_t begin, int64_t end) {
                for (int64_t k = begin * taps; k < end * taps; ++k) {
                  const int64_t group = k / taps / panels;
                  const int64_t panel = k / taps % panels;
                  const int64_t tap = k % taps;
                  const float* first = data + group * columns * view.strides[0] +
                                       tap / convolution_.kernel_width * view.strides[2] +
                                       tap % convolution_.kernel_width * view.strides[3];
                  gemm::PackRows({first, view.strides[1], view.strides[0]}, depth, columns,
                                 tap * depth, taps * depth, panel, panel + 1, to + group * size);
                }
              });
        }));
    return std::unique_ptr<device::BoundKernel>(
        std::make_unique<BoundDirect>(step, convolution_, std::move(packed), runtime_));
  }

 private:
  const Convolution convolution_;
  runtime::Runtime& runtime_;
  WeightStore weights_;
};

std::unique_ptr<device::Kernel> BuildDirect(const Convolution& convolution,
                                            runtime::Runtime& runtime) {
  return std::make_unique<DirectKernel>(convolution, runtime);
}

}  // namespace

SelectResult SelectDirect(const Convolution& convolution) {
  if (!convolution.has_gaps) {
    return Status(Code::kUnsupportedShape,
                  "The tensors have no gaps, which oneDNN reads and writes as fast.");
  }
  if (convolution.group > 1 &&
      std::min(convolution.in_channels, convolution.out_channels) / convolution.group <
          kLeastPerGroup) {
    return Status(Code::kUnsupportedShape,
                  "The groups have " + std::to_string(convolution.in_channels / convolution.group) +
                      " and " + std::to_string(convolution.out_channels / convolution.group) +
                      " channels; below " + std::to_string(kLeastPerGroup) +
                      " most of a vector would stay empty.");
  }
  return std::unique_ptr<const device::Recipe>(
      std::make_unique<Recipe>("direct", convolution, BuildDirect));
}

}  // namespace onnxifi::convolution
