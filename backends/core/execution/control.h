// SPDX-License-Identifier: Apache-2.0
//
// Control: runs If, Loop and Scan from their lowered records: the executors of their bodies, once
// or many times.

#ifndef ONNXIFI_BACKENDS_CORE_EXECUTION_CONTROL_H_
#define ONNXIFI_BACKENDS_CORE_EXECUTION_CONTROL_H_

#include <memory>
#include <span>
#include <vector>

#include "backends/core/base/result.h"
#include "backends/core/execution/plan_runner.h"

namespace onnxifi::execution {

// A tensor in memory of its own, or a non-tensor value.
struct OwnedTensor {
  std::shared_ptr<device::Allocation> memory;  // null when it has no bytes
  tensor::Extents extents;
  tensor::ValueRef value = nullptr;

  const std::byte* data() const { return memory ? memory->data() : nullptr; }
  InputTensor AsInput() const { return {data(), extents, memory, value}; }
};

// `reads` as in program::Control (data null for a missing one). Gives one tensor or value per
// output of the step. `strings` and `queue` as for PlanRunner::Run; with a queue, numbers that
// decide what runs next are waited for, nothing else.
base::Result<std::vector<OwnedTensor>> RunControlStep(
    const program::Control& control, std::span<const std::unique_ptr<PlanRunner>> bodies,
    std::span<const InputTensor> reads, tensor::StringTable* strings = nullptr,
    device::Queue* queue = nullptr);

}  // namespace onnxifi::execution

#endif  // ONNXIFI_BACKENDS_CORE_EXECUTION_CONTROL_H_
