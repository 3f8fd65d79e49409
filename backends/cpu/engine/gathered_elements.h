// SPDX-License-Identifier: Apache-2.0
//
// GatheredElements: a Map that reads a tensor where it stands, but for one axis, along which
// another tensor says where, as GatherElements writes it: row by row, with no tile between.

#ifndef ONNXIFI_BACKENDS_CPU_ENGINE_GATHERED_ELEMENTS_H_
#define ONNXIFI_BACKENDS_CPU_ENGINE_GATHERED_ELEMENTS_H_

#include <memory>

#include "backends/core/device/device.h"
#include "backends/cpu/engine/runtime.h"

namespace onnxifi::engine {

// Null where `step` is anything else, or its rows are short. `runtime` outlives what is returned.
std::unique_ptr<device::BoundKernel> BindGatheredElements(const device::BoundStep& step,
                                                          Runtime& runtime);

}  // namespace onnxifi::engine

#endif  // ONNXIFI_BACKENDS_CPU_ENGINE_GATHERED_ELEMENTS_H_
