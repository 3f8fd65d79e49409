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
  std::span<const char* const> attributes;
};

constexpr std::array kAlpha = {"alpha"};
constexpr std::array kAlphaBeta = {"alpha", "beta"};
constexpr std::array kAlphaGamma = {"alpha", "gamma"};
constexpr std::array kBounds = {"min", "max"};

// What ONNX Runtime's kernels of FusedGemm and FusedConv know.
constexpr std::array<Known, 15> kActivations = {{
    {"Celu", kAlpha},
    {"Clip", kBounds},
    {"Elu", kAlpha},
    {"HardSigmoid", kAlphaBeta},
    {"HardSwish", {}},
    {"LeakyRelu", kAlpha},
    {"ParametricSoftplus", kAlphaBeta},
    {"Relu", {}},
    {"ScaledTanh", kAlphaBeta},
    {"Selu", kAlphaGamma},
    {"Sigmoid", {}},
    {"Softplus", {}},
    {"Softsign", {}},
    {"Tanh", {}},
    {"ThresholdedRelu", kAlpha},
}};

const Known* Find(const std::string& name) {
  const auto* known = std::ranges::find(kActivations, name, &Known::name);
  return known == kActivations.end() ? nullptr : known;
}

}  // namespace

std::span<const char* const> ActivationAttributes(const std::string& name) {
  const Known* known = Find(name);
  return known == nullptr ? std::span<const char* const>() : known->attributes;
}

Result<Value> Activate(Definition& d, Value value, const std::string& name,
                       const std::vector<std::optional<float>>& parameters,
                       tensor::ElementType type) {
  if (name.empty()) return value;
  const Known* known = Find(name);
  if (known == nullptr) return d.Unsupported("Activation '" + name + "' is not supported.");
  const auto names = known->attributes;
  if (parameters.size() > names.size() && !names.empty()) {
    return d.Invalid("Activation '" + name + "' has " + std::to_string(parameters.size()) +
                     " parameters where at most " + std::to_string(names.size()) + " exist.");
  }
  const size_t given = std::min(parameters.size(), names.size());
  if (name == "Clip") {
    std::vector<Value> inputs = {std::move(value)};
    for (size_t k = 0; k < given; ++k) {
      inputs.push_back(parameters[k] ? d.Scalar(*parameters[k], type) : Value());
    }
    return d.Apply("Clip", std::move(inputs));
  }
  Definition::Attributes attributes;
  for (size_t k = 0; k < given; ++k) {
    if (parameters[k]) attributes.emplace_back(names[k], *parameters[k]);
  }
  return d.Apply(known->name.data(), {std::move(value)}, std::move(attributes));
}

}  // namespace onnxifi::microsoft
