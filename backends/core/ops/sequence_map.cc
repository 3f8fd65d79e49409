// SPDX-License-Identifier: Apache-2.0
//
// SequenceMap (opset 17), as ONNX defines it.

#include "backends/core/ops/sequence_map.h"

#include <string>
#include <utility>

#include "backends/core/ops/captures.h"
#include "backends/core/ops/graph_builder.h"

namespace onnxifi::ops {
namespace {

using base::Code;
using base::Result;
using base::Status;
using graph::Graph;
using graph::Node;
using graph::ValueId;
using graph::ValueIds;
using tensor::ElementType;

}  // namespace

Result<std::unique_ptr<Graph>> ExpandSequenceMap(const Node& node,
                                                 const std::vector<bool>& is_sequence) {
  const auto* attribute = node.FindAttribute<std::shared_ptr<const Graph>>("body");
  const auto invalid = [](std::string sentence) {
    return Status(Code::kInvalidModel, "SequenceMap: " + std::move(sentence));
  };
  if (attribute == nullptr) return invalid("The attribute body is missing.");
  const Graph& given = **attribute;
  if (is_sequence.empty() || !is_sequence[0]) {
    return Status(Code::kMismatchingDatatype, "SequenceMap: Input 0 is no sequence.");
  }
  if (given.inputs.size() != node.inputs.size() || given.outputs.size() != node.outputs.size()) {
    return invalid("Its body has " + std::to_string(given.inputs.size()) + " inputs and " +
                   std::to_string(given.outputs.size()) + " outputs where " +
                   std::to_string(node.inputs.size()) + " and " +
                   std::to_string(node.outputs.size()) + " are required.");
  }

  auto whole = std::make_unique<Graph>();
  Captures outside(*whole);
  // The loop's body: what the node's body is, around it the elements.
  auto body = std::make_shared<Graph>(given);
  outside.PassOn(*body);
  Captures inputs(*body);
  const ValueId iteration = AddNamed(*body, "iteration");
  const ValueId condition = AddNamed(*body, "condition");
  std::vector<Node> takes;
  for (size_t k = 0; k < node.inputs.size(); ++k) {
    if (node.inputs[k] == graph::kNoValue) {
      return invalid("Input " + std::to_string(k) + " is missing.");
    }
    const std::string name = "input" + std::to_string(k);
    const ValueId taken = inputs.Of(outside.Of(node.inputs[k], name), name);
    takes.push_back(is_sequence[k]
                        ? MakeNode(node, "SequenceAt", 11, {taken, iteration}, {given.inputs[k]})
                        : MakeNode(node, "Identity", 16, {taken}, {given.inputs[k]}));
  }
  body->nodes.insert(body->nodes.begin(), std::make_move_iterator(takes.begin()),
                     std::make_move_iterator(takes.end()));
  body->inputs = {iteration, condition};
  // A body's outputs need a producer of their own.
  const ValueId goes_on = AddNamed(*body, "goes_on");
  body->nodes.push_back(MakeNode(node, "Identity", 16, {condition}, {goes_on}));
  body->outputs = {goes_on};
  for (size_t k = 0; k < given.outputs.size(); ++k) {
    body->inputs.push_back(AddNamed(*body, "before" + std::to_string(k)));
    body->outputs.push_back(AddNamed(*body, "after" + std::to_string(k)));
    body->nodes.push_back(MakeNode(node, "SequenceInsert", 11,
                                   {body->inputs.back(), given.outputs[k]},
                                   {body->outputs.back()}));
  }

  const ValueId length = AddNamed(*whole, "length");
  whole->nodes.push_back(
      MakeNode(node, "SequenceLength", 11, {outside.Of(node.inputs[0], "input0")}, {length}));
  Node loop = MakeNode(node, "Loop", 16,
                       {length, GraphBuilder(*whole, node).AddScalar(ElementType::kBool, 1)}, {});
  for (size_t k = 0; k < node.outputs.size(); ++k) {
    // Of no type: what the body appends first decides.
    Node empty =
        MakeNode(node, "SequenceEmpty", 11, {}, {AddNamed(*whole, "empty" + std::to_string(k))});
    empty.attributes.emplace("dtype", int64_t{0});
    loop.inputs.push_back(empty.outputs[0]);
    loop.outputs.push_back(AddNamed(*whole, "result" + std::to_string(k)));
    whole->nodes.push_back(std::move(empty));
  }
  whole->outputs = loop.outputs;
  loop.attributes.emplace("body", std::shared_ptr<const Graph>(std::move(body)));
  whole->nodes.push_back(std::move(loop));
  return whole;
}

}  // namespace onnxifi::ops
