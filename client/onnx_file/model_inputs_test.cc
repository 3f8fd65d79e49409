// SPDX-License-Identifier: Apache-2.0
//
// ModelInputs: what becomes of inputs, outputs and values in between.

#include "client/onnx_file/model_inputs.h"

#include <gtest/gtest.h>

#include "client/onnx_file/model_outline.h"
#include "client/onnx_file/wire_reader.h"
#include "client/onnx_file/wire_writer.h"

namespace onnxifi::onnx_file {
namespace {

std::span<const std::byte> Bytes(const std::string& text) { return std::as_bytes(std::span(text)); }

std::string SumModel(int64_t ir_version) {
  return ModelWriter(ir_version)
      .Input("a", ElementType::kFloat32, {int64_t{2}, int64_t{3}})
      .Input("b", ElementType::kFloat32, {int64_t{3}})
      .Node("Add", {"a", "b"}, {"t"})
      .Node("Neg", {"t"}, {"c"})
      .Intermediate("t", ElementType::kFloat32, {int64_t{2}, int64_t{3}})
      .Output("c", ElementType::kFloat32, {int64_t{2}, int64_t{3}})
      .Build();
}

// Whether the graph has a field `number` that declares a value of this name.
bool Declares(const std::string& model, uint32_t number, std::string_view name) {
  WireField field;
  for (WireReader reader(Bytes(model)); *reader.Next(field);) {
    if (field.number != 7) continue;
    WireField part;
    for (WireReader graph_reader(field.bytes); *graph_reader.Next(part);) {
      if (part.number != number) continue;
      WireField member;
      WireReader value_reader(part.bytes);
      if (*value_reader.Next(member) && member.number == 1 && member.text() == name) return true;
    }
  }
  return false;
}

constexpr uint32_t kInput = 11;
constexpr uint32_t kValueInfo = 13;

TEST(ModelInputsTest, AnInitializerIsNoInputAnyMore) {
  const DenseTensor weight = MakeFloatTensor("b", {3}, {1, 2, 3});
  const std::string model = SumModel(8);
  const auto made = MakeInitializers(Bytes(model), std::vector<DenseTensor>{weight});
  ASSERT_TRUE(made.ok()) << made.status().Text();
  EXPECT_FALSE(Declares(*made, kInput, "b"));
  EXPECT_NE(made->find(SerializeTensor(weight)), std::string::npos);
  const auto outline = ParseModelOutline(Bytes(*made));
  ASSERT_TRUE(outline.ok());
  ASSERT_EQ(outline->inputs.size(), 1u);
  EXPECT_EQ(outline->inputs[0].name, "a");
}

TEST(ModelInputsTest, InOldModelsAnInitializerStaysAnInput) {
  const std::string model = SumModel(3);
  const auto made = MakeInitializers(
      Bytes(model), std::vector<DenseTensor>{MakeFloatTensor("b", {3}, {1, 2, 3})});
  ASSERT_TRUE(made.ok());
  EXPECT_TRUE(Declares(*made, kInput, "b"));
  EXPECT_EQ(ParseModelOutline(Bytes(*made))->inputs.size(), 1u);
}

TEST(ModelInputsTest, ExtentsOfInputsAreThoseGivenAndOthersAreLeftOut) {
  const std::string model = SumModel(8);
  EXPECT_TRUE(Declares(model, kValueInfo, "t"));
  const ExtentsByName extents = {{"a", {std::string("rows"), int64_t{67}}}};
  const auto changed = ChangeExtents(Bytes(model), extents);
  ASSERT_TRUE(changed.ok()) << changed.status().Text();
  EXPECT_FALSE(Declares(*changed, kValueInfo, "t"));
  const auto outline = ParseModelOutline(Bytes(*changed));
  ASSERT_TRUE(outline.ok());
  const std::vector<DimensionOutline>& a = *outline->inputs[0].shape;
  ASSERT_EQ(a.size(), 2u);
  EXPECT_EQ(a[0].symbol, "rows");
  EXPECT_FALSE(a[0].extent);
  EXPECT_EQ(a[1].extent, 67);
  EXPECT_EQ((*outline->inputs[1].shape)[0].extent, 3);
  const std::vector<DimensionOutline>& c = *outline->outputs[0].shape;
  ASSERT_EQ(c.size(), 2u);
  EXPECT_FALSE(c[0].extent);
  EXPECT_TRUE(c[1].symbol.empty());
}

// The Relu of an input whose rank nothing says.
std::string RanklessModel() {
  std::string tensor, type, value, model;
  AppendIntegerField(tensor, 1, static_cast<int64_t>(ElementType::kFloat32));
  AppendBytesField(type, 1, tensor);
  AppendBytesField(value, 1, "x");
  AppendBytesField(value, 2, type);
  std::string graph = ModelWriter()
                          .Input("a", ElementType::kFloat32, {int64_t{2}})
                          .Node("Relu", {"x"}, {"y"})
                          .BuildGraph();
  AppendBytesField(graph, kInput, value);
  AppendIntegerField(model, 1, 8);
  AppendBytesField(model, 7, graph);
  return model;
}

TEST(ModelInputsTest, InputsWithoutAShapeGetOne) {
  const std::string model = RanklessModel();
  ASSERT_FALSE(ParseModelOutline(Bytes(model))->inputs[1].shape);
  const ExtentsByName extents = {{"x", {int64_t{3}, std::string()}}};
  const auto declared = DeclareExtents(Bytes(model), extents);
  ASSERT_TRUE(declared.ok()) << declared.status().Text();
  const auto outline = ParseModelOutline(Bytes(*declared));
  ASSERT_TRUE(outline.ok());
  ASSERT_EQ(outline->inputs.size(), 2u);
  EXPECT_EQ((*outline->inputs[0].shape)[0].extent, 2);
  const std::vector<DimensionOutline>& x = *outline->inputs[1].shape;
  ASSERT_EQ(x.size(), 2u);
  EXPECT_EQ(x[0].extent, 3);
  EXPECT_FALSE(x[1].extent);
  EXPECT_EQ(outline->inputs[1].type, ElementType::kFloat32);
  EXPECT_EQ(outline->operators, std::vector<std::string>{"Relu"});
  // A scalar has no extents, and a rank.
  const auto scalar = DeclareExtents(Bytes(model), {{"x", {}}});
  ASSERT_TRUE(scalar.ok());
  ASSERT_TRUE(ParseModelOutline(Bytes(*scalar))->inputs[1].shape);
  EXPECT_TRUE(ParseModelOutline(Bytes(*scalar))->inputs[1].shape->empty());
}

TEST(ModelInputsTest, ADeclaredShapeIsReplaced) {
  const auto declared = DeclareExtents(Bytes(RanklessModel()), {{"a", {int64_t{7}, int64_t{1}}}});
  ASSERT_TRUE(declared.ok()) << declared.status().Text();
  const auto outline = ParseModelOutline(Bytes(*declared));
  ASSERT_TRUE(outline.ok());
  const std::vector<DimensionOutline>& a = *outline->inputs[0].shape;
  ASSERT_EQ(a.size(), 2u);
  EXPECT_EQ(a[0].extent, 7);
  EXPECT_EQ(a[1].extent, 1);
  EXPECT_EQ(outline->inputs[0].type, ElementType::kFloat32);
  EXPECT_FALSE(outline->inputs[1].shape);
}

TEST(ModelInputsTest, DamagedBytesAreRefused) {
  const std::string model = "\x3a\x7f";
  EXPECT_EQ(ChangeExtents(Bytes(model), {}).status().code(), base::Code::kInvalidProtobuf);
  EXPECT_EQ(DeclareExtents(Bytes(model), {}).status().code(), base::Code::kInvalidProtobuf);
  EXPECT_EQ(MakeInitializers(Bytes(model), {}).status().code(), base::Code::kInvalidProtobuf);
}

}  // namespace
}  // namespace onnxifi::onnx_file
