// SPDX-License-Identifier: Apache-2.0
//
// TopK: one Index step over the input with the selected axis moved last.

#include "backends/core/ops/lowering.h"
#include "backends/core/ops/registry.h"

namespace onnxifi::ops {
namespace {

// An attribute in opset 1, since opset 10 an input of one element.
Result<Dim> Count(Lowering& lowering) {
  if (lowering.version() < 10) return Dim(lowering.Int("k", 0));
  ONNXIFI_RETURN_IF_ERROR(lowering.NeedInputs(2));
  ONNXIFI_ASSIGN_OR_RETURN(Dims numbers, lowering.IntegersOrRuntime(1, 1));
  if (numbers.size() != 1) {
    return lowering.InvalidModel("K has " + std::to_string(numbers.size()) +
                                 " elements instead of one.");
  }
  return numbers.front();
}

Status LowerTopK(Lowering& lowering) {
  ONNXIFI_RETURN_IF_ERROR(lowering.NeedInputs(1));
  const Operand& x = lowering.In(0);
  if (!tensor::IsFloat(x.type()) && !tensor::IsInteger(x.type())) {
    return lowering.UnsupportedType(0);
  }
  ONNXIFI_ASSIGN_OR_RETURN(const int axis, lowering.Axis(lowering.Int("axis", -1), x.rank()));
  ONNXIFI_ASSIGN_OR_RETURN(const Dim k, Count(lowering));
  const Dim d = x.shape[axis];
  ONNXIFI_RETURN_IF_ERROR(
      lowering.Require(Less(-1, k) * Less(k, d + 1), Code::kInvalidModel,
                       "K (" + k.ToString() + ") is outside [0, " + d.ToString() + "].", {k, d}));

  std::vector<int> axis_last;
  for (int other = 0; other < x.rank(); ++other) {
    if (other != axis) axis_last.push_back(other);
  }
  axis_last.push_back(axis);
  program::Index index;
  index.kind = program::Index::Kind::kTopK;
  index.k = Max(k, 0);
  index.largest = lowering.Int("largest", 1) != 0;
  index.sorted = lowering.Int("sorted", 1) != 0;
  const Operand moved = program::Permute(x, axis_last);
  Shape shape = x.shape;
  shape[axis] = index.k;
  const Operand values = lowering.Temporary(x.type(), shape);
  const Operand positions = lowering.Temporary(ElementType::kInt64, shape);
  StepBuilder step(lowering, moved.shape);
  step.AddRead(moved.view);
  step.Finish(std::move(index), {program::Permute(values, axis_last).view,
                                 program::Permute(positions, axis_last).view});
  lowering.Set(0, values);
  if (lowering.output_count() > 1) lowering.Set(1, positions);
  return base::Ok();
}

constexpr Operator kOperators[] = {
    {"TopK", 24, LowerTopK},
};

}  // namespace

std::span<const Operator> TopKOperators() { return kOperators; }

}  // namespace onnxifi::ops
