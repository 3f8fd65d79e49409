// SPDX-License-Identifier: Apache-2.0
//
// The outline of a model written with ModelWriter; that the written bytes are what ONNX reads is
// shown by every case of the interface suite that a library accepts.

#include "client/onnx_file/model_outline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/onnx_file/model_writer.h"

namespace onnxifi::onnx_file {
namespace {

using ::testing::ElementsAre;

base::Result<ModelOutline> Outline(const std::string& model) {
  return ParseModelOutline(std::as_bytes(std::span(model)));
}

std::string MakeModel() {
  return ModelWriter()
      .Input("x", ElementType::kFloat32, {"N", int64_t{3}, ""})
      .Input("w", ElementType::kFloat32, {int64_t{3}})
      .Initializer(MakeFloatTensor("w", {3}, {1, 2, 3}))
      .Node("Add", {"x", "w"}, {"s"})
      .Node("Relu", {"s"}, {"t"})
      .Node("Scaler", {"t"}, {"u"}, {}, "ai.onnx.ml")
      .Node("Add", {"u", "w"}, {"y"})
      .Output("y", ElementType::kFloat16, {})
      .Build();
}

TEST(ModelOutlineTest, ListsInputsThatAreNotInitializers) {
  const auto outline = Outline(MakeModel());
  ASSERT_TRUE(outline.ok()) << outline.status().Text();
  ASSERT_EQ(outline->inputs.size(), 1u);
  EXPECT_EQ(outline->inputs[0].name, "x");
  EXPECT_EQ(outline->inputs[0].kind, ValueKind::kTensor);
  ASSERT_TRUE(outline->inputs[0].shape.has_value());
  const auto& shape = *outline->inputs[0].shape;
  ASSERT_EQ(shape.size(), 3u);
  EXPECT_EQ(shape[0].symbol, "N");
  EXPECT_EQ(shape[1].extent, 3);
  EXPECT_FALSE(shape[2].extent.has_value());
  EXPECT_TRUE(shape[2].symbol.empty());
}

TEST(ModelOutlineTest, ListsOutputsAndOperatorsOnce) {
  const auto outline = Outline(MakeModel());
  ASSERT_TRUE(outline.ok()) << outline.status().Text();
  ASSERT_EQ(outline->outputs.size(), 1u);
  EXPECT_EQ(outline->outputs[0].type, ElementType::kFloat16);
  ASSERT_TRUE(outline->outputs[0].shape.has_value());
  EXPECT_TRUE(outline->outputs[0].shape->empty());
  EXPECT_THAT(outline->operators, ElementsAre("Add", "Relu", "ai.onnx.ml.Scaler"));
}

TEST(ModelOutlineTest, AnEmptyFileIsEmpty) {
  EXPECT_EQ(Outline("").status().Text(), "The model has 0 bytes.");
}

TEST(ModelOutlineTest, AnOutputListedTwiceIsOne) {
  const auto outline = Outline(ModelWriter()
                                   .Input("x", ElementType::kFloat32, {int64_t{2}})
                                   .Node("Relu", {"x"}, {"y"})
                                   .Node("Neg", {"x"}, {"z"})
                                   .Output("y", ElementType::kFloat32, {int64_t{2}})
                                   .Output("z", ElementType::kFloat32, {int64_t{2}})
                                   .Output("y", ElementType::kFloat32, {int64_t{2}})
                                   .Build());
  ASSERT_TRUE(outline.ok()) << outline.status().Text();
  ASSERT_EQ(outline->outputs.size(), 2u);
  EXPECT_EQ(outline->outputs[0].name, "y");
  EXPECT_EQ(outline->outputs[1].name, "z");
}

TEST(ModelOutlineTest, NoTruncationIsTakenForTheWholeModel) {
  const std::string model = MakeModel();
  for (size_t size = 0; size < model.size(); ++size) {
    const auto outline = Outline(model.substr(0, size));
    if (outline.ok()) {
      // Only the operator set import, the last field, may be missing unnoticed.
      EXPECT_EQ(outline->operators.size(), 3u) << size;
      EXPECT_GE(size, model.size() - 6);
    }
  }
}

TEST(ModelOutlineTest, AModelWithoutAGraphIsRefused) {
  const auto outline = Outline(std::string("\x08\x08", 2));
  ASSERT_FALSE(outline.ok());
  EXPECT_EQ(outline.status().code(), base::Code::kInvalidModel);
}

}  // namespace
}  // namespace onnxifi::onnx_file
