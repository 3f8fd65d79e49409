// SPDX-License-Identifier: Apache-2.0
//
// Operand extents: of each form of step, with extents that all differ; the numbers are those of the
// symbolic shapes.

#include "backends/core/program/operand_extents.h"

#include <gtest/gtest.h>

#include <vector>

#include "backends/core/program/program.h"

namespace onnxifi::program {
namespace {

using tensor::Extents;

Step MakeConvolution(Contract::Form form) {
  // A[2, 6, 10, 9], group 3, 12 outputs, kernel 5 x 4.
  Contract contract;
  contract.form = form;
  contract.group = 3;
  contract.inner = {2, 5, 4};
  contract.a_spatial = {10, 9};
  Step step;
  step.domain = {2, 12, 8, 7};
  step.body = std::move(contract);
  return step;
}

TEST(OperandExtentsTest, OperandsOfAProductHaveTheReducedAxesBesideTheirOwn) {
  Contract contract;
  contract.batch_axes = 2;
  contract.m_axes = 1;
  contract.n_axes = 2;
  contract.inner = {11, 13};
  Step step;
  step.domain = {2, 3, 4, 5, 6};
  step.body = std::move(contract);
  ASSERT_EQ(OperandCount(step), 2);
  EXPECT_EQ(OperandShape(step, 0), (Shape{2, 3, 4, 11, 13}));
  EXPECT_EQ(OperandShape(step, 1), (Shape{2, 3, 11, 13, 5, 6}));
}

TEST(OperandExtentsTest, OperandsOfAConvolution) {
  const Step step = MakeConvolution(Contract::Form::kConv);
  ASSERT_EQ(OperandCount(step), 2);
  EXPECT_EQ(OperandShape(step, 0), (Shape{2, 6, 10, 9}));
  EXPECT_EQ(OperandShape(step, 1), (Shape{12, 2, 5, 4}));
}

TEST(OperandExtentsTest, OperandsOfATransposedConvolution) {
  const Step step = MakeConvolution(Contract::Form::kConvTranspose);
  ASSERT_EQ(OperandCount(step), 2);
  EXPECT_EQ(OperandShape(step, 0), (Shape{2, 6, 10, 9}));
  EXPECT_EQ(OperandShape(step, 1), (Shape{6, 4, 5, 4}));
}

TEST(OperandExtentsTest, AWindowSeesItsWholeInput) {
  Window window;
  window.in_spatial = {8, 11};
  Step step;
  step.domain = {1, 3, 4, 5};
  step.body = window;
  ASSERT_EQ(OperandCount(step), 1);
  EXPECT_EQ(OperandShape(step, 0), (Shape{1, 3, 8, 11}));
}

TEST(OperandExtentsTest, OtherFamiliesHaveNone) {
  Step step;
  step.body = Map{};
  EXPECT_EQ(OperandCount(step), 0);
  step.body = Index{};
  EXPECT_EQ(OperandCount(step), 0);
}

TEST(OperandExtentsTest, OperandsOfAttentionAreThoseOfItsTwoProducts) {
  Attention attention;
  attention.keys = 7;
  attention.width = 5;
  Step step;
  step.domain = {2, 3, 11, 13};
  step.body = std::move(attention);
  EXPECT_EQ(OperandCount(step), 3);
  EXPECT_EQ(OperandShape(step, 0), (Shape{2, 3, 11, 5}));
  EXPECT_EQ(OperandShape(step, 1), (Shape{2, 3, 5, 7}));
  EXPECT_EQ(OperandShape(step, 2), (Shape{2, 3, 7, 13}));
  EXPECT_EQ(OperandExtents(step, 1, {}), (Extents{2, 3, 5, 7}));
}

TEST(OperandExtentsTest, NumbersAreThoseOfTheSymbolicShape) {
  Program program;
  const Dim channels = program.dims->NewSymbol("C", /*is_data=*/false);
  const Dim height = program.dims->NewSymbol("H", /*is_data=*/false);
  for (const auto form : {Contract::Form::kConv, Contract::Form::kConvTranspose}) {
    Step step = MakeConvolution(form);
    step.domain[1] = channels * Dim(3);
    step.As<Contract>()->inner[0] = channels;
    step.As<Contract>()->a_spatial[0] = height + Dim(1);
    for (int operand = 0; operand < 2; ++operand) {
      const Shape shape = OperandShape(step, operand);
      std::vector<int64_t> dims(static_cast<size_t>(program.dims->node_count()));
      program.dims->Evaluate(std::vector<int64_t>{7, 30}, 0, 2, dims);
      Extents expected;
      for (const Dim& dim : shape) expected.push_back(tensor::ValueOf(dim, dims));
      EXPECT_EQ(OperandExtents(step, operand, dims), expected) << "operand " << operand;
    }
  }
}

TEST(OperandExtentsTest, HugeExtentsSaturate) {
  Step step = MakeConvolution(Contract::Form::kConv);
  step.As<Contract>()->inner[0] = INT64_MAX / 2;
  EXPECT_EQ(OperandExtents(step, 0, {})[1], INT64_MAX);
}

}  // namespace
}  // namespace onnxifi::program
