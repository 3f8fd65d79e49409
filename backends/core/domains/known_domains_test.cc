// SPDX-License-Identifier: Apache-2.0
//
// The domains of the kit: every declaration can be read, and every operator has a definition, but
// for those that core/ops lowers.

#include "backends/core/domains/known_domains.h"

#include <gtest/gtest.h>
#include <onnx/defs/schema.h>

#include "backends/core/model/declaration.h"
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

}  // namespace
}  // namespace onnxifi::domains
