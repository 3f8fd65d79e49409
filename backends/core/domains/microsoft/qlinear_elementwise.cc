// SPDX-License-Identifier: Apache-2.0
//
// Arithmetic on quantized tensors:
//   y = quantize(f(dequantize(a), dequantize(b), ...))

#include <utility>

#include "backends/core/domains/microsoft/microsoft.h"
#include "backends/core/domains/microsoft/quantization.h"

namespace onnxifi::microsoft {
namespace {

Status DefineBinary(Definition& d, const char* op_type) {
  ONNXIFI_ASSIGN_OR_RETURN(Value a, Dequantize(d, 0));
  ONNXIFI_ASSIGN_OR_RETURN(Value b, Dequantize(d, 3));
  const Value result = d.Apply(op_type, {std::move(a), std::move(b)});
  ONNXIFI_ASSIGN_OR_RETURN(Value c, Quantize(d, result, 6, 7, d.Type(0)));
  d.Return(0, std::move(c));
  return base::Ok();
}

Status DefineAdd(Definition& d) { return DefineBinary(d, "Add"); }
Status DefineMul(Definition& d) { return DefineBinary(d, "Mul"); }

// `attributes` of an operator of one input.
Status DefineUnary(Definition& d, const char* op_type, Definition::Attributes attributes = {}) {
  ONNXIFI_ASSIGN_OR_RETURN(Value x, Dequantize(d, 0));
  const Value result = d.Apply(op_type, {std::move(x)}, std::move(attributes));
  ONNXIFI_ASSIGN_OR_RETURN(Value y, Quantize(d, result, 3, 4, d.Type(0)));
  d.Return(0, std::move(y));
  return base::Ok();
}

Status DefineSigmoid(Definition& d) { return DefineUnary(d, "Sigmoid"); }

Status DefineLeakyRelu(Definition& d) {
  return DefineUnary(d, "LeakyRelu", {{"alpha", d.Float("alpha")}});
}

Status DefineSoftmax(Definition& d) {
  if (d.Int("opset") >= 13) return DefineUnary(d, "Softmax", {{"axis", d.Int("axis")}});
  // Over all axes from this one on.
  const std::optional<int> rank = d.Rank(0);
  if (!rank) return d.UnsupportedShape("Input 0 has a number of axes that is not known.");
  const int64_t axis = d.Int("axis") < 0 ? d.Int("axis") + *rank : d.Int("axis");
  if (axis < 0 || axis >= *rank) {
    return d.Invalid("Attribute axis (" + std::to_string(d.Int("axis")) +
                     ") is outside the axes of input 0, which has " + std::to_string(*rank) + ".");
  }
  ONNXIFI_ASSIGN_OR_RETURN(const Value x, Dequantize(d, 0));
  const Value rows = d.Apply("Flatten", {x}, {{"axis", axis}});
  const Value shares = d.Apply("Softmax", {rows}, {{"axis", int64_t{1}}});
  const Value result = d.ReshapeTo(shares, d.Apply("Shape", {x}));
  ONNXIFI_ASSIGN_OR_RETURN(Value y, Quantize(d, result, 3, 4, d.Type(0)));
  d.Return(0, std::move(y));
  return base::Ok();
}

Status DefineReduceMean(Definition& d) {
  ONNXIFI_ASSIGN_OR_RETURN(Value x, Dequantize(d, 0));
  const Value axes = d.Ints1D(d.Ints("axes"));
  const Value mean = d.Apply("ReduceMean", {std::move(x), axes}, {{"keepdims", d.Int("keepdims")}});
  ONNXIFI_ASSIGN_OR_RETURN(Value y, Quantize(d, mean, 3, 4, d.Type(0)));
  d.Return(0, std::move(y));
  return base::Ok();
}

Status DefineConcat(Definition& d) {
  if (d.input_count() < 5 || (d.input_count() - 2) % 3 != 0) {
    return d.Invalid("It has " + std::to_string(d.input_count()) +
                     " inputs; a scale and a zero point are followed by three for each tensor.");
  }
  std::vector<Value> tensors;
  for (int x = 2; x < d.input_count(); x += 3) {
    ONNXIFI_ASSIGN_OR_RETURN(tensors.emplace_back(), Dequantize(d, x));
  }
  const Value joined = d.Concat(std::move(tensors), d.Int("axis"));
  ONNXIFI_ASSIGN_OR_RETURN(Value y, Quantize(d, joined, 0, 1, d.Type(1)));
  d.Return(0, std::move(y));
  return base::Ok();
}

Status DefineWhere(Definition& d) {
  ONNXIFI_ASSIGN_OR_RETURN(Value x, Dequantize(d, 1));
  ONNXIFI_ASSIGN_OR_RETURN(Value y, Dequantize(d, 4));
  const Value chosen = d.Apply("Where", {d.In(0), std::move(x), std::move(y)});
  ONNXIFI_ASSIGN_OR_RETURN(Value z, Quantize(d, chosen, 7, 8, d.Type(1)));
  d.Return(0, std::move(z));
  return base::Ok();
}

constexpr model::DomainOperator kOperators[] = {
    {R"(QLinearAdd(A: T, A_scale: float, A_zero_point?: T, B: T, B_scale: float, B_zero_point?: T,
                   C_scale: float, C_zero_point?: T) -> (C: T)
        T = uint8 | int8)",
     DefineAdd},
    {R"(QLinearConcat(Y_scale: float, Y_zero_point: T8, inputs*: TV) -> (Y: T8)
        axis: int required
        T8 = uint8 | int8
        TV = uint8 | int8 | float)",
     DefineConcat},
    {R"(QLinearLeakyRelu(X: T, X_scale: float, X_zero_point?: T, Y_scale: float, Y_zero_point?: T)
            -> (Y: T)
        alpha: float = 0.01
        T = uint8 | int8)",
     DefineLeakyRelu},
    {R"(QLinearMul(A: T, A_scale: float, A_zero_point?: T, B: T, B_scale: float, B_zero_point?: T,
                   C_scale: float, C_zero_point?: T) -> (C: T)
        T = uint8 | int8)",
     DefineMul},
    {R"(QLinearReduceMean(data: T, data_scale: float, data_zero_point?: T, reduced_scale: float,
                          reduced_zero_point?: T) -> (reduced: T)
        axes: ints required
        keepdims: int required
        T = uint8 | int8)",
     DefineReduceMean},
    {R"(QLinearSigmoid(X: T, X_scale: float, X_zero_point?: T, Y_scale: float, Y_zero_point?: T)
            -> (Y: T)
        T = uint8 | int8)",
     DefineSigmoid},
    {R"(QLinearSoftmax(X: T, X_scale: float, x_zero_point?: T, y_scale: float, y_zero_point: T)
            -> (Y: T)
        axis: int = -1
        opset: int required
        T = uint8 | int8)",
     DefineSoftmax},
    {R"(QLinearWhere(condition: bool, X: T, x_scale: float, x_zero_point: T, Y: T, y_scale: float,
                     y_zero_point: T, z_scale: float, z_zero_point: T) -> (Z: T)
        T = uint8 | int8)",
     DefineWhere},
};

}  // namespace

std::span<const model::DomainOperator> QLinearElementwiseOperators() { return kOperators; }

}  // namespace onnxifi::microsoft
