// SPDX-License-Identifier: Apache-2.0
//
// The domains of the kit: every declaration can be read, and every operator has a definition, but
// for those that core/ops lowers.

#include "backends/core/domains/known_domains.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <onnx/defs/schema.h>
#include <onnx/onnx_pb.h>

#include <span>
#include <string>

#include "backends/core/model/declaration.h"
#include "backends/core/model/import.h"
#include "backends/core/model/schema_table.h"

namespace onnxifi::domains {
namespace {

TEST(KnownDomains, EveryDeclarationCanBeRead) {
  const base::Status checked = KnownDomains().CheckDeclarations();
  EXPECT_TRUE(checked.ok()) << checked.Text();
}

// What core/ops lowers.
bool IsLowered(std::string_view name) { return name == "Tokenizer" || name == "Inverse"; }

TEST(KnownDomains, EveryOperatorHasADefinitionOfItsOwnOrALowering) {
  int count = 0;
  for (const model::Domain* domain : ListKnownDomains()) {
    for (const model::DomainOperator& operation : domain->operators) {
      const std::string_view name = model::DeclaredName(operation.declaration);
      EXPECT_EQ(operation.define == nullptr, IsLowered(name)) << name;
      EXPECT_FALSE(model::HasSchema(name, domain->name)) << name << " is ONNX's";
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

// ONNX asks a model for an import of each domain whose operators it has, and without one nothing
// says of which version they are. (ONNX Runtime takes the newest that it knows.)
TEST(KnownDomains, AnOperatorNeedsTheImportOfItsDomain) {
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
  node.set_op_type("Gelu");
  node.set_domain("com.microsoft");
  node.add_input("x");
  node.add_output("y");
  model::ImportOptions options;
  options.domains = &KnownDomains();
  const auto import = [&] {
    const std::string bytes = model.SerializeAsString();
    const auto graph = model::Import(std::as_bytes(std::span(bytes)), options);
    return graph.ok() ? std::string() : graph.status().Text();
  };
  EXPECT_THAT(import(), ::testing::HasSubstr("Operator set 'com.microsoft', which the node needs, "
                                             "is not imported."));
  onnx::OperatorSetIdProto& opset = *model.add_opset_import();
  opset.set_domain("com.microsoft");
  opset.set_version(1);
  EXPECT_EQ(import(), "");
  opset.set_version(2);
  EXPECT_THAT(import(), ::testing::HasSubstr("The version of operator set 'com.microsoft' (2) "
                                             "exceeds the newest supported (1)."));
}

}  // namespace
}  // namespace onnxifi::domains
