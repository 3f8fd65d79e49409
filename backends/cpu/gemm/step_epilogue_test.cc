// SPDX-License-Identifier: Apache-2.0
//
// Which epilogues the products of this folder take, what is the bias and what the addend, and where
// they are in a run.

#include "backends/cpu/gemm/step_epilogue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace onnxifi::gemm {
namespace {

using program::Expr;
using tensor::ElementType;
using testing::HasSubstr;

constexpr ElementType kFloat = ElementType::kFloat32;

// Over the domain [2, 3, 4, 5] with the channels along axis 1: read 0 is one number per channel, 1
// and 2 are tensors with their channels innermost, 3 one with its rows so.
class StepEpilogueTest : public testing::Test {
 protected:
  StepEpilogueTest() {
    step_.domain = {2, 3, 4, 5};
    const std::vector<program::Dims> strides = {
        {0, 1, 0, 0}, {60, 1, 15, 3}, {80, 1, 20, 4}, {60, 20, 5, 1}};
    for (const program::Dims& each : strides) {
      program::Buffer buffer;
      buffer.type = kFloat;
      buffer.shape = {200};
      program::View view;
      view.buffer = program_.AddBuffer(buffer);
      view.type = kFloat;
      view.offset = 7;
      view.strides = each;
      step_.reads.push_back(view);
    }
    x_ = program::Accumulator(program_.exprs, kFloat);
  }

  Expr Read(int read) { return Load(program_.exprs, kFloat, read); }
  base::Result<StepEpilogue> Select(Expr root) {
    program::Contract contract;
    contract.roots = {root.id()};
    step_.body = contract;
    return SelectEpilogue({program_, step_}, /*channel_axis=*/1);
  }

  program::Program program_;
  program::Step step_;
  Expr x_;
};

TEST_F(StepEpilogueTest, IsEmptyForTheSumsThemselves) {
  const base::Result<StepEpilogue> epilogue = Select(x_);
  ASSERT_TRUE(epilogue.ok()) << epilogue.status().Text();
  EXPECT_EQ(epilogue->bias, -1);
  EXPECT_EQ(epilogue->addend, -1);
  EXPECT_EQ(epilogue->activation, Activation::kNone);
}

TEST_F(StepEpilogueTest, TellsBiasAndAddendApartInAnyOrder) {
  for (const bool is_bias_first : {true, false}) {
    const Expr sum = is_bias_first ? x_ + Read(0) + Read(2) : Read(2) + x_ + Read(0);
    const base::Result<StepEpilogue> epilogue =
        Select(Minimum(Maximum(sum, Like(x_, -1)), Like(x_, 6)));
    ASSERT_TRUE(epilogue.ok()) << epilogue.status().Text();
    EXPECT_EQ(epilogue->bias, 0);
    EXPECT_EQ(epilogue->addend, 2);
    EXPECT_EQ(epilogue->activation, Activation::kClip);
    EXPECT_EQ(epilogue->low, -1.0F);
    EXPECT_EQ(epilogue->high, 6.0F);
  }
}

TEST_F(StepEpilogueTest, TakesBoundsAndLeakyBounds) {
  const base::Result<StepEpilogue> relu = Select(Maximum(x_, Like(x_, 0)));
  ASSERT_TRUE(relu.ok());
  EXPECT_EQ(relu->activation, Activation::kClip);
  EXPECT_EQ(relu->low, 0.0F);
  EXPECT_EQ(relu->high, std::numeric_limits<float>::infinity());
  const base::Result<StepEpilogue> leaky =
      Select(program::Select(x_ < Like(x_, 0), x_ * Like(x_, 0.25), x_));
  ASSERT_TRUE(leaky.ok());
  EXPECT_EQ(leaky->activation, Activation::kLeaky);
  EXPECT_EQ(leaky->low, 0.25F);
  const base::Result<StepEpilogue> tanh = Select(Unary(program::ExprOp::kTanh, x_ + Read(0)));
  ASSERT_TRUE(tanh.ok());
  EXPECT_EQ(tanh->bias, 0);
  EXPECT_EQ(tanh->activation, Activation::kTanh);
  const Expr one = Like(x_, 1);
  const auto logistic = [&](Expr x) { return one / (one + Unary(program::ExprOp::kExp, -x)); };
  const base::Result<StepEpilogue> swish =
      Select((x_ + Read(0)) * logistic((x_ + Read(0)) * Like(x_, 1.5)));
  ASSERT_TRUE(swish.ok()) << swish.status().Text();
  EXPECT_EQ(swish->bias, 0);
  EXPECT_EQ(swish->activation, Activation::kSwish);
  EXPECT_EQ(swish->low, 1.5F);
  EXPECT_EQ(Select(logistic(x_))->activation, Activation::kLogistic);
}

TEST_F(StepEpilogueTest, RefusesWhatProductsDoNot) {
  struct Case {
    Expr root;
    const char* reason;
  };
  const Case cases[] = {
      {Maximum(x_, Like(x_, 0)) + Read(0), "goes on after its activation"},
      {Unary(program::ExprOp::kAbs, x_), "none of bias, sum"},
      {x_ * Like(x_, 2), "none of bias, sum"},
      {x_ * Read(0), "other than by adding"},
      {x_ - Read(1), "other than by adding"},
      {x_ + Read(1) + Read(2), "more than a bias"},
      {x_ + Read(3), "more than a bias"},
  };
  for (const Case& refused : cases) {
    EXPECT_THAT(Select(refused.root).status().Text(), HasSubstr(refused.reason));
  }
}

TEST_F(StepEpilogueTest, FindsTheAddressesOfARun) {
  const base::Result<StepEpilogue> epilogue = Select(Maximum(x_ + Read(0) + Read(1), Like(x_, 0)));
  ASSERT_TRUE(epilogue.ok()) << epilogue.status().Text();
  const std::vector<int64_t> dims(static_cast<size_t>(program_.dims->node_count()), 0);
  const BoundEpilogue bound(*epilogue, device::Bind(program_, step_, dims));
  std::vector<std::vector<float>> data(4, std::vector<float>(200));
  std::vector<std::byte*> addresses;
  for (std::vector<float>& each : data) {
    addresses.push_back(reinterpret_cast<std::byte*>(each.data()));
  }
  const Epilogue found = bound.At(addresses);
  EXPECT_EQ(found.bias, data[0].data() + 7);
  EXPECT_EQ(found.addend, nullptr);
  EXPECT_EQ(found.activation, Activation::kClip);
  ASSERT_TRUE(bound.addend().has_value());
  EXPECT_EQ(FloatsAt(addresses, *bound.addend()), data[1].data() + 7);
  EXPECT_EQ(bound.addend()->strides[3], 3);
}

}  // namespace
}  // namespace onnxifi::gemm
