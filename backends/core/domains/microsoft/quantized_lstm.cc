// SPDX-License-Identifier: Apache-2.0
//
// DynamicQuantizeLSTM: an LSTM whose weights are bytes, turned as [directions, input, 4 * hidden].
// The input is quantized, as ONNX Runtime does it, so that its product with W is one of bytes. ONNX
// Runtime quantizes the hidden state too, anew in each step; here that stays float32.

#include <utility>

#include "backends/core/domains/microsoft/microsoft.h"
#include "backends/core/domains/microsoft/quantization.h"

namespace onnxifi::microsoft {
namespace {

// Weights of ONNX's LSTM, of input `weights`, its scale and its zero point: one for each direction,
// or for each direction and column. As bytes that a product can take: [directions * columns, rows]
// with a scale for each row.
Result<Value> Weights(Definition& d, int weights, int scale) {
  ONNXIFI_RETURN_IF_ERROR(d.NeedRank(weights, 3));
  ONNXIFI_ASSIGN_OR_RETURN(const int64_t rows, d.NeedExtent(weights, 1));
  ONNXIFI_ASSIGN_OR_RETURN(const int64_t columns, d.NeedExtent(weights, 2));
  ONNXIFI_ASSIGN_OR_RETURN(const int64_t directions, d.NeedExtent(weights, 0));
  const auto by_row = [&](int input) {
    const Value numbers = d.Reshape(d.In(input), {directions, -1});
    return d.Reshape(d.Apply("Expand", {numbers, d.Ints1D({directions, columns})}), {-1});
  };
  const Value turned = d.Reshape(d.Transpose(d.In(weights), {0, 2, 1}), {-1, rows});
  const Value wide = d.Apply("DequantizeLinear", {turned, by_row(scale), by_row(scale + 1)},
                             {{"axis", int64_t{0}}});
  return d.Reshape(wide, {directions, columns, rows});
}

// The input as ONNX Runtime quantizes it: to uint8, by its own range.
Value Rounded(Definition& d, int input) {
  const std::vector<Value> bytes = d.ApplyAll("DynamicQuantizeLinear", {d.In(input)}, 3);
  return d.Apply("DequantizeLinear", bytes);
}

Status Define(Definition& d) {
  ONNXIFI_ASSIGN_OR_RETURN(const Value w, Weights(d, 1, 8));
  ONNXIFI_ASSIGN_OR_RETURN(const Value r, Weights(d, 2, 10));
  std::vector<Value> inputs = {Rounded(d, 0), w, r};
  for (int input = 3; input < 8; ++input) {
    inputs.push_back(d.Has(input) ? d.In(input) : Value());
  }
  while (inputs.back().empty()) inputs.pop_back();
  Definition::Attributes attributes = d.Given({"activation_alpha", "activation_beta", "activations",
                                               "clip", "direction", "hidden_size", "input_forget"});
  const std::vector<Value> outputs =
      d.ApplyAll("LSTM", std::move(inputs), 3, std::move(attributes));
  for (int output = 0; output < 3; ++output) {
    d.Return(output, outputs[static_cast<size_t>(output)]);
  }
  return base::Ok();
}

constexpr model::DomainOperator kOperators[] = {
    {R"(DynamicQuantizeLSTM(X: T, W: T2, R: T2, B?: T, sequence_lens?: int32, initial_h?: T,
                            initial_c?: T, P?: T, W_scale: T, W_zero_point: T2, R_scale: T,
                            R_zero_point: T2) -> (Y?: T, Y_h?: T, Y_c?: T)
        activation_alpha: floats
        activation_beta: floats
        activations: strings
        clip: float
        direction: string = forward
        hidden_size: int
        input_forget: int = 0
        T = float
        T2 = uint8 | int8)",
     Define},
};

}  // namespace

std::span<const model::DomainOperator> QuantizedLstmOperators() { return kOperators; }

}  // namespace onnxifi::microsoft
