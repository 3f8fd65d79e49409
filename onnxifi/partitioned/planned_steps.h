// SPDX-License-Identifier: Apache-2.0
//
// PlannedSteps: the islands of a planned graph as steps: how tensors get from one to the next, and
// the runs over them.

#ifndef ONNXIFI_ONNXIFI_PARTITIONED_PLANNED_STEPS_H_
#define ONNXIFI_ONNXIFI_PARTITIONED_PLANNED_STEPS_H_

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "backends/core/abi/provider.h"
#include "backends/core/base/result.h"
#include "onnxifi/partitioned/binding.h"
#include "onnxifi/partitioned/crossing_value.h"
#include "onnxifi/partitioned/fallback_graph.h"
#include "onnxifi/partitioned/task_pool.h"
#include "onnxifi/partitioned/tensor_storage.h"
#include "onnxifi/plugins/waiters.h"

namespace onnxifi::partitioned {

// One island, compiled.
struct PlannedStep {
  std::unique_ptr<abi::Graph> graph;
  // Where memory comes from that the graph's device shares with the host; null for none.
  std::shared_ptr<const plugins::SharedSource> shared_source = nullptr;
  // For when its device fails; null where no other takes its nodes.
  std::unique_ptr<FallbackGraph> fallback;
  // For messages, e.g. "island 2 on device 'cpu:0' (nodes 4 to 9)".
  std::string description;
  // Positions among the values, in the order of its graph.
  std::vector<int32_t> inputs;
  std::vector<int32_t> outputs;
  // For each of its nodes the position in the whole model.
  std::vector<int32_t> model_nodes;
  // Whether the graph can say which shapes its outputs have. Where it cannot, the model fixes them.
  bool tells_shapes = true;
  // Steps that need it, and how many it needs.
  std::vector<int32_t> before;
  int32_t needs = 0;
};

class PlannedSteps : public std::enable_shared_from_this<PlannedSteps> {
 public:
  // The thread that has the first islands of a run, whose inputs are complete when it is called
  // for: one of the pool, or the caller's.
  enum class Runner : uint8_t { kPool, kCaller };

  // `inputs` and `outputs` are positions among `values`. `pool` outlives every run. At most
  // `most_runs` are under way at a time.
  PlannedSteps(std::vector<PlannedStep> steps, std::vector<CrossingValue> values,
               std::vector<int32_t> inputs, std::vector<int32_t> outputs, TaskPool& pool,
               Runner runner, size_t most_runs);

  const std::vector<PlannedStep>& steps() const { return steps_; }
  // Copies made here so far, of all values and of one.
  uint64_t copies() const;
  uint64_t CopiesOf(const std::string& value) const;
  // Of the run that finished last, since it started, by step; empty where none has.
  struct StepTime {
    uint64_t start_ns = 0;
    uint64_t duration_ns = 0;
    // Whether its fallback graph ran.
    bool is_fallback = false;
  };
  std::vector<StepTime> LastTimes();

  base::Result<std::shared_ptr<const Binding>> Bind(abi::GraphTensors tensors);
  base::Result<std::vector<abi::TensorShape>> InferOutputShapes(
      std::span<const abi::TensorDescriptor> inputs);
  std::shared_ptr<abi::Event> Run(std::shared_ptr<const Binding> binding,
                                  std::shared_ptr<abi::Event> input);
  void Close();

 private:
  struct RunState;
  using RunRef = std::shared_ptr<RunState>;

  // A step, and those after it, on a thread of the pool; or the run from its beginning.
  struct RunTask final : TaskPool::Task {
    void Perform() override;

    // Null but from the call to Submit until the task is performed.
    std::shared_ptr<PlannedSteps> owner;
    RunRef run;
    std::optional<size_t> step;
  };

  // Has all that the run needs to come to an end, so that no lack of memory can leave it waiting.
  struct RunState {
    std::shared_ptr<const Binding> binding;
    std::shared_ptr<abi::LocalEvent> output;
    // Guarded by the mutex of all runs.
    bool is_ready = false;
    // Guarded by `mutex` once it started.
    std::mutex mutex;
    base::Status status;
    std::vector<int32_t> needs;
    size_t unfinished = 0;
    std::vector<std::vector<abi::TensorShape>> shapes;  // by step, where a step told any
    std::vector<StepTime> times;  // each written by the thread that runs the step
    uint64_t started_ns = 0;
    RunTask start;
    std::vector<RunTask> tasks;  // by step
  };

  // Devices of the step that makes the value and of those that read it: memory for it is best
  // shared with.
  std::vector<const plugins::SharedSource*> SourcesOf(size_t index, int32_t value) const;
  // The graph that runs the step from now on, with the inputs and outputs of this workspace.
  abi::Graph& GraphOf(size_t step, Workspace& workspace) const;
  // Of the step's outputs as `graph` tells them, for inputs as described. BACKEND_UNAVAILABLE where
  // that is not what the model says.
  base::Result<std::vector<abi::TensorShape>> ShapesOf(
      const PlannedStep& step, abi::Graph& graph,
      std::span<const abi::TensorDescriptor> inputs) const;
  // The same of the step's device, or of its fallback graph where that device has failed or fails.
  base::Result<std::vector<abi::TensorShape>> ShapesOfAnyDevice(
      const PlannedStep& step, std::span<const abi::TensorDescriptor> inputs) const;
  // Gives the places of `positions` the caller's tensors.
  static base::Status TakeCallersTensors(const std::vector<int32_t>& positions,
                                         const std::vector<abi::TensorDescriptor>& descriptors,
                                         Workspace& workspace);
  // Gives every output of the step a place, where its inputs are known, and binds it; to its
  // fallback graph where the device fails.
  base::Status Prepare(size_t step, Workspace& workspace);
  base::Status PrepareOnce(size_t step, Workspace& workspace);
  // Infers the extents of the step's outputs where somebody needs them before the step runs, gives
  // each a place, and marks readers of those that moved.
  base::Status PlaceOutputs(size_t step, abi::Graph& graph,
                            std::span<const abi::TensorDescriptor> inputs,
                            Workspace& workspace) const;
  // `told`: what was inferred of it, or null. `varies`: whether the step's inputs vary by run.
  base::Status PlaceOutput(size_t step, int32_t value, const abi::TensorShape* told, bool varies,
                           TensorStorage& place) const;
  // The step's outputs as `graph` on `device` is bound to them.
  void AddOutputs(const PlannedStep& step, const abi::Graph& graph,
                  const plugins::SharedSource* device, const Workspace& workspace,
                  abi::GraphTensors& tensors) const;
  // Ok where the step has a fallback graph from now on, after `failure`; else `failure`, or why
  // there is none. A fallback graph has none.
  base::Status ReplaceDevice(size_t step, Workspace& workspace, base::Status failure) const;
  base::Status Execute(RunState& run, size_t step);
  base::Status ExecuteOnce(RunState& run, size_t step);
  // What a run of the step made: the shapes that it tells, and the results that it keeps.
  base::Status TakeOutputs(abi::Event& event, RunState& run, size_t step);
  base::Status TakeShapes(const PlannedStep& step, const std::vector<abi::TensorShape>& shapes,
                          Workspace& workspace) const;
  base::Status TakeKept(const PlannedStep& step, abi::Event& event, Workspace& workspace);
  void AwaitInput(const RunRef& run, const std::shared_ptr<abi::Event>& input);
  void MarkReady(const RunRef& run, const base::Status& input_status);
  // With mutex_ held.
  bool MayStart(const RunState& run) const;
  void StartNext();
  void Start(const RunRef& run);
  void Submit(const RunRef& run, RunTask& task);
  void Advance(const RunRef& run, size_t step);
  void Finish(const RunRef& run);
  abi::RunOutputs OutputsOf(const RunState& run) const;

  const std::vector<PlannedStep> steps_;
  const std::vector<CrossingValue> values_;
  const std::vector<int32_t> inputs_;
  const std::vector<int32_t> outputs_;
  TaskPool& pool_;
  const Runner runner_;
  const size_t most_runs_;
  plugins::Waiters waiters_;
  std::vector<std::atomic<uint64_t>> copies_;  // by value

  std::mutex mutex_;
  std::condition_variable emptied_;
  // Guarded by mutex_. Runs start in the order of their calls.
  std::deque<RunRef> waiting_;
  std::vector<RunRef> running_;
  std::vector<StepTime> last_times_;
};

}  // namespace onnxifi::partitioned

#endif  // ONNXIFI_ONNXIFI_PARTITIONED_PLANNED_STEPS_H_
