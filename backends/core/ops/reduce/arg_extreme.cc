// SPDX-License-Identifier: Apache-2.0
//
// ArgMax and ArgMin: position of the extreme element along one axis; `select_last_index` (since
// opset 12) decides ties.

#include "backends/core/program/arg_extreme.h"

#include "backends/core/ops/elementwise/broadcast.h"
#include "backends/core/ops/reduce/reduction.h"
#include "backends/core/ops/reduce/reduction_geometry.h"
#include "backends/core/ops/registry.h"

namespace onnxifi::ops {
namespace {

enum class Largest : bool { kNo, kYes };

template <Largest largest>
Status LowerArgExtreme(Lowering& lowering) {
  ONNXIFI_RETURN_IF_ERROR(lowering.NeedInputs(1));
  const Operand& x = lowering.In(0);
  if (!HasArithmetic(x.type())) return lowering.UnsupportedType(0);
  ONNXIFI_ASSIGN_OR_RETURN(int axis, lowering.Axis(lowering.Int("axis", 0), x.rank()));
  const ReductionGeometry reduced =
      ReduceAxes(x, std::vector<int>{axis}, lowering.Int("keepdims", 1) != 0);
  // A result without elements has nothing to choose.
  const Dim is_empty = Equal(tensor::Product(reduced.Kept()), Dim(0));
  ONNXIFI_RETURN_IF_ERROR(lowering.Require(
      Max(is_empty, Less(Dim(0), x.shape[axis])), Code::kUnsupportedShape,
      "Axis " + std::to_string(axis) + " has no elements to choose from.", {x.shape[axis]}));

  StepBuilder reduce(lowering, reduced.data.shape);
  Expr element = Cast(reduce.ReadView(reduced.data.view), tensor::ArithmeticType(x.type()));
  program::Reduction reduction;
  Expr position = AddArgExtreme(reduction, element, reduce.Coordinate(x.rank() - 1),
                                {.is_largest = largest == Largest::kYes,
                                 .takes_last = lowering.Int("select_last_index", 0) != 0});
  lowering.Set(0, WriteReduction(lowering, reduce, reduced, std::move(reduction),
                                 {{position, ElementType::kInt64}})[0]);
  return base::Ok();
}

constexpr Operator kOperators[] = {
    {"ArgMax", 13, LowerArgExtreme<Largest::kYes>},
    {"ArgMin", 13, LowerArgExtreme<Largest::kNo>},
};

}  // namespace

std::span<const Operator> ArgExtremeOperators() { return kOperators; }

}  // namespace onnxifi::ops
