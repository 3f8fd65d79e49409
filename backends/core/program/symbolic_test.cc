// SPDX-License-Identifier: Apache-2.0
//
// Symbolic evaluation: what steps over a few integers compute, as extents.

#include "backends/core/program/symbolic.h"

#include <gtest/gtest.h>

namespace onnxifi::program {
namespace {

class SymbolicTest : public ::testing::Test {
 public:
  Operand AddTemporary(ElementType type, Shape shape) {
    Buffer buffer;
    buffer.type = type;
    buffer.shape = shape;
    BufferId id = program.AddBuffer(std::move(buffer));
    return {DenseView(id, type, shape), shape};
  }
  Operand AddConstant(const std::vector<int64_t>& values) {
    Buffer buffer;
    buffer.kind = Buffer::Kind::kConstant;
    buffer.type = ElementType::kInt64;
    buffer.shape = {Dim(static_cast<int64_t>(values.size()))};
    buffer.index = static_cast<int>(program.constants.size());
    program.constants.push_back(tensor::Tensor::FromValues<int64_t>(
        ElementType::kInt64, {static_cast<int64_t>(values.size())}, values));
    Shape shape = buffer.shape;
    return {DenseView(program.AddBuffer(std::move(buffer)), ElementType::kInt64, shape), shape};
  }
  void Emit(const Operand& out, const std::vector<View>& reads, Expr root) {
    Step step;
    step.domain = out.shape;
    step.reads = reads;
    step.writes = {out.view};
    step.body = Map{{root.id()}};
    program.steps.push_back(std::move(step));
    values.Observe(program.steps.back());
  }

  Program program;
  SymbolicValues values{program};
  Dim n = program.dims->NewSymbol("N", /*is_data=*/false);
};

TEST_F(SymbolicTest, FollowsArithmeticThroughBuffers) {
  Operand shape = AddTemporary(ElementType::kInt64, {Dim(1)});
  Emit(shape, {}, DimExpr(program.exprs, n));
  Operand constant = AddConstant({3});
  Operand sum = AddTemporary(ElementType::kInt64, {Dim(1)});
  Expr a = Load(program.exprs, ElementType::kInt64, 0);
  Expr b = Load(program.exprs, ElementType::kInt64, 1);
  Emit(sum, {shape.view, constant.view}, a * b + a);
  auto found = values.Find(sum);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ((*found)[0], n * Dim(4));
}

TEST_F(SymbolicTest, AScatterIntoKnownElementsMakesThemUnknown) {
  Operand target = AddTemporary(ElementType::kInt64, {Dim(2)});
  Emit(target, {AddConstant({3, 4}).view}, Load(program.exprs, ElementType::kInt64, 0));
  ASSERT_TRUE(values.Find(target).has_value());
  Step scatter;
  scatter.domain = {Dim(1)};
  scatter.reads = {AddConstant({9}).view, AddConstant({1}).view};
  scatter.writes = {target.view};
  Index index;
  index.target = target.shape;
  scatter.body = index;
  program.steps.push_back(std::move(scatter));
  values.Observe(program.steps.back());
  EXPECT_FALSE(values.Find(target).has_value());
}

TEST_F(SymbolicTest, WhatIsJoinedFromUnknownElementsLeavesTheOthersKnown) {
  Operand joined = AddTemporary(ElementType::kInt64, {Dim(2)});
  Operand unknown = AddTemporary(ElementType::kInt64, {Dim(1)});
  const Operand first = Slice(joined, 0, 0, 1, 1);
  const Operand second = Slice(joined, 0, 1, 1, 1);
  Emit(first, {AddConstant({3}).view}, Load(program.exprs, ElementType::kInt64, 0));
  Emit(second, {unknown.view}, Load(program.exprs, ElementType::kInt64, 0));
  EXPECT_FALSE(values.Find(joined).has_value());
  ASSERT_TRUE(values.Find(first).has_value());
  EXPECT_EQ((*values.Find(first))[0], Dim(3));
  // And what was known does not outlive being overwritten by what is not.
  Emit(first, {unknown.view}, Load(program.exprs, ElementType::kInt64, 0));
  EXPECT_FALSE(values.Find(first).has_value());
}

TEST_F(SymbolicTest, ReadsThroughViewsAndJoins) {
  Operand constant = AddConstant({10, 20, 30, 40});
  Operand reversed = Slice(constant, 0, Dim(3), Dim(-1), Dim(4));
  auto found = values.Find(reversed);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ((*found)[0], Dim(40));
  EXPECT_EQ((*found)[3], Dim(10));

  Operand joined = AddTemporary(ElementType::kInt64, {Dim(3)});
  Operand head = Slice(joined, 0, Dim(0), Dim(1), Dim(2));
  Operand tail = Slice(joined, 0, Dim(2), Dim(1), Dim(1));
  Emit(head, {Slice(constant, 0, Dim(0), Dim(1), Dim(2)).view},
       Load(program.exprs, ElementType::kInt64, 0));
  EXPECT_FALSE(values.Find(joined).has_value()) << "one element is not written yet";
  Emit(tail, {}, DimExpr(program.exprs, n));
  found = values.Find(joined);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ((*found)[1], Dim(20));
  EXPECT_EQ((*found)[2], n);
}

TEST_F(SymbolicTest, DecidesWhatBoundsDecide) {
  // Exporters ask whether an extent is -1 before they use it.
  Operand result = AddTemporary(ElementType::kInt64, {Dim(1)});
  Expr extent = DimExpr(program.exprs, n);
  Expr minus_one = IntConstant(program.exprs, ElementType::kInt64, -1);
  Emit(result, {},
       Select(extent == minus_one, IntConstant(program.exprs, ElementType::kInt64, 7), extent));
  auto found = values.Find(result);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ((*found)[0], n);
}

TEST_F(SymbolicTest, DoesNotGuess) {
  Buffer input;
  input.kind = Buffer::Kind::kInput;
  input.type = ElementType::kInt64;
  input.shape = {Dim(2)};
  BufferId id = program.AddBuffer(input);
  Operand operand{DenseView(id, ElementType::kInt64, input.shape), input.shape};
  EXPECT_FALSE(values.Find(operand).has_value()) << "an input's values are not known";
  Operand many = AddTemporary(ElementType::kInt64, {Dim(SymbolicValues::kMaxElements + 1)});
  Emit(many, {}, IntConstant(program.exprs, ElementType::kInt64, 1));
  EXPECT_FALSE(values.Find(many).has_value()) << "too many elements";
  Operand some = AddTemporary(ElementType::kInt64, {n});
  Emit(some, {}, IntConstant(program.exprs, ElementType::kInt64, 1));
  EXPECT_FALSE(values.Find(some).has_value()) << "unknown how many";
  Operand quotient = AddTemporary(ElementType::kInt64, {Dim(1)});
  Expr extent = DimExpr(program.exprs, n);
  Emit(quotient, {},
       (extent - IntConstant(program.exprs, ElementType::kInt64, 5)) /
           IntConstant(program.exprs, ElementType::kInt64, 2));
  EXPECT_FALSE(values.Find(quotient).has_value()) << "truncation differs from floor below 0";
}

TEST(SymbolicValuesTest, PassesOverAWriteThatIsOmitted) {
  Program program;
  SymbolicValues values(program);
  Step step;
  step.domain = {Dim(1)};
  step.writes.resize(1);
  values.Observe(step);
  EXPECT_EQ(step.writes[0].buffer, kNoBuffer);
}

}  // namespace
}  // namespace onnxifi::program
