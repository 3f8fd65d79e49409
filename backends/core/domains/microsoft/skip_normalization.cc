// SPDX-License-Identifier: Apache-2.0
//
// Layer normalization of a sum:
//   sum = input + skip + bias
//   y = (sum - mean(sum)) / sqrt(var(sum) + epsilon) * gamma + beta
// "Simplified" is without the mean: y = sum / sqrt(mean(sum^2) + epsilon) * gamma.

#include <utility>

#include "backends/core/domains/microsoft/microsoft.h"
#include "backends/core/model/definition.h"

namespace onnxifi::microsoft {
namespace {

using base::Status;
using model::Definition;
using tensor::ElementType;
using Value = Definition::Value;

bool IsNarrow(ElementType type) {
  return type == ElementType::kFloat16 || type == ElementType::kBfloat16;
}

// Sums of narrow floats are not rounded before they are normalized.
Value Widen(Definition& d, Value value, ElementType type) {
  return IsNarrow(type) ? d.Cast(std::move(value), ElementType::kFloat32) : value;
}
Value Narrow(Definition& d, Value value, ElementType type) {
  return IsNarrow(type) ? d.Cast(std::move(value), type) : value;
}

// 1 / sqrt(mean(x^2) + epsilon) over these axes, float32.
Value InverseRoot(Definition& d, Value x, std::vector<int64_t> axes) {
  const Value wide = d.Cast(std::move(x), ElementType::kFloat32);
  const Value mean = d.Apply("ReduceMean", {d.Mul(wide, wide), d.Ints1D(std::move(axes))});
  const Value sum = d.Add(mean, d.Scalar(d.Float("epsilon"), ElementType::kFloat32));
  return d.Apply("Reciprocal", {d.Apply("Sqrt", {sum})});
}

Status DefineSkip(Definition& d, int bias, bool is_simplified) {
  const ElementType type = d.Type(0);
  if (type == ElementType::kUndefined) {
    return d.UnsupportedShape("The element type of input 0 is not known.");
  }
  Value sum = d.Add(Widen(d, d.In(0), type), Widen(d, d.In(1), type));
  if (d.Has(bias)) sum = d.Add(std::move(sum), Widen(d, d.In(bias), type));
  d.Return(3, Narrow(d, sum, type));
  const Value gamma = Widen(d, d.In(2), type);
  const Definition::Attributes attributes = {{"axis", int64_t{-1}},
                                             {"epsilon", d.Float("epsilon")}};
  if (is_simplified) {
    d.Return(0, Narrow(d, d.Apply("RMSNormalization", {sum, gamma}, attributes), type));
    d.Return(1, d.Apply("ReduceMean", {d.Cast(sum, ElementType::kFloat32), d.Ints1D({-1})}));
    d.Return(2, InverseRoot(d, sum, {-1}));
    return base::Ok();
  }
  std::vector<Value> inputs = {sum, gamma};
  if (d.Has(3)) inputs.push_back(Widen(d, d.In(3), type));
  const std::vector<Value> results =
      d.ApplyAll("LayerNormalization", std::move(inputs), 3, attributes);
  d.Return(0, Narrow(d, results[0], type));
  d.Return(1, results[1]);
  d.Return(2, results[2]);
  return base::Ok();
}

Status DefineSkipLayer(Definition& d) { return DefineSkip(d, 4, /*is_simplified=*/false); }
Status DefineSkipSimplified(Definition& d) { return DefineSkip(d, 3, /*is_simplified=*/true); }

Status DefineSimplified(Definition& d) {
  d.Return(0, d.Apply("RMSNormalization", {d.In(0), d.In(1)},
                      {{"axis", d.Int("axis")}, {"epsilon", d.Float("epsilon")}}));
  if (!d.Wants(1)) return base::Ok();
  const std::optional<int> rank = d.Rank(0);
  if (!rank) return d.UnsupportedShape("Input 0 has a number of axes that is not known.");
  const int64_t axis = d.Int("axis") < 0 ? d.Int("axis") + *rank : d.Int("axis");
  std::vector<int64_t> axes;
  for (int64_t k = axis; k < *rank; ++k) axes.push_back(k);
  d.Return(1, InverseRoot(d, d.In(0), std::move(axes)));
  return base::Ok();
}

constexpr model::DomainOperator kOperators[] = {
    {R"(SkipLayerNormalization(input: T, skip: T, gamma: T, beta?: T, bias?: T)
            -> (output: T, mean?: float, inv_std_var?: float, input_skip_bias_sum?: T)
        epsilon: float = 1e-12
        T = float | float16 | bfloat16)",
     DefineSkipLayer},
    {R"(SkipSimplifiedLayerNormalization(input: T, skip: T, gamma: T, bias?: T)
            -> (output: T, mean?: float, inv_std_var?: float, input_skip_bias_sum?: T)
        epsilon: float = 1e-12
        T = float | float16 | bfloat16)",
     DefineSkipSimplified},
};

constexpr model::DomainOperator kDefaultDomain[] = {
    {R"(SimplifiedLayerNormalization(X: T, scale: V) -> (Y: V, inv_std_var?: U)
        axis: int = -1
        epsilon: float = 1e-5
        stash_type: int = 1
        T = float16 | float | double | bfloat16
        U = float | double
        V = float16 | float | double | bfloat16)",
     DefineSimplified},
};

}  // namespace

std::span<const model::DomainOperator> SkipNormalizationOperators() { return kOperators; }
std::span<const model::DomainOperator> DefaultDomainOperators() { return kDefaultDomain; }

}  // namespace onnxifi::microsoft
