// SPDX-License-Identifier: Apache-2.0
//
// The Reduce operators. Axes are an attribute, since opset 18 (ReduceSum: 13) an input. Results
// over no elements are the neutral elements that ONNX lists; the mean of none, which ONNX leaves
// open, is 0: exporters write a bag of embeddings as means of slices, some of them empty.

#include <limits>
#include <optional>
#include <utility>

#include "backends/core/ops/elementwise/broadcast.h"
#include "backends/core/ops/elementwise/floating_type.h"
#include "backends/core/ops/reduce/reduction.h"
#include "backends/core/ops/reduce/reduction_geometry.h"
#include "backends/core/ops/registry.h"

namespace onnxifi::ops {
namespace {

using program::Reduction;

bool HasAxesInput(const Lowering& lowering) {
  return lowering.version() >= (lowering.node().op_type == "ReduceSum" ? 13 : 18);
}

// No axes mean all axes, unless `noop_with_empty_axes` says that they mean none.
Result<AxisList> ReducedAxes(Lowering& lowering, int rank) {
  Dims axes;
  if (!HasAxesInput(lowering)) {
    if (const std::vector<int64_t>* given = lowering.Ints("axes")) axes = ToDims(*given);
  } else if (lowering.Has(1)) {
    // The declared rank of a result that keeps no reduced axis tells how many these are.
    std::optional<int64_t> count;
    if (const std::optional<int> declared = lowering.DeclaredRank(0);
        lowering.Int("keepdims", 1) == 0 && declared && *declared < rank) {
      count = rank - *declared;
    }
    ONNXIFI_ASSIGN_OR_RETURN(axes, lowering.IntegersOrRuntime(1, count));
  }
  if (axes.empty() && lowering.Int("noop_with_empty_axes", 0) == 0) {
    for (int axis = 0; axis < rank; ++axis) axes.push_back(axis);
  }
  if (static_cast<int>(axes.size()) > rank) {
    return lowering.InvalidModel("Number of axes (" + std::to_string(axes.size()) +
                                 ") exceeds the rank (" + std::to_string(rank) + ") of the input.");
  }
  return AxisList::Make(lowering, std::move(axes), rank);
}

// finish(reduction, element, count): appends states to the reduction and gives the result; `count`
// is at least 1.
// `element` is of the type compute(input's).
template <typename Finish>
Status LowerReduction(Lowering& lowering, ElementType (*compute)(ElementType), Finish&& finish) {
  const Operand& x = lowering.In(0);
  ONNXIFI_ASSIGN_OR_RETURN(AxisList axes, ReducedAxes(lowering, x.rank()));
  const ReductionGeometry reduced = ReduceAxes(x, axes, lowering.Int("keepdims", 1) != 0);

  StepBuilder reduce(lowering, reduced.data.shape);
  Expr element = Cast(reduce.ReadView(reduced.data.view), compute(x.type()));
  Reduction reduction;
  const Dim count = Max(reduced.Count(), Dim(1));
  Expr result = finish(reduction, element, Cast(reduce.Extent(count), element.type()));
  lowering.Set(
      0, WriteReduction(lowering, reduce, reduced, std::move(reduction), {{result, x.type()}})[0]);
  return base::Ok();
}

// Integers are added in 64 bits, and their mean is cut off towards 0.
ElementType MeanType(ElementType type) {
  if (tensor::IsFloat(type)) return tensor::ArithmeticType(type);
  return tensor::IsSigned(type) ? ElementType::kInt64 : ElementType::kUint64;
}

template <ElementType (*compute)(ElementType), Expr (*finish)(Reduction&, Expr, Expr)>
Status LowerNumeric(Lowering& lowering) {
  ONNXIFI_RETURN_IF_ERROR(lowering.NeedInputs(1));
  if (!HasArithmetic(lowering.In(0).type())) return lowering.UnsupportedType(0);
  return LowerReduction(lowering, compute, finish);
}

// Max and Min take bool too, since opset 20.
template <Expr (*add_extreme)(Reduction&, Expr)>
Status LowerExtreme(Lowering& lowering) {
  ONNXIFI_RETURN_IF_ERROR(lowering.NeedInputs(1));
  const ElementType type = lowering.In(0).type();
  if (!HasArithmetic(type) && !tensor::IsBool(type)) return lowering.UnsupportedType(0);
  return LowerReduction(lowering, tensor::ArithmeticType, [](Reduction& reduction, Expr x, Expr) {
    return add_extreme(reduction, x);
  });
}

Expr Sum(Reduction& reduction, Expr x, Expr) { return AddSum(reduction, x); }
Expr Mean(Reduction& reduction, Expr x, Expr count) { return AddSum(reduction, x) / count; }
Expr Product(Reduction& reduction, Expr x, Expr) { return AddProduct(reduction, x); }
Expr L1(Reduction& reduction, Expr x, Expr) {
  return AddSum(reduction, tensor::IsUnsigned(x.type()) ? x : Unary(ExprOp::kAbs, x));
}
Expr L2(Reduction& reduction, Expr x, Expr) {
  return Unary(ExprOp::kSqrt, AddSum(reduction, x * x));
}
Expr LogSum(Reduction& reduction, Expr x, Expr) {
  return Unary(ExprOp::kLog, AddSum(reduction, x));
}
Expr SumSquare(Reduction& reduction, Expr x, Expr) { return AddSum(reduction, x * x); }

// log(sum(exp(x - m))) + m, where m is the largest element, so that no exponential overflows; an
// infinity is left to the sum.
Status LowerLogSumExp(Lowering& lowering) {
  ONNXIFI_RETURN_IF_ERROR(lowering.NeedInputs(1));
  const Operand& x = lowering.In(0);
  if (!HasArithmetic(x.type())) return lowering.UnsupportedType(0);
  ONNXIFI_ASSIGN_OR_RETURN(AxisList axes, ReducedAxes(lowering, x.rank()));
  const ReductionGeometry reduced = ReduceAxes(x, axes, lowering.Int("keepdims", 1) != 0);
  const ElementType type = FloatingType(x.type());
  // Ends as a Reduce with one result of the kept axes.
  const auto finish = [&](StepBuilder& step, Reduction reduction, Expr root) {
    program::Reduce reduce;
    reduce.axes = reduced.axes;
    reduce.reduction = std::move(reduction);
    reduce.roots = {root.id()};
    const Operand result = lowering.Temporary(type, reduced.Kept());
    step.Finish(std::move(reduce), {result.view});
    return result;
  };
  StepBuilder extremes(lowering, reduced.data.shape);
  Reduction maximum;
  const Expr most = AddMaximum(maximum, Cast(extremes.ReadView(reduced.data.view), type));
  const Expr infinity = Like(most, std::numeric_limits<double>::infinity());
  const Expr is_finite = Unary(ExprOp::kAbs, most) < infinity;
  const Operand largest =
      finish(extremes, std::move(maximum), Select(is_finite, most, Like(most, 0)));

  Operand per_row = largest;
  for (int k = 0; k < reduced.axes; ++k) per_row = program::InsertAxis(per_row, per_row.rank());
  StepBuilder exponentials(lowering, reduced.data.shape);
  const Expr lowered =
      Cast(exponentials.ReadView(reduced.data.view), type) - exponentials.Read(per_row);
  Reduction added;
  const Expr total = AddSum(added, Unary(ExprOp::kExp, lowered));
  const Operand sum = finish(exponentials, std::move(added), total);

  StepBuilder map(lowering, reduced.Kept());
  const Expr result = Unary(ExprOp::kLog, map.Read(sum)) + map.Read(largest);
  lowering.Set(0, lowering.Reshaped(map.WriteMap(result, x.type()), reduced.shape));
  return base::Ok();
}

constexpr Operator kOperators[] = {
    {"ReduceL1", 18, LowerNumeric<tensor::ArithmeticType, L1>},
    {"ReduceL2", 18, LowerNumeric<FloatingType, L2>},
    {"ReduceLogSum", 28, LowerNumeric<FloatingType, LogSum>},
    {"ReduceLogSumExp", 28, LowerLogSumExp},
    {"ReduceMax", 20, LowerExtreme<AddMaximum>},
    {"ReduceMean", 18, LowerNumeric<MeanType, Mean>},
    {"ReduceMin", 20, LowerExtreme<AddMinimum>},
    {"ReduceProd", 18, LowerNumeric<tensor::ArithmeticType, Product>},
    {"ReduceSum", 13, LowerNumeric<tensor::ArithmeticType, Sum>},
    {"ReduceSumSquare", 18, LowerNumeric<tensor::ArithmeticType, SumSquare>},
};

}  // namespace

std::span<const Operator> ReduceOperators() { return kOperators; }

}  // namespace onnxifi::ops
