// SPDX-License-Identifier: Apache-2.0
//
// OutputShapes: extents that follow from the inputs, and those that only a run tells.

#include "onnxifi/split/output_shapes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <onnx/defs/parser.h>
#include <onnx/onnx_pb.h>

namespace onnxifi::split {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string Parse(const std::string& graph) {
  onnx::ModelProto model;
  const auto status = onnx::OnnxParser::Parse(
      model, ("<ir_version: 10, opset_import: [\"\" : 21, \"vendor\" : 1]>\n" + graph).c_str());
  EXPECT_TRUE(status.IsOK()) << status.ErrorMessage();
  return model.SerializeAsString();
}

base::Result<std::vector<OutputShape>> Infer(const std::string& graph,
                                             const std::vector<InputShape>& inputs,
                                             const std::vector<GivenWeight>& weights = {}) {
  const std::string bytes = Parse(graph);
  const auto shapes =
      OutputShapes::Read({reinterpret_cast<const std::byte*>(bytes.data()), bytes.size()}, weights);
  EXPECT_TRUE(shapes.ok()) << shapes.status().Text();
  return (*shapes)->Infer(inputs);
}

TEST(OutputShapes, FollowFromTheExtentsOfTheInputs) {
  const auto shapes = Infer(R"(
    graph (float[N, 3, H, W] x) => (float[N, C, h, w] y, int64[r] s)
        <float[8, 3, 3, 3] k> {
      a = Conv<pads = [1, 1, 1, 1], strides = [2, 2]>(x, k)
      y = Concat<axis = 1>(a, a)
      s = Shape(y)
    })",
                            {{"x", {2, 3, 32, 20}}, {"k", {8, 3, 3, 3}}});
  ASSERT_TRUE(shapes.ok()) << shapes.status().Text();
  EXPECT_EQ((*shapes)[0].name, "y");
  EXPECT_EQ((*shapes)[0].type, tensor::ElementType::kFloat32);
  EXPECT_THAT((*shapes)[0].extents, ElementsAre(2, 16, 16, 10));
  EXPECT_EQ((*shapes)[1].type, tensor::ElementType::kInt64);
  EXPECT_THAT((*shapes)[1].extents, ElementsAre(4));
}

TEST(OutputShapes, ReadTheNumbersOfAWeightThatTheCallerGives) {
  const std::vector<int64_t> numbers = {6, -1};
  const GivenWeight weight{
      "s", tensor::ElementType::kInt64, {2}, reinterpret_cast<const std::byte*>(numbers.data())};
  const auto shapes = Infer(R"(
    graph (float[N, 3] x, int64[2] s) => (float[A, B] y) { y = Reshape(x, s) })",
                            {{"x", {4, 3}}}, {weight});
  ASSERT_TRUE(shapes.ok()) << shapes.status().Text();
  EXPECT_THAT((*shapes)[0].extents, ElementsAre(6, 2));
}

TEST(OutputShapes, BelieveInferenceRatherThanTheDeclaration) {
  const auto shapes = Infer("graph (float[N] x) => (float[2] y) { y = Neg(x) }", {{"x", {5}}});
  ASSERT_TRUE(shapes.ok()) << shapes.status().Text();
  EXPECT_THAT((*shapes)[0].extents, ElementsAre(5));
}

TEST(OutputShapes, FallBackOnWhatTheModelDeclares) {
  const auto shapes =
      Infer("graph (float[N] x) => (float[N, 7, M] y) { y = vendor.Magic(x) }", {{"x", {5}}});
  ASSERT_TRUE(shapes.ok()) << shapes.status().Text();
  EXPECT_EQ((*shapes)[0].type, tensor::ElementType::kFloat32);
  EXPECT_THAT((*shapes)[0].extents, ElementsAre(5, 7, -1));
}

TEST(OutputShapes, TakeADeclaredNumberForTheUpperBoundOfWhatDependsOnData) {
  constexpr const char* kBounded = "graph (float[2, 3] x) => (int64[2, 6] y) { y = NonZero(x) }";
  constexpr const char* kUnbounded =
      "graph (float[2, 3] x) => (int64[2, count] y) { y = NonZero(x) }";
  EXPECT_THAT((*Infer(kBounded, {{"x", {2, 3}}}))[0].extents, ElementsAre(2, 6));
  EXPECT_THAT((*Infer(kUnbounded, {{"x", {2, 3}}}))[0].extents, ElementsAre(2, -1));
}

TEST(OutputShapes, RefuseAnInputOfAnotherRank) {
  const auto shapes = Infer("graph (float[N] x) => (float[N] y) { y = Neg(x) }", {{"x", {5, 1}}});
  ASSERT_FALSE(shapes.ok());
  EXPECT_EQ(shapes.status().code(), base::Code::kInvalidShape);
  EXPECT_THAT(shapes.status().Text(), HasSubstr("Input 'x' has rank 2; the model declares 1."));
}

// As for a node of a model whose extents are not known.
bool Follow(const std::string& graph) {
  const std::string bytes = Parse(graph);
  const auto whole =
      WholeModel::Read({reinterpret_cast<const std::byte*>(bytes.data()), bytes.size()}, {});
  EXPECT_TRUE(whole.ok()) << whole.status().Text();
  const std::vector<int32_t> node = {0};
  return FollowFromInputs((*whole)->Extract(node), (*whole)->values());
}

TEST(OutputShapes, AreKnownToFollowFromInputsOfAnyExtents) {
  EXPECT_TRUE(
      Follow("graph (float[N] x, float[M] z) => (float[K] y) {"
             " y = Concat<axis = 0>(x, z) }"));
  EXPECT_TRUE(
      Follow("graph (float[1, 3, H, W] x) => (float[1, 3, h, w] y) {"
             " y = MaxPool<kernel_shape = [3, 3]>(x) }"));
  EXPECT_FALSE(Follow("graph (float[N] x) => (int64[1, K] y) { y = NonZero(x) }"));
}

}  // namespace
}  // namespace onnxifi::split
