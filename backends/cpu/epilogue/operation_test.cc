// SPDX-License-Identifier: Apache-2.0
//
// Tests of the translation of epilogues: which operations it finds, in which order, and what it
// refuses. That they compute the same is tested with the device.

#include "backends/cpu/epilogue/operation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace onnxifi::epilogue {
namespace {

using program::Expr;
using program::ExprOp;
using tensor::ElementType;
using testing::HasSubstr;

class OperationTest : public testing::Test {
 protected:
  OperationTest() {
    for (int read = 0; read < 4; ++read) {
      program::Buffer buffer;
      buffer.type = read == 3 ? ElementType::kFloat16 : ElementType::kFloat32;
      buffer.shape = {2, 3};
      step_.reads.push_back(
          program::DenseView(program_.AddBuffer(buffer), buffer.type, buffer.shape));
    }
    x_ = program::Accumulator(program_.exprs, ElementType::kFloat32);
  }

  Expr Read(int read) {
    return Load(program_.exprs, step_.reads[static_cast<size_t>(read)].type, read);
  }
  std::vector<Operation> Translated(Expr root) {
    base::Result<std::vector<Operation>> operations = OperationsOf(program_, step_, root.id());
    EXPECT_TRUE(operations.ok()) << operations.status().Text();
    return operations.ok() ? *std::move(operations) : std::vector<Operation>();
  }
  base::Status Refusal(Expr root) { return OperationsOf(program_, step_, root.id()).status(); }

  program::Program program_;
  program::Step step_;
  Expr x_;
};

TEST_F(OperationTest, FindsNothingInTheAccumulatorAlone) { EXPECT_TRUE(Translated(x_).empty()); }

TEST_F(OperationTest, KeepsTheOrder) {
  const Expr sum = (x_ + Read(2)) * Like(x_, 3);
  const std::vector<Operation> operations = Translated(Maximum(sum, Like(x_, 0)) - Read(1));
  ASSERT_EQ(operations.size(), 4u);
  EXPECT_EQ(operations[0].kind, Kind::kAdd);
  EXPECT_EQ(operations[0].read, 2);
  EXPECT_EQ(operations[1].kind, Kind::kLinear);
  EXPECT_EQ(operations[1].alpha, 3.0f);
  EXPECT_EQ(operations[2].kind, Kind::kClip);
  EXPECT_EQ(operations[3].kind, Kind::kSubtract);
  EXPECT_EQ(operations[3].read, 1);
}

TEST_F(OperationTest, JoinsBoundsAndFactorWithSummand) {
  const std::vector<Operation> clip = Translated(Minimum(Maximum(x_, Like(x_, -2)), Like(x_, 6)));
  ASSERT_EQ(clip.size(), 1u);
  EXPECT_EQ(clip[0].kind, Kind::kClip);
  EXPECT_EQ(clip[0].alpha, -2.0f);
  EXPECT_EQ(clip[0].beta, 6.0f);
  const std::vector<Operation> linear = Translated(x_ * Like(x_, 2) + Like(x_, 5));
  ASSERT_EQ(linear.size(), 1u);
  EXPECT_EQ(linear[0].alpha, 2.0f);
  EXPECT_EQ(linear[0].beta, 5.0f);
}

// Functions of one argument, which formulas of core/ops use more than once.
TEST_F(OperationTest, FindsEveryFunctionWithItsNumbers) {
  const auto logistic = [](Expr x) { return Like(x, 1) / (Like(x, 1) + Unary(ExprOp::kExp, -x)); };
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const auto hard = [&](Expr x) {
    return Maximum(Like(x, 0), Minimum(Like(x, 1), Like(x, 0.25) * x + Like(x, 0.5)));
  };
  struct Case {
    Expr root;
    Kind kind;
    float alpha, beta;
  };
  const Case cases[] = {
      {Maximum(x_, Like(x_, 0)), Kind::kClip, 0, kInfinity},
      {Minimum(x_, Like(x_, 6)), Kind::kClip, -kInfinity, 6},
      {Select(x_ < Like(x_, 0), x_ * Like(x_, 0.25), x_), Kind::kLeakyRelu, 0.25, 0},
      {Select(x_ < Like(x_, 0), x_ * Like(x_, 0), x_), Kind::kClip, 0, kInfinity},
      {Unary(ExprOp::kAbs, x_), Kind::kAbs, 0, 0},
      {x_ * x_, Kind::kSquare, 0, 0},
      {Unary(ExprOp::kTanh, x_), Kind::kTanh, 0, 0},
      {logistic(x_), Kind::kLogistic, 0, 0},
      {x_ * logistic(x_), Kind::kSwish, 1, 0},
      {x_ * logistic(x_ * Like(x_, 1.5)), Kind::kSwish, 1.5, 0},
      {x_ * hard(x_), Kind::kHardSwish, 0.25, 0.5},
      {Like(x_, 0.5) * x_ * (Like(x_, 1) + Unary(ExprOp::kErf, x_ * Like(x_, std::sqrt(0.5)))),
       Kind::kGelu, 0, 0},
      {x_ * (Unary(ExprOp::kErf, x_ / Like(x_, 1.4142135F)) + Like(x_, 1)) * Like(x_, 0.5),
       Kind::kGelu, 0, 0},
      {-x_, Kind::kLinear, -1, 0},
      {Like(x_, 3) - x_, Kind::kLinear, -1, 3},
      {x_ / Like(x_, 4), Kind::kLinear, 0.25, 0},
  };
  for (const Case& expected : cases) {
    const std::vector<Operation> operations = Translated(expected.root);
    ASSERT_EQ(operations.size(), 1u);
    EXPECT_EQ(operations[0].kind, expected.kind);
    EXPECT_EQ(operations[0].alpha, expected.alpha);
    EXPECT_EQ(operations[0].beta, expected.beta);
    EXPECT_FALSE(operations[0].is_binary());
  }
}

TEST_F(OperationTest, TakesNothingElseForGelu) {
  const auto erf = [&](double factor) { return Unary(ExprOp::kErf, x_ * Like(x_, factor)); };
  const Expr one = Like(x_, 1);
  const double root = std::sqrt(0.5);
  for (const Expr& other :
       {Like(x_, 0.25) * x_ * (one + erf(root)), Like(x_, 0.5) * x_ * (one + erf(0.7)),
        Like(x_, 0.5) * x_ * (Like(x_, 2) + erf(root)), x_ * (one + erf(root)),
        Like(x_, 0.5) * x_ * x_ * (one + erf(root)),
        Like(x_, 0.5) * Unary(ExprOp::kAbs, x_) * (one + erf(root))}) {
    EXPECT_FALSE(OperationsOf(program_, step_, other.id()).ok());
  }
}

TEST_F(OperationTest, FindsEveryOperationWithATensor) {
  struct Case {
    Expr root;
    Kind kind;
  };
  const Case cases[] = {
      {Read(1) + x_, Kind::kAdd},
      {x_ - Read(1), Kind::kSubtract},
      {Read(1) * x_, Kind::kMultiply},
      {x_ / Read(1), Kind::kDivide},
      {Maximum(x_, Read(1)), Kind::kMaximum},
      {Minimum(Read(1), x_), Kind::kMinimum},
  };
  for (const Case& expected : cases) {
    const std::vector<Operation> operations = Translated(expected.root);
    ASSERT_EQ(operations.size(), 1u);
    EXPECT_EQ(operations[0].kind, expected.kind);
    EXPECT_EQ(operations[0].read, 1);
  }
}

// A lower bound above the upper one gives the upper one, which one clip cannot say.
TEST_F(OperationTest, KeepsCrossedBoundsApart) {
  const std::vector<Operation> operations =
      Translated(Minimum(Maximum(x_, Like(x_, 3)), Like(x_, 1)));
  ASSERT_EQ(operations.size(), 2u);
  EXPECT_EQ(operations[0].alpha, 3.0f);
  EXPECT_EQ(operations[1].beta, 1.0f);
}

TEST_F(OperationTest, RefusesWithTheNameOfTheOperation) {
  for (const ExprOp op : {ExprOp::kErf, ExprOp::kExpm1, ExprOp::kSin}) {
    const base::Status refusal = Refusal(Unary(op, x_) + Read(2));
    EXPECT_EQ(refusal.code(), base::Code::kUnsupportedAttribute);
    EXPECT_THAT(refusal.Text(), HasSubstr("operation " + std::string(program::Name(op))));
  }
}

TEST_F(OperationTest, RefusesTwoUsesOfTheAccumulator) {
  EXPECT_FALSE(Refusal((x_ + Read(2)) * Unary(ExprOp::kTanh, x_)).ok());
  EXPECT_FALSE(Refusal(Like(x_, 1) / x_).ok());
  EXPECT_FALSE(Refusal(Read(2) - x_).ok());
}

TEST_F(OperationTest, RefusesOtherTypes) {
  EXPECT_FALSE(Refusal(x_ + Cast(Read(3), ElementType::kFloat32)).ok());
  const base::Status refusal = Refusal(Cast(x_, ElementType::kFloat16));
  EXPECT_EQ(refusal.code(), base::Code::kUnsupportedDatatype);
  EXPECT_THAT(refusal.Text(), HasSubstr("float16"));
}

}  // namespace
}  // namespace onnxifi::epilogue
