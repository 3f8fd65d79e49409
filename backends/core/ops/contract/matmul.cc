// SPDX-License-Identifier: Apache-2.0
//
// MatMul, Gemm.

#include "backends/core/ops/contract/matmul.h"

#include <algorithm>
#include <utility>

#include "backends/core/graph/own_attributes.h"
#include "backends/core/ops/contract/product.h"
#include "backends/core/ops/registry.h"

namespace onnxifi::ops {

Result<MatMulAxes> MakeMatMulAxes(Lowering& lowering, const Operand& a, const Operand& b) {
  if (a.rank() == 0 || b.rank() == 0) {
    return lowering.InvalidModel("An operand of a matrix product is a scalar.");
  }
  const int a_lead = std::max(0, a.rank() - 2);
  const int b_lead = std::max(0, b.rank() - 2);
  const Dim k = a.shape.back();
  ONNXIFI_RETURN_IF_ERROR(lowering.RequireEqual(k, b.shape[b.rank() == 1 ? 0 : b.rank() - 2],
                                                "Inner extents of A and B"));
  MatMulAxes axes;
  axes.n = b.rank() == 1 ? 0 : 1;
  if (b_lead == 0) {
    axes.a = a;
    axes.b = b;
    axes.m = a.rank() - 1;
    axes.out.assign(a.shape.begin(), a.shape.end() - 1);
  } else {
    ONNXIFI_ASSIGN_OR_RETURN(Shape batch,
                             lowering.Broadcast(Shape(a.shape.begin(), a.shape.begin() + a_lead),
                                                Shape(b.shape.begin(), b.shape.begin() + b_lead)));
    axes.batch = static_cast<int>(batch.size());
    axes.m = a.rank() == 1 ? 0 : 1;
    Shape a_shape = batch;
    a_shape.insert(a_shape.end(), a.shape.begin() + a_lead, a.shape.end());
    Shape b_shape = batch;
    b_shape.insert(b_shape.end(), b.shape.begin() + b_lead, b.shape.end());
    axes.a = {program::BroadcastTo(a, a_shape), a_shape};
    axes.b = {program::BroadcastTo(b, b_shape), b_shape};
    axes.out = batch;
    if (axes.m == 1) axes.out.push_back(a.shape[a_lead]);
  }
  if (axes.n == 1) axes.out.push_back(b.shape.back());
  return axes;
}

program::Contract MatMulContract(const MatMulAxes& axes) {
  program::Contract contract;
  contract.form = program::Contract::Form::kMatMul;
  contract.batch_axes = axes.batch;
  contract.m_axes = axes.m;
  contract.n_axes = axes.n;
  contract.inner = {axes.a.shape.back()};
  return contract;
}

namespace {

Status CheckFactors(Lowering& lowering) {
  ONNXIFI_RETURN_IF_ERROR(lowering.NeedInputs(2));
  const ElementType type = lowering.In(0).type();
  if (lowering.In(1).type() != type) {
    return Status(Code::kMismatchingDatatype,
                  lowering.node().op_type + ": A is " + std::string(Name(type)) + " and B is " +
                      std::string(Name(lowering.In(1).type())) + "; they must agree.");
  }
  if (!tensor::IsFloat(type) && !tensor::IsInteger(type)) return lowering.UnsupportedType(0);
  return base::Ok();
}

Status LowerMatMul(Lowering& lowering) {
  ONNXIFI_RETURN_IF_ERROR(CheckFactors(lowering));
  ONNXIFI_ASSIGN_OR_RETURN(const MatMulAxes axes,
                           MakeMatMulAxes(lowering, Unpadded(lowering, lowering.In(0)),
                                          Unpadded(lowering, lowering.In(1))));

  const ElementType type = axes.a.type();
  StepBuilder step(lowering, axes.out);
  program::Contract contract = MatMulContract(axes);
  contract.may_round_to_bytes = lowering.Int(graph::kMayRoundToBytes, 0) != 0;
  const Expr sum = SumOfProducts(step, {axes.a}, {axes.b}, tensor::ArithmeticType(type), contract);
  FinishProduct(lowering, step, std::move(contract), Cast(sum, type));
  return base::Ok();
}

// C as Gemm adds it: stretched to [M, N]. Before opset 7 only with `broadcast`.
Result<Operand> GemmBias(Lowering& lowering, const Shape& out) {
  const Operand& c = lowering.In(2);
  if (c.type() != lowering.In(0).type()) return lowering.UnsupportedType(2);
  if (c.rank() > 2) {
    return Status(Code::kMismatchingShape,
                  "Gemm: C has " + std::to_string(c.rank()) + " axes, more than 2.");
  }
  const bool is_exact = lowering.version() < 7 && lowering.Int("broadcast", 0) == 0;
  if (is_exact && c.rank() != 2) {
    return Status(Code::kMismatchingShape, "Gemm: C has " + std::to_string(c.rank()) +
                                               " axes instead of 2 and broadcast is 0.");
  }
  for (int axis = 2 - c.rank(); axis < 2; ++axis) {
    const Dim extent = c.shape[axis - (2 - c.rank())];
    const Dim fits =
        is_exact ? Equal(extent, out[axis]) : Max(Equal(extent, out[axis]), Equal(extent, 1));
    ONNXIFI_RETURN_IF_ERROR(lowering.Require(fits, Code::kMismatchingShape,
                                             "C of shape " + tensor::ToString(c.shape) +
                                                 " does not stretch to " + tensor::ToString(out) +
                                                 ".",
                                             {extent, out[axis]}));
  }
  return Operand{program::BroadcastTo(c, out), out};
}

// Y = alpha * A' * B' + beta * C
Status LowerGemm(Lowering& lowering) {
  ONNXIFI_RETURN_IF_ERROR(CheckFactors(lowering));
  Operand a = Unpadded(lowering, lowering.In(0));
  Operand b = Unpadded(lowering, lowering.In(1));
  if (a.rank() != 2 || b.rank() != 2) {
    return lowering.InvalidModel("A and B have " + std::to_string(a.rank()) + " and " +
                                 std::to_string(b.rank()) + " axes instead of 2.");
  }
  if (lowering.Int("transA", 0) != 0) a = program::Permute(a, {1, 0});
  if (lowering.Int("transB", 0) != 0) b = program::Permute(b, {1, 0});
  ONNXIFI_ASSIGN_OR_RETURN(const MatMulAxes axes, MakeMatMulAxes(lowering, a, b));
  const float alpha = lowering.Float("alpha", 1.0f);
  const float beta = lowering.Float("beta", 1.0f);

  const ElementType type = a.type();
  StepBuilder step(lowering, axes.out);
  program::Contract contract = MatMulContract(axes);
  Expr value = SumOfProducts(step, {axes.a}, {axes.b}, tensor::ArithmeticType(type), contract);
  // Integers are scaled as float64, which a factor of 1 does not need.
  const bool is_scaled = alpha != 1.0f || beta != 1.0f;
  const ElementType scaled =
      tensor::IsInteger(type) && is_scaled ? ElementType::kFloat64 : contract.accumulator;
  value = Cast(value, scaled);
  if (alpha != 1.0f) value = value * Like(value, alpha);
  if (lowering.Has(2) && beta != 0.0f) {
    ONNXIFI_ASSIGN_OR_RETURN(const Operand c, GemmBias(lowering, axes.out));
    Expr bias = Cast(step.ReadView(c.view), scaled);
    value = value + (beta == 1.0f ? bias : bias * Like(bias, beta));
  }
  FinishProduct(lowering, step, std::move(contract), Cast(value, type));
  return base::Ok();
}

constexpr Operator kOperators[] = {
    {"MatMul", 13, LowerMatMul},
    {"Gemm", 13, LowerGemm},
};

}  // namespace

std::span<const Operator> MatMulOperators() { return kOperators; }

}  // namespace onnxifi::ops
