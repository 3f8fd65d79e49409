// SPDX-License-Identifier: Apache-2.0
//
// The number by which the random numbers of one run differ from those of another.

#ifndef ONNXIFI_BACKENDS_CORE_HOST_DRAW_H_
#define ONNXIFI_BACKENDS_CORE_HOST_DRAW_H_

#include "backends/core/host/inputs.h"
#include "backends/core/program/host_function.h"

namespace onnxifi::host {

Outputs Run(const program::NextDraw& attributes, Inputs inputs);

}  // namespace onnxifi::host

#endif  // ONNXIFI_BACKENDS_CORE_HOST_DRAW_H_
