// SPDX-License-Identifier: Apache-2.0
//
// Scalar expressions: equal nodes are one, folding is exact and leaves floats alone, and deep or
// shared graphs cost no stack and no exponential time.

#include "backends/core/program/expr.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "backends/core/program/integer_arithmetic.h"
#include "backends/core/program/random_bits.h"

namespace onnxifi::program {
namespace {

using tensor::ElementType;

int64_t IntValue(const ExprPool& pool, Expr expr) {
  EXPECT_EQ(pool[expr.id()].op, ExprOp::kConstant);
  return static_cast<int64_t>(pool[expr.id()].payload);
}

TEST(ExprTest, EqualNodesAreOne) {
  ExprPool pool;
  const Expr x = Load(pool, ElementType::kFloat32, 0);
  const Expr y = Load(pool, ElementType::kFloat32, 1);
  EXPECT_EQ((x + y).id(), (x + y).id());
  EXPECT_NE((x + y).id(), (y + x).id());
  EXPECT_NE(Constant(pool, ElementType::kFloat32, 0.0).id(),
            Constant(pool, ElementType::kFloat32, -0.0).id());
  EXPECT_NE(Load(pool, ElementType::kFloat32, 0).id(), Load(pool, ElementType::kFloat32, 1).id());
  EXPECT_NE(Random(Coordinate(pool, 0), 1).id(), Random(Coordinate(pool, 0), 2).id());
}

TEST(ExprTest, FloatArithmeticIsNotFolded) {
  ExprPool pool;
  const Expr x = Load(pool, ElementType::kFloat32, 0);
  const Expr zero = Like(x, 0);
  EXPECT_EQ(pool[(x + zero).id()].op, ExprOp::kAdd);  // -0 + 0 is 0
  EXPECT_EQ(pool[(x * zero).id()].op, ExprOp::kMul);
  EXPECT_EQ(pool[(Like(x, 1) + Like(x, 2)).id()].op, ExprOp::kAdd);
}

TEST(ExprTest, IntegerArithmeticOnConstantsWraps) {
  ExprPool pool;
  auto byte = [&](int64_t value) { return IntConstant(pool, ElementType::kInt8, value); };
  EXPECT_EQ(IntValue(pool, byte(127) + byte(1)), -128);
  EXPECT_EQ(IntValue(pool, byte(-128) / byte(-1)), -128);
  EXPECT_EQ(IntValue(pool, byte(5) / byte(0)), 0);
  EXPECT_EQ(IntValue(pool, byte(-7) / byte(2)), -3);
  EXPECT_EQ(IntValue(pool, Binary(ExprOp::kMod, byte(-7), byte(3))), 2);
  EXPECT_EQ(IntValue(pool, Binary(ExprOp::kFmod, byte(-7), byte(3))), -1);
  EXPECT_EQ(IntValue(pool, byte(3) < byte(4)), 1);
  EXPECT_EQ(pool[(byte(3) < byte(4)).id()].type, ElementType::kBool);
  const Expr word = IntConstant(pool, ElementType::kUint64, -1);
  EXPECT_EQ(static_cast<uint64_t>(IntValue(pool, word * word)), 1u);
}

TEST(ExprTest, IdentitiesOfIntegersAreDropped) {
  ExprPool pool;
  const Expr i = Coordinate(pool, 0);
  EXPECT_EQ((i + Like(i, 0)).id(), i.id());
  EXPECT_EQ((Like(i, 1) * i).id(), i.id());
  EXPECT_EQ((i / Like(i, 1)).id(), i.id());
  EXPECT_NE((Like(i, 0) - i).id(), i.id());
}

TEST(ExprTest, CastsAndSelectsFold) {
  ExprPool pool;
  const Expr x = Load(pool, ElementType::kFloat32, 0);
  const Expr y = Load(pool, ElementType::kFloat32, 1);
  EXPECT_EQ(Cast(x, ElementType::kFloat32).id(), x.id());
  const Expr yes = IntConstant(pool, ElementType::kBool, 1);
  EXPECT_EQ(Select(yes, x, y).id(), x.id());
  EXPECT_EQ(Select(!yes, x, y).id(), y.id());
  EXPECT_EQ(Select(x < y, x, x).id(), x.id());
  EXPECT_EQ((!(!(x < y))).id(), (x < y).id());
  const Expr third = Cast(Constant(pool, ElementType::kFloat64, 1.0 / 3), ElementType::kFloat32);
  EXPECT_EQ(std::bit_cast<double>(pool[third.id()].payload), static_cast<double>(1.0f / 3));
}

TEST(ExprTest, ConstantsAreRoundedToTheirType) {
  ExprPool pool;
  const Expr half = Constant(pool, ElementType::kFloat16, 1.0 + 1.0 / 4096);
  EXPECT_EQ(std::bit_cast<double>(pool[half.id()].payload), 1.0);
  EXPECT_EQ(IntValue(pool, Constant(pool, ElementType::kInt32, -2.75)), -2);
}

TEST(ExprTest, IntegerOperationsAreDefinedEverywhere) {
  EXPECT_EQ(IntegerPow<int32_t>(3, 4), 81);
  EXPECT_EQ(IntegerPow<int32_t>(-1, -3), -1);
  EXPECT_EQ(IntegerPow<int32_t>(2, -1), 0);
  EXPECT_EQ(IntegerPow<int32_t>(0, -1), 0);
  EXPECT_EQ(IntegerPow<uint8_t>(2, 9), 0);
  EXPECT_EQ(IntegerShl<int8_t>(1, 8), 0);
  EXPECT_EQ(IntegerShl<int8_t>(1, -1), 0);
  EXPECT_EQ(IntegerShl<int8_t>(1, 7), -128);
  EXPECT_EQ(IntegerShr<int32_t>(-8, 1), -4);
  EXPECT_EQ(WrapMul<uint16_t>(65535, 65535), 1);
  EXPECT_EQ(WrapNeg<int64_t>(INT64_MIN), INT64_MIN);
  EXPECT_EQ(IntegerMod<int64_t>(INT64_MIN, -1), 0);
}

TEST(ExprTest, RandomNumbersAreUniform) {
  constexpr int kCount = 100000;
  double sum = 0, squares = 0, product = 0, previous = 0;
  for (int k = 0; k < kCount; ++k) {
    const double x = RandomUniform(42, k);
    ASSERT_GE(x, 0.0);
    ASSERT_LT(x, 1.0);
    sum += x;
    squares += x * x;
    product += x * previous;
    previous = x;
  }
  EXPECT_NEAR(sum / kCount, 0.5, 0.005);
  EXPECT_NEAR(squares / kCount, 1.0 / 3, 0.005);
  EXPECT_NEAR(product / kCount, 0.25, 0.005);
  EXPECT_NE(RandomUniform(1, 0), RandomUniform(2, 0));
}

TEST(ExprTest, DeepExpressionsAreRewrittenWithoutRecursion) {
  ExprPool pool;
  Expr chain = Load(pool, ElementType::kFloat32, 0);
  constexpr int kDepth = 200000;
  for (int k = 0; k < kDepth; ++k) chain = -chain;
  int visited = 0;
  std::unordered_map<ExprId, ExprId> done;
  const ExprId result = Rewrite(
      pool, chain.id(),
      [&](ExprId id) {
        ++visited;
        return pool[id].op == ExprOp::kLoad ? Load(pool, ElementType::kFloat32, 1).id() : kNoExpr;
      },
      done);
  EXPECT_EQ(visited, kDepth + 1);
  const ExprId roots[] = {result};
  EXPECT_EQ(Reachable(pool, roots).size(), static_cast<size_t>(kDepth) + 1);
}

TEST(ExprTest, SharedExpressionsStayLinear) {
  ExprPool pool;
  Expr x = Load(pool, ElementType::kFloat32, 0);
  for (int k = 0; k < 100; ++k) x = x + x;
  const ExprId roots[] = {x.id()};
  EXPECT_EQ(Reachable(pool, roots).size(), 101u);
  EXPECT_LT(ToString(pool, x.id()).size(), 5000u);
}

}  // namespace
}  // namespace onnxifi::program
