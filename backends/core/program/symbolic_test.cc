// SPDX-License-Identifier: Apache-2.0
//
// Symbolic evaluation: what steps over a few integers compute, as extents.

#include "backends/core/program/symbolic.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <vector>

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
  Dim number =
      program.dims->NewSymbol("data", /*is_data=*/true, std::numeric_limits<int64_t>::min());
  Emit(quotient, {},
       DimExpr(program.exprs, number) / IntConstant(program.exprs, ElementType::kInt64, 2));
  EXPECT_FALSE(values.Find(quotient).has_value()) << "the lowest number has no opposite";
}

TEST_F(SymbolicTest, DividesTowardsZero) {
  for (const int64_t subtrahend : {1, 5, 9}) {
    for (const int64_t divisor : {1, 2, 16}) {
      Operand quotient = AddTemporary(ElementType::kInt64, {Dim(1)});
      Emit(quotient, {},
           (DimExpr(program.exprs, n) -
            IntConstant(program.exprs, ElementType::kInt64, subtrahend)) /
               IntConstant(program.exprs, ElementType::kInt64, divisor));
      const auto found = values.Find(quotient);
      ASSERT_TRUE(found.has_value()) << subtrahend << " / " << divisor;
      for (int64_t number = 0; number < 40; ++number) {
        std::vector<int64_t> dims(program.dims->node_count());
        program.dims->Evaluate(std::array{number}, 0, 1, dims);
        EXPECT_EQ(tensor::ValueOf((*found)[0], dims), (number - subtrahend) / divisor)
            << number << " - " << subtrahend << " / " << divisor;
      }
    }
  }
}

TEST_F(SymbolicTest, FollowsFloatsAsQuotients) {
  // As exporters find the padding of "same": max((ceil(n / 2) - 1) * 2 + 3 - n, 0) in floats.
  const auto number = [&](double value) {
    return Constant(program.exprs, ElementType::kFloat32, value);
  };
  const auto padding = [&](Dim extent) {
    Operand whole = AddTemporary(ElementType::kInt64, {Dim(1)});
    Emit(whole, {}, DimExpr(program.exprs, extent));
    Operand halves = AddTemporary(ElementType::kFloat32, {Dim(1)});
    Expr read = Load(program.exprs, ElementType::kInt64, 0);
    Emit(halves, {whole.view}, Unary(ExprOp::kCeil, Cast(read, ElementType::kFloat32) / number(2)));
    Operand sum = AddTemporary(ElementType::kInt64, {Dim(1)});
    Expr steps = Load(program.exprs, ElementType::kFloat32, 0);
    Expr back = Cast(Load(program.exprs, ElementType::kInt64, 1), ElementType::kFloat32);
    Emit(sum, {halves.view, whole.view},
         Cast(Binary(ExprOp::kMax, (steps - number(1)) * number(2) + number(3) - back, number(0)),
              ElementType::kInt64));
    return values.Find(sum);
  };
  for (const int64_t extent : {1, 2, 7, 64}) {
    auto found = padding(Dim(extent));
    ASSERT_TRUE(found.has_value()) << extent;
    EXPECT_EQ((*found)[0], Dim(extent % 2 == 0 ? 1 : 2)) << extent;
  }
  EXPECT_TRUE(padding(n).has_value()) << "of a symbol";
}

TEST_F(SymbolicTest, RoundsQuotientsAsFloatsDo) {
  const auto find = [&](int64_t a, double b, ExprOp op) {
    Expr quotient =
        Cast(IntConstant(program.exprs, ElementType::kInt64, a), ElementType::kFloat32) /
        Constant(program.exprs, ElementType::kFloat32, b);
    Operand result = AddTemporary(ElementType::kInt64, {Dim(1)});
    // The operand is read of a buffer, so that nothing is folded before.
    Operand between = AddTemporary(ElementType::kFloat32, {Dim(1)});
    Emit(between, {}, quotient);
    Expr read = Load(program.exprs, ElementType::kFloat32, 0);
    Emit(result, {between.view}, Cast(Unary(op, read), ElementType::kInt64));
    auto found = values.Find(result);
    return found ? std::optional<Dim>((*found)[0]) : std::nullopt;
  };
  EXPECT_EQ(find(-7, 2, ExprOp::kFloor), Dim(-4));
  EXPECT_EQ(find(-7, 2, ExprOp::kCeil), Dim(-3));
  EXPECT_EQ(find(-7, 2, ExprOp::kTrunc), Dim(-3));
  EXPECT_EQ(find(7, 0.5, ExprOp::kFloor), Dim(14));
  EXPECT_EQ(find(9, 3, ExprOp::kCeil), Dim(3));
  EXPECT_EQ(find(10, 3, ExprOp::kCeil), Dim(4));
}

TEST_F(SymbolicTest, FindsFloatsThatAreIntegers) {
  // As exporters scale an image: floor(extent * scale) / extent.
  const auto scale_of = [&](Dim extent, double scale) {
    Operand whole = AddTemporary(ElementType::kFloat32, {});
    Emit(whole, {}, Cast(DimExpr(program.exprs, extent), ElementType::kFloat32));
    Operand product = AddTemporary(ElementType::kFloat32, {});
    Expr read = Load(program.exprs, ElementType::kFloat32, 0);
    Emit(product, {whole.view},
         Unary(ExprOp::kFloor, read * Constant(program.exprs, ElementType::kFloat32, scale)));
    Operand quotient = AddTemporary(ElementType::kFloat32, {});
    Emit(quotient, {product.view, whole.view},
         read / Load(program.exprs, ElementType::kFloat32, 1));
    const std::optional<Dims> found = values.Find(quotient);
    return found ? std::optional<Dim>(found->front()) : std::nullopt;
  };
  EXPECT_EQ(scale_of(Dim(7), 2), Dim(2));
  EXPECT_EQ(scale_of(Dim(8), 1.5), std::nullopt) << "12 / 8";
  EXPECT_EQ(scale_of(n, 2), Dim(2));
  EXPECT_EQ(scale_of(n, 8), Dim(8));
  EXPECT_EQ(scale_of(n, 0.5), std::nullopt) << "an odd extent is rounded";
  EXPECT_EQ(scale_of(n, 9), std::nullopt) << "larger than the quotients that are looked for";
}

// Of an extent of 0 the quotient is NaN, and no number that is made of it is known.
TEST_F(SymbolicTest, DoesNotComputeWithWhatMayBeNaN) {
  const auto find = [&](Dim extent, const std::function<Expr(Expr)>& use, ElementType type) {
    Expr whole = Cast(DimExpr(program.exprs, extent), ElementType::kFloat32);
    Operand quotient = AddTemporary(ElementType::kFloat32, {});
    Emit(quotient, {}, whole * Constant(program.exprs, ElementType::kFloat32, 2) / whole);
    Operand result = AddTemporary(type, {});
    Emit(result, {quotient.view}, use(Load(program.exprs, ElementType::kFloat32, 0)));
    const std::optional<Dims> found = values.Find(result);
    return found ? std::optional<Dim>(found->front()) : std::nullopt;
  };
  const auto cast = [](Expr x) { return Cast(x, ElementType::kInt64); };
  const auto floor = [](Expr x) { return Unary(ExprOp::kFloor, x); };
  const auto sum = [](Expr x) { return x + x; };
  EXPECT_EQ(find(n, cast, ElementType::kInt64), std::nullopt);
  EXPECT_EQ(find(n, floor, ElementType::kFloat32), std::nullopt);
  EXPECT_EQ(find(n, sum, ElementType::kFloat32), std::nullopt);
  EXPECT_EQ(find(n + Dim(1), cast, ElementType::kInt64), Dim(2));
  EXPECT_EQ(find(n + Dim(1), floor, ElementType::kFloat32), Dim(2));
  EXPECT_EQ(find(n + Dim(1), sum, ElementType::kFloat32), Dim(4));
}

TEST_F(SymbolicTest, DoesNotComputeWithRoundedFloats) {
  Operand thirds = AddTemporary(ElementType::kFloat32, {Dim(1)});
  Expr extent = Cast(DimExpr(program.exprs, n), ElementType::kFloat32);
  const auto number = [&](double value) {
    return Constant(program.exprs, ElementType::kFloat32, value);
  };
  Emit(thirds, {}, extent / number(3));
  Operand result = AddTemporary(ElementType::kInt64, {Dim(1)});
  Expr third = Load(program.exprs, ElementType::kFloat32, 0);
  Emit(result, {thirds.view}, Cast(third * number(3), ElementType::kInt64));
  EXPECT_FALSE(values.Find(result).has_value()) << "the product may be rounded below the extent";
  Emit(result, {thirds.view}, Cast(third, ElementType::kInt64));
  EXPECT_TRUE(values.Find(result).has_value());
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
