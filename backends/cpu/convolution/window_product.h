// SPDX-License-Identifier: Apache-2.0
//
// Window products: convolutions as products of windows and packed weights, a row of the product per
// pixel of the result. What the pointwise, direct and planar kernels share; they differ in where a
// window's elements are.

#ifndef ONNXIFI_BACKENDS_CPU_CONVOLUTION_WINDOW_PRODUCT_H_
#define ONNXIFI_BACKENDS_CPU_CONVOLUTION_WINDOW_PRODUCT_H_

#include <cstdint>
#include <span>

#include "backends/core/base/status.h"
#include "backends/core/device/parallel.h"
#include "backends/cpu/convolution/facts.h"
#include "backends/cpu/convolution/image.h"
#include "backends/cpu/convolution/weights.h"
#include "backends/cpu/gemm/epilogue.h"

namespace onnxifi::convolution {

// In which order a window's elements follow one another, outermost first.
enum class WindowOrder : uint8_t { kRowColumnChannel, kChannelRowColumn };

// UNSUPPORTED_SHAPE where groups have so few channels that most of a vector would stay unused.
base::Status CheckGroups(const Convolution& convolution);

// Of one group.
int64_t WindowDepth(const Convolution& convolution);
int64_t GroupColumns(const Convolution& convolution);
int64_t GroupPanels(const Convolution& convolution);

// Packed weights of all groups, one after the other: how many floats, and all of them.
int64_t PackedWindowSize(const Convolution& convolution);
void PackWindows(const Convolution& convolution, WindowOrder order, const Weights& weights,
                 device::Parallel& parallel, float* packed);

// The same as the packing of a Kernel.
template <WindowOrder order>
struct WindowPacking {
  using Layout = WindowOrder;
  static Layout Choose(const Convolution& /*convolution*/, int64_t /*batch*/) { return order; }
  static int64_t Size(const Convolution& convolution, Layout /*layout*/) {
    return PackedWindowSize(convolution);
  }
  static void Pack(const Convolution& convolution, Layout layout, const Weights& weights,
                   device::Parallel& parallel, float* packed) {
    PackWindows(convolution, layout, weights, parallel, packed);
  }
};

// Windows one after the other, for as many pixels of the result at one distance from each other.
struct WindowRow {
  const float* first;  // the first window's first element, of the first group
  int64_t stride;      // from window to window, in floats
  int64_t result;      // the first pixel, as an offset in the result
  int64_t addend;      // the same in the addend
  int64_t windows;     // how many
};

// Where a window's elements are: `depth` of them at each of `pieces`, offsets from its first. Of a
// window that reaches into padding, pieces that are zeros may be left out before and behind.
struct WindowPieces {
  int64_t depth;
  std::span<const int64_t> pieces;
  int64_t left_out = 0;  // before the first
};

// The panels [first_panel, end_panel) of one group's part of a row, with the epilogue.
// `group_offset` is how far the group's elements are from the first group's. `images` gives the
// result and the addend.
void MultiplyRow(const Convolution& convolution, const WindowPieces& windows, const float* packed,
                 const Images& images, const gemm::Epilogue& epilogue, const WindowRow& row,
                 int64_t group, int64_t group_offset, int64_t first_panel, int64_t end_panel);

}  // namespace onnxifi::convolution

#endif  // ONNXIFI_BACKENDS_CPU_CONVOLUTION_WINDOW_PRODUCT_H_
