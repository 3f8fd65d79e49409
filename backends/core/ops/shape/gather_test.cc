// SPDX-License-Identifier: Apache-2.0
//
// Gather at constant positions that go on evenly, as exporters cut windows: a view, of padded
// tensors too, also where positions become constant once the graph is lowered. Others, and those
// out of range, are loads. Results are those of plain loops.

#include <gtest/gtest.h>

#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "backends/core/graph/testing/graph_builder.h"
#include "backends/core/ops/lowering.h"
#include "backends/core/ops/testing/run_operator.h"
#include "backends/core/program/even_positions.h"

namespace onnxifi::ops {
namespace {

using tensor::ElementType;
using tensor::Extents;

std::vector<double> Count(int64_t count) {
  std::vector<double> values(static_cast<size_t>(count));
  std::iota(values.begin(), values.end(), 1);
  return values;
}

bool LoadsAtPositions(const program::Program& program) {
  for (const program::Step& step : program.steps) {
    const auto* map = step.As<program::Map>();
    if (map == nullptr) continue;
    for (const program::ExprId id : program::Reachable(program.exprs, map->roots)) {
      const program::ExprNode& node = program.exprs[id];
      if (node.op == program::ExprOp::kLoad && !node.operands.empty()) return true;
    }
  }
  return false;
}

struct Positions {
  std::string name;
  Extents extents;
  std::vector<double> numbers;
  bool are_even;
  ElementType type = ElementType::kInt64;
};

// Of 7 rows.
const Positions kPositions[] = {
    {"Windows", {3, 3}, {0, 1, 2, 2, 3, 4, 4, 5, 6}, true},
    {"Taps", {3, 2}, {0, 2, 1, 3, 2, 4}, true, ElementType::kInt32},
    {"Backwards", {7}, {-1, -2, -3, -4, -5, -6, -7}, true},
    {"All", {7}, {0, 1, 2, 3, 4, 5, 6}, true},
    {"One", {1, 1}, {3}, true},
    {"Same", {4}, {5, 5, 5, 5}, true},
    {"FromBothEnds", {3}, {0, -6, 2}, true},
    {"InThreeAxes", {2, 1, 2}, {1, 2, 4, 5}, true},
    {"OneAside", {3, 3}, {0, 1, 2, 2, 3, 4, 4, 5, 5}, false},
    {"FirstAside", {4}, {1, 1, 2, 3}, false},
    {"OutOfRange", {3}, {5, 6, 7}, false},
    {"BeforeTheFirst", {2}, {-7, -8}, false},
    {"Far", {3}, {0, 4e18, -9e18}, false},
};

// Along axis 1 of [2, 7, 3].
std::vector<double> Expected(const Positions& positions, const std::vector<double>& x) {
  std::vector<double> expected;
  for (size_t n = 0; n < 2; ++n) {
    for (const double number : positions.numbers) {
      const double row = number < 0 ? number + 7 : number;
      for (size_t c = 0; c < 3; ++c) {
        expected.push_back(row < 0 || row >= 7 ? 0 : x[n * 21 + static_cast<size_t>(row) * 3 + c]);
      }
    }
  }
  return expected;
}

TEST(GatherTest, EvenPositionsAreAView) {
  for (const Positions& positions : kPositions) {
    SCOPED_TRACE(positions.name);
    bool has_loads = false;
    OneNode node{"Gather",
                 13,
                 {{"axis", int64_t{1}}},
                 {Given({2, 7, 3}, Count(42)),
                  Constant(positions.extents, positions.numbers, positions.type)}};
    node.rewrite = [&](program::Program& program) { has_loads = LoadsAtPositions(program); };
    const auto out = RunOperator(node);
    ASSERT_TRUE(out.ok()) << out.status().Text();
    Extents extents = {2};
    extents.insert(extents.end(), positions.extents.begin(), positions.extents.end());
    extents.push_back(3);
    EXPECT_EQ((*out)[0].extents(), extents);
    EXPECT_EQ(Numbers((*out)[0]), Expected(positions, Count(42)));
    EXPECT_EQ(has_loads, !positions.are_even);
  }
}

// As folding does it.
void MakeConstant(program::Program& program, const Positions& positions) {
  const program::BufferId constant =
      AddConstant(program, MakeTensor(positions.type, positions.extents, positions.numbers));
  for (program::Step& step : program.steps) {
    for (program::View& view : step.reads) {
      if (view.type == positions.type) view.buffer = constant;
    }
  }
  program::ReadAtEvenPositions(program);
}

TEST(GatherTest, PositionsMayBecomeConstantLater) {
  for (const Positions& positions : kPositions) {
    SCOPED_TRACE(positions.name);
    bool has_loads = false;
    OneNode node{
        "Gather",
        13,
        {{"axis", int64_t{1}}},
        {Given({2, 7, 3}, Count(42)), Given(positions.extents, positions.numbers, positions.type)}};
    node.rewrite = [&](program::Program& program) {
      MakeConstant(program, positions);
      has_loads = LoadsAtPositions(program);
    };
    const auto out = RunOperator(node);
    ASSERT_TRUE(out.ok()) << out.status().Text();
    EXPECT_EQ(Numbers((*out)[0]), Expected(positions, Count(42)));
    EXPECT_EQ(has_loads, !positions.are_even);
  }
}

// The first rows and the last are padding, or the last two.
TEST(GatherTest, EvenPositionsOfPaddedRowsMeetThePadding) {
  for (const size_t before : {0, 1}) {
    std::vector<double> padded(42, 0);
    for (size_t k = 0; k < 30; ++k) {
      padded[k / 15 * 21 + 3 * before + k % 15] = static_cast<double>(k) + 1;
    }
    const double first = static_cast<double>(before);
    for (const Positions& positions : kPositions) {
      for (const bool is_late : {false, true}) {
        if (!positions.are_even) continue;
        SCOPED_TRACE(positions.name + (is_late ? ", late" : ""));
        graph::testing::GraphBuilder builder("g");
        graph::Type type;
        type.kind = graph::Type::Kind::kTensor;
        type.element = ElementType::kFloat32;
        type.extents = {{2, ""}, {5, ""}, {3, ""}};
        const graph::ValueId x = builder.AddInput("x", type);
        const graph::ValueId pads = builder.AddConstant(
            MakeTensor(ElementType::kInt64, {6}, {0, first, 0, 0, 2 - first, 0}));
        const graph::ValueId rows = builder.AddNode("Pad", 18, {x, pads});
        const tensor::Tensor numbers =
            MakeTensor(positions.type, positions.extents, positions.numbers);
        std::vector<tensor::Tensor> inputs = {
            MakeTensor(ElementType::kFloat32, {2, 5, 3}, Count(30))};
        graph::ValueId at = graph::kNoValue;
        if (is_late) {
          type.element = positions.type;
          type.extents.emplace();
          for (const int64_t extent : positions.extents) type.extents->push_back({extent, ""});
          at = builder.AddInput("at", type);
          inputs.push_back(numbers);
        } else {
          at = builder.AddConstant(numbers);
        }
        builder.SetOutputs({builder.AddNode("Gather", 13, {rows, at}, {{"axis", int64_t{1}}})});
        const auto out = RunGraph(builder.Take(), inputs, [&](program::Program& program) {
          if (is_late) MakeConstant(program, positions);
          EXPECT_FALSE(LoadsAtPositions(program));
        });
        ASSERT_TRUE(out.ok()) << out.status().Text();
        EXPECT_EQ(Numbers((*out)[0]), Expected(positions, padded));
      }
    }
  }
}

}  // namespace
}  // namespace onnxifi::ops
