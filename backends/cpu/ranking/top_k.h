// SPDX-License-Identifier: Apache-2.0
//
// TopK: the largest or smallest elements of rows, and where they are.

#ifndef ONNXIFI_BACKENDS_CPU_RANKING_TOP_K_H_
#define ONNXIFI_BACKENDS_CPU_RANKING_TOP_K_H_

#include <memory>

#include "backends/core/device/device.h"
#include "backends/cpu/engine/runtime.h"

namespace onnxifi::ranking {

// A step that SelectRanking took, with numbers.
std::unique_ptr<device::BoundKernel> BindTopK(const device::BoundStep& step,
                                              engine::Runtime& runtime);

}  // namespace onnxifi::ranking

#endif  // ONNXIFI_BACKENDS_CPU_RANKING_TOP_K_H_
