// SPDX-License-Identifier: Apache-2.0
//
// KeptPrecision: which of the roundings between steps that become one are left, and that without
// fast algorithms all are, bit for bit.

#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "backends/core/execution/testing/run_on_numbers.h"
#include "backends/core/program/body_exprs.h"
#include "backends/core/program/passes.h"
#include "backends/core/program/testing/program_maker.h"

namespace onnxifi::program {
namespace {

using execution::RunOnNumbers;
using Make = std::function<void(ProgramMaker&)>;

constexpr ElementType kWide = ElementType::kFloat32;

bool AcceptAll(const Program&, const Step&, const Step&) { return true; }

// A function of float32, as a node of `type` computes it.
ProgramMaker::Formula Node(ElementType type, const std::function<Expr(Expr)>& function) {
  return [type, function](ExprPool&, const std::vector<Expr>& loads) {
    return Cast(function(Cast(loads[0], kWide)), type);
  };
}
ProgramMaker::Formula To(ElementType type) {
  return [type](ExprPool&, const std::vector<Expr>& loads) { return Cast(loads[0], type); };
}
Expr Third(Expr x) { return x / Like(x, 3); }
Expr Plus(Expr x) { return x + Like(x, 0.7); }

int CountRoundings(const Program& program, ElementType type) {
  int count = 0;
  for (const Step& step : program.steps) {
    for (ExprId id : Reachable(program.exprs, BodyExprs(step))) {
      const ExprNode& node = program.exprs[id];
      count += node.op == ExprOp::kCast && node.type == type ? 1 : 0;
    }
  }
  return count;
}

Program Fused(const Make& make, bool has_fast_algorithms) {
  ProgramMaker maker;
  make(maker);
  maker.program.has_fast_algorithms = has_fast_algorithms;
  FuseEpilogues(maker.program, AcceptAll);
  FuseMaps(maker.program, AcceptAll);
  EXPECT_EQ(maker.program.steps.size(), 1u) << ToString(maker.program);
  return std::move(maker.program);
}

std::vector<std::vector<float>> ResultsOf(const Make& make) {
  ProgramMaker maker;
  make(maker);
  return RunOnNumbers(maker.program);
}

class KeptPrecisionTest : public testing::TestWithParam<ElementType> {};

TEST_P(KeptPrecisionTest, OnlyTheLastRoundingIsLeft) {
  const auto make = [](ElementType between) {
    return [between](ProgramMaker& maker) {
      const Operand product = maker.MatMul(maker.Input({3, 4}), maker.Input({4, 5}));
      const Operand rounded = maker.Map({3, 5}, {product}, Node(between, Third));
      const Operand again = maker.Map({3, 5}, {rounded}, Node(between, Plus));
      const Operand last = maker.Map({3, 5}, {again}, Node(GetParam(), Third));
      maker.Output(maker.Map({3, 5}, {last}, To(kWide)));
    };
  };
  const Program exact = Fused(make(GetParam()), /*has_fast_algorithms=*/false);
  EXPECT_EQ(CountRoundings(exact, GetParam()), 3);
  EXPECT_EQ(RunOnNumbers(exact), ResultsOf(make(GetParam())));
  const Program fast = Fused(make(GetParam()), /*has_fast_algorithms=*/true);
  EXPECT_EQ(CountRoundings(fast, GetParam()), 1);
  EXPECT_EQ(RunOnNumbers(fast), ResultsOf(make(kWide)));
  EXPECT_NE(RunOnNumbers(fast), RunOnNumbers(exact)) << "the numbers tell nothing";
}

// A model that rounds on purpose.
TEST_P(KeptPrecisionTest, WhatIsWidenedToGoOnStaysRounded) {
  const Make make = [](ProgramMaker& maker) {
    const Operand x = maker.Input({3, 5});
    const Operand rounded = maker.Map({3, 5}, {x}, Node(GetParam(), Third));
    const Operand widened = maker.Map({3, 5}, {rounded}, To(kWide));
    maker.Output(maker.Map({3, 5}, {widened}, Node(kWide, Plus)));
  };
  const Program fast = Fused(make, /*has_fast_algorithms=*/true);
  EXPECT_EQ(CountRoundings(fast, GetParam()), 1);
  EXPECT_EQ(RunOnNumbers(fast), ResultsOf(make));
}

TEST_P(KeptPrecisionTest, WhatComesBeforeAStepStaysRounded) {
  const Make make = [](ProgramMaker& maker) {
    const Operand x = maker.Input({3, 5});
    const Operand rounded = maker.Map({3, 5}, {x}, Node(GetParam(), Third));
    const auto floor = [](Expr value) { return Unary(ExprOp::kFloor, value * Like(value, 3)); };
    const Operand floored = maker.Map({3, 5}, {rounded}, Node(GetParam(), floor));
    maker.Output(maker.Map({3, 5}, {floored}, To(kWide)));
  };
  const Program fast = Fused(make, /*has_fast_algorithms=*/true);
  EXPECT_EQ(CountRoundings(fast, GetParam()), 2);
  EXPECT_EQ(RunOnNumbers(fast), ResultsOf(make));
}

INSTANTIATE_TEST_SUITE_P(All, KeptPrecisionTest,
                         testing::Values(ElementType::kFloat16, ElementType::kBfloat16),
                         [](const testing::TestParamInfo<ElementType>& info) {
                           return std::string(tensor::Name(info.param));
                         });

}  // namespace
}  // namespace onnxifi::program
