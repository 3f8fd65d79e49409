// SPDX-License-Identifier: Apache-2.0
//
// ModelProblem: the numbers of a small model.

#include "onnxifi/split/model_problem.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <onnx/defs/parser.h>
#include <onnx/onnx_pb.h>

#include <string>
#include <vector>

namespace onnxifi::split {
namespace {

using testing::ElementsAre;

TEST(ModelProblem, CountsWhatIsMoved) {
  onnx::ModelProto model;
  ASSERT_TRUE(onnx::OnnxParser::Parse(model, R"(
    <ir_version: 10, opset_import: ["" : 21]>
    graph (float[N, 8] x) => (float[N, 8] y) <float[8] w = {1, 2, 3, 4, 5, 6, 7, 8}> {
      t = Add(x, w)
      s = SequenceConstruct(t, t)
      i = Constant<value = int64 {0}>()
      y = SequenceAt(s, i)
    })")
                  .IsOK());
  const std::string bytes = model.SerializeAsString();
  const auto whole =
      WholeModel::Read({reinterpret_cast<const std::byte*>(bytes.data()), bytes.size()}, {});
  ASSERT_TRUE(whole.ok()) << whole.status().Text();
  const std::vector<DeviceRates> rates = {
      {.cost = {.launch_ns = 5}, .node_ns = 100, .picoseconds_per_byte = 1000},
      {.cost = {.launch_ns = 6}, .node_ns = 10, .picoseconds_per_byte = 500}};
  const partition::Problem problem =
      MakeProblem(**whole, rates, {{true, true, true}, {true, false, true}});
  EXPECT_EQ(problem.node_count, 3);
  EXPECT_EQ(problem.devices[1].launch_ns, 6);
  // x and t of 32 bytes where N is taken as 1, w of 32; the sequence counts nothing.
  EXPECT_EQ(problem.TimeNs(0, 0), 100 + 96);
  EXPECT_EQ(problem.TimeNs(0, 1), 10 + 48);
  EXPECT_EQ(problem.TimeNs(1, 1), partition::kRefused);
  ASSERT_EQ(problem.values.size(), 4U);
  EXPECT_THAT(problem.values[1].consumers, ElementsAre(1));
  EXPECT_TRUE(problem.values[1].is_cuttable);
  EXPECT_FALSE(problem.values[2].is_cuttable);
  EXPECT_TRUE(problem.values[3].is_output);
}

// Nor behind what is made of it, whatever the model declares. Where the branches agree, a boundary
// can carry it.
TEST(ModelProblem, CutsNothingBehindAnIfOfOpenRank) {
  for (const bool is_open : {true, false}) {
    onnx::ModelProto model;
    const std::string extents = is_open ? "" : "[1]";
    const std::string text = R"(
      <ir_version: 10, opset_import: ["" : 21]>
      graph (bool c, float[2] x) => (float[2] y) <float[1] t, float[1] s> {
        t = If(c)<
          then_branch = a () => (float)" +
                             extents + R"( u) { u = Constant<value = float)" + extents +
                             R"( {2}>() },
          else_branch = b () => (float[1] v) { v = Constant<value = float[1] {3}>() }>
        s = Neg(t)
        y = Mul(x, s)
      })";
    const auto parsed = onnx::OnnxParser::Parse(model, text.c_str());
    ASSERT_TRUE(parsed.IsOK()) << parsed.ErrorMessage();
    const std::string bytes = model.SerializeAsString();
    const auto whole =
        WholeModel::Read({reinterpret_cast<const std::byte*>(bytes.data()), bytes.size()}, {});
    ASSERT_TRUE(whole.ok()) << whole.status().Text();
    const partition::Problem problem =
        MakeProblem(**whole, {{.cost = {.launch_ns = 5}, .node_ns = 1, .picoseconds_per_byte = 1}},
                    {{true, true, true}});
    ASSERT_EQ(problem.values.size(), 5U);
    for (const int32_t producer : {0, 1}) {
      const partition::Value& value = problem.values[static_cast<size_t>(producer) + 2];
      ASSERT_EQ(value.producer, producer);
      EXPECT_EQ(value.is_cuttable, !is_open);
    }
  }
}

// A device that has the If alone would not know that extents decide.
TEST(ModelProblem, CutsNothingBetweenExtentsAndTheBranchThatTheyChoose) {
  onnx::ModelProto model;
  const auto parsed = onnx::OnnxParser::Parse(model, R"(
    <ir_version: 8, opset_import: ["" : 17]>
    graph (float[2, d, 3] x) => (float[a, 3] y) <int64[1] one = {1}, int64[2] rows = {-1, 3}> {
      twice = Add(x, x)
      extents = Shape(twice)
      extent = Gather<axis = 0>(extents, one)
      is_one = Equal(extent, one)
      squeezed = If(is_one)<
        then_branch = t () => (float[a, b] s) { s = Squeeze(twice, one) },
        else_branch = e () => (float[a, b, c] i) { i = Identity(twice) }>
      flat = Reshape(squeezed, rows)
      y = Neg(flat)
    })");
  ASSERT_TRUE(parsed.IsOK()) << parsed.ErrorMessage();
  const std::string bytes = model.SerializeAsString();
  const auto whole =
      WholeModel::Read({reinterpret_cast<const std::byte*>(bytes.data()), bytes.size()}, {});
  ASSERT_TRUE(whole.ok()) << whole.status().Text();
  std::vector<std::string> cuttable;
  for (const FlowingValue& value : (*whole)->values()) {
    if (value.is_carried()) cuttable.push_back(value.name);
  }
  EXPECT_THAT(cuttable, ElementsAre("x", "twice", "flat", "y"));
}

}  // namespace
}  // namespace onnxifi::split
