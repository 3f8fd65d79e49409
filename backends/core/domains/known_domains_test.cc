// SPDX-License-Identifier: Apache-2.0
//
// The domains of the kit: every declaration can be read, and every operator has a definition, but
// for those that core/ops lowers.

#include "backends/core/domains/known_domains.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <onnx/defs/schema.h>
#include <onnx/onnx_pb.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "backends/core/model/declaration.h"
#include "backends/core/model/import.h"
#include "backends/core/model/schema_table.h"

namespace onnxifi::domains {
namespace {

using ::testing::HasSubstr;

TEST(KnownDomains, EveryDeclarationCanBeRead) {
  const base::Status checked = KnownDomains().CheckDeclarations();
  EXPECT_TRUE(checked.ok()) << checked.Text();
}

// What core/ops lowers.
bool IsLowered(std::string_view name) {
  constexpr std::string_view kLowered[] = {"Inverse", "MeanVarianceNormalization",
                                           "ThresholdedRelu", "Tokenizer"};
  return std::ranges::find(kLowered, name) != std::ranges::end(kLowered);
}

TEST(KnownDomains, EveryOperatorHasADefinitionOfItsOwnOrALowering) {
  int count = 0;
  for (const model::Domain* domain : ListKnownDomains()) {
    for (const model::DomainOperator& operation : domain->operators) {
      const std::string_view name = model::DeclaredName(operation.declaration);
      EXPECT_EQ(operation.define == nullptr, IsLowered(name)) << name;
      EXPECT_EQ(model::FindSchema(name, domain->name, operation.since_version), nullptr)
          << name << " is ONNX's";
      const onnx::OpSchema* schema =
          KnownDomains().FindSchema(name, domain->name, operation.since_version);
      ASSERT_NE(schema, nullptr) << name;
      EXPECT_NE(KnownDomains().HasDefinition(*schema), IsLowered(name)) << name;
      EXPECT_TRUE(schema->has_type_and_shape_inference_function()) << name;
      ++count;
    }
  }
  EXPECT_GE(count, 50);
}

// One node on two float32 that imports ONNX's operator set 17 alone.
onnx::ModelProto OneNodeModel(const std::string& domain, const std::string& op_type) {
  onnx::ModelProto model;
  model.set_ir_version(8);
  model.add_opset_import()->set_version(17);
  for (const char* name : {"x", "y"}) {
    onnx::ValueInfoProto& value =
        name[0] == 'x' ? *model.mutable_graph()->add_input() : *model.mutable_graph()->add_output();
    value.set_name(name);
    value.mutable_type()->mutable_tensor_type()->set_elem_type(onnx::TensorProto::FLOAT);
    value.mutable_type()->mutable_tensor_type()->mutable_shape()->add_dim()->set_dim_value(2);
  }
  onnx::NodeProto& node = *model.mutable_graph()->add_node();
  node.set_op_type(op_type);
  node.set_domain(domain);
  node.add_input("x");
  node.add_output("y");
  return model;
}

// The version of the only node; the refusal.
std::string Import(const onnx::ModelProto& model) {
  model::ImportOptions options;
  options.domains = &KnownDomains();
  const std::string bytes = model.SerializeAsString();
  const auto graph = model::Import(std::as_bytes(std::span(bytes)), options);
  if (!graph.ok()) return graph.status().Text();
  return "version " + std::to_string(graph->nodes.front().since_version);
}

void AddImport(onnx::ModelProto& model, const std::string& domain, int64_t version) {
  onnx::OperatorSetIdProto& opset = *model.add_opset_import();
  opset.set_domain(domain);
  opset.set_version(version);
}

// As in ONNX Runtime. ONNX asks a model for an import of each domain whose operators it has.
TEST(KnownDomains, AnOperatorWithoutAnImportIsOfTheNewestVersion) {
  EXPECT_EQ(Import(OneNodeModel("com.microsoft", "Gelu")), "version 1");
  EXPECT_EQ(Import(OneNodeModel("ai.onnx.ml", "Binarizer")), "version 1");
  onnx::ModelProto trees = OneNodeModel("ai.onnx.ml", "LabelEncoder");
  EXPECT_EQ(Import(trees), "version 4");
  AddImport(trees, "ai.onnx.ml", 2);
  EXPECT_EQ(Import(trees), "version 2");
}

TEST(KnownDomains, AnImportAboveTheNewestVersionIsRefused) {
  onnx::ModelProto model = OneNodeModel("com.microsoft", "Gelu");
  AddImport(model, "com.microsoft", 1);
  EXPECT_EQ(Import(model), "version 1");
  model.mutable_opset_import(1)->set_version(2);
  EXPECT_THAT(Import(model), HasSubstr("The version of operator set 'com.microsoft' (2) exceeds "
                                       "the newest supported (1)."));
}

TEST(KnownDomains, AnOperatorWithoutADefinitionIsRefusedWithItsReason) {
  int count = 0;
  for (const model::Domain* domain : ListKnownDomains()) {
    for (const model::RefusedOperator& refused : domain->refused) {
      EXPECT_FALSE(KnownDomains().HasSchema(refused.name, domain->name)) << refused.name;
      onnx::ModelProto model = OneNodeModel(std::string(domain->name), std::string(refused.name));
      EXPECT_THAT(Import(model), HasSubstr("Operator '" + std::string(refused.name) +
                                           "' of domain 'com.microsoft' is not supported. " +
                                           std::string(refused.reason)));
      ++count;
    }
  }
  EXPECT_GT(count, 30);
  EXPECT_THAT(Import(OneNodeModel("com.microsoft", "NoSuchOperator")),
              HasSubstr("is defined neither by ONNX nor by the model."));
}

// Numbers of an initializer, of which a definition sees the type alone.
TEST(KnownDomains, SizesThatDivideNothingAreRefused) {
  const auto refusal = [](const char* sizes_name, int64_t second, int input, int type) {
    onnx::ModelProto model = OneNodeModel("com.microsoft", "NGramHashMapping");
    onnx::NodeProto& node = *model.mutable_graph()->mutable_node(0);
    node.clear_input();
    for (int index = 0; index < 3; ++index) node.add_input(index == input ? sizes_name : "x");
    for (const char* name : {"max_ngram_size", "n_head_per_ngram", "pad_id"}) {
      onnx::AttributeProto& attribute = *node.add_attribute();
      attribute.set_name(name);
      attribute.set_type(onnx::AttributeProto::INT);
      attribute.set_i(2);
    }
    onnx::TensorProto& sizes = *model.mutable_graph()->add_initializer();
    sizes.set_name("sizes");
    sizes.set_data_type(type);
    sizes.add_dims(2);
    for (const int64_t size : {int64_t{7}, second}) {
      if (type == onnx::TensorProto::INT64) sizes.add_int64_data(size);
      if (type == onnx::TensorProto::INT32) sizes.add_int32_data(static_cast<int32_t>(size));
      if (type == onnx::TensorProto::STRING) sizes.add_string_data(std::to_string(size));
    }
    return Import(model);
  };
  for (const int type : {onnx::TensorProto::INT32, onnx::TensorProto::INT64}) {
    EXPECT_EQ(refusal("sizes", 1, 2, type), "version 1");
    EXPECT_EQ(refusal("sizes", 0, 1, type), "version 1") << "a factor";
    EXPECT_EQ(refusal("x", 0, 2, type), "version 1") << "what a run gives";
    EXPECT_THAT(refusal("sizes", 0, 2, type),
                HasSubstr("Element 1 of input 2 is 0; a size is at least 1."));
    EXPECT_THAT(refusal("sizes", -3, 2, type), HasSubstr("Element 1 of input 2 is -3;"));
  }
  EXPECT_EQ(refusal("sizes", 0, 2, onnx::TensorProto::STRING), "version 1");
}

TEST(KnownDomains, AnOperatorOfAnUnknownDomainNeedsItsImport) {
  EXPECT_THAT(Import(OneNodeModel("com.example", "Gelu")),
              HasSubstr("Operator set 'com.example', which the node needs, is not imported."));
}

TEST(KnownDomains, AnOperatorOfOnnxNeedsItsImport) {
  onnx::ModelProto model = OneNodeModel("", "Relu");
  model.clear_opset_import();
  AddImport(model, "com.microsoft", 1);
  EXPECT_THAT(Import(model),
              HasSubstr("Operator set 'ai.onnx', which the node needs, is not imported."));
}

onnx::ModelProto CallOf(const std::string& domain, const std::string& op_type,
                        const onnx::NodeProto& body) {
  onnx::ModelProto model = OneNodeModel(domain, op_type);
  onnx::FunctionProto& function = *model.add_functions();
  function.set_domain(domain);
  function.set_name(op_type);
  function.add_input("x");
  function.add_output("y");
  *function.add_node() = body;
  function.add_opset_import()->set_version(17);
  return model;
}

// A function's imports are its interface; ONNX Runtime asks for them, too.
TEST(KnownDomains, AnOperatorInAFunctionNeedsTheImportOfTheFunction) {
  onnx::ModelProto model =
      CallOf("local", "F", OneNodeModel("com.microsoft", "Gelu").graph().node(0));
  AddImport(model, "com.microsoft", 1);
  EXPECT_THAT(Import(model), HasSubstr("Operator set 'com.microsoft', which the node needs, is not "
                                       "imported."));
  onnx::OperatorSetIdProto& opset = *model.mutable_functions(0)->add_opset_import();
  opset.set_domain("com.microsoft");
  opset.set_version(1);
  EXPECT_EQ(Import(model), "version 1");
}

// ONNX leaves it to implementations which of the two counts. The author of a file that defines a
// function means that function.
TEST(KnownDomains, AFunctionOfTheModelComesBeforeTheOperatorOfItsName) {
  for (const auto& [domain, op_type] :
       {std::pair{"com.microsoft", "Gelu"}, std::pair{"", "Relu"}}) {
    const onnx::ModelProto model = CallOf(domain, op_type, OneNodeModel("", "Neg").graph().node(0));
    model::ImportOptions options;
    options.domains = &KnownDomains();
    const std::string bytes = model.SerializeAsString();
    const auto graph = model::Import(std::as_bytes(std::span(bytes)), options);
    ASSERT_TRUE(graph.ok()) << graph.status().Text();
    EXPECT_EQ(graph->nodes.front().op_type, "Neg") << op_type;
  }
}

// Whose blocks they are, the file does not say; a person is told once whose it is taken to have.
TEST(KnownDomains, SaysWhoseBlocksOfChannelsItTakes) {
  onnx::ModelProto model;
  model.set_ir_version(10);
  onnx::OperatorSetIdProto* opset = model.add_opset_import();
  opset->set_version(17);
  onnx::GraphProto* graph = model.mutable_graph();
  graph->set_name("g");
  onnx::ValueInfoProto* input = graph->add_input();
  input->set_name("x");
  input->mutable_type()->mutable_tensor_type()->set_elem_type(onnx::TensorProto::FLOAT);
  for (const int64_t extent : {1, 32, 4, 4}) {
    input->mutable_type()->mutable_tensor_type()->mutable_shape()->add_dim()->set_dim_value(extent);
  }
  for (const auto& [from, to] : {std::pair("x", "y"), std::pair("y", "z")}) {
    onnx::NodeProto* node = graph->add_node();
    node->set_op_type("GlobalMaxPool");
    node->set_domain("com.microsoft.nchwc");
    node->add_input(from);
    node->add_output(to);
  }
  onnx::ValueInfoProto* output = graph->add_output();
  output->set_name("z");
  output->mutable_type()->mutable_tensor_type()->set_elem_type(onnx::TensorProto::FLOAT);
  const std::string bytes = model.SerializeAsString();
  model::ImportOptions options;
  options.domains = &KnownDomains();
  const auto imported = model::Import(std::as_bytes(std::span(bytes)), options);
  ASSERT_TRUE(imported.ok()) << imported.status().Text();
  ASSERT_EQ(imported->notes.size(), 1U);
  EXPECT_THAT(imported->notes[0], HasSubstr("as on this processor"));
}

}  // namespace
}  // namespace onnxifi::domains
