// SPDX-License-Identifier: Apache-2.0
//
// AxisTables: a Map that copies elements from places of which every coordinate follows from one
// axis alone, as Gather along an axis and a Resize to the nearest have it. Places are found once
// per axis, and rows copied, repeated, doubled or gathered.

#ifndef ONNXIFI_BACKENDS_CPU_ENGINE_AXIS_TABLES_H_
#define ONNXIFI_BACKENDS_CPU_ENGINE_AXIS_TABLES_H_

#include <functional>
#include <memory>

#include "backends/core/device/device.h"
#include "backends/cpu/engine/code.h"
#include "backends/cpu/engine/runtime.h"

namespace onnxifi::engine {

// The coordinates of the one load that a Map consists of; nothing where it is anything else.
std::shared_ptr<const Code> FindTableCoordinates(const program::ExprPool& pool,
                                                 const program::Step& step, LoopSet loops);

using MakeKernel = std::function<std::unique_ptr<device::BoundKernel>()>;
// Null where coordinates follow from several axes, rows are short, or the result does not lie row
// by row. What `make_otherwise` makes is run where a place lies outside of what is read.
// `coordinates` are those of FindTableCoordinates; `runtime` outlives what is returned.
std::unique_ptr<device::BoundKernel> BindAxisTables(std::shared_ptr<const Code> coordinates,
                                                    const device::BoundStep& step,
                                                    const MakeKernel& make_otherwise,
                                                    Runtime& runtime);

}  // namespace onnxifi::engine

#endif  // ONNXIFI_BACKENDS_CPU_ENGINE_AXIS_TABLES_H_
