// SPDX-License-Identifier: Apache-2.0
//
// Suppress: boxes of rows, best first, of which those are kept that overlap no kept one by more
// than a threshold.

#ifndef ONNXIFI_BACKENDS_CPU_RANKING_SUPPRESS_H_
#define ONNXIFI_BACKENDS_CPU_RANKING_SUPPRESS_H_

#include <memory>

#include "backends/core/device/device.h"
#include "backends/cpu/engine/runtime.h"

namespace onnxifi::ranking {

// A step that SelectRanking took, with numbers.
std::unique_ptr<device::BoundKernel> BindSuppress(const device::BoundStep& step,
                                                  engine::Runtime& runtime);

}  // namespace onnxifi::ranking

#endif  // ONNXIFI_BACKENDS_CPU_RANKING_SUPPRESS_H_
