// SPDX-License-Identifier: Apache-2.0
//
// QuantizeLinear and DequantizeLinear of this domain, which had 16 and 4 bits before ONNX's had:
// without attribute axis the scale is one number.

#include <utility>

#include "backends/core/domains/microsoft/microsoft.h"
#include "backends/core/domains/microsoft/quantization.h"

namespace onnxifi::microsoft {
namespace {

// ONNX's operator, whose inputs are the same.
Status Define(Definition& d, const char* op_type, Definition::Attributes attributes) {
  const bool by_axis = d.Rank(1) == 1 && d.Extent(1, 0) != 1;
  if (by_axis) {
    if (!d.HasAttribute("axis")) {
      return d.Invalid("Input 1 has one axis, and attribute axis does not say whose it is.");
    }
    attributes.emplace_back("axis", d.Int("axis"));
  }
  std::vector<Value> inputs = {d.In(0), d.In(1)};
  if (d.Has(2)) inputs.push_back(d.In(2));
  if (!by_axis) {
    ONNXIFI_ASSIGN_OR_RETURN(inputs[1], ScalarInput(d, 1));
    if (d.Has(2)) {
      ONNXIFI_ASSIGN_OR_RETURN(inputs[2], ScalarInput(d, 2));
    }
  }
  d.Return(0, d.Apply(op_type, std::move(inputs), std::move(attributes)));
  return base::Ok();
}

// ONNX Runtime divides float16, too, as float32.
Status DefineQuantize(Definition& d) {
  return Define(d, "QuantizeLinear", {{"precision", static_cast<int64_t>(ElementType::kFloat32)}});
}
Status DefineDequantize(Definition& d) { return Define(d, "DequantizeLinear", {}); }

constexpr model::DomainOperator kOperators[] = {
    {R"(DequantizeLinear(x: T1, x_scale: T2, x_zero_point?: T1) -> (y: T2)
        axis: int
        T1 = int8 | uint8 | int16 | uint16 | int32 | int4 | uint4
        T2 = float16 | float)",
     DefineDequantize},
    {R"(QuantizeLinear(x: T1, y_scale: T1, y_zero_point?: T2) -> (y: T2)
        axis: int
        T1 = float16 | float
        T2 = int8 | uint8 | int16 | uint16 | int4 | uint4)",
     DefineQuantize},
};

}  // namespace

std::span<const model::DomainOperator> LinearQuantizationOperators() { return kOperators; }

}  // namespace onnxifi::microsoft
