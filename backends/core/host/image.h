// SPDX-License-Identifier: Apache-2.0
//
// Image files, as functions of values.

#ifndef ONNXIFI_BACKENDS_CORE_HOST_IMAGE_H_
#define ONNXIFI_BACKENDS_CORE_HOST_IMAGE_H_

#include "backends/core/host/inputs.h"
#include "backends/core/program/host_function.h"

namespace onnxifi::host {

Outputs Run(const program::DecodeImage& attributes, Inputs inputs);

}  // namespace onnxifi::host

#endif  // ONNXIFI_BACKENDS_CORE_HOST_IMAGE_H_
