// SPDX-License-Identifier: Apache-2.0
//
// Sliding: how a kernel moves over the spatial axes of its input, as the attributes of convolutions
// and poolings say it.

#ifndef ONNXIFI_BACKENDS_CORE_OPS_WINDOW_SLIDING_H_
#define ONNXIFI_BACKENDS_CORE_OPS_WINDOW_SLIDING_H_

#include <string_view>
#include <vector>

#include "backends/core/ops/lowering.h"

namespace onnxifi::ops {

// All per spatial axis.
struct Sliding {
  Shape in;
  Shape kernel;
  std::vector<int64_t> strides;
  std::vector<int64_t> dilations;
  Dims pads_begin;
  Dims pads_end;
  Shape out;

  int rank() const { return static_cast<int>(in.size()); }
  // (kernel - 1) * dilation + 1.
  Dim Reach(int axis) const;
};

// strides, dilations, pads, auto_pad and ceil_mode of a kernel over `in`, and the extents they
// give.
Result<Sliding> MakeSliding(Lowering& lowering, Shape in, Shape kernel);

// strides, dilations and explicit pads alone, `out` empty; pads are 0 under any auto_pad but
// NOTSET.
Result<Sliding> ReadSlidingAttributes(Lowering& lowering, Shape in, Shape kernel);

// The spatial extents of input 0, which has `lead` other axes first and at least one spatial axis.
Result<Shape> SpatialExtents(Lowering& lowering, int lead);

// kernel_shape, of one positive number per spatial axis.
Result<Shape> KernelShape(Lowering& lowering, int spatial_rank);

// An integer per spatial axis, at least `lowest`; `fallback` everywhere where the attribute is
// missing.
Result<std::vector<int64_t>> PerSpatialAxis(Lowering& lowering, std::string_view attribute,
                                            int spatial_rank, int64_t fallback, int64_t lowest);

// One of NOTSET, VALID, SAME_UPPER, SAME_LOWER.
Result<std::string> AutoPad(Lowering& lowering);

}  // namespace onnxifi::ops

#endif  // ONNXIFI_BACKENDS_CORE_OPS_WINDOW_SLIDING_H_
