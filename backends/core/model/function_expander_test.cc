// SPDX-License-Identifier: Apache-2.0
//
// FunctionExpander: bodies of plain and of type-dependent definitions, omitted inputs, defaults of
// attributes; and a sweep over every operator that ONNX defines as a function.

#include "backends/core/model/function_expander.h"

#include <gtest/gtest.h>
#include <onnx/defs/schema.h>

#include <algorithm>
#include <set>

#include "backends/core/graph/dump.h"
#include "backends/core/graph/verify.h"

namespace onnxifi::model {
namespace {

using graph::kNoValue;

graph::Type FloatType(std::initializer_list<int64_t> extents) {
  graph::Type type{.kind = graph::Type::Kind::kTensor, .element = tensor::ElementType::kFloat32};
  type.extents.emplace();
  for (const int64_t extent : extents) type.extents->push_back({.number = extent});
  return type;
}

std::multiset<std::string> Operators(const graph::Graph& graph) {
  std::multiset<std::string> operators;
  for (const graph::Node& node : graph.nodes) operators.insert(node.op_type);
  return operators;
}

TEST(FunctionExpanderTest, PlainDefinitionsTakeDefaultsOfTheOperator) {
  graph::Node node{.op_type = "HardSwish", .since_version = 14, .inputs = {0}, .outputs = {1}};
  const auto swish = ExpandFunction(node, {FloatType({2})});
  ASSERT_TRUE(swish.ok()) << swish.status().Text();
  EXPECT_TRUE(graph::Verify(*swish).ok());
  EXPECT_EQ(swish->inputs.size(), 1u);
  EXPECT_EQ(swish->outputs.size(), 1u);
  EXPECT_TRUE(Operators(*swish).contains("HardSigmoid")) << graph::DumpText(*swish);

  node.op_type = "ThresholdedRelu";  // alpha has a default
  node.since_version = 10;
  const auto relu = ExpandFunction(node, {FloatType({2})});
  ASSERT_TRUE(relu.ok()) << relu.status().Text();
  const auto found = std::ranges::find_if(relu->nodes, [](const graph::Node& inner) {
    return inner.FindAttribute<float>("value_float") != nullptr;
  });
  ASSERT_NE(found, relu->nodes.end()) << graph::DumpText(*relu);
  EXPECT_EQ(*found->FindAttribute<float>("value_float"), 1.f);

  node.attributes["alpha"] = 3.f;
  const auto given = ExpandFunction(node, {FloatType({2})});
  ASSERT_TRUE(given.ok());
  EXPECT_TRUE(std::ranges::any_of(given->nodes, [](const graph::Node& inner) {
    const float* value = inner.FindAttribute<float>("value_float");
    return value != nullptr && *value == 3.f;
  }));
}

TEST(FunctionExpanderTest, TypeDependentDefinitionsSeeTheInputTypes) {
  graph::Node node{
      .op_type = "Clip", .since_version = 13, .inputs = {0, kNoValue, 1}, .outputs = {2}};
  const auto clip = ExpandFunction(node, {FloatType({2}), {}, FloatType({})});
  ASSERT_TRUE(clip.ok()) << clip.status().Text();
  EXPECT_TRUE(graph::Verify(*clip).ok());
  EXPECT_EQ(clip->inputs.size(), 2u) << "the omitted input is left out";
  EXPECT_FALSE(clip->nodes.empty());
}

TEST(FunctionExpanderTest, RefusesOperatorsWithoutDefinition) {
  graph::Node node{.op_type = "Conv", .since_version = 11, .inputs = {0, 1}, .outputs = {2}};
  const auto conv = ExpandFunction(node, {FloatType({1, 1, 3, 3}), FloatType({1, 1, 1, 1})});
  ASSERT_FALSE(conv.ok());
  EXPECT_EQ(conv.status().code(), base::Code::kUnsupportedOperator);
  EXPECT_NE(conv.status().sentence().find("'Conv'"), std::string_view::npos);
  node.op_type = "NoSuchOperator";
  EXPECT_EQ(ExpandFunction(node, {}).status().code(), base::Code::kUnsupportedOperator);
}

TEST(FunctionExpanderTest, RefusesTypesThatTheOperatorDoesNotTake) {
  graph::Type ints = FloatType({2, 3});
  ints.element = tensor::ElementType::kInt8;
  graph::Node node{.op_type = "Softplus", .since_version = 22, .inputs = {0}, .outputs = {1}};
  EXPECT_TRUE(ExpandFunction(node, {FloatType({2, 3})}).ok());
  const auto refused = ExpandFunction(node, {ints});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().code(), base::Code::kUnsupportedDatatype);
  EXPECT_NE(refused.status().sentence().find("takes no tensor(int8) as input 0 ('X'), only"),
            std::string_view::npos)
      << refused.status().Text();
}

// Each operator with a plain definition, at each of its versions, called with all inputs it
// declares and the attributes it requires as zeros: the body must import and be sound, or be
// refused with a sentence.
TEST(FunctionExpanderTest, EveryPlainDefinitionExpands) {
  int expanded = 0;
  std::string refused;
  for (const onnx::OpSchema& schema : onnx::OpSchemaRegistry::get_all_schemas_with_history()) {
    if (!schema.HasFunction() || schema.Deprecated()) continue;
    graph::Node node{.op_type = schema.Name(),
                     .domain = schema.domain(),
                     .since_version = schema.SinceVersion()};
    for (size_t index = 0; index < schema.inputs().size(); ++index) {
      node.inputs.push_back(static_cast<graph::ValueId>(index));
    }
    for (size_t index = 0; index < schema.outputs().size(); ++index) {
      node.outputs.push_back(static_cast<graph::ValueId>(100 + index));
    }
    for (const auto& [name, attribute] : schema.attributes()) {
      if (!attribute.required) continue;
      switch (attribute.type) {
        case onnx::AttributeProto::INT:
          node.attributes[name] = int64_t{1};
          break;
        case onnx::AttributeProto::FLOAT:
          node.attributes[name] = 1.f;
          break;
        case onnx::AttributeProto::STRING:
          node.attributes[name] = std::string("x");
          break;
        case onnx::AttributeProto::INTS:
          node.attributes[name] = std::vector<int64_t>{1};
          break;
        default:
          break;
      }
    }
    std::vector<graph::Type> types;
    for (const onnx::OpSchema::FormalParameter& input : schema.inputs()) {
      types.push_back(FloatType({2, 2}));
      const auto takes = [&](std::string_view name) {
        return std::ranges::any_of(input.GetTypes(),
                                   [&](const std::string* type) { return *type == name; });
      };
      if (takes("tensor(float)")) continue;
      types.back().element =
          takes("tensor(int64)") ? tensor::ElementType::kInt64 : tensor::ElementType::kBool;
    }
    const auto body = ExpandFunction(node, types);
    const std::string label =
        schema.domain() + "." + schema.Name() + "-" + std::to_string(schema.SinceVersion());
    if (!body.ok()) {
      EXPECT_TRUE(body.status().sentence().ends_with(".")) << body.status().Text();
      refused += label + ": " + body.status().Text() + "\n";
      continue;
    }
    ++expanded;
    EXPECT_TRUE(graph::Verify(*body).ok()) << label;
    EXPECT_EQ(body->outputs.size(), node.outputs.size()) << label;
    EXPECT_EQ(body->inputs.size(), node.inputs.size()) << label;
  }
  EXPECT_GE(expanded, 20) << refused;
  EXPECT_EQ(refused, "");
}

}  // namespace
}  // namespace onnxifi::model
