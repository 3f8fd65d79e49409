// SPDX-License-Identifier: Apache-2.0
//
// The matrix of a discrete Fourier transform, and the product with it.

#include "backends/core/ops/signal/transform.h"

#include <numbers>
#include <utility>

#include "backends/core/ops/contract/matmul.h"
#include "backends/core/ops/contract/product.h"

namespace onnxifi::ops {
namespace {

// [M * in_parts, K * out_parts]: row (n, part), column (k, part). With e = exp(-+ 2 pi i k n / L),
// the real part of an input gives (Re e, Im e) and its imaginary part (-Im e, Re e). `window`, if
// there is one, has an element per n.
Operand MakeMatrix(Lowering& lowering, const Transform& transform, ElementType type,
                   const Operand* window) {
  StepBuilder map(lowering,
                  {transform.used, transform.in_parts, transform.bins, transform.out_parts});
  const ElementType compute = tensor::ArithmeticType(type);
  const Expr n = map.Coordinate(0);
  const Expr k = map.Coordinate(2);
  const Expr length = map.Extent(Max(transform.length, Dim(1)));
  // Whole turns are taken off while it is an integer.
  const UnitRoot root = MakeUnitRoot(Binary(ExprOp::kMod, n * k, length), length, compute);
  const Expr real = root.real;
  const Expr imaginary = transform.is_inverse ? root.imaginary : -root.imaginary;
  const auto is_zero = [](Expr part) { return part == Like(part, 0); };
  Expr value =
      Select(is_zero(map.Coordinate(1)), Select(is_zero(map.Coordinate(3)), real, imaginary),
             Select(is_zero(map.Coordinate(3)), -imaginary, real));
  if (transform.mirrors()) {
    // The other half of the spectrum is conjugate: its real parts are those of this half.
    const Expr is_single = Binary(ExprOp::kOr, is_zero(n), n + n == length);
    value = value * Select(is_single, Like(value, 1), Like(value, 2));
  }
  if (transform.is_inverse) value = value / Cast(length, compute);
  if (window != nullptr) {
    Operand aligned = *window;
    while (aligned.rank() < 4) aligned = program::InsertAxis(aligned, aligned.rank());
    value = value * map.ReadArithmetic(aligned);
  }
  const Operand matrix = map.WriteMap(value, compute);
  return lowering.Reshaped(
      matrix, {transform.used * transform.in_parts, transform.bins * Dim(transform.out_parts)});
}

}  // namespace

// Angles are kept below a quarter turn, so that zeros are exact.
UnitRoot MakeUnitRoot(Expr turn, Expr length, ElementType type) {
  const Expr is_behind = length < turn + turn;
  const Expr steps = Select(is_behind, length - turn, turn);  // of at most half a turn
  const Expr doubled = steps + steps;
  const auto sine_of = [&](Expr numerator, double pi) {
    const Expr share = Cast(numerator, type) / Cast(length, type);
    return Unary(ExprOp::kSin, share * Like(share, pi));
  };
  const Expr real = sine_of(length - (doubled + doubled), std::numbers::pi / 2);
  const Expr height =
      sine_of(Select(length < doubled + doubled, length - doubled, doubled), std::numbers::pi);
  return {real, Select(is_behind, -height, height)};
}

Result<Operand> TransformByMatrix(Lowering& lowering, const Transform& transform, const Operand& x,
                                  const Operand* window) {
  const ElementType type = x.type();
  const ElementType compute = tensor::ArithmeticType(type);
  const Operand matrix = MakeMatrix(lowering, transform, type, window);
  Shape rows(x.shape.begin(), x.shape.end() - 2);
  Shape flat = rows;
  flat.push_back(matrix.shape[0]);
  Operand a = transform.in_parts == Dim(1) ? program::RemoveAxis(x, x.rank() - 1)
                                           : lowering.Reshaped(x, flat);
  a.shape = flat;
  a = lowering.CastTo(a, compute);
  ONNXIFI_ASSIGN_OR_RETURN(const MatMulAxes axes, MakeMatMulAxes(lowering, a, matrix));
  StepBuilder step(lowering, axes.out);
  program::Contract contract = MatMulContract(axes);
  const Expr sum = SumOfProducts(step, {axes.a}, {axes.b}, compute, contract);
  contract.roots = {Cast(sum, type).id()};
  const Operand out = lowering.Temporary(type, axes.out);
  step.Finish(std::move(contract), {out.view});
  rows.push_back(transform.bins);
  rows.push_back(transform.out_parts);
  return lowering.Reshaped(out, rows);
}

}  // namespace onnxifi::ops
