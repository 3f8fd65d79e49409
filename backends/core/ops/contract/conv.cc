// SPDX-License-Identifier: Apache-2.0
//
// Conv, ConvInteger, QLinearConv: one Contract of form kConv each; bias, scales and rounding are
// its epilogue.

#include <utility>

#include "backends/core/ops/contract/product.h"
#include "backends/core/ops/registry.h"
#include "backends/core/ops/window/sliding.h"

namespace onnxifi::ops {
namespace {

struct ConvParts {
  Sliding sliding;
  int64_t group = 1;
  Shape out;  // N, M, spatial
};

// X[N, C, spatial], W[M, C / group, kernel]
Result<ConvParts> MakeConvParts(Lowering& lowering, const Operand& x, const Operand& w) {
  if (x.rank() < 3 || w.rank() != x.rank()) {
    return lowering.InvalidModel("X and W have " + std::to_string(x.rank()) + " and " +
                                 std::to_string(w.rank()) +
                                 " axes; they must have the same number, at least 3.");
  }
  ConvParts parts;
  parts.group = lowering.Int("group", 1);
  if (parts.group < 1) {
    return lowering.InvalidModel("group (" + std::to_string(parts.group) + ") is less than 1.");
  }
  ONNXIFI_RETURN_IF_ERROR(lowering.RequireEqual(x.shape[1], w.shape[1] * Dim(parts.group),
                                                "The channels of X and of W times group"));
  ONNXIFI_RETURN_IF_ERROR(
      lowering.Require(Equal(Mod(w.shape[0], parts.group), 0), Code::kMismatchingShape,
                       "The output channels (" + w.shape[0].ToString() +
                           ") are not a multiple of group (" + std::to_string(parts.group) + ").",
                       {w.shape[0]}));
  const int spatial_rank = x.rank() - 2;
  const Shape kernel(w.shape.begin() + 2, w.shape.end());
  if (lowering.HasAttribute("kernel_shape")) {
    ONNXIFI_ASSIGN_OR_RETURN(const Shape given, KernelShape(lowering, spatial_rank));
    for (int axis = 0; axis < spatial_rank; ++axis) {
      ONNXIFI_RETURN_IF_ERROR(lowering.RequireEqual(
          given[axis], kernel[axis], "Extent " + std::to_string(axis) + " of kernel_shape and W"));
    }
  }
  ONNXIFI_ASSIGN_OR_RETURN(
      parts.sliding, MakeSliding(lowering, Shape(x.shape.begin() + 2, x.shape.end()), kernel));
  parts.out = {x.shape[0], w.shape[0]};
  parts.out.insert(parts.out.end(), parts.sliding.out.begin(), parts.sliding.out.end());
  return parts;
}

program::Contract ConvContract(const ConvParts& parts, const Operand& w) {
  program::Contract contract;
  contract.form = program::Contract::Form::kConv;
  contract.inner.assign(w.shape.begin() + 1, w.shape.end());
  contract.a_spatial = parts.sliding.in;
  contract.strides = parts.sliding.strides;
  contract.dilations = parts.sliding.dilations;
  contract.pads_begin = parts.sliding.pads_begin;
  contract.group = parts.group;
  return contract;
}

Status LowerConv(Lowering& lowering) {
  ONNXIFI_RETURN_IF_ERROR(lowering.NeedInputs(2));
  const Operand& x = lowering.In(0);
  const Operand& w = lowering.In(1);
  const ElementType type = x.type();
  if (!tensor::IsFloat(type)) return lowering.UnsupportedType(0);
  if (w.type() != type) return lowering.UnsupportedType(1);
  ONNXIFI_ASSIGN_OR_RETURN(const ConvParts parts, MakeConvParts(lowering, x, w));

  StepBuilder step(lowering, parts.out);
  program::Contract contract = ConvContract(parts, w);
  Expr value = SumOfProducts(step, {x}, {w}, tensor::ArithmeticType(type), contract);
  if (lowering.Has(2)) {
    if (lowering.In(2).type() != type) return lowering.UnsupportedType(2);
    ONNXIFI_ASSIGN_OR_RETURN(const Operand bias,
                             ChannelVector(lowering, 2, x.rank(), parts.out[1]));
    value = value + Cast(step.Read(bias), value.type());
  }
  FinishProduct(lowering, step, std::move(contract), Cast(value, type));
  return base::Ok();
}

// Inputs: x, w, x_zero_point, w_zero_point. Padding stands for the zero point, which is 0 after the
// prologue.
Status LowerConvInteger(Lowering& lowering) {
  ONNXIFI_RETURN_IF_ERROR(lowering.NeedInputs(2));
  for (int input = 0; input < lowering.input_count(); ++input) {
    if (lowering.Has(input) && !IsByte(lowering.In(input).type())) {
      return lowering.UnsupportedType(input);
    }
  }
  const Operand& x = lowering.In(0);
  const Operand& w = lowering.In(1);
  ONNXIFI_ASSIGN_OR_RETURN(const ConvParts parts, MakeConvParts(lowering, x, w));
  std::optional<Operand> x_zero;
  std::optional<Operand> w_zero;
  if (lowering.Has(2)) {
    ONNXIFI_ASSIGN_OR_RETURN(x_zero, AlignParameter(lowering, 2, x.rank(), 1, x.shape[1]));
  }
  if (lowering.Has(3)) {
    ONNXIFI_ASSIGN_OR_RETURN(w_zero, AlignParameter(lowering, 3, w.rank(), 0, w.shape[0]));
  }

  StepBuilder step(lowering, parts.out);
  program::Contract contract = ConvContract(parts, w);
  const Expr sum = SumOfProducts(step, {x, x_zero}, {w, w_zero}, ElementType::kInt32, contract);
  FinishProduct(lowering, step, std::move(contract), sum);
  return base::Ok();
}

// Inputs: x, x_scale, x_zero_point, w, w_scale, w_zero_point, y_scale, y_zero_point, B (int32, at
// scale x_scale * w_scale).
Status LowerQLinearConv(Lowering& lowering) {
  ONNXIFI_RETURN_IF_ERROR(lowering.NeedInputs(8));
  for (int input : {0, 2, 3, 5, 7}) {
    if (!IsByte(lowering.In(input).type())) return lowering.UnsupportedType(input);
  }
  for (int input : {1, 4, 6}) {
    if (lowering.In(input).type() != ElementType::kFloat32) return lowering.UnsupportedType(input);
  }
  const Operand& x = lowering.In(0);
  const Operand& w = lowering.In(3);
  ONNXIFI_ASSIGN_OR_RETURN(const ConvParts parts, MakeConvParts(lowering, x, w));
  const int rank = x.rank();
  const Dim channels = w.shape[0];
  ONNXIFI_ASSIGN_OR_RETURN(const Operand x_scale, AlignParameter(lowering, 1, rank, 1, 1));
  ONNXIFI_ASSIGN_OR_RETURN(const Operand x_zero, AlignParameter(lowering, 2, rank, 1, 1));
  ONNXIFI_ASSIGN_OR_RETURN(const Operand w_scale, AlignParameter(lowering, 4, rank, 1, channels));
  ONNXIFI_ASSIGN_OR_RETURN(const Operand w_zero, AlignParameter(lowering, 5, rank, 0, channels));
  ONNXIFI_ASSIGN_OR_RETURN(const Operand y_scale, AlignParameter(lowering, 6, rank, 1, 1));
  ONNXIFI_ASSIGN_OR_RETURN(const Operand y_zero, AlignParameter(lowering, 7, rank, 1, 1));

  StepBuilder step(lowering, parts.out);
  program::Contract contract = ConvContract(parts, w);
  Expr sum = SumOfProducts(step, {x, x_zero}, {w, w_zero}, ElementType::kInt32, contract);
  if (lowering.Has(8)) {
    if (lowering.In(8).type() != ElementType::kInt32) return lowering.UnsupportedType(8);
    ONNXIFI_ASSIGN_OR_RETURN(const Operand bias, ChannelVector(lowering, 8, rank, channels));
    sum = sum + step.Read(bias);
  }
  Expr scale = step.Read(x_scale) * step.Read(w_scale) / step.Read(y_scale);
  const ElementType type = y_zero.type();
  FinishProduct(lowering, step, std::move(contract),
                Quantized(Cast(sum, ElementType::kFloat32) * scale, step.Read(y_zero), type));
  return base::Ok();
}

constexpr Operator kOperators[] = {
    {"Conv", 22, LowerConv},
    {"ConvInteger", 10, LowerConvInteger},
    {"QLinearConv", 10, LowerQLinearConv},
};

}  // namespace

std::span<const Operator> ConvOperators() { return kOperators; }

}  // namespace onnxifi::ops
