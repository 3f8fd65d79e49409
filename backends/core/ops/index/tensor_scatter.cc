// SPDX-License-Identifier: Apache-2.0
//
// TensorScatter: a growing cache. Written as a Map, since each slot of the cache knows which
// update, if any, falls on it.

#include "backends/core/ops/lowering.h"
#include "backends/core/ops/registry.h"

namespace onnxifi::ops {
namespace {

// present[b.., s, ..] = update[b.., s - write_indices[b], ..] where that exists, else past[b.., s,
// ..]
Status LowerTensorScatter(Lowering& lowering) {
  ONNXIFI_RETURN_IF_ERROR(lowering.NeedInputs(2));
  const Operand& past = lowering.In(0);
  const Operand& update = lowering.In(1);
  const std::string mode = lowering.String("mode", "linear");
  if (mode != "linear" && mode != "circular") {
    return lowering.UnsupportedAttribute("mode '" + mode + "' is neither linear nor circular.");
  }
  if (update.rank() != past.rank() || update.type() != past.type()) {
    return lowering.InvalidModel("The cache and the update differ in rank (" +
                                 std::to_string(past.rank()) + ", " +
                                 std::to_string(update.rank()) + ") or element type.");
  }
  ONNXIFI_ASSIGN_OR_RETURN(const int axis, lowering.Axis(lowering.Int("axis", -2), past.rank()));
  if (axis == 0) return lowering.InvalidModel("axis is 0, the batch.");
  for (int k = 0; k < past.rank(); ++k) {
    if (k == axis) continue;
    ONNXIFI_RETURN_IF_ERROR(lowering.RequireEqual(past.shape[k], update.shape[k],
                                                  "Extents of axis " + std::to_string(k)));
  }
  const Dim length = past.shape[axis];
  ONNXIFI_RETURN_IF_ERROR(
      lowering.Require(Less(update.shape[axis], length + 1), Code::kMismatchingShape,
                       "The update (" + update.shape[axis].ToString() +
                           ") is longer than the cache (" + length.ToString() + ").",
                       {update.shape[axis], length}));

  StepBuilder map(lowering, past.shape);
  Expr start = map.Extent(0);
  if (lowering.Has(2)) {
    if (!tensor::IsInteger(lowering.In(2).type())) return lowering.UnsupportedType(2);
    Operand starts = lowering.In(2);
    if (starts.rank() != 1) {
      return lowering.InvalidModel("write_indices has " + std::to_string(starts.rank()) +
                                   " axes instead of one.");
    }
    ONNXIFI_RETURN_IF_ERROR(lowering.RequireEqual(starts.shape[0], past.shape[0],
                                                  "The length of write_indices and the batch"));
    while (starts.rank() < past.rank()) starts = program::InsertAxis(starts, starts.rank());
    start = Cast(map.Read(starts), ElementType::kInt64);
  }
  Expr offset = map.Coordinate(axis) - start;
  if (mode == "circular") offset = Binary(ExprOp::kMod, offset, map.Extent(length));
  std::vector<Expr> at;
  for (int k = 0; k < past.rank(); ++k) at.push_back(k == axis ? offset : map.Coordinate(k));
  Expr is_new = map.Extent(0) <= offset && offset < map.Extent(update.shape[axis]);
  Expr value = Select(is_new, map.ReadAt(update, at), map.ReadView(past.view));
  lowering.Set(0, map.WriteMap(value, past.type()));
  return base::Ok();
}

constexpr Operator kOperators[] = {
    {"TensorScatter", 24, LowerTensorScatter, "", InputKinds::kStrings},
};

}  // namespace

std::span<const Operator> TensorScatterOperators() { return kOperators; }

}  // namespace onnxifi::ops
