// SPDX-License-Identifier: Apache-2.0
//
// CumSum and CumProd: running sum and product along one axis, which is an input and may be known
// only while the program runs.

#include "backends/core/ops/elementwise/broadcast.h"
#include "backends/core/ops/reduce/reduction.h"
#include "backends/core/ops/reduce/reduction_geometry.h"
#include "backends/core/ops/registry.h"

namespace onnxifi::ops {
namespace {

// `data` with all the axes in one order for reading and writing: kept ones first, then the scanned
// one, as its only last axis.
Operand ScannedLast(const Operand& data, const AxisList& axes, bool is_reversed) {
  Operand last = ReduceAxes(data, axes, /*keepdims=*/true).data;
  // Of an axis known only while the program runs there is one candidate per axis of `data`; all but
  // one have the extent 1 then, so the sum of their strides where they count is the stride of the
  // one.
  const int candidates = last.rank() - data.rank() == 0 ? 1 : data.rank();
  const int first = last.rank() - candidates;
  for (int k = first + 1; k < first + candidates; ++k) {
    const Dim is_scanned = axes.Contains(k - first);
    auto reduce_into_first = [&](Dims& form) {
      form[first] = Select(is_scanned, form[k], form[first]);
    };
    reduce_into_first(last.shape);
    reduce_into_first(last.view.strides);
    for (program::Guard& guard : last.view.guards) reduce_into_first(guard.coefficients);
  }
  while (last.rank() > first + 1) last = program::RemoveAxis(last, last.rank() - 1);
  if (!is_reversed) return last;
  const Dim extent = last.shape[first];
  return program::Slice(last, first, extent - 1, -1, extent);
}

// Blocks of a product over- and underflow where the running product does not, and infinity times 0
// is no number: running products of floats are taken in order.
template <Expr (*add_running)(program::Reduction&, Expr), bool joins_blocks_of_floats>
Status LowerCumulative(Lowering& lowering) {
  ONNXIFI_RETURN_IF_ERROR(lowering.NeedInputs(2));
  const Operand& x = lowering.In(0);
  if (!HasArithmetic(x.type())) return lowering.UnsupportedType(0);
  if (x.rank() == 0)
    return lowering.InvalidModel("Input 0 is a scalar and has no axis to run along.");
  ONNXIFI_ASSIGN_OR_RETURN(AxisList axes, AxisList::FromInput(lowering, 1, x.rank(), 0, 1));
  if (axes.size() != 1) {
    return lowering.InvalidModel("Input 1 gives " + std::to_string(axes.size()) +
                                 " axes and must give 1.");
  }
  const bool is_reversed = lowering.Int("reverse", 0) != 0;
  const Operand data = ScannedLast(x, axes, is_reversed);
  Operand out = lowering.Temporary(x.type(), x.shape);

  StepBuilder step(lowering, data.shape);
  Expr element = Cast(step.ReadView(data.view), tensor::ArithmeticType(x.type()));
  program::Scan scan;
  scan.exclusive = lowering.Int("exclusive", 0) != 0;
  scan.roots = {Cast(add_running(scan.reduction, element), x.type()).id()};
  if (!joins_blocks_of_floats && tensor::IsFloat(element.type())) {
    for (program::Reduction::State& state : scan.reduction.states) state.merge = program::kNoExpr;
  }
  step.Finish(std::move(scan), {ScannedLast(out, axes, is_reversed).view});
  lowering.Set(0, std::move(out));
  return base::Ok();
}

constexpr Operator kOperators[] = {
    {"CumProd", 26, LowerCumulative<AddProduct, /*joins_blocks_of_floats=*/false>},
    {"CumSum", 14, LowerCumulative<AddSum, /*joins_blocks_of_floats=*/true>},
};

}  // namespace

std::span<const Operator> CumulativeOperators() { return kOperators; }

}  // namespace onnxifi::ops
