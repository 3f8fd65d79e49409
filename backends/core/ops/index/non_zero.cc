// SPDX-License-Identifier: Apache-2.0
//
// NonZero, Compress.

#include "backends/core/ops/index/non_zero.h"

#include "backends/core/ops/index/positions.h"
#include "backends/core/ops/registry.h"

namespace onnxifi::ops {

Operand NonZeroPositions(Lowering& lowering, const Operand& operand) {
  using program::Index;
  const Operand count = lowering.Temporary(ElementType::kInt64, {Dim(1)});
  Index counting;
  counting.kind = Index::Kind::kCountNonZero;
  StepBuilder first(lowering, operand.shape);
  first.AddRead(operand.view);
  first.Finish(std::move(counting), {count.view});

  const Dim found = lowering.ReadAtRunTime(count, 1, /*lower=*/0).front();
  Operand positions = lowering.Temporary(ElementType::kInt64, {Dim(operand.rank()), found});
  Index listing;
  listing.kind = Index::Kind::kNonZero;
  StepBuilder second(lowering, operand.shape);
  second.AddRead(operand.view);
  second.Finish(std::move(listing), {positions.view});
  return positions;
}

namespace {

Status LowerNonZero(Lowering& lowering) {
  ONNXIFI_RETURN_IF_ERROR(lowering.NeedInputs(1));
  const Operand& x = lowering.In(0);
  if (x.type() != ElementType::kString) {
    lowering.Set(0, NonZeroPositions(lowering, x));
    return base::Ok();
  }
  // Texts count where they are not empty, as in numpy; the number of the empty one is 0.
  StepBuilder map(lowering, x.shape);
  const Expr number = map.ReadView(x.view);
  const Operand is_text = map.WriteMap(!(number == Like(number, 0)), ElementType::kBool);
  lowering.Set(0, NonZeroPositions(lowering, is_text));
  return base::Ok();
}

Status LowerCompress(Lowering& lowering) {
  ONNXIFI_RETURN_IF_ERROR(lowering.NeedInputs(2));
  Operand input = lowering.In(0);
  Operand condition = lowering.In(1);
  if (!tensor::IsBool(condition.type())) return lowering.UnsupportedType(1);
  int axis = 0;
  if (!lowering.HasAttribute("axis")) {
    input = lowering.Reshaped(input, {Product(input.shape)});
    // ONNX has conditions of one axis only. Paddle writes one that is shaped like the input and
    // means the elements under it; ONNX Runtime takes that, too.
    condition = lowering.Reshaped(condition, {Product(condition.shape)});
  } else if (condition.rank() != 1) {
    return lowering.InvalidModel("condition has " + std::to_string(condition.rank()) +
                                 " axes instead of the one that selects along 'axis'.");
  } else {
    ONNXIFI_ASSIGN_OR_RETURN(axis, lowering.Axis(lowering.Int("axis", 0), input.rank()));
  }
  // The condition may be shorter than the axis; what is longer selects nothing.
  const Dim length = Min(condition.shape[0], input.shape[axis]);
  condition = program::Slice(condition, 0, 0, 1, length);

  const Operand positions = program::RemoveAxis(NonZeroPositions(lowering, condition), 0);
  Shape shape = input.shape;
  shape[axis] = positions.shape[0];
  StepBuilder map(lowering, shape);
  Operand aligned = positions;
  while (aligned.rank() < input.rank() - axis)
    aligned = program::InsertAxis(aligned, aligned.rank());
  std::vector<Expr> at;
  for (int k = 0; k < input.rank(); ++k) {
    at.push_back(k == axis ? map.Read(aligned) : map.Coordinate(k));
  }
  lowering.Set(0, map.WriteMap(ReadGuarded(map, input, at, {axis}), input.type()));
  return base::Ok();
}

constexpr Operator kOperators[] = {
    {"NonZero", 13, LowerNonZero, "", InputKinds::kStrings},
    {"Compress", 28, LowerCompress, "", InputKinds::kStrings},
};

}  // namespace

std::span<const Operator> NonZeroOperators() { return kOperators; }

}  // namespace onnxifi::ops
