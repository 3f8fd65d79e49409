// SPDX-License-Identifier: Apache-2.0
//
// Sliding: out = floor((in + pads - reach) / stride) + 1, where SAME chooses the pads that make it
// ceil(in / stride).

#include "backends/core/ops/window/sliding.h"

#include <limits>

namespace onnxifi::ops {

Dim Sliding::Reach(int axis) const { return (kernel[axis] - 1) * Dim(dilations[axis]) + 1; }

Result<Shape> SpatialExtents(Lowering& lowering, int lead) {
  const Shape& shape = lowering.In(0).shape;
  if (static_cast<int>(shape.size()) <= lead) {
    return lowering.InvalidModel("The input has " + std::to_string(shape.size()) +
                                 " axes and needs at least " + std::to_string(lead + 1) + ".");
  }
  return Shape(shape.begin() + lead, shape.end());
}

Result<std::vector<int64_t>> PerSpatialAxis(Lowering& lowering, std::string_view attribute,
                                            int spatial_rank, int64_t fallback, int64_t lowest) {
  // Keeps products with extents far from overflow.
  constexpr int64_t kMax = std::numeric_limits<int32_t>::max();
  const std::vector<int64_t>* given = lowering.Ints(attribute);
  if (given == nullptr || given->empty()) return std::vector<int64_t>(spatial_rank, fallback);
  if (static_cast<int>(given->size()) != spatial_rank) {
    return lowering.InvalidModel(std::string(attribute) + " has " + std::to_string(given->size()) +
                                 " elements for " + std::to_string(spatial_rank) +
                                 " spatial axes.");
  }
  for (int64_t number : *given) {
    if (number < lowest || number > kMax) {
      return lowering.InvalidModel(std::string(attribute) + " has an element (" +
                                   std::to_string(number) + ") outside [" + std::to_string(lowest) +
                                   ", " + std::to_string(kMax) + "].");
    }
  }
  return *given;
}

Result<Shape> KernelShape(Lowering& lowering, int spatial_rank) {
  if (!lowering.HasAttribute("kernel_shape")) {
    return lowering.InvalidModel("kernel_shape is missing.");
  }
  ONNXIFI_ASSIGN_OR_RETURN(
      std::vector<int64_t> kernel,
      PerSpatialAxis(lowering, "kernel_shape", spatial_rank, /*fallback=*/1, /*lowest=*/1));
  return Shape(kernel.begin(), kernel.end());
}

Result<std::string> AutoPad(Lowering& lowering) {
  std::string auto_pad = lowering.String("auto_pad", "NOTSET");
  if (auto_pad.empty()) auto_pad = "NOTSET";
  if (auto_pad != "NOTSET" && auto_pad != "VALID" && auto_pad != "SAME_UPPER" &&
      auto_pad != "SAME_LOWER") {
    return lowering.UnsupportedAttribute("auto_pad '" + auto_pad +
                                         "' is not NOTSET, VALID, SAME_UPPER or SAME_LOWER.");
  }
  return auto_pad;
}

Result<Sliding> ReadSlidingAttributes(Lowering& lowering, Shape in, Shape kernel) {
  const int rank = static_cast<int>(in.size());
  Sliding sliding;
  sliding.in = std::move(in);
  sliding.kernel = std::move(kernel);
  ONNXIFI_ASSIGN_OR_RETURN(sliding.strides, PerSpatialAxis(lowering, "strides", rank, 1, 1));
  ONNXIFI_ASSIGN_OR_RETURN(sliding.dilations, PerSpatialAxis(lowering, "dilations", rank, 1, 1));
  ONNXIFI_ASSIGN_OR_RETURN(const std::string auto_pad, AutoPad(lowering));
  std::vector<int64_t> pads(2 * rank, 0);
  if (auto_pad == "NOTSET") {
    ONNXIFI_ASSIGN_OR_RETURN(pads, PerSpatialAxis(lowering, "pads", 2 * rank, 0, 0));
  }
  sliding.pads_begin.assign(pads.begin(), pads.begin() + rank);
  sliding.pads_end.assign(pads.begin() + rank, pads.end());
  return sliding;
}

Result<Sliding> MakeSliding(Lowering& lowering, Shape in, Shape kernel) {
  ONNXIFI_ASSIGN_OR_RETURN(Sliding sliding,
                           ReadSlidingAttributes(lowering, std::move(in), std::move(kernel)));
  ONNXIFI_ASSIGN_OR_RETURN(const std::string auto_pad, AutoPad(lowering));
  const bool rounds_up = lowering.Int("ceil_mode", 0) != 0;
  for (int axis = 0; axis < sliding.rank(); ++axis) {
    const Dim stride = sliding.strides[axis];
    const Dim reach = sliding.Reach(axis);
    Dim& begin = sliding.pads_begin[axis];
    Dim& end = sliding.pads_end[axis];
    if (auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER") {
      const Dim out = CeilDiv(sliding.in[axis], stride);
      const Dim total = Max(0, (out - 1) * stride + reach - sliding.in[axis]);
      const Dim half = FloorDiv(total, 2);
      begin = auto_pad == "SAME_UPPER" ? half : total - half;
      end = total - begin;
      sliding.out.push_back(out);
      continue;
    }
    const Dim room = sliding.in[axis] + begin + end - reach;
    Dim out = FloorDiv(room, stride) + 1;
    if (rounds_up) {
      // A window that would start behind the input and its padding is dropped.
      out = CeilDiv(room, stride) + 1;
      out = out - Less(sliding.in[axis] + begin - 1, (out - 1) * stride);
    }
    sliding.out.push_back(Max(0, out));
  }
  return sliding;
}

}  // namespace onnxifi::ops
