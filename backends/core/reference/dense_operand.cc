// SPDX-License-Identifier: Apache-2.0
//
// DenseOperand: evaluated block by block in row-major order of its axes.

#include "backends/core/reference/dense_operand.h"

#include <algorithm>
#include <cstring>

namespace onnxifi::reference {

base::Result<DenseOperand> MakeDense(const Expression& expression,
                                     std::span<const int64_t> bound_dims,
                                     std::span<const device::BoundView> reads, int direct_read,
                                     const tensor::Extents& extents, device::Addresses addresses,
                                     device::Parallel& parallel) {
  const tensor::ElementType type = expression.root_type(0);
  DenseOperand operand;
  if (tensor::ElementCount(extents) == 0) {
    operand.strides.assign(extents.size(), 0);
    return operand;
  }
  if (direct_read >= 0 && reads[direct_read].guards.empty() && !tensor::IsBool(type)) {
    const device::BoundView& view = reads[direct_read];
    operand.data = addresses[view.buffer] + view.offset * LaneBytes(type);
    operand.strides = view.strides;
    // A caller's own memory may lie anywhere.
    if (reinterpret_cast<uintptr_t>(operand.data) % LaneBytes(type) == 0) return operand;
  }
  tensor::Extents distinct = extents;
  for (size_t axis = 0; axis < extents.size(); ++axis) {
    if (!expression.VariesAlong(static_cast<int>(axis), reads)) distinct[axis] = 1;
  }
  operand.strides = tensor::DenseStrides(distinct);
  for (size_t axis = 0; axis < extents.size(); ++axis) {
    if (distinct[axis] == 1) operand.strides[axis] = 0;
  }
  const int64_t count = tensor::ElementCount(distinct);
  const int64_t lane_bytes = LaneBytes(type);
  ONNXIFI_RETURN_IF_ERROR(Guarded([&] {
    operand.memory = Scratch(tensor::SizeBytes(type, count));
    return base::Ok();
  }));
  operand.data = operand.memory.data();
  constexpr int64_t kElementsPerRange = 8192;
  ONNXIFI_RETURN_IF_ERROR(
      ForRange(parallel, count, kElementsPerRange, [&](int64_t begin, int64_t end) {
        Frame frame(expression, bound_dims, reads, addresses);
        Sweep sweep(distinct);
        for (int64_t position = begin; position < end; position += kBlock) {
          sweep.Move(position, std::min(kBlock, end - position));
          frame.Run(sweep);
          std::memcpy(operand.memory.data() + position * lane_bytes, frame.root(0),
                      static_cast<size_t>(sweep.lanes() * lane_bytes));
        }
      }));
  return operand;
}

}  // namespace onnxifi::reference
