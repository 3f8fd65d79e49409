// SPDX-License-Identifier: Apache-2.0
//
// Quantization in definitions: ONNX's DequantizeLinear and QuantizeLinear, so that products find
// bytes where they look for them.

#include "backends/core/domains/microsoft/quantization.h"

#include <utility>

namespace onnxifi::microsoft {

Result<Value> ScalarInput(Definition& d, int input) {
  const std::optional<int> rank = d.Rank(input);
  if (!rank) {
    return d.UnsupportedShape("Input " + std::to_string(input) +
                              " has a number of axes that is not known.");
  }
  if (*rank == 0) return d.In(input);
  for (int axis = 0; axis < *rank; ++axis) {
    const std::optional<int64_t> extent = d.Extent(input, axis);
    if (extent == 1) continue;
    return d.UnsupportedShape("Input " + std::to_string(input) + " is no single number: its axis " +
                              std::to_string(axis) +
                              (extent ? " has " + std::to_string(*extent) + " elements."
                                      : " has an extent that is not known."));
  }
  return d.Apply("Squeeze", {d.In(input)});
}

Result<Value> Dequantize(Definition& d, int x) { return Dequantize(d, x, x + 1, x + 2); }

Result<Value> Dequantize(Definition& d, int x, int scale, int zero_point) {
  ONNXIFI_ASSIGN_OR_RETURN(Value factor, ScalarInput(d, scale));
  std::vector<Value> inputs = {d.In(x), std::move(factor)};
  if (d.Has(zero_point)) {
    ONNXIFI_ASSIGN_OR_RETURN(inputs.emplace_back(), ScalarInput(d, zero_point));
  }
  return d.Apply("DequantizeLinear", std::move(inputs));
}

Result<Value> Quantize(Definition& d, Value value, int scale, int zero_point, ElementType type) {
  ONNXIFI_ASSIGN_OR_RETURN(Value factor, ScalarInput(d, scale));
  std::vector<Value> inputs = {std::move(value), std::move(factor)};
  if (d.Has(zero_point)) {
    ONNXIFI_ASSIGN_OR_RETURN(inputs.emplace_back(), ScalarInput(d, zero_point));
    return d.Apply("QuantizeLinear", std::move(inputs));
  }
  return d.Apply("QuantizeLinear", std::move(inputs),
                 {{"output_dtype", static_cast<int64_t>(type)}});
}

Value Unpack(Definition& d, Value bytes, int64_t bits) {
  if (bits == 8) return bytes;
  std::vector<int64_t> shifts;
  for (int64_t shift = 0; shift < 8; shift += bits) shifts.push_back(shift);
  const Value by = d.Cast(d.Ints1D(shifts), ElementType::kUint8);
  const Value shifted =
      d.Apply("BitShift", {d.Unsqueeze(bytes, {-1}), by}, {{"direction", "RIGHT"}});
  const Value mask = d.Scalar(static_cast<double>((1 << bits) - 1), ElementType::kUint8);
  const Value elements = d.Apply("BitwiseAnd", {shifted, mask});
  // [..., n, 8 / bits] to [..., n * 8 / bits]: leading extents, then what is left.
  const Value leading = d.Apply("Shape", {bytes}, {{"start", int64_t{0}}, {"end", int64_t{-1}}});
  return d.ReshapeTo(elements, d.Concat({leading, d.Ints1D({-1})}, 0));
}

}  // namespace onnxifi::microsoft
