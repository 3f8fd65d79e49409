// SPDX-License-Identifier: Apache-2.0
//
// RunOperator: the stages that a plugin goes through, without the passes between them.

#include "backends/core/ops/testing/run_operator.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "backends/core/execution/testing/run_program.h"
#include "backends/core/ops/lower_graph.h"

namespace onnxifi::ops {
namespace {

using base::Result;
using tensor::ElementType;
using tensor::Extents;
using tensor::Tensor;

graph::Type TypeOf(const NodeInput& input) {
  graph::Type type;
  type.kind = graph::Type::Kind::kTensor;
  type.element = input.tensor->type();
  type.extents.emplace();
  for (int64_t extent : input.tensor->extents()) {
    type.extents->push_back(
        {.number = input.kind == NodeInput::Kind::kSymbolic ? -1 : extent, .symbol = ""});
  }
  return type;
}

graph::Graph MakeGraph(const OneNode& description) {
  graph::Graph graph;
  graph::Node node;
  node.op_type = description.op_type;
  node.domain = description.domain;
  node.since_version = description.version;
  node.attributes = description.attributes;
  for (size_t k = 0; k < description.inputs.size(); ++k) {
    const NodeInput& input = description.inputs[k];
    if (input.kind == NodeInput::Kind::kOmitted) {
      node.inputs.push_back(graph::kNoValue);
      continue;
    }
    graph::Value value;
    value.name = "input" + std::to_string(k);
    value.type = TypeOf(input);
    if (input.kind == NodeInput::Kind::kConstant) value.constant = input.tensor;
    node.inputs.push_back(graph.AddValue(std::move(value)));
    if (input.kind != NodeInput::Kind::kConstant) graph.inputs.push_back(node.inputs.back());
  }
  for (size_t k = 0; k < description.wanted.size(); ++k) {
    if (!description.wanted[k]) {
      node.outputs.push_back(graph::kNoValue);
      continue;
    }
    graph::Value value;
    value.name = "output" + std::to_string(k);
    if (k == 0 && description.declared_rank) {
      value.type.kind = graph::Type::Kind::kTensor;
      value.type.extents.emplace(static_cast<size_t>(*description.declared_rank));
    }
    node.outputs.push_back(graph.AddValue(std::move(value)));
    graph.outputs.push_back(node.outputs.back());
  }
  graph.nodes.push_back(std::move(node));
  return graph;
}

bool HasStrings(const program::Program& program) {
  const auto holds_strings = [&](const program::Port& port) {
    return port.buffer != program::kNoBuffer &&
           program.buffers[static_cast<size_t>(port.buffer)].holds_strings;
  };
  return std::any_of(program.inputs.begin(), program.inputs.end(), holds_strings) ||
         std::any_of(program.outputs.begin(), program.outputs.end(), holds_strings);
}

}  // namespace

Result<std::vector<Tensor>> RunOperator(const OneNode& description) {
  std::vector<Tensor> inputs;
  for (const NodeInput& input : description.inputs) {
    if (input.kind == NodeInput::Kind::kOmitted || input.kind == NodeInput::Kind::kConstant) {
      continue;
    }
    inputs.push_back(*input.tensor);
  }
  return RunGraph(MakeGraph(description), inputs, description.rewrite);
}

Result<std::vector<Tensor>> RunGraph(const graph::Graph& graph, const std::vector<Tensor>& inputs,
                                     const Rewrite& rewrite) {
  ONNXIFI_ASSIGN_OR_RETURN(std::unique_ptr<program::Program> program,
                           LowerGraph(graph, /*functions=*/nullptr));
  if (rewrite) rewrite(*program);
  if (!HasStrings(*program)) return execution::RunProgram(*program, inputs);
  const std::vector<tensor::Value> values(inputs.begin(), inputs.end());
  ONNXIFI_ASSIGN_OR_RETURN(const std::vector<tensor::Value> results,
                           execution::RunOnValues(*program, values));
  std::vector<Tensor> tensors;
  for (const tensor::Value& result : results) tensors.push_back(result.tensor);
  return tensors;
}

Result<std::vector<Tensor>> RunGraphForBranches(const graph::Graph& graph,
                                                const std::vector<Tensor>& inputs) {
  std::vector<Extents> extents;
  for (const Tensor& input : inputs) extents.push_back(input.extents());
  BranchRequest branches{.inputs = extents};
  ONNXIFI_ASSIGN_OR_RETURN(std::unique_ptr<program::Program> program,
                           LowerGraph(graph, /*functions=*/nullptr, /*check=*/nullptr, &branches));
  return execution::RunProgram(*program, inputs);
}

Result<std::vector<tensor::Value>> RunGraphOnValues(const graph::Graph& graph,
                                                    const std::vector<tensor::Value>& inputs) {
  ONNXIFI_ASSIGN_OR_RETURN(std::unique_ptr<program::Program> program,
                           LowerGraph(graph, /*functions=*/nullptr));
  return execution::RunOnValues(*program, inputs);
}

Tensor MakeTensor(ElementType type, Extents extents, const std::vector<double>& values) {
  Tensor tensor = *Tensor::Allocate(type, std::move(extents));
  for (size_t k = 0; k < values.size(); ++k) {
    tensor::StoreScalar(
        type, tensor.mutable_data(), static_cast<int64_t>(k),
        tensor::CastScalar(ElementType::kFloat64, type, tensor::Scalar{.f = values[k]}));
  }
  return tensor;
}

NodeInput Given(Extents extents, const std::vector<double>& values, ElementType type) {
  return {MakeTensor(type, std::move(extents), values), NodeInput::Kind::kGiven};
}

NodeInput Symbolic(Extents extents, const std::vector<double>& values, ElementType type) {
  return {MakeTensor(type, std::move(extents), values), NodeInput::Kind::kSymbolic};
}

NodeInput Constant(Extents extents, const std::vector<double>& values, ElementType type) {
  return {MakeTensor(type, std::move(extents), values), NodeInput::Kind::kConstant};
}

NodeInput Omitted() { return {std::nullopt, NodeInput::Kind::kOmitted}; }

std::vector<double> Numbers(const Tensor& tensor) {
  std::vector<double> numbers;
  for (int64_t k = 0; k < tensor.element_count(); ++k) numbers.push_back(tensor.AsDouble(k));
  return numbers;
}

}  // namespace onnxifi::ops
