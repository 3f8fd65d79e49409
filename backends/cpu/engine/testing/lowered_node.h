// SPDX-License-Identifier: Apache-2.0
//
// LowerNode: for tests, the program of a graph of one node.

#ifndef ONNXIFI_BACKENDS_CPU_ENGINE_TESTING_LOWERED_NODE_H_
#define ONNXIFI_BACKENDS_CPU_ENGINE_TESTING_LOWERED_NODE_H_

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "backends/core/graph/testing/graph_builder.h"
#include "backends/core/ops/lower_graph.h"

namespace onnxifi::engine {

inline graph::Type TypeOf(tensor::ElementType element, const tensor::Extents& extents) {
  graph::Type type;
  type.kind = graph::Type::Kind::kTensor;
  type.element = element;
  type.extents.emplace();
  for (const int64_t extent : extents) type.extents->push_back({.number = extent, .symbol = ""});
  return type;
}

// A node of one output.
inline std::unique_ptr<program::Program> LowerNode(
    std::string op_type, int version, const std::vector<graph::Type>& inputs,
    graph::testing::GraphBuilder::Attributes attributes = {}) {
  graph::testing::GraphBuilder builder;
  graph::ValueIds values;
  for (const graph::Type& type : inputs) {
    values.push_back(builder.AddInput("input" + std::to_string(values.size()), type));
  }
  const graph::ValueId result =
      builder.AddNode(std::move(op_type), version, std::move(values), std::move(attributes));
  auto program = ops::LowerGraph(builder.Take({result}), /*functions=*/nullptr);
  EXPECT_TRUE(program.ok()) << program.status().Text();
  return *std::move(program);
}

}  // namespace onnxifi::engine

#endif  // ONNXIFI_BACKENDS_CPU_ENGINE_TESTING_LOWERED_NODE_H_
