// SPDX-License-Identifier: Apache-2.0
//
// Activations that the optimizer moves into products and convolutions, by the names of their
// operators.

#ifndef ONNXIFI_BACKENDS_CORE_DOMAINS_MICROSOFT_ACTIVATION_H_
#define ONNXIFI_BACKENDS_CORE_DOMAINS_MICROSOFT_ACTIVATION_H_

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "backends/core/base/result.h"
#include "backends/core/model/definition.h"

namespace onnxifi::microsoft {

// The attributes of the activation's operator, or Clip's bounds, in the order in which a list has
// their values. None for an activation that is not known.
std::span<const char* const> ActivationAttributes(const std::string& name);

// `value`, of `type`, itself where `name` is empty. `parameters`: those of the activation in the
// order of its attributes; missing ones have the operator's defaults.
base::Result<model::Definition::Value> Activate(model::Definition& d,
                                                model::Definition::Value value,
                                                const std::string& name,
                                                const std::vector<std::optional<float>>& parameters,
                                                tensor::ElementType type);

}  // namespace onnxifi::microsoft

#endif  // ONNXIFI_BACKENDS_CORE_DOMAINS_MICROSOFT_ACTIVATION_H_
