// SPDX-License-Identifier: Apache-2.0
//
// CompiledGraph: the graph of a plugin as core/abi sees it: a plan with its executor and its queue
// of runs.

#ifndef ONNXIFI_BACKENDS_CORE_PLUGIN_COMPILED_GRAPH_H_
#define ONNXIFI_BACKENDS_CORE_PLUGIN_COMPILED_GRAPH_H_

#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "backends/core/abi/provider.h"
#include "backends/core/device/sharing.h"
#include "backends/core/execution/executor.h"
#include "backends/core/execution/host_boundary.h"
#include "backends/core/plan/plan.h"
#include "backends/core/plugin/load_times.h"
#include "backends/core/plugin/prepared_binding.h"
#include "backends/core/plugin/run_queue.h"
#include "backends/core/plugin/specialisations.h"

namespace onnxifi::plugin {

class CompiledGraph : public abi::Graph {
 public:
  // What the backend has for its graphs; outlives them.
  struct Services {
    device::Device& device;
    device::Sharing* sharing;  // null where callers cannot use the driver
    Worker& worker;
  };

  // Of the request's properties, how runs are made. `times` are those of the stages before.
  // `is_emulated`: whether the reference computes any of the nodes. With `compile_for_shape`,
  // shapes that come again get a plan of their own. Runs are in one queue with those of `sibling`,
  // unless that is null.
  static base::Result<std::unique_ptr<CompiledGraph>> Create(
      abi::Signature signature, std::unique_ptr<program::Program> program, const Services& services,
      const abi::GraphProperties& properties, LoadTimes times, bool is_emulated,
      Specialisations::Compile compile_for_shape = nullptr, const CompiledGraph* sibling = nullptr);

  bool is_emulated() const override { return is_emulated_; }
  const abi::Signature* signature() const override { return &signature_; }
  base::Result<std::shared_ptr<const abi::Binding>> Bind(abi::GraphTensors tensors) override {
    return BindWith(std::move(tensors), HostMemory::kImported);
  }
  // What is bound for one run is not worth the driver's calls.
  base::Result<std::shared_ptr<const abi::Binding>> BindForOneRun(
      abi::GraphTensors tensors) override {
    return BindWith(std::move(tensors), HostMemory::kCopied);
  }
  base::Result<std::shared_ptr<abi::Event>> Run(std::shared_ptr<const abi::Binding> binding,
                                                std::shared_ptr<abi::Event> input) override;
  base::Status RunInSharedQueue(std::shared_ptr<const abi::Binding> binding) override;
  // Whether runs on inputs of these extents can be bound, as far as extents tell it. Statuses of
  // Bind.
  base::Status CheckExtents(std::span<const abi::TensorDescriptor> inputs) const;
  void Close() override;
  base::Result<std::vector<abi::TensorShape>> InferOutputShapes(
      std::span<const abi::TensorDescriptor> inputs) override;
  base::Result<abi::GraphCounters> Counters() override;
  base::Result<std::vector<abi::StepRecord>> Profile() override;
  base::Result<std::vector<abi::LoadRecord>> LoadProfile() override;

 private:
  CompiledGraph(abi::Signature signature, std::unique_ptr<program::Program> program,
                device::Sharing* sharing, const abi::GraphProperties& properties, LoadTimes times,
                bool is_emulated)
      : signature_(std::move(signature)),
        program_(std::move(program)),
        sharing_(sharing),
        is_profiled_(properties.is_profiled),
        caller_runs_(properties.caller_runs),
        is_emulated_(is_emulated),
        load_times_(std::move(times)) {}

  // What becomes of tensors in the host's memory on a device with memory of its own.
  enum class HostMemory : uint8_t { kCopied, kImported };
  base::Result<std::shared_ptr<const abi::Binding>> BindWith(abi::GraphTensors tensors,
                                                             HostMemory host_memory);
  // Prepares the plan when it is first called, which is when tensors are first bound: by then the
  // caller may have let go of the model, which counts beside weights and what is packed of them.
  base::Status Prepare();
  // What a run of these extents begins with, ready: of the plan for all shapes, or of that of
  // this shape.
  base::Result<std::shared_ptr<const plan::SegmentBinding>> BindPlan(
      const std::vector<int64_t>& symbols, std::span<const tensor::Extents> inputs);
  // One entry per input of the program.
  base::Result<std::vector<tensor::Extents>> ExtentsOf(
      std::span<const abi::TensorDescriptor> inputs) const;
  base::Status Execute(const abi::Binding& binding, execution::HostBoundary::End end,
                       abi::RunOutputs& outputs);

  const abi::Signature signature_;
  const std::unique_ptr<program::Program> program_;
  device::Sharing* const sharing_;
  const bool is_profiled_;
  const bool caller_runs_;
  const bool is_emulated_;
  LoadTimes load_times_;  // fixed once the graph is created
  plan::Counters counters_;
  std::unique_ptr<plan::Plan> plan_;
  std::unique_ptr<execution::Executor> executor_;
  std::unique_ptr<execution::HostBoundary> boundary_;
  std::unique_ptr<Specialisations> specialisations_;  // null: none are made
  std::shared_ptr<RunQueue> queue_;
  std::mutex prepare_mutex_;
  std::optional<base::Status> preparation_;  // guarded by prepare_mutex_
  std::mutex mutex_;
  // Of the run that finished last; null without one. Guarded by mutex_, shared with who reads it.
  std::shared_ptr<const execution::RunProfile> last_profile_;
  // What that run ran; null for the plan for all shapes. Guarded and shared alike.
  std::shared_ptr<const Specialisation> last_specialisation_;
  KeptBindings kept_bindings_;
};

}  // namespace onnxifi::plugin

#endif  // ONNXIFI_BACKENDS_CORE_PLUGIN_COMPILED_GRAPH_H_
