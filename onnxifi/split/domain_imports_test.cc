// SPDX-License-Identifier: Apache-2.0
//
// Which imports are added, and that a model which lacks them can be cut.

#include "onnxifi/split/domain_imports.h"

#include <gtest/gtest.h>
#include <onnx/defs/parser.h>

#include <map>
#include <span>
#include <string>

#include "onnxifi/split/whole_model.h"

namespace onnxifi::split {
namespace {

onnx::ModelProto Parse(const std::string& imports, const std::string& graph) {
  onnx::ModelProto model;
  const auto status = onnx::OnnxParser::Parse(
      model, ("<ir_version: 10, opset_import: [" + imports + "]>\n" + graph).c_str());
  EXPECT_TRUE(status.IsOK()) << status.ErrorMessage();
  return model;
}

std::map<std::string, int64_t> ImportsOf(const onnx::ModelProto& model) {
  std::map<std::string, int64_t> imports;
  for (const auto& import : model.opset_import()) imports[import.domain()] = import.version();
  return imports;
}

constexpr const char* kGraph = R"(
    agraph (float[N, 3] x, bool c) => (float[N, 3] y) {
      a = com.microsoft.Gelu(x)
      y = If (c) <
        then_branch = g1 () => (float[N, 3] t) { t = ai.onnx.ml.Binarizer(a) },
        else_branch = g2 () => (float[N, 3] e) { e = com.example.Foo(a) }
      >
    })";

TEST(DomainImportsTest, AreOfKnownDomainsThatNodesHave) {
  onnx::ModelProto model = Parse(R"("" : 21)", kGraph);
  AddDomainImports(model);
  EXPECT_EQ(ImportsOf(model),
            (std::map<std::string, int64_t>{{"", 21}, {"ai.onnx.ml", 5}, {"com.microsoft", 1}}));
}

TEST(DomainImportsTest, StayWhereTheyAreGiven) {
  const std::string imports = R"("" : 21, "ai.onnx.ml" : 2, "com.microsoft" : 1)";
  onnx::ModelProto model = Parse(imports, kGraph);
  const std::string before = model.SerializeAsString();
  AddDomainImports(model);
  EXPECT_EQ(model.SerializeAsString(), before);
  // ONNX's own is not guessed.
  model.mutable_opset_import()->DeleteSubrange(0, 1);
  AddDomainImports(model);
  EXPECT_FALSE(ImportsOf(model).contains(""));
}

TEST(DomainImportsTest, ModelsWithoutThemAreReadAndTold) {
  const onnx::ModelProto model = Parse(R"("" : 21)", R"(
    agraph (float[N, 3] x) => (float[N, 3] y) {
      a = com.microsoft.Gelu(x)
      y = Relu(a)
    })");
  const std::string bytes = model.SerializeAsString();
  const auto whole = WholeModel::Read(std::as_bytes(std::span(bytes)), {});
  ASSERT_TRUE(whole.ok()) << whole.status().Text();
  EXPECT_EQ((*whole)->Heads()[0].opset_version, 1);
}

}  // namespace
}  // namespace onnxifi::split
