// SPDX-License-Identifier: Apache-2.0
//
// Shape, Size: extents as int64 values. They are noted as expressions, so that extents computed
// from them stay symbolic.

#include <algorithm>

#include "backends/core/ops/lowering.h"
#include "backends/core/ops/registry.h"

namespace onnxifi::ops {
namespace {

// An axis given by attribute: negative ones count from the end, and both are clamped to [0, rank].
int64_t ClampAxis(int64_t axis, int64_t rank) {
  return std::clamp<int64_t>(axis < 0 ? axis + rank : axis, 0, rank);
}

Status LowerShape(Lowering& lowering) {
  ONNXIFI_RETURN_IF_ERROR(lowering.NeedInputs(1));
  const Shape& extents = lowering.In(0).shape;
  const int64_t rank = lowering.In(0).rank();
  const int64_t start = ClampAxis(lowering.Int("start", 0), rank);
  const int64_t end = std::max(start, ClampAxis(lowering.Int("end", rank), rank));

  StepBuilder map(lowering, {Dim(end - start)});
  Expr value = map.Extent(0);
  for (int64_t axis = start; axis < end; ++axis) {
    Expr is_here = map.Coordinate(0) == map.Extent(axis - start);
    value = Select(is_here, map.Extent(extents[axis]), value);
  }
  lowering.Set(0, map.WriteMap(value, ElementType::kInt64));
  return base::Ok();
}

Status LowerSize(Lowering& lowering) {
  ONNXIFI_RETURN_IF_ERROR(lowering.NeedInputs(1));
  StepBuilder map(lowering, {});
  lowering.Set(0, map.WriteMap(map.Extent(Product(lowering.In(0).shape)), ElementType::kInt64));
  return base::Ok();
}

constexpr Operator kOperators[] = {
    {"Shape", 25, LowerShape, "", InputKinds::kStrings},
    {"Size", 25, LowerSize, "", InputKinds::kStrings},
};

}  // namespace

std::span<const Operator> ExtentsOperators() { return kOperators; }

}  // namespace onnxifi::ops
