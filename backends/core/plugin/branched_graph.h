// SPDX-License-Identifier: Apache-2.0
//
// BranchedGraph: a graph with an If whose branches give different ranks, where extents decide which
// one a run takes. One compiled graph for each choice of branches that runs have taken.

#ifndef ONNXIFI_BACKENDS_CORE_PLUGIN_BRANCHED_GRAPH_H_
#define ONNXIFI_BACKENDS_CORE_PLUGIN_BRANCHED_GRAPH_H_

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "backends/core/abi/provider.h"
#include "backends/core/base/result.h"
#include "backends/core/plugin/compiled_graph.h"
#include "backends/core/tensor/tensor.h"

namespace onnxifi::plugin {

class BranchedGraph : public abi::Graph {
 public:
  // The graph for the branches of a run on inputs of these extents; its runs are in the queue of
  // the first one's.
  using Compile = std::function<base::Result<std::unique_ptr<CompiledGraph>>(
      std::span<const tensor::Extents> inputs, const CompiledGraph& first)>;

  // `first` is for the branches that were chosen when the graph was initialised, and `signature`
  // its own.
  BranchedGraph(abi::Signature signature, std::unique_ptr<CompiledGraph> first, Compile compile);

  bool is_emulated() const override { return first().is_emulated(); }
  const abi::Signature* signature() const override { return &signature_; }
  base::Result<std::shared_ptr<const abi::Binding>> Bind(abi::GraphTensors tensors) override;
  base::Result<std::shared_ptr<const abi::Binding>> BindForOneRun(
      abi::GraphTensors tensors) override;
  base::Result<std::shared_ptr<abi::Event>> Run(std::shared_ptr<const abi::Binding> binding,
                                                std::shared_ptr<abi::Event> input) override;
  base::Status RunInSharedQueue(std::shared_ptr<const abi::Binding> binding) override;
  void Close() override;
  base::Result<std::vector<abi::TensorShape>> InferOutputShapes(
      std::span<const abi::TensorDescriptor> inputs) override;
  // What is counted of all of them, and the steps of the first.
  base::Result<abi::GraphCounters> Counters() override;
  base::Result<std::vector<abi::StepRecord>> Profile() override;
  base::Result<std::vector<abi::LoadRecord>> LoadProfile() override {
    return first().LoadProfile();
  }

 private:
  CompiledGraph& first() const { return *first_; }
  // The graph for inputs of these extents, which is compiled where there is none.
  base::Result<CompiledGraph*> GraphFor(std::span<const abi::TensorDescriptor> inputs);
  abi::Signature signature_;
  const std::unique_ptr<CompiledGraph> first_;
  const Compile compile_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<CompiledGraph>> others_;  // none is taken out; guarded by mutex_
  std::atomic<CompiledGraph*> last_;                    // that ran
};

}  // namespace onnxifi::plugin

#endif  // ONNXIFI_BACKENDS_CORE_PLUGIN_BRANCHED_GRAPH_H_
