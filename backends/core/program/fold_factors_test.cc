// SPDX-License-Identifier: Apache-2.0
//
// FoldFactors: constants that multiply output channels end up in the weights, and the program
// computes the same on the reference; what is no constant per channel stays.

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "backends/core/execution/testing/run_on_numbers.h"
#include "backends/core/program/body_exprs.h"
#include "backends/core/program/passes.h"
#include "backends/core/program/testing/program_maker.h"
#include "backends/core/program/verify.h"

namespace onnxifi::program {
namespace {

using execution::RunOnNumbers;
using Formula = ProgramMaker::Formula;

Operand Numbers(ProgramMaker& maker, const tensor::Extents& extents, int first) {
  std::vector<float> values(static_cast<size_t>(tensor::ElementCount(extents)));
  // Powers of two and their like, so that no order of factors rounds.
  for (size_t k = 0; k < values.size(); ++k) {
    values[k] = static_cast<float>(1 << ((k + static_cast<size_t>(first)) % 4)) *
                (k % 3 == 0 ? -0.5F : 0.25F);
  }
  return maker.Constant(tensor::Tensor::FromValues<float>(ElementType::kFloat32, extents, values));
}

struct Case {
  std::string name;
  Formula formula;  // of the sum and three constants per channel
  bool is_folded;
};

const Case kCases[] = {
    {"Normalization",
     [](ExprPool&, const std::vector<Expr>& x) { return (x[0] - x[1]) * x[2] + x[3]; }, true},
    {"Factor", [](ExprPool&, const std::vector<Expr>& x) { return x[2] * x[0]; }, true},
    {"Negative", [](ExprPool&, const std::vector<Expr>& x) { return x[1] - x[0] * Like(x[0], 2); },
     true},
    {"SummandAlone", [](ExprPool&, const std::vector<Expr>& x) { return x[0] + x[1]; }, false},
    {"Quotient", [](ExprPool&, const std::vector<Expr>& x) { return x[0] / x[2]; }, false},
    {"Reciprocal", [](ExprPool&, const std::vector<Expr>& x) { return x[1] / x[0]; }, false},
    {"Square", [](ExprPool&, const std::vector<Expr>& x) { return x[0] * x[0] * x[2]; }, false},
};

// Whether the weights of the only product are what a step computes.
bool HasNewWeights(const Program& program) {
  const auto product = std::ranges::find_if(
      program.steps, [](const Step& step) { return step.As<Contract>() != nullptr; });
  return std::ranges::any_of(program.steps, [&](const Step& step) {
    return step.writes[0].buffer == product->reads[1].buffer;
  });
}

void Check(const Case& c, const std::function<void(ProgramMaker&, const Formula&)>& make) {
  ProgramMaker plain, folded;
  make(plain, c.formula);
  make(folded, c.formula);
  FoldFactors(folded.program);
  ASSERT_TRUE(Verify(folded.program).ok()) << ToString(folded.program);
  EXPECT_EQ(HasNewWeights(folded.program), c.is_folded) << ToString(folded.program);
  EXPECT_EQ(RunOnNumbers(folded.program), RunOnNumbers(plain.program)) << ToString(folded.program);
}

TEST(FoldFactorsTest, OfMatrices) {
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.name);
    Check(c, [](ProgramMaker& maker, const Formula& formula) {
      const Operand product = maker.MatMul(maker.Input({3, 4}), Numbers(maker, {4, 5}, 0));
      maker.Output(maker.Map(
          {3, 5},
          {product, Numbers(maker, {5}, 1), Numbers(maker, {5}, 2), Numbers(maker, {1, 5}, 3)},
          formula));
    });
  }
}

TEST(FoldFactorsTest, OfConvolutionsInGroups) {
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.name);
    Check(c, [](ProgramMaker& maker, const Formula& formula) {
      Contract contract;
      contract.form = Contract::Form::kConv;
      contract.group = 2;
      contract.inner = {3, 2};
      contract.a_spatial = {7};
      contract.strides = {2};
      contract.dilations = {1};
      contract.pads_begin = {1};
      contract.a_prologue = Load(maker.program.exprs, ElementType::kFloat32, 0).id();
      contract.b_prologue = Load(maker.program.exprs, ElementType::kFloat32, 1).id();
      contract.roots = {Accumulator(maker.program.exprs, ElementType::kFloat32).id()};
      const Operand x = maker.Input({2, 6, 7});
      const Operand weights = Numbers(maker, {4, 3, 2}, 0);
      const Operand sums = maker.Temporary({2, 4, 4});
      maker.AddStep({sums.shape, {x.view, weights.view}, {sums.view}, std::move(contract)});
      maker.Output(maker.Map(sums.shape,
                             {sums, Numbers(maker, {4, 1}, 1), Numbers(maker, {1, 4, 1}, 2),
                              Numbers(maker, {4, 1}, 3)},
                             formula));
    });
  }
}

TEST(FoldFactorsTest, WhatIsNoConstantPerChannelStays) {
  const Formula product = [](ExprPool&, const std::vector<Expr>& x) { return x[0] * x[1]; };
  const auto make = [&](const std::function<Operand(ProgramMaker&)>& factor,
                        const std::function<Operand(ProgramMaker&)>& weights) {
    ProgramMaker maker;
    const Operand sums = maker.MatMul(maker.Input({3, 4}), weights(maker));
    maker.Output(maker.Map({3, 5}, {sums, factor(maker)}, product));
    FoldFactors(maker.program);
    return HasNewWeights(maker.program);
  };
  const auto weights = [](ProgramMaker& maker) { return Numbers(maker, {4, 5}, 0); };
  const auto input = [](const Shape& shape) {
    return [shape](ProgramMaker& maker) { return maker.Input(shape); };
  };
  const auto per_channel = [](ProgramMaker& maker) { return Numbers(maker, {5}, 0); };
  EXPECT_TRUE(make(per_channel, weights));
  EXPECT_FALSE(make(input({5}), weights));
  EXPECT_FALSE(make(per_channel, input({4, 5})));
  EXPECT_FALSE(make([](ProgramMaker& maker) { return Numbers(maker, {3, 1}, 0); }, weights));
  // Weights that repeat one column, and a factor that is no number.
  EXPECT_FALSE(make(per_channel, [](ProgramMaker& maker) {
    Operand column = Numbers(maker, {4, 1}, 0);
    return Operand{BroadcastTo(column, {4, 5}), {4, 5}};
  }));
  EXPECT_FALSE(make(
      [](ProgramMaker& maker) {
        const std::vector<float> values = {1, 2, std::numeric_limits<float>::infinity(), 3, 4};
        return maker.Constant(
            tensor::Tensor::FromValues<float>(ElementType::kFloat32, {5}, values));
      },
      weights));
}

TEST(FoldFactorsTest, WeightsInColumnsAreScaledInPlace) {
  Check(kCases[0], [](ProgramMaker& maker, const Formula& formula) {
    const Operand weights = Permute(Numbers(maker, {5, 4}, 0), {1, 0});
    const Operand product = maker.MatMul(maker.Input({3, 4}), weights);
    maker.Output(maker.Map(
        {3, 5}, {product, Numbers(maker, {5}, 1), Numbers(maker, {5}, 2), Numbers(maker, {5}, 3)},
        formula));
  });
}

TEST(FoldFactorsTest, WeightsOfTwoProductsStay) {
  const auto make = [](ProgramMaker& maker, bool is_shared) {
    const Operand weights = Numbers(maker, {4, 5}, 0);
    const Operand first = maker.MatMul(maker.Input({3, 4}), weights);
    const Operand second =
        maker.MatMul(maker.Input({3, 4}), is_shared ? weights : Numbers(maker, {4, 5}, 1));
    maker.Output(maker.Map({3, 5}, {first, Numbers(maker, {5}, 1)},
                           [](ExprPool&, const std::vector<Expr>& x) { return x[0] * x[1]; }));
    maker.Output(second);
    FoldFactors(maker.program);
    return HasNewWeights(maker.program);
  };
  ProgramMaker shared, separate;
  EXPECT_FALSE(make(shared, true));
  EXPECT_TRUE(make(separate, false));
}

}  // namespace
}  // namespace onnxifi::program
