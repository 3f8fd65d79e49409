// SPDX-License-Identifier: Apache-2.0
//
// SelectPointwise and its kernel: a convolution of 1 x 1 is a product of pixels and weights, per
// group. Pixels that strides leave apart are copied together first.

#include <algorithm>
#include <string>
#include <utility>

#include "backends/cpu/convolution/grid.h"
#include "backends/cpu/convolution/kernel.h"
#include "backends/cpu/convolution/recipe.h"
#include "backends/cpu/gemm/gemm.h"

namespace onnxifi::convolution {
namespace {

using base::Code;
using base::Status;

// The pixels of the result as rows of products: `count` lines of `rows` neighbours each. One line
// where nothing lies between the ends of rows and images.
struct Lines {
  int64_t count;
  int64_t rows;
};

bool IsOneLine(const PixelStrides& strides, const Convolution& convolution, int64_t batch) {
  return (convolution.out_height == 1 || strides.row == convolution.out_width * strides.pixel) &&
         (batch == 1 ||
          strides.image == convolution.out_height * convolution.out_width * strides.pixel);
}

Lines LinesOf(const Convolution& convolution, int64_t batch, const Images& images) {
  const bool is_one_line =
      convolution.stride_y == 1 && convolution.stride_x == 1 &&
      IsOneLine(images.source_strides, convolution, batch) &&
      IsOneLine(images.result_strides, convolution, batch) &&
      (images.addend == nullptr || IsOneLine(images.addend_strides, convolution, batch));
  if (is_one_line) return {1, batch * convolution.out_height * convolution.out_width};
  return {batch * convolution.out_height, convolution.out_width};
}

int64_t PanelsOf(const Convolution& convolution) {
  const int64_t width = gemm::PanelColumns();
  return (convolution.out_channels / convolution.group + width - 1) / width;
}

class BoundPointwise final : public device::BoundKernel {
 public:
  BoundPointwise(const device::BoundStep& step, const Convolution& convolution,
                 PackedWeights weights, runtime::Runtime& runtime)
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
    ONNXIFI_ASSIGN_OR_RETURN(
        const runtime::WorkMemory::Lease lease,
        runtime_.work_memory().Lend(is_copied ? pixels * convolution_.in_channels *
                                                    static_cast<int64_t>(sizeof(float))
                                              : 0));
    if (is_copied) CopyPixels(images, reinterpret_cast<float*>(lease.data()));
    const Lines lines = LinesOf(convolution_, batch_, images);
    const int64_t depth = convolution_.in_channels / convolution_.group;
    const int64_t panels = PanelsOf(convolution_);
    const bool is_one_line = lines.count == 1;
    const int64_t block = is_one_line ? gemm::BlockRows() : 1;
    const int64_t rows = is_one_line ? lines.rows : lines.count;
    const int64_t blocks = (rows + block - 1) / block;
    const Grid grid = ChooseGrid({blocks, is_one_line ? block : lines.rows, depth, panels},
                                 runtime_.pool().thread_count());
    runtime_.pool().For(
        grid.row_parts * grid.panel_parts, /*grain=*/1, [&](int64_t begin, int64_t end) {
          for (int64_t part = begin; part < end; ++part) {
            const int64_t row_part = part / grid.panel_parts;
            const int64_t panel_part = part % grid.panel_parts;
            RunPart(images, epilogue, lines, blocks * row_part / grid.row_parts * block,
                    std::min(rows, blocks * (row_part + 1) / grid.row_parts * block),
                    panels * panel_part / grid.panel_parts,
                    panels * (panel_part + 1) / grid.panel_parts);
          }
        });
    return base::Ok();
  }

 private:
  // Copies the pixels that the windows see next to each other, and has `images` read them there.
  void CopyPixels(Images& images, float* copy) const {
    const int64_t channels = convolution_.in_channels;
    const int64_t width = convolution_.out_width;
    const int64_t grain = std::max<int64_t>(1, 16384 / (width * channels));
    runtime_.pool().For(batch_ * convolution_.out_height, grain, [&](int64_t begin, int64_t end) {
      for (int64_t line = begin; line < end; ++line) {
        const float* source =
            images.source +
            images.source_strides.At(line / convolution_.out_height,
                                     line % convolution_.out_height * convolution_.stride_y, 0);
        for (int64_t x = 0; x < width; ++x) {
          std::copy_n(source + x * convolution_.stride_x * images.source_strides.pixel, channels,
                      copy + (line * width + x) * channels);
        }
      }
    });
    images.source = copy;
    images.source_strides = {convolution_.out_height * width * channels, width * channels,
                             channels};
  }

  // Rows [first, end) of the only line, or as many lines.
  void RunPart(const Images& images, const gemm::Epilogue& epilogue, const Lines& lines,
               int64_t first, int64_t end, int64_t first_panel, int64_t end_panel) const {
    if (lines.count == 1) {
      RunRows(images, epilogue, first * images.source_strides.pixel,
              first * images.result_strides.pixel, first * images.addend_strides.pixel, end - first,
              first_panel, end_panel);
      return;
    }
    for (int64_t line = first; line < end; ++line) {
      const int64_t n = line / convolution_.out_height;
      const int64_t y = line % convolution_.out_height;
      RunRows(images, epilogue, images.source_strides.At(n, y, 0),
              images.result_strides.At(n, y, 0), images.addend_strides.At(n, y, 0), lines.rows,
              first_panel, end_panel);
    }
  }

  void RunRows(const Images& images, const gemm::Epilogue& epilogue, int64_t source, int64_t result,
               int64_t addend, int64_t rows, int64_t first_panel, int64_t end_panel) const {
    const int64_t depth = convolution_.in_channels / convolution_.group;
    const int64_t columns = convolution_.out_channels / convolution_.group;
    const int64_t size = gemm::PackedSize(depth, columns);
    for (int64_t group = 0; group < convolution_.group; ++group) {
      gemm::Epilogue own = epilogue;
      if (own.bias != nullptr) own.bias += group * columns;
      if (images.addend != nullptr) {
        own.addend = images.addend + addend + group * columns;
        own.addend_stride = images.addend_strides.pixel;
      }
      gemm::Multiply({images.source + source + group * depth,
                      images.source_strides.pixel,
                      Floats(weights_) + group * size,
                      images.result + result + group * columns,
                      images.result_strides.pixel,
                      rows,
                      depth,
                      columns,
                      {}},
                     own, first_panel, end_panel);
    }
  }

  runtime::Runtime& runtime_;
  const Convolution convolution_;
  const int64_t batch_;
  const PackedWeights weights_;
  const BoundImages images_;
};

class PointwiseKernel final : public device::Kernel {
 public:
  PointwiseKernel(const Convolution& convolution, runtime::Runtime& runtime)
      : convolution_(convolution), runtime_(runtime) {}

  base::Result<std::unique_ptr<device::BoundKernel>> Bind(const device::BoundStep& step,
                                                          device::Addresses constants) override {
    const int64_t depth = convolution_.in_channels / convolution_.group;
    const int64_t columns = convolution_.out_channels / convolution_.group;
    const int64_t size = gemm::PackedSize(depth, columns);
    const int64_t panels = PanelsOf(convolution_);
    const device::BoundView& view = step.reads[1];
    const float* data = reinterpret_cast<const float*>(constants[view.buffer]) + view.offset;
    ONNXIFI_ASSIGN_OR_RETURN(
        PackedWeights packed,
        weights_.Find(/*layout=*/0, runtime_.memory(), convolution_.group * size, [&](float* to) {
          runtime_.pool().For(
              convolution_.group * panels, /*grain=*/1, [&](int64_t begin, int64_t end) {
                for (int64_t k = begin; k < end; ++k) {
                  const int64_t group = k / panels;
                  const int64_t panel = k % panels;
                  gemm::PackPanels(
                      {data + group * columns * view.strides[0], view.strides[1], view.strides[0]},
                      depth, columns, panel, panel + 1, to + group * size);
                }
              });
        }));
    return std::unique_ptr<device::BoundKernel>(
        std::make_unique<BoundPointwise>(step, convolution_, std::move(packed), runtime_));
  }

 private:
  const Convolution convolution_;
  runtime::Runtime& runtime_;
  WeightStore weights_;
};

std::unique_ptr<device::Kernel> BuildPointwise(const Convolution& convolution,
                                               runtime::Runtime& runtime) {
  return std::make_unique<PointwiseKernel>(convolution, runtime);
}

}  // namespace

SelectResult SelectPointwise(const Convolution& convolution) {
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
  if (!convolution.has_gaps) {
    return Status(Code::kUnsupportedShape,
                  "The tensors have no gaps, which oneDNN reads and writes as fast.");
  }
  return std::unique_ptr<const device::Recipe>(
      std::make_unique<Recipe>("pointwise", convolution, BuildPointwise));
}

}  // namespace onnxifi::convolution
