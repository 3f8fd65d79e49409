// SPDX-License-Identifier: Apache-2.0
//
// BranchedGraph: extents are checked against the graphs that there are before one is compiled.

#include "backends/core/plugin/branched_graph.h"

#include <cstdint>
#include <utility>

#include "backends/core/plugin/caller_memory.h"

namespace onnxifi::plugin {
namespace {

using base::Code;
using base::Result;
using base::Status;

// Each keeps its own packed weights.
constexpr size_t kMaxOthers = 7;

// What is bound of one of the graphs.
class BranchBinding final : public abi::Binding {
 public:
  BranchBinding(abi::GraphTensors tensors, CompiledGraph& graph,
                std::shared_ptr<const abi::Binding> bound)
      : abi::Binding(std::move(tensors)), graph_(graph), bound_(std::move(bound)) {}

  CompiledGraph& graph() const { return graph_; }
  const std::shared_ptr<const abi::Binding>& bound() const { return bound_; }

 private:
  CompiledGraph& graph_;
  const std::shared_ptr<const abi::Binding> bound_;
};

// Bind makes no others.
const BranchBinding& AsBranch(const std::shared_ptr<const abi::Binding>& binding) {
  return static_cast<const BranchBinding&>(*binding);
}

}  // namespace

BranchedGraph::BranchedGraph(abi::Signature signature, std::unique_ptr<CompiledGraph> first,
                             Compile compile)
    : signature_(std::move(signature)),
      first_(std::move(first)),
      compile_(std::move(compile)),
      last_(first_.get()) {
  // Other branches may give them other ranks.
  for (abi::DeclaredTensor& output : signature_.outputs) {
    output.has_shape = false;
    output.dimensions.clear();
  }
}

Result<CompiledGraph*> BranchedGraph::GraphFor(std::span<const abi::TensorDescriptor> inputs) {
  Status refusal = first().CheckExtents(inputs);
  if (refusal.ok()) return first_.get();
  // Of extents that are wrong for any branch, too.
  if (refusal.code() != Code::kUnsupportedShape) return refusal;
  const std::lock_guard lock(mutex_);
  for (const std::unique_ptr<CompiledGraph>& other : others_) {
    if (other->CheckExtents(inputs).ok()) return other.get();
  }
  if (others_.size() == kMaxOthers) return refusal;
  std::vector<tensor::Extents> extents;
  for (const abi::TensorDescriptor& input : inputs) extents.push_back(ExtentsOf(input));
  Result<std::unique_ptr<CompiledGraph>> made = compile_(extents, first());
  if (!made.ok()) {
    return std::move(refusal).Context("and the branches that these extents take are refused: " +
                                      made.status().Text());
  }
  ONNXIFI_RETURN_IF_ERROR((*made)->CheckExtents(inputs));
  others_.push_back(*std::move(made));
  return others_.back().get();
}

Result<std::shared_ptr<const abi::Binding>> BranchedGraph::Bind(abi::GraphTensors tensors) {
  ONNXIFI_ASSIGN_OR_RETURN(CompiledGraph* const graph, GraphFor(tensors.inputs));
  ONNXIFI_ASSIGN_OR_RETURN(std::shared_ptr<const abi::Binding> bound, graph->Bind(tensors));
  return std::shared_ptr<const abi::Binding>(
      std::make_shared<BranchBinding>(std::move(tensors), *graph, std::move(bound)));
}

Result<std::shared_ptr<const abi::Binding>> BranchedGraph::BindForOneRun(
    abi::GraphTensors tensors) {
  ONNXIFI_ASSIGN_OR_RETURN(CompiledGraph* const graph, GraphFor(tensors.inputs));
  ONNXIFI_ASSIGN_OR_RETURN(std::shared_ptr<const abi::Binding> bound,
                           graph->BindForOneRun(tensors));
  return std::shared_ptr<const abi::Binding>(
      std::make_shared<BranchBinding>(std::move(tensors), *graph, std::move(bound)));
}

Result<std::shared_ptr<abi::Event>> BranchedGraph::Run(std::shared_ptr<const abi::Binding> binding,
                                                       std::shared_ptr<abi::Event> input) {
  CompiledGraph& graph = AsBranch(binding).graph();
  last_ = &graph;
  return graph.Run(AsBranch(binding).bound(), std::move(input));
}

Status BranchedGraph::RunInSharedQueue(std::shared_ptr<const abi::Binding> binding) {
  CompiledGraph& graph = AsBranch(binding).graph();
  last_ = &graph;
  return graph.RunInSharedQueue(AsBranch(binding).bound());
}

void BranchedGraph::Close() { first().Close(); }

Result<std::vector<abi::TensorShape>> BranchedGraph::InferOutputShapes(
    std::span<const abi::TensorDescriptor> inputs) {
  ONNXIFI_ASSIGN_OR_RETURN(CompiledGraph* const graph, GraphFor(inputs));
  return graph->InferOutputShapes(inputs);
}

Result<abi::GraphCounters> BranchedGraph::Counters() {
  ONNXIFI_ASSIGN_OR_RETURN(abi::GraphCounters sum, first().Counters());
  const std::lock_guard lock(mutex_);
  for (const std::unique_ptr<CompiledGraph>& other : others_) {
    ONNXIFI_ASSIGN_OR_RETURN(const abi::GraphCounters more, other->Counters());
    for (uint64_t abi::GraphCounters::*counter :
         {&abi::GraphCounters::lowerings, &abi::GraphCounters::bindings,
          &abi::GraphCounters::allocations, &abi::GraphCounters::copies,
          &abi::GraphCounters::kernel_builds, &abi::GraphCounters::runs, &abi::GraphCounters::waits,
          &abi::GraphCounters::recordings}) {
      sum.*counter += more.*counter;
    }
    if (sum.submissions != abi::GraphCounters::kUnknown) sum.submissions += more.submissions;
  }
  return sum;
}

Result<std::vector<abi::StepRecord>> BranchedGraph::Profile() { return last_.load()->Profile(); }

}  // namespace onnxifi::plugin
