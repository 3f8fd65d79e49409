// SPDX-License-Identifier: Apache-2.0
//
// Tests of the translation of epilogues: which operations it finds, in which order, and what it
// refuses. That they compute the same is tested with the device.

#include "backends/cpu/onednn/post_ops.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace onnxifi::onednn {
namespace {

using dnnl::algorithm;
using program::Expr;
using program::ExprOp;
using tensor::ElementType;
using testing::HasSubstr;

class PostOpsTest : public testing::Test {
 protected:
  PostOpsTest() {
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
  std::vector<PostOp> Translated(Expr root) {
    base::Result<std::vector<PostOp>> post_ops = TranslatePostOps(program_, step_, root.id());
    EXPECT_TRUE(post_ops.ok()) << post_ops.status().Text();
    return post_ops.ok() ? *std::move(post_ops) : std::vector<PostOp>();
  }
  base::Status Refusal(Expr root) { return TranslatePostOps(program_, step_, root.id()).status(); }

  program::Program program_;
  program::Step step_;
  Expr x_;
};

TEST_F(PostOpsTest, FindsNothingInTheAccumulatorAlone) { EXPECT_TRUE(Translated(x_).empty()); }

TEST_F(PostOpsTest, KeepsTheOrder) {
  const Expr sum = (x_ + Read(2)) * Like(x_, 3);
  const std::vector<PostOp> post_ops = Translated(Maximum(sum, Like(x_, 0)) - Read(1));
  ASSERT_EQ(post_ops.size(), 4u);
  EXPECT_EQ(post_ops[0].algorithm, algorithm::binary_add);
  EXPECT_EQ(post_ops[0].read, 2);
  EXPECT_EQ(post_ops[1].algorithm, algorithm::eltwise_linear);
  EXPECT_EQ(post_ops[1].alpha, 3.0f);
  EXPECT_EQ(post_ops[2].algorithm, algorithm::eltwise_relu);
  EXPECT_EQ(post_ops[3].algorithm, algorithm::binary_sub);
  EXPECT_EQ(post_ops[3].read, 1);
}

TEST_F(PostOpsTest, JoinsBoundsAndFactorWithSummand) {
  const std::vector<PostOp> clip = Translated(Minimum(Maximum(x_, Like(x_, -2)), Like(x_, 6)));
  ASSERT_EQ(clip.size(), 1u);
  EXPECT_EQ(clip[0].algorithm, algorithm::eltwise_clip);
  EXPECT_EQ(clip[0].alpha, -2.0f);
  EXPECT_EQ(clip[0].beta, 6.0f);
  const std::vector<PostOp> linear = Translated(x_ * Like(x_, 2) + Like(x_, 5));
  ASSERT_EQ(linear.size(), 1u);
  EXPECT_EQ(linear[0].alpha, 2.0f);
  EXPECT_EQ(linear[0].beta, 5.0f);
}

// A lower bound above the upper one gives the upper one, which one clip cannot say.
TEST_F(PostOpsTest, KeepsCrossedBoundsApart) {
  const std::vector<PostOp> post_ops = Translated(Minimum(Maximum(x_, Like(x_, 3)), Like(x_, 1)));
  ASSERT_EQ(post_ops.size(), 2u);
  EXPECT_EQ(post_ops[0].alpha, 3.0f);
  EXPECT_EQ(post_ops[1].beta, 1.0f);
}

TEST_F(PostOpsTest, RefusesWithTheNameOfTheOperation) {
  for (const ExprOp op : {ExprOp::kErf, ExprOp::kExpm1, ExprOp::kSin}) {
    const base::Status refusal = Refusal(Unary(op, x_) + Read(2));
    EXPECT_EQ(refusal.code(), base::Code::kUnsupportedAttribute);
    EXPECT_THAT(refusal.Text(), HasSubstr("operation " + std::string(program::Name(op))));
  }
}

TEST_F(PostOpsTest, RefusesTwoUsesOfTheAccumulator) {
  EXPECT_FALSE(Refusal((x_ + Read(2)) * Unary(ExprOp::kTanh, x_)).ok());
  EXPECT_FALSE(Refusal(Like(x_, 1) / x_).ok());
  EXPECT_FALSE(Refusal(Read(2) - x_).ok());
}

TEST_F(PostOpsTest, RefusesOtherTypes) {
  EXPECT_FALSE(Refusal(x_ + Cast(Read(3), ElementType::kFloat32)).ok());
  const base::Status refusal = Refusal(Cast(x_, ElementType::kFloat16));
  EXPECT_EQ(refusal.code(), base::Code::kUnsupportedDatatype);
  EXPECT_THAT(refusal.Text(), HasSubstr("float16"));
}

TEST_F(PostOpsTest, RefusesMoreThanFits) {
  Expr value = x_;
  for (int k = 0; k < 40; ++k) value = value + Read(2);
  EXPECT_THAT(Refusal(value).Text(), HasSubstr("more operations"));
}

}  // namespace
}  // namespace onnxifi::onednn
