// SPDX-License-Identifier: Apache-2.0
//
// Activations in definitions.

#include "backends/core/domains/microsoft/activation.h"

#include <algorithm>
#include <array>
#include <utility>

namespace onnxifi::microsoft {

using base::Result;
using model::Definition;
using Value = Definition::Value;

namespace {

struct Known {
  std::string_view name;
  size_t parameters;
};

constexpr std::array<Known, 7> kActivations = {{
    {"Relu", 0},
    {"Tanh", 0},
    {"Sigmoid", 0},
    {"HardSwish", 0},
    {"LeakyRelu", 1},
    {"HardSigmoid", 2},
    {"Clip", 2},
}};

}  // namespace

Result<Value> Activate(Definition& d, Value value, const std::string& name,
                       const std::vector<float>& parameters, tensor::ElementType type) {
  if (name.empty()) return value;
  const auto* known = std::ranges::find(kActivations, name, &Known::name);
  if (known == kActivations.end()) {
    return d.Unsupported("Activation '" + name + "' is not supported.");
  }
  if (parameters.size() > known->parameters && known->parameters != 0) {
    return d.Invalid("Activation '" + name + "' has " + std::to_string(parameters.size()) +
                     " parameters where at most " + std::to_string(known->parameters) + " exist.");
  }
  if (name == "Clip") {
    std::vector<Value> inputs = {std::move(value)};
    for (const float bound : parameters) inputs.push_back(d.Scalar(bound, type));
    return d.Apply("Clip", std::move(inputs));
  }
  Definition::Attributes attributes;
  constexpr std::array<const char*, 2> kNames = {"alpha", "beta"};
  for (size_t k = 0; k < known->parameters && k < parameters.size(); ++k) {
    attributes.emplace_back(kNames[k], parameters[k]);
  }
  return d.Apply(known->name.data(), {std::move(value)}, std::move(attributes));
}

}  // namespace onnxifi::microsoft
