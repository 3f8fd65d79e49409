// SPDX-License-Identifier: Apache-2.0
//
// ExtremePosition: a Reduce whose result is where the largest or smallest of some numbers is, as
// ArgMax and ArgMin write it: along rows that lie together, or of neighbours side by side.

#ifndef ONNXIFI_BACKENDS_CPU_ENGINE_EXTREME_POSITION_H_
#define ONNXIFI_BACKENDS_CPU_ENGINE_EXTREME_POSITION_H_

#include <memory>
#include <optional>

#include "backends/core/device/device.h"
#include "backends/core/program/arg_extreme.h"
#include "backends/cpu/engine/runtime.h"

namespace onnxifi::engine {

// Nothing where the step is no such search along one axis of a tensor of numbers as it lies.
std::optional<program::Extreme> FindExtremePosition(const program::ExprPool& pool,
                                                    const program::Step& step);

// Null where neither the elements of a row nor those of neighbours lie side by side.
std::unique_ptr<device::BoundKernel> BindExtremePosition(program::Extreme extreme,
                                                         const device::BoundStep& step,
                                                         Runtime& runtime);

// The position of the extreme among `count` elements, at least 1.
int64_t FindExtremeInRow(program::Extreme extreme, const float* row, int64_t count);

}  // namespace onnxifi::engine

#endif  // ONNXIFI_BACKENDS_CPU_ENGINE_EXTREME_POSITION_H_
