// SPDX-License-Identifier: Apache-2.0
//
// Domains beside ONNX's: what a declaration becomes, which operators and versions are found, what a
// definition is given and what it refuses.

#include "backends/core/model/domains.h"

#include <gtest/gtest.h>
#include <onnx/defs/schema.h>

#include <algorithm>
#include <string>

#include "backends/core/graph/graph.h"
#include "backends/core/model/declaration.h"
#include "backends/core/model/definition.h"
#include "backends/core/model/function_expander.h"
#include "backends/core/model/schema.h"

namespace onnxifi::model {
namespace {

using base::Code;
using base::Status;
using onnx::OpSchema;

Status DefineScale(Definition& d) {
  if (d.Int("axis") > 1) return d.Unsupported("Attribute axis is above 1.");
  const auto factor = d.Has(1) ? d.In(1) : d.Scalar(d.Float("alpha"), d.Type(0));
  d.Return(0, d.Apply("Mul", {d.In(0), factor}, {{"__of_scale", int64_t{1}}}));
  if (d.Wants(2)) d.Return(2, d.ExtentOf(d.In(0), 0));
  return base::Ok();
}

constexpr DomainOperator kOperators[] = {
    {R"(Scale(X: T, factor?: T) -> (Y: T, unused?: T, extent?: int64)
        axis: int = -1
        alpha: float = 0.5
        T = float16 | float)",
     DefineScale},
    {R"(Scale(X: T, factor?: T, others*: U) -> (Y: T)
        mode: string = plain
        pads: ints required
        T = float
        U = int8 | uint8)",
     nullptr, 3},
    {"Half(X: float) -> (Y: float", nullptr},
};
constexpr Domain kDomain = {"com.example", 3, kOperators};

class DomainsTest : public ::testing::Test {
 protected:
  const Domain* const list_[1] = {&kDomain};
  const Domains domains_{list_};
};

TEST_F(DomainsTest, FindsTheNewestVersionThatIsNoNewer) {
  for (const auto& [opset, since] : {std::pair(1, 1), std::pair(2, 1), std::pair(3, 3)}) {
    const OpSchema* schema = domains_.FindSchema("Scale", "com.example", opset);
    ASSERT_NE(schema, nullptr) << opset;
    EXPECT_EQ(schema->SinceVersion(), since);
    EXPECT_EQ(domains_.FindSchema("Scale", "com.example", opset), schema) << "made once";
  }
  EXPECT_EQ(domains_.FindSchema("Scale", "com.example", 0), nullptr);
  EXPECT_EQ(domains_.FindSchema("Scale", "", 3), nullptr);
  EXPECT_EQ(domains_.FindSchema("Scales", "com.example", 3), nullptr);
  EXPECT_NE(domains_.FindSchema("Conv", "", 22), nullptr) << "ONNX's operators are there";
  EXPECT_EQ(domains_.NewestOpset("com.example"), 3);
  EXPECT_FALSE(domains_.NewestOpset("com.other").has_value());
  EXPECT_TRUE(domains_.SupportedOpsets().ends_with(" com.example:3")) << domains_.SupportedOpsets();
}

TEST_F(DomainsTest, ReadsInputsOutputsAttributesAndTypes) {
  const OpSchema* first = domains_.FindSchema("Scale", "com.example", 1);
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(first->min_input(), 1);
  EXPECT_EQ(first->max_input(), 2);
  EXPECT_EQ(first->min_output(), 1);
  EXPECT_EQ(first->max_output(), 3);
  EXPECT_EQ(first->attributes().at("axis").default_value.i(), -1);
  EXPECT_EQ(first->attributes().at("alpha").default_value.f(), 0.5F);
  EXPECT_EQ(first->inputs()[0].GetTypes().size(), 2U);
  EXPECT_EQ(first->outputs()[2].GetTypes().size(), 1U);
  const OpSchema* third = domains_.FindSchema("Scale", "com.example", 3);
  ASSERT_NE(third, nullptr);
  EXPECT_EQ(third->inputs()[2].GetOption(), OpSchema::Variadic);
  EXPECT_EQ(third->attributes().at("mode").default_value.s(), "plain");
  EXPECT_TRUE(third->attributes().at("pads").required);
}

TEST_F(DomainsTest, TellsWhichLineOfADeclarationCannotBeRead) {
  const Status broken = domains_.CheckDeclarations();
  EXPECT_EQ(broken.code(), Code::kInternalError);
  EXPECT_NE(broken.Text().find("Half"), std::string::npos) << broken.Text();
  EXPECT_EQ(domains_.FindSchema("Half", "com.example", 1), nullptr);
  for (const char* text : {"A(X: T) (Y: T)", "A(X) -> (Y: T)", "A(X: T) -> (Y: T)\n axis: number",
                           "A(X: T) -> (Y: T)\n axis: int = x", "A(X: T) -> (Y: T)\n axis int",
                           "A(X: T) -> (Y: T)\n axis: ints = 1", "A(X: T) -> (Y: T)\n t = float",
                           "A(X: T) -> (Y: T)\n T =", "A(X: T) -> (Y: T)\n : int", ""}) {
    OpSchema schema;
    EXPECT_FALSE(ReadDeclaration(text, "com.example", schema).ok()) << text;
  }
}

graph::Type TypeOf(tensor::ElementType element) {
  graph::Type type{.kind = graph::Type::Kind::kTensor, .element = element};
  type.extents.emplace(2);
  return type;
}

graph::Node ScaleNode() {
  return {.op_type = "Scale",
          .domain = "com.example",
          .since_version = 1,
          .inputs = {0},
          .outputs = {1}};
}

TEST_F(DomainsTest, ADefinitionSeesAttributesTypesAndWhatIsWanted) {
  graph::Node node = ScaleNode();
  node.outputs = {1, graph::kNoValue, 2};
  const auto body = ExpandFunction(node, {TypeOf(tensor::ElementType::kFloat16)}, domains_);
  ASSERT_TRUE(body.ok()) << body.status().Text();
  EXPECT_EQ(body->outputs.size(), 3U) << "one for the omitted output, too";
  const auto with_default = std::ranges::any_of(body->nodes, [](const graph::Node& inner) {
    const float* number = inner.FindAttribute<float>("value_float");
    return number != nullptr && *number == 0.5F;
  });
  EXPECT_TRUE(with_default);
  EXPECT_TRUE(std::ranges::any_of(body->nodes, [](const graph::Node& inner) {
    return inner.FindAttribute<int64_t>("__of_scale") != nullptr;
  })) << "an attribute of the definition's own";
}

TEST_F(DomainsTest, ADefinitionIsRefusedWithItsOwnSentence) {
  graph::Node node = ScaleNode();
  node.attributes["axis"] = int64_t{2};
  const auto refused = ExpandFunction(node, {TypeOf(tensor::ElementType::kFloat32)}, domains_);
  EXPECT_EQ(refused.status().code(), Code::kUnsupportedAttribute);
  EXPECT_NE(refused.status().Text().find("Scale: Attribute axis is above 1."), std::string::npos)
      << refused.status().Text();
}

TEST_F(DomainsTest, AnOutputThatNothingComputesIsRefused) {
  graph::Node node = ScaleNode();
  node.outputs = {1, 2};
  const auto refused = ExpandFunction(node, {TypeOf(tensor::ElementType::kFloat32)}, domains_);
  EXPECT_EQ(refused.status().code(), Code::kUnsupportedAttribute);
  EXPECT_NE(refused.status().Text().find("Output 1"), std::string::npos);
}

TEST_F(DomainsTest, InputsOfOneVariableHaveOneType) {
  graph::Node node = ScaleNode();
  node.inputs = {0, 2};
  const auto refused = ExpandFunction(
      node, {TypeOf(tensor::ElementType::kFloat32), TypeOf(tensor::ElementType::kFloat16)},
      domains_);
  EXPECT_EQ(refused.status().code(), Code::kMismatchingDatatype);
  EXPECT_NE(refused.status().Text().find("Inputs 0 and 1"), std::string::npos)
      << refused.status().Text();
  const auto other = ExpandFunction(node, {TypeOf(tensor::ElementType::kInt32)}, domains_);
  EXPECT_EQ(other.status().code(), Code::kUnsupportedDatatype) << other.status().Text();
}

}  // namespace
}  // namespace onnxifi::model
