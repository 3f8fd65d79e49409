// SPDX-License-Identifier: Apache-2.0
//
// Window products: the depth is packed piece by piece, each a run of equally spaced weights.

#include "backends/cpu/convolution/window_product.h"

#include <algorithm>
#include <string>

#include "backends/cpu/gemm/gemm.h"

namespace onnxifi::convolution {

base::Status CheckGroups(const Convolution& convolution) {
  constexpr int64_t kMinPerGroup = 8;
  const int64_t in = convolution.in_channels / convolution.group;
  const int64_t out = convolution.out_channels / convolution.group;
  if (convolution.group == 1 || std::min(in, out) >= kMinPerGroup) return base::Ok();
  return base::Status(base::Code::kUnsupportedShape,
                      "The groups have " + std::to_string(in) + " and " + std::to_string(out) +
                          " channels; below " + std::to_string(kMinPerGroup) +
                          " most of a vector would stay empty.");
}

int64_t WindowDepth(const Convolution& convolution) {
  return convolution.kernel_height * convolution.kernel_width * convolution.in_channels /
         convolution.group;
}

int64_t GroupColumns(const Convolution& convolution) {
  return convolution.out_channels / convolution.group;
}

int64_t GroupPanels(const Convolution& convolution) {
  return (GroupColumns(convolution) + gemm::PanelColumns() - 1) / gemm::PanelColumns();
}

int64_t PackedWindowSize(const Convolution& convolution) {
  return convolution.group * gemm::PackedSize(WindowDepth(convolution), GroupColumns(convolution));
}

void PackWindows(const Convolution& convolution, WindowOrder order, const Weights& weights,
                 device::Parallel& parallel, float* packed) {
  const int64_t columns = GroupColumns(convolution);
  const int64_t panels = GroupPanels(convolution);
  const int64_t depth = WindowDepth(convolution);
  const int64_t size = gemm::PackedSize(depth, columns);
  const bool is_by_channel = order == WindowOrder::kChannelRowColumn;
  // A piece runs along the innermost axis; the pieces along the two outer ones.
  const int64_t length =
      is_by_channel ? convolution.kernel_width : convolution.in_channels / convolution.group;
  const int64_t inner = is_by_channel ? convolution.kernel_height : convolution.kernel_width;
  const int64_t step = is_by_channel ? weights.column_stride : weights.in_stride;
  const int64_t inner_step = is_by_channel ? weights.row_stride : weights.column_stride;
  const int64_t outer_step = is_by_channel ? weights.in_stride : weights.row_stride;
  parallel.For(convolution.group * panels, /*grain=*/1, [&](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; ++k) {
      const int64_t group = k / panels;
      const int64_t panel = k % panels;
      for (int64_t piece = 0; piece < depth / length; ++piece) {
        const float* first = weights.data + group * columns * weights.out_stride +
                             piece / inner * outer_step + piece % inner * inner_step;
        gemm::PackRows({first, step, weights.out_stride}, length, columns, piece * length, depth,
                       panel, panel + 1, packed + group * size);
      }
    }
  });
}

void MultiplyRow(const Convolution& convolution, const WindowPieces& windows, const float* packed,
                 const Images& images, const gemm::Epilogue& epilogue, const WindowRow& row,
                 int64_t group, int64_t group_offset, int64_t first_panel, int64_t end_panel) {
  const int64_t columns = GroupColumns(convolution);
  gemm::Epilogue own = epilogue;
  if (own.bias != nullptr) own.bias += group * columns;
  if (images.addend != nullptr) {
    own.addend = images.addend + row.addend + group * columns;
    own.addend_stride = images.addend_strides.pixel;
  }
  const float* const weights = packed + group * gemm::PackedSize(WindowDepth(convolution), columns);
  const auto multiply = [&](const float* from, int64_t first, int64_t end) {
    gemm::Multiply(
        {row.first + group_offset, row.stride, from, images.result + row.result + group * columns,
         images.result_strides.pixel, row.windows, windows.depth, columns, windows.pieces,
         images.result_exceeds_cache},
        own, first, end);
  };
  const int64_t depth = windows.depth * static_cast<int64_t>(windows.pieces.size());
  const int64_t left_out = WindowDepth(convolution) - depth;
  if (left_out == 0) return multiply(weights, first_panel, end_panel);
  // A panel has the weights of all pieces; the product looks for its own behind panels of the
  // pieces that there are.
  for (int64_t panel = first_panel; panel < end_panel; ++panel) {
    const int64_t before = windows.left_out * windows.depth + panel * left_out;
    multiply(weights + before * gemm::PanelColumns(), panel, panel + 1);
  }
}

}  // namespace onnxifi::convolution
