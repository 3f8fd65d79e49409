// SPDX-License-Identifier: Apache-2.0
//
// OneHot: each index compared with the coordinate along the new axis. An index outside [-depth,
// depth - 1] is off everywhere.

#include <cstdint>

#include "backends/core/ops/index/positions.h"
#include "backends/core/ops/registry.h"
#include "backends/core/ops/shape/axis_list.h"

namespace onnxifi::ops {
namespace {

// `depth` is one number of any numeric type.
Result<Dim> Depth(Lowering& lowering) {
  const Operand& depth = lowering.In(1);
  ONNXIFI_RETURN_IF_ERROR(lowering.Require(Equal(Product(depth.shape), 1), Code::kInvalidModel,
                                           "depth is not one element."));
  if (tensor::IsInteger(depth.type())) {
    ONNXIFI_ASSIGN_OR_RETURN(Dims numbers, lowering.IntegersOrRuntime(1, 1));
    return AsExtent(lowering, numbers.front());
  }
  if (!tensor::IsFloat(depth.type())) return lowering.UnsupportedType(1);
  if (const tensor::Tensor* constant = lowering.SmallConstant(1)) {
    return AsExtent(lowering, constant->AsInt(0));
  }
  return AsExtent(lowering, lowering.ReadAtRunTime(lowering.Reshaped(depth, {Dim(1)}), 1).front());
}

Status LowerOneHot(Lowering& lowering) {
  ONNXIFI_RETURN_IF_ERROR(lowering.NeedInputs(3));
  const Operand& indices = lowering.In(0);
  const Operand& values = lowering.In(2);
  if (!tensor::IsInteger(indices.type()) && !tensor::IsFloat(indices.type())) {
    return lowering.UnsupportedType(0);
  }
  if (values.rank() != 1) {
    return lowering.InvalidModel("values has " + std::to_string(values.rank()) +
                                 " axes instead of one.");
  }
  ONNXIFI_RETURN_IF_ERROR(lowering.RequireEqual(values.shape[0], 2, "The length of values and 2"));
  ONNXIFI_ASSIGN_OR_RETURN(const int axis,
                           lowering.Axis(lowering.Int("axis", -1), indices.rank() + 1));
  ONNXIFI_ASSIGN_OR_RETURN(const Dim depth, Depth(lowering));

  // Once per index, and narrow: the comparison below is done for every element of the result.
  StepBuilder wrap(lowering, indices.shape);
  const Expr given = Cast(wrap.Read(indices), ElementType::kInt64);
  const ElementType narrow =
      depth.UpperBound() <= INT32_MAX ? ElementType::kInt32 : ElementType::kInt64;
  const Expr wrapped = WrapNegative(wrap, given, depth);
  const Expr is_inside = Like(wrapped, 0) <= wrapped && wrapped < wrap.Extent(depth);
  const Operand positions = wrap.WriteMap(Select(is_inside, wrapped, Like(wrapped, -1)), narrow);

  Shape shape = indices.shape;
  shape.insert(shape.begin() + axis, depth);
  StepBuilder map(lowering, shape);
  const Expr position = map.Read(program::InsertAxis(positions, axis));
  Expr off = map.Read(program::RemoveAxis(values, 0));
  Expr on = map.Read(program::RemoveAxis(program::Slice(values, 0, 1, 1, 1), 0));
  Expr is_hot = position == Cast(map.Coordinate(axis), narrow);
  lowering.Set(0, map.WriteMap(Select(is_hot, on, off), values.type()));
  return base::Ok();
}

constexpr Operator kOperators[] = {
    {"OneHot", 28, LowerOneHot, "", InputKinds::kStrings},
};

}  // namespace

std::span<const Operator> OneHotOperators() { return kOperators; }

}  // namespace onnxifi::ops
