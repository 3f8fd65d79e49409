// SPDX-License-Identifier: Apache-2.0
//
// DynamicQuantizeLinear: scale and zero point from the data's own range, which is widened to
// contain 0.
//   scale = (max - min) / 255,  zero_point = saturate(round(-min / scale)),  y = saturate(round(x /
//   scale) + zero_point)

#include "backends/core/ops/lowering.h"
#include "backends/core/ops/reduce/reduction.h"
#include "backends/core/ops/reduce/reduction_geometry.h"
#include "backends/core/ops/registry.h"

namespace onnxifi::ops {
namespace {

constexpr double kMax = 255;

// Minimum and maximum of 0 and the data, as float32 scalars.
struct Range {
  Operand min, max;
};

// One of them along the last axis.
Operand ReduceRows(Lowering& lowering, const Operand& x,
                   Expr (*add)(program::Reduction&, Expr element)) {
  const ReductionGeometry reduced =
      ReduceAxes(x, std::vector<int>{x.rank() - 1}, /*keepdims=*/false);
  StepBuilder reduce(lowering, reduced.data.shape);
  program::Reduction reduction;
  const Expr result = add(reduction, reduce.ReadView(reduced.data.view));
  return WriteReduction(lowering, reduce, reduced, std::move(reduction), {{result, x.type()}})[0];
}

// Rows first, which threads divide, where there are rows.
Range FindRange(Lowering& lowering, const Operand& x) {
  const bool has_rows = x.rank() > 1;
  const Operand least = has_rows ? ReduceRows(lowering, x, AddMinimum) : x;
  const Operand largest = has_rows ? ReduceRows(lowering, x, AddMaximum) : x;
  const ReductionGeometry reduced = ReduceAllAxes(least);
  StepBuilder reduce(lowering, reduced.data.shape);
  program::Reduction reduction;
  const Expr min = AddMinimum(reduction, reduce.ReadView(reduced.data.view));
  const Expr max = AddMaximum(reduction, reduce.ReadView(ReduceAllAxes(largest).data.view));
  std::vector<Operand> range = WriteReduction(
      lowering, reduce, reduced, std::move(reduction),
      {{Minimum(min, Like(min, 0)), x.type()}, {Maximum(max, Like(max, 0)), x.type()}});
  return {std::move(range[0]), std::move(range[1])};
}

Expr Saturate(Expr value) { return Minimum(Maximum(value, Like(value, 0)), Like(value, kMax)); }

Status LowerDynamicQuantizeLinear(Lowering& lowering) {
  ONNXIFI_RETURN_IF_ERROR(lowering.NeedInputs(1));
  const Operand& x = lowering.In(0);
  if (x.type() != ElementType::kFloat32) return lowering.UnsupportedType(0);
  const Range range = FindRange(lowering, x);

  // Data of nothing but zeros would give the scale 0; ONNX's reference takes the range 1 then.
  StepBuilder scalars(lowering, {});
  Expr min = scalars.Read(range.min);
  Expr width = scalars.Read(range.max) - min;
  width = Select(width == Like(width, 0), Like(width, 1), width);
  Expr scale = width / Like(width, kMax);
  Expr zero_point = Unary(ExprOp::kRoundEven, Saturate(-min / scale));
  Operand scale_out = lowering.Temporary(x.type(), {});
  Operand zero_point_out = lowering.Temporary(ElementType::kUint8, {});
  scalars.WriteMapTo({scale_out, zero_point_out}, {scale, Cast(zero_point, ElementType::kUint8)});

  StepBuilder map(lowering, x.shape);
  Expr rounded = Unary(ExprOp::kRoundEven, map.Read(x) / map.Read(scale_out));
  Expr shifted = rounded + Cast(map.Read(zero_point_out), x.type());
  lowering.Set(0, map.WriteMap(Saturate(shifted), ElementType::kUint8));
  lowering.Set(1, scale_out);
  lowering.Set(2, zero_point_out);
  return base::Ok();
}

constexpr Operator kOperators[] = {
    {"DynamicQuantizeLinear", 11, LowerDynamicQuantizeLinear},
};

}  // namespace

std::span<const Operator> DynamicQuantizeLinearOperators() { return kOperators; }

}  // namespace onnxifi::ops
