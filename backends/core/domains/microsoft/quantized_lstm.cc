// SPDX-License-Identifier: Apache-2.0
//
// DynamicQuantizeLSTM: an LSTM whose weights are bytes, turned as [directions, input, 4 * hidden].
// ONNX Runtime quantizes what the weights multiply, too, anew in each step; here that stays
// float32.

#include <utility>

#include "backends/core/domains/microsoft/microsoft.h"
#include "backends/core/domains/microsoft/quantization.h"

namespace onnxifi::microsoft {
namespace {

// Weights of ONNX's LSTM, of the input, its scale and its zero point: one for each direction, or
// for each direction and column.
Value Weights(Definition& d, int weights, int scale) {
  const auto by_column = [&](int input) {
    const Value numbers = d.Cast(d.In(input), ElementType::kFloat32);
    return d.Rank(input) == 2 ? d.Unsqueeze(numbers, {1}) : d.Reshape(numbers, {-1, 1, 1});
  };
  const Value whole = d.Cast(d.In(weights), ElementType::kFloat32);
  const Value wide = d.Mul(d.Sub(whole, by_column(scale + 1)), by_column(scale));
  return d.Transpose(wide, {0, 2, 1});
}

Status Define(Definition& d) {
  std::vector<Value> inputs = {d.In(0), Weights(d, 1, 8), Weights(d, 2, 10)};
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
