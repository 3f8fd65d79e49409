// SPDX-License-Identifier: Apache-2.0
//
// Executor: runs a plan. It takes the segments in turn, binds each to the numbers known by then,
// launches its kernels, and between them reads the numbers that the next segment needs, runs the
// sub-programs of a control step, or a host function.

#ifndef ONNXIFI_BACKENDS_CORE_EXECUTION_EXECUTOR_H_
#define ONNXIFI_BACKENDS_CORE_EXECUTION_EXECUTOR_H_

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "backends/core/base/result.h"
#include "backends/core/execution/plan_runner.h"
#include "backends/core/execution/recordings.h"
#include "backends/core/execution/run_profile.h"
#include "backends/core/plan/plan.h"
#include "backends/core/tensor/string_table.h"
#include "backends/core/tensor/value.h"

namespace onnxifi::execution {

class Executor : public PlanRunner {
 public:
  // `plan` outlives it.
  explicit Executor(const plan::Plan& plan);
  ~Executor() override;

  const plan::Plan& plan() const override { return plan_; }

  // From now on runs in a queue are recorded and replayed, but for those that are profiled. Inputs
  // and outputs then lie where nothing goes before `recordings` has forgotten it. Null: no more.
  void RecordInto(Recordings* recordings) { recordings_ = recordings; }

  base::Status Run(std::span<const InputTensor> inputs, OutputAllocator& allocator,
                   RunProfile* profile = nullptr, tensor::StringTable* strings = nullptr,
                   device::Queue* queue = nullptr) override;

 private:
  struct Context;

  base::Status RunSegments(Context& context, std::vector<int64_t> symbols,
                           std::span<const InputTensor> inputs, OutputAllocator& allocator,
                           RunProfile* profile, tensor::StringTable* strings, device::Queue* queue);
  void FindTouchedBuffers();
  // Gives a run of a program with random steps its numbers.
  base::Status NumberDraws(Context& context, device::Queue* queue) const;
  base::Status PrepareArena(Context& context, int segment, const plan::SegmentBinding& binding);
  base::Status ReadCut(const Context& context, const device::BoundStep& step, device::Queue* queue,
                       std::vector<int64_t>& symbols) const;
  // `step` is the number of the control step in the program.
  base::Status RunControl(Context& context, int step, const device::BoundStep& bound,
                          tensor::StringTable* strings, device::Queue* queue,
                          std::vector<int64_t>& symbols);
  base::Status RunHost(Context& context, const device::BoundStep& bound,
                       tensor::StringTable& strings, device::Queue* queue,
                       std::vector<int64_t>& symbols);
  base::Result<std::shared_ptr<device::Allocation>> ToDevice(const tensor::Tensor& tensor,
                                                             device::Queue& queue);

  const plan::Plan& plan_;
  Recordings* recordings_ = nullptr;
  // By segment: the buffers that its kernels touch, less the constants. Empty if some of them lie
  // elsewhere in each run, as what a control or host step gives.
  std::vector<std::vector<program::BufferId>> touched_buffers_;
  program::BufferId draws_ = program::kNoBuffer;
  // Whether it has control or host steps, or inputs that are non-tensor values.
  bool keeps_values_ = false;
  // Executors of the bodies of each control step.
  std::map<int, std::vector<std::unique_ptr<PlanRunner>>> bodies_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Context>> idle_;
};

}  // namespace onnxifi::execution

#endif  // ONNXIFI_BACKENDS_CORE_EXECUTION_EXECUTOR_H_
