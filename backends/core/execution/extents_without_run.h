// SPDX-License-Identifier: Apache-2.0
//
// ExtentsWithoutRun: the extents of what a body would give, for a Loop or Scan of no iteration.

#ifndef ONNXIFI_BACKENDS_CORE_EXECUTION_EXTENTS_WITHOUT_RUN_H_
#define ONNXIFI_BACKENDS_CORE_EXECUTION_EXTENTS_WITHOUT_RUN_H_

#include <span>
#include <vector>

#include "backends/core/execution/plan_runner.h"

namespace onnxifi::execution {

// Of outputs `first` and following, for inputs of these extents, whose data count for nothing. An
// extent that only a run would tell is 0. MISMATCHING_SHAPE: the plan takes no such inputs.
base::Result<std::vector<tensor::Extents>> ExtentsWithoutRun(const plan::Plan& plan, size_t first,
                                                             std::span<const InputTensor> inputs);

}  // namespace onnxifi::execution

#endif  // ONNXIFI_BACKENDS_CORE_EXECUTION_EXTENTS_WITHOUT_RUN_H_
