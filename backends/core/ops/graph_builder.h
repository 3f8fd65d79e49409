// SPDX-License-Identifier: Apache-2.0
//
// GraphBuilder: a graph that an operator's definition makes of other operators, node by node.

#ifndef ONNXIFI_BACKENDS_CORE_OPS_GRAPH_BUILDER_H_
#define ONNXIFI_BACKENDS_CORE_OPS_GRAPH_BUILDER_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "backends/core/graph/graph.h"

namespace onnxifi::ops {

// A value of a name and nothing else.
graph::ValueId AddNamed(graph::Graph& graph, std::string name);

// A node in the place of `like`, as messages have it.
graph::Node MakeNode(const graph::Node& like, std::string op_type, int since_version,
                     graph::ValueIds inputs, graph::ValueIds outputs);

class GraphBuilder {
 public:
  using ValueId = graph::ValueId;
  using Attributes = std::map<std::string, graph::Attribute, std::less<>>;

  // Adds to `graph` what stands in the place of `like`; both outlive this object.
  GraphBuilder(graph::Graph& graph, const graph::Node& like) : graph_(graph), like_(like) {}

  ValueId AddInput(std::string name);
  // A node behind those that there are.
  graph::Node& AddNode(std::string op_type, int since_version, graph::ValueIds inputs,
                       graph::ValueIds outputs);
  // The one output of such a node.
  ValueId Apply(std::string op_type, int since_version, graph::ValueIds inputs,
                Attributes attributes = {});
  ValueId CastTo(ValueId value, tensor::ElementType type);

  ValueId AddConstant(tensor::Tensor tensor);
  // `number` in a scalar of the type.
  ValueId AddScalar(tensor::ElementType type, double number);
  // int64 [numbers].
  ValueId AddIntegers(const std::vector<int64_t>& numbers);

 private:
  graph::Graph& graph_;
  const graph::Node& like_;
};

}  // namespace onnxifi::ops

#endif  // ONNXIFI_BACKENDS_CORE_OPS_GRAPH_BUILDER_H_
