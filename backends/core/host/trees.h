// SPDX-License-Identifier: Apache-2.0
//
// Tree ensembles: TreeEnsemble of ai.onnx.ml.

#ifndef ONNXIFI_BACKENDS_CORE_HOST_TREES_H_
#define ONNXIFI_BACKENDS_CORE_HOST_TREES_H_

#include "backends/core/host/inputs.h"
#include "backends/core/program/host_function.h"

namespace onnxifi::host {

Outputs Run(const program::RunTrees& trees, Inputs inputs);

}  // namespace onnxifi::host

#endif  // ONNXIFI_BACKENDS_CORE_HOST_TREES_H_
