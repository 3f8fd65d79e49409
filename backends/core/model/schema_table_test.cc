// SPDX-License-Identifier: Apache-2.0
//
// SchemaTable against the registry of the ONNX library, which makes the same schemas in its own
// way.

#include "backends/core/model/schema_table.h"

#include <gtest/gtest.h>
#include <onnx/defs/schema.h>

#include <algorithm>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace onnxifi::model {
namespace {

std::string Describe(const std::vector<onnx::OpSchema::FormalParameter>& parameters) {
  std::string text;
  for (const onnx::OpSchema::FormalParameter& parameter : parameters) {
    std::set<std::string> types;  // the library keeps a set of pointers, in no order
    for (const std::string* type : parameter.GetTypes()) types.insert(*type);
    text += parameter.GetName() + "/" + parameter.GetTypeStr() + "/" +
            std::to_string(parameter.GetOption()) + "/" +
            std::to_string(parameter.GetIsHomogeneous()) + "/" +
            std::to_string(parameter.GetMinArity());
    for (const std::string& type : types) text += " " + type;
    text += "\n";
  }
  return text;
}

std::string Describe(const onnx::OpSchema& schema) {
  std::string text =
      schema.Name() + " " + schema.domain() + " " + std::to_string(schema.SinceVersion()) + " " +
      std::to_string(schema.Deprecated()) + " " + std::to_string(schema.min_input()) + ".." +
      std::to_string(schema.max_input()) + " " + std::to_string(schema.min_output()) + ".." +
      std::to_string(schema.max_output()) + "\n";
  text += Describe(schema.inputs()) + "->\n" + Describe(schema.outputs());
  for (const auto& [name, attribute] : schema.attributes()) {
    text += name + " " + std::to_string(attribute.type) + " " + std::to_string(attribute.required) +
            " " + attribute.default_value.SerializeAsString() + "\n";
  }
  for (const int version : schema.function_opset_versions()) {
    text += "body for " + std::to_string(version) + "\n";
    if (const onnx::FunctionProto* body = schema.GetFunction(version)) {
      text += body->SerializeAsString();
    }
  }
  for (const int version : schema.context_dependent_function_opset_versions()) {
    text += "builder for " + std::to_string(version) + "\n";
  }
  return text;
}

TEST(SchemaTable, KnowsWhatTheRegistryKnowsInEveryVersion) {
  int count = 0;
  for (const onnx::OpSchema& expected : onnx::OpSchemaRegistry::get_all_schemas_with_history()) {
    const onnx::OpSchema* schema =
        FindSchema(expected.Name(), expected.domain(), expected.SinceVersion());
    ASSERT_NE(schema, nullptr) << expected.Name();
    EXPECT_EQ(Describe(*schema), Describe(expected));
    EXPECT_TRUE(HasSchema(expected.Name(), expected.domain()));
    ++count;
  }
  EXPECT_GT(count, 500);
}

TEST(SchemaTable, AnswersAsTheRegistryBetweenVersions) {
  for (const char* name : {"Conv", "Softmax", "BatchNormalization", "Upsample", "Gelu"}) {
    for (int opset = 1; opset <= 30; ++opset) {
      const onnx::OpSchema* expected = onnx::OpSchemaRegistry::Schema(name, opset, "");
      const onnx::OpSchema* schema = FindSchema(name, "", opset);
      ASSERT_EQ(schema == nullptr, expected == nullptr) << name << " " << opset;
      if (schema != nullptr) {
        EXPECT_EQ(schema->SinceVersion(), expected->SinceVersion()) << name << " " << opset;
      }
    }
  }
}

TEST(SchemaTable, KnowsNothingElse) {
  EXPECT_EQ(FindSchema("Convo", "", 20), nullptr);
  EXPECT_EQ(FindSchema("Conv", "ai.onnx.ml", 20), nullptr);
  EXPECT_EQ(FindSchema("", "", 20), nullptr);
  EXPECT_EQ(FindSchema("Gelu", "", 19), nullptr);  // since 20
  EXPECT_TRUE(HasSchema("Gelu", ""));
  EXPECT_FALSE(HasSchema("Gelu", "ai.onnx.ml"));
  EXPECT_FALSE(HasSchema("Convo", ""));
}

TEST(SchemaTable, MakesEachSchemaOnceForAllThreads) {
  const std::pair<const char*, int> asked[] = {{"LSTM", 22}, {"GRU", 14}, {"Resize", 19}};
  std::vector<std::vector<const onnx::OpSchema*>> found(4);
  std::vector<std::thread> threads;
  for (std::vector<const onnx::OpSchema*>& own : found) {
    threads.emplace_back([&asked, &own] {
      for (const auto& [name, opset] : asked) own.push_back(FindSchema(name, "", opset));
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::vector<const onnx::OpSchema*>& own : found) {
    EXPECT_EQ(own, found[0]);
    EXPECT_EQ(std::ranges::count(own, nullptr), 0);
  }
}

}  // namespace
}  // namespace onnxifi::model
