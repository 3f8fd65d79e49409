// SPDX-License-Identifier: Apache-2.0
//
// PlannedGraph: a graph that runs on several devices: the islands of a plan, each compiled by its
// device's plugin.

#ifndef ONNXIFI_ONNXIFI_PARTITIONED_PLANNED_GRAPH_H_
#define ONNXIFI_ONNXIFI_PARTITIONED_PLANNED_GRAPH_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "backends/core/abi/provider.h"
#include "onnxifi/partitioned/graph_plan.h"
#include "onnxifi/partitioned/planned_steps.h"
#include "onnxifi/partitioned/task_pool.h"
#include "onnxifi/planner/auto_planner.h"
#include "onnxifi/plugins/plugin_backend.h"

namespace onnxifi::partitioned {

class PlannedGraph final : public abi::Graph {
 public:
  // The backend of a device, initialised.
  using BackendSource = std::function<base::Result<std::shared_ptr<const plugins::PluginBackend>>(
      const plugins::ForwardedBackendId& device)>;

  // What becomes of an island whose device fails while it is bound or run.
  enum class OnFailure : uint8_t {
    // The other devices take it over, where they claim its nodes. Its model is kept for that.
    kTakeOver,
    kGiveUp,
  };

  // Plans and compiles. Where a device refuses what it claimed, its claim is taken back with a
  // warning and the rest planned anew, at most once for each claim. `pool`, the planner's devices
  // and what `backend_of` refers to outlive the graph.
  static base::Result<std::unique_ptr<abi::Graph>> Create(
      planner::AutoPlanner& planner, const BackendSource& backend_of,
      const abi::GraphRequest& request, TaskPool& pool,
      OnFailure on_failure = OnFailure::kTakeOver);
  ~PlannedGraph() override;

  const abi::Signature* signature() const override { return &signature_; }
  bool is_emulated() const override { return is_emulated_; }
  base::Result<std::shared_ptr<const abi::Binding>> Bind(abi::GraphTensors tensors) override;
  base::Result<std::shared_ptr<abi::Event>> Run(std::shared_ptr<const abi::Binding> binding,
                                                std::shared_ptr<abi::Event> input) override;
  void Close() override;
  base::Result<std::vector<abi::TensorShape>> InferOutputShapes(
      std::span<const abi::TensorDescriptor> inputs) override;
  // Sums over the islands. Runs are those of the whole graph.
  base::Result<abi::GraphCounters> Counters() override;
  base::Result<std::vector<abi::StepRecord>> Profile() override;
  base::Result<std::vector<abi::LoadRecord>> LoadProfile() override;

  // With the times of the run that finished last and the copies so far.
  GraphPlan Plan();

 private:
  PlannedGraph(abi::Signature signature, GraphPlan plan, std::shared_ptr<PlannedSteps> steps,
               bool is_emulated)
      : signature_(std::move(signature)),
        plan_(std::move(plan)),
        steps_(std::move(steps)),
        is_emulated_(is_emulated) {}

  const abi::Signature signature_;
  const GraphPlan plan_;  // without times of runs
  const std::shared_ptr<PlannedSteps> steps_;
  const bool is_emulated_;
  std::atomic<uint64_t> runs_ = 0;
  bool is_closed_ = false;
};

}  // namespace onnxifi::partitioned

#endif  // ONNXIFI_ONNXIFI_PARTITIONED_PLANNED_GRAPH_H_
