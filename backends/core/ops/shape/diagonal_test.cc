// SPDX-License-Identifier: Apache-2.0
//
// Trilu against plain loops: diagonals within and far beyond the matrix, symbolic extents, inputs
// that are views with a fill, and nothing at all.

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "backends/core/graph/graph.h"
#include "backends/core/ops/testing/run_operator.h"

namespace onnxifi::ops {
namespace {

using tensor::ElementType;

std::vector<double> Kept(const tensor::Extents& extents, const std::vector<double>& x, int64_t k,
                         bool is_upper) {
  const int64_t rows = extents[extents.size() - 2], columns = extents.back();
  std::vector<double> kept;
  for (size_t number = 0; number < x.size(); ++number) {
    const auto at = static_cast<int64_t>(number);
    const int64_t distance = at % columns - at / columns % rows;
    kept.push_back((is_upper ? distance >= k : distance <= k) ? x[number] : 0.0);
  }
  return kept;
}

TEST(TriluTest, EqualsLoops) {
  const tensor::Extents all_extents[] = {{4, 6}, {2, 5, 3}, {2, 1, 1, 7}, {3, 0}};
  for (const tensor::Extents& extents : all_extents) {
    std::vector<double> x(static_cast<size_t>(tensor::ElementCount(extents)));
    for (size_t k = 0; k < x.size(); ++k) x[k] = static_cast<double>(k) + 1;
    for (const int64_t k : {int64_t{0}, int64_t{1}, int64_t{-2}, int64_t{6}, int64_t{-7},
                            int64_t{1000}, int64_t{-1000}, INT64_MAX, INT64_MIN}) {
      for (const bool is_upper : {true, false}) {
        for (const bool is_symbolic : {false, true}) {
          NodeInput diagonal = Constant({}, {0}, ElementType::kInt64);
          diagonal.tensor =
              tensor::Tensor::FromValues<int64_t>(ElementType::kInt64, {}, std::vector<int64_t>{k});
          const auto out =
              RunOperator({"Trilu",
                           14,
                           {{"upper", int64_t{is_upper}}},
                           {is_symbolic ? Symbolic(extents, x) : Given(extents, x), diagonal}});
          ASSERT_TRUE(out.ok()) << out.status().Text();
          EXPECT_EQ(Numbers((*out)[0]), Kept(extents, x, k, is_upper))
              << "k " << k << (is_upper ? ", upper" : ", lower");
        }
      }
    }
  }
}

// A Pad is a view with a fill, which the triangle's has to agree with.
TEST(TriluTest, TakesWhatAPadGives) {
  for (const float fill : {0.0F, 1.5F}) {
    graph::Graph graph;
    const auto add = [&](const char* name, std::optional<tensor::Tensor> constant) {
      graph::Value value;
      value.name = name;
      value.constant = std::move(constant);
      return graph.AddValue(std::move(value));
    };
    const auto add_node = [&](const char* op_type, int version, graph::ValueIds inputs) {
      graph::Node node;
      node.name = node.op_type = op_type;
      node.since_version = version;
      node.inputs = std::move(inputs);
      node.outputs = {add(op_type, std::nullopt)};
      graph.nodes.push_back(node);
      return node.outputs[0];
    };
    graph::Value input;
    input.name = "x";
    input.type.kind = graph::Type::Kind::kTensor;
    input.type.element = ElementType::kFloat32;
    input.type.extents = {{3, ""}, {4, ""}};
    graph.inputs = {graph.AddValue(std::move(input))};
    const graph::ValueId pads = add("pads", MakeTensor(ElementType::kInt64, {4}, {1, 0, 1, 2}));
    const graph::ValueId number = add("fill", MakeTensor(ElementType::kFloat32, {}, {fill}));
    const graph::ValueId padded = add_node("Pad", 18, {graph.inputs[0], pads, number});
    graph.outputs = {add_node("Trilu", 14, {padded})};
    std::vector<double> x(12), filled(30, fill);
    for (size_t k = 0; k < x.size(); ++k) {
      x[k] = static_cast<double>(k) + 2;
      filled[(k / 4 + 1) * 6 + k % 4] = x[k];
    }
    const auto out = RunGraph(graph, {MakeTensor(ElementType::kFloat32, {3, 4}, x)});
    ASSERT_TRUE(out.ok()) << out.status().Text();
    EXPECT_EQ(Numbers((*out)[0]), Kept({5, 6}, filled, 0, /*is_upper=*/true));
  }
}

}  // namespace
}  // namespace onnxifi::ops
