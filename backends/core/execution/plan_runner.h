// SPDX-License-Identifier: Apache-2.0
//
// PlanRunner: what runs a plan, its inputs and where its outputs go. Control steps run their bodies
// through it, so that they need not know the Executor, which runs control steps.

#ifndef ONNXIFI_BACKENDS_CORE_EXECUTION_PLAN_RUNNER_H_
#define ONNXIFI_BACKENDS_CORE_EXECUTION_PLAN_RUNNER_H_

#include <cstddef>
#include <memory>
#include <span>

#include "backends/core/base/result.h"
#include "backends/core/execution/run_profile.h"
#include "backends/core/plan/plan.h"
#include "backends/core/tensor/string_table.h"
#include "backends/core/tensor/value.h"

namespace onnxifi::execution {

// An input of a run: dense memory of the device and its extents, or a non-tensor value.
struct InputTensor {
  const std::byte* data = nullptr;
  tensor::Extents extents;
  // Keeps `data`; null for memory that is the run's only until it ends, which a value that lives
  // longer has to copy.
  std::shared_ptr<const void> owner = nullptr;
  // Where the program's input is one.
  tensor::ValueRef value = nullptr;
  // For a HostBoundary: `data` is memory of the device that the caller made.
  bool is_inside = false;
};

// Where outputs go. Asked once per output and run, when its extents are known and before anything
// is written to it.
class OutputAllocator {
 public:
  virtual ~OutputAllocator() = default;
  // Memory for output `output` of the program, at least SizeBytes of its type and extents; may be
  // null when that is 0.
  virtual base::Result<std::byte*> Allocate(int output, const tensor::Extents& extents) = 0;
  // For a HostBoundary: whether Allocate gives memory of the device for this output.
  virtual bool IsInside(int /*output*/) const { return false; }
  // Takes output `output`, which is a non-tensor value, at the end of the run.
  virtual base::Status Take(int output, tensor::ValueRef value);
};

class PlanRunner {
 public:
  virtual ~PlanRunner() = default;

  virtual const plan::Plan& plan() const = 0;

  // Runs once, on the calling thread. Inputs in the program's order. Any number of threads at a
  // time; each run has a context of its own, kept for the next one. Steps are timed into `profile`
  // unless it is null: by the device, or, where its queue tells no times, by waiting for each.
  // `strings`, a table over the program's own, has those of the inputs and gets those of the
  // outputs; null where neither has any. Devices with queues need one: what the run put into it may
  // be under way when this returns.
  virtual base::Status Run(std::span<const InputTensor> inputs, OutputAllocator& places,
                           RunProfile* profile, tensor::StringTable* strings,
                           device::Queue* queue) = 0;
};

}  // namespace onnxifi::execution

#endif  // ONNXIFI_BACKENDS_CORE_EXECUTION_PLAN_RUNNER_H_
