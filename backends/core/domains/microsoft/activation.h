// SPDX-License-Identifier: Apache-2.0
//
// Activations that the optimizer moves into products and convolutions, by their ONNX names.

#ifndef ONNXIFI_BACKENDS_CORE_DOMAINS_MICROSOFT_ACTIVATION_H_
#define ONNXIFI_BACKENDS_CORE_DOMAINS_MICROSOFT_ACTIVATION_H_

#include <string>
#include <vector>

#include "backends/core/base/result.h"
#include "backends/core/model/definition.h"

namespace onnxifi::microsoft {

// `value`, of `type`, itself where `name` is empty. `parameters`: those of the activation in the
// order of ONNX's attributes (alpha, beta) or of Clip's bounds; missing ones have ONNX's defaults.
base::Result<model::Definition::Value> Activate(model::Definition& d,
                                                model::Definition::Value value,
                                                const std::string& name,
                                                const std::vector<float>& parameters,
                                                tensor::ElementType type);

}  // namespace onnxifi::microsoft

#endif  // ONNXIFI_BACKENDS_CORE_DOMAINS_MICROSOFT_ACTIVATION_H_
