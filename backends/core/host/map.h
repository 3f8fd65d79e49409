// SPDX-License-Identifier: Apache-2.0
//
// Maps: ZipMap, CastMap and DictVectorizer of ai.onnx.ml.

#ifndef ONNXIFI_BACKENDS_CORE_HOST_MAP_H_
#define ONNXIFI_BACKENDS_CORE_HOST_MAP_H_

#include "backends/core/host/inputs.h"
#include "backends/core/program/host_function.h"

namespace onnxifi::host {

Outputs Run(const program::MakeMaps& attributes, Inputs inputs);
Outputs Run(const program::ListMap& attributes, Inputs inputs);

}  // namespace onnxifi::host

#endif  // ONNXIFI_BACKENDS_CORE_HOST_MAP_H_
