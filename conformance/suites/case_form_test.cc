// SPDX-License-Identifier: Apache-2.0
//
// CaseForm: what each variant makes of a model, and when there is none.

#include "conformance/suites/case_form.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "client/comparison/float_format.h"
#include "client/onnx_file/model_writer.h"

namespace onnxifi::suites {
namespace {

using cases::Variant;
using onnx_file::DenseTensor;
using onnx_file::ElementType;
using onnx_file::FileValue;
using onnx_file::ModelOutline;
using ::testing::HasSubstr;

FileValue Value(DenseTensor tensor) {
  FileValue value;
  value.name = tensor.name;
  value.kind = FileValue::Kind::kTensor;
  value.tensor = std::move(tensor);
  return value;
}

DenseTensor Pair(std::string_view name) { return onnx_file::MakeFloatTensor(name, {2}, {1, 2}); }

// A sum of `count` inputs, and its form in a variant.
struct Formed {
  ModelOutline before;
  ModelOutline after;
  CaseForm form;
};

Formed Form(Variant variant, int count, bool is_scalar = false) {
  onnx_file::ModelWriter writer;
  std::vector<FileValue> inputs;
  std::vector<onnx_file::Dimension> shape;
  if (!is_scalar) shape.emplace_back(int64_t{2});
  for (int k = 0; k < count; ++k) {
    const std::string name(1, static_cast<char>('a' + k));
    writer.Input(name, ElementType::kFloat32, shape);
    inputs.push_back(Value(Pair(name)));
  }
  if (count == 1) writer.Node("Neg", {"a"}, {"y"});
  if (count == 2) writer.Node("Add", {"a", "b"}, {"y"});
  const std::string model = writer.Output("y", ElementType::kFloat32, shape).Build();
  const auto bytes = std::as_bytes(std::span(model));
  Formed formed;
  formed.before = *onnx_file::ParseModelOutline(bytes);
  formed.form = *MakeForm(variant, bytes, formed.before, inputs);
  if (formed.form.obstacle.empty()) {
    formed.after = *onnx_file::ParseModelOutline(formed.form.model);
  }
  return formed;
}

TEST(CaseFormTest, InitializersAreAllInputsButTheFirst) {
  const Formed formed = Form(Variant::kInitializers, 2);
  ASSERT_EQ(formed.after.inputs.size(), 1u);
  EXPECT_EQ(formed.after.inputs[0].name, "a");
  ASSERT_EQ(formed.form.inputs.size(), 1u);
  EXPECT_EQ(formed.form.inputs[0].name, "a");
  EXPECT_TRUE(formed.form.weights.empty());
}

TEST(CaseFormTest, TheOnlyInputIsAnInitializer) {
  const Formed formed = Form(Variant::kInitializers, 1);
  EXPECT_TRUE(formed.after.inputs.empty());
  EXPECT_TRUE(formed.form.inputs.empty());
}

TEST(CaseFormTest, ConstantsAreAllInputs) {
  const Formed formed = Form(Variant::kConstants, 2);
  EXPECT_TRUE(formed.after.inputs.empty());
  EXPECT_TRUE(formed.form.inputs.empty());
}

TEST(CaseFormTest, DescriptorsLeaveTheModelAsItIs) {
  const Formed formed = Form(Variant::kDescriptors, 2);
  EXPECT_EQ(formed.after.inputs.size(), 2u);
  ASSERT_EQ(formed.form.weights.size(), 1u);
  EXPECT_EQ(formed.form.weights[0].name, "b");
  ASSERT_EQ(formed.form.inputs.size(), 1u);
}

TEST(CaseFormTest, EveryAxisHasASymbolOfItsOwn) {
  const Formed formed = Form(Variant::kSymbols, 2);
  ASSERT_EQ(formed.after.inputs.size(), 2u);
  EXPECT_EQ((*formed.after.inputs[0].shape)[0].symbol, "a_0");
  EXPECT_EQ((*formed.after.inputs[1].shape)[0].symbol, "b_0");
  EXPECT_EQ(formed.form.inputs.size(), 2u);
}

TEST(CaseFormTest, WhatCannotBeIsSaid) {
  EXPECT_THAT(Form(Variant::kInitializers, 0).form.obstacle, HasSubstr("has no input"));
  EXPECT_THAT(Form(Variant::kSymbols, 1, /*is_scalar=*/true).form.obstacle,
              HasSubstr("tensor with an axis"));
}

TEST(CaseFormTest, PoisonIsNanInFloatsAlone) {
  FileValue integers = Value(Pair("i"));
  integers.tensor.type = ElementType::kInt32;
  const std::vector<FileValue> poison = PoisonFloats({Value(Pair("a")), integers});
  EXPECT_TRUE(std::isnan(comparison::LoadNumber(ElementType::kFloat32, poison[0].tensor.bytes, 1)));
  EXPECT_EQ(poison[1].tensor.bytes, integers.tensor.bytes);
}

}  // namespace
}  // namespace onnxifi::suites
