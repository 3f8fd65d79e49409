// SPDX-License-Identifier: Apache-2.0
//
// RowLines: joins the axes of rows that step as one, from the innermost outwards.

#include "backends/cpu/matmul/row_lines.h"

namespace onnxifi::matmul {

RowLines::RowLines(const device::BoundStep& step, const ConstantMatrix& matrix) {
  const int addend = matrix.epilogue.addend;
  std::vector<Axis> axes;  // innermost first
  for (size_t axis = matrix.row_axes; axis-- > 0;) {
    const Axis next = {step.domain[axis],
                       {step.reads[0].strides[axis], step.writes[0].strides[axis],
                        addend < 0 ? 0 : step.reads[static_cast<size_t>(addend)].strides[axis]}};
    if (next.extent == 1) continue;
    if (!axes.empty()) {
      Axis& inner = axes.back();
      if (next.distance.x == inner.distance.x * inner.extent &&
          next.distance.y == inner.distance.y * inner.extent &&
          next.distance.addend == inner.distance.addend * inner.extent) {
        inner.extent *= next.extent;
        continue;
      }
    }
    axes.push_back(next);
  }
  if (axes.empty()) axes.emplace_back();
  line_ = axes.front();
  outer_.assign(axes.begin() + 1, axes.end());
  for (const Axis& axis : outer_) count_ *= axis.extent;
}

RowLines::Offsets RowLines::BeginOf(int64_t line) const {
  Offsets begin;
  for (const Axis& axis : outer_) {
    const int64_t at = line % axis.extent;
    line /= axis.extent;
    begin.x += at * axis.distance.x;
    begin.y += at * axis.distance.y;
    begin.addend += at * axis.distance.addend;
  }
  return begin;
}

}  // namespace onnxifi::matmul
