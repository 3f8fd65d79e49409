// SPDX-License-Identifier: Apache-2.0
//
// Probabilities of classes from comparisons of each two of them: SVMClassifier of ai.onnx.ml.

#ifndef ONNXIFI_BACKENDS_CORE_HOST_PROBABILITIES_H_
#define ONNXIFI_BACKENDS_CORE_HOST_PROBABILITIES_H_

#include "backends/core/host/inputs.h"
#include "backends/core/program/host_function.h"

namespace onnxifi::host {

Outputs Run(const program::CoupleProbabilities& attributes, Inputs inputs);

}  // namespace onnxifi::host

#endif  // ONNXIFI_BACKENDS_CORE_HOST_PROBABILITIES_H_
