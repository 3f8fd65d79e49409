// SPDX-License-Identifier: Apache-2.0
//
// GraphBuilder: small graphs by hand, for the tests of whatever takes a graph.

#ifndef ONNXIFI_BACKENDS_CORE_GRAPH_TESTING_GRAPH_BUILDER_H_
#define ONNXIFI_BACKENDS_CORE_GRAPH_TESTING_GRAPH_BUILDER_H_

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "backends/core/graph/graph.h"

namespace onnxifi::graph::testing {

class GraphBuilder {
 public:
  using Attributes = std::map<std::string, Attribute, std::less<>>;

  explicit GraphBuilder(std::string name = "") { graph_.name = std::move(name); }

  ValueId AddInput(std::string name, Type type = {}) {
    graph_.inputs.push_back(graph_.AddValue({.name = std::move(name), .type = std::move(type)}));
    return graph_.inputs.back();
  }

  // A rank-1 float32 constant.
  ValueId AddConstant(std::string name, const std::vector<float>& values) {
    Value value{.name = std::move(name)};
    value.constant = tensor::Tensor::FromValues<float>(
        tensor::ElementType::kFloat32, {static_cast<int64_t>(values.size())}, values);
    return graph_.AddValue(std::move(value));
  }

  // Under a name of its own.
  ValueId AddConstant(tensor::Tensor constant) {
    Value value{.name = "c" + std::to_string(graph_.values.size())};
    value.constant = std::move(constant);
    return graph_.AddValue(std::move(value));
  }

  ValueId AddCapture(std::string name, ValueId outer) {
    return graph_.AddValue({.name = std::move(name), .outer = outer});
  }

  // A node of one output, which is returned.
  ValueId AddNode(std::string op_type, ValueIds inputs,
                  std::shared_ptr<const Graph> body = nullptr) {
    Node node{.op_type = std::move(op_type),
              .since_version = 1,
              .index = static_cast<int>(graph_.nodes.size()),
              .inputs = std::move(inputs)};
    if (body) node.attributes["body"] = std::move(body);
    node.outputs.push_back(graph_.AddValue({.name = "t" + std::to_string(graph_.values.size())}));
    graph_.nodes.push_back(std::move(node));
    return graph_.nodes.back().outputs.front();
  }

  // A node of an operator's version, with `output_count` outputs, which are returned.
  ValueIds AddNodeOfMany(std::string op_type, int version, ValueIds inputs, int output_count,
                         Attributes attributes = {}) {
    Node node{.op_type = std::move(op_type),
              .since_version = version,
              .index = static_cast<int>(graph_.nodes.size()),
              .inputs = std::move(inputs)};
    node.attributes = std::move(attributes);
    for (int k = 0; k < output_count; ++k) {
      node.outputs.push_back(graph_.AddValue({.name = "t" + std::to_string(graph_.values.size())}));
    }
    graph_.nodes.push_back(std::move(node));
    return graph_.nodes.back().outputs;
  }
  // The same with one output.
  ValueId AddNode(std::string op_type, int version, ValueIds inputs, Attributes attributes = {}) {
    return AddNodeOfMany(std::move(op_type), version, std::move(inputs), 1,
                         std::move(attributes))[0];
  }

  Node& LastNode() { return graph_.nodes.back(); }
  void SetOutputs(ValueIds outputs) { graph_.outputs = std::move(outputs); }
  Graph Take() { return std::move(graph_); }
  Graph Take(ValueIds outputs) {
    SetOutputs(std::move(outputs));
    return Take();
  }
  std::shared_ptr<const Graph> Share() { return std::make_shared<const Graph>(Take()); }

 private:
  Graph graph_;
};

}  // namespace onnxifi::graph::testing

#endif  // ONNXIFI_BACKENDS_CORE_GRAPH_TESTING_GRAPH_BUILDER_H_
