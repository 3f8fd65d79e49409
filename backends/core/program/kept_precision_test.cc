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

// What leaves the narrow type stays a step of its own.
bool AcceptNarrow(const Program&, const Step&, const Step& after) {
  return after.writes[0].type != kWide;
}

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

// Of the step that writes the first narrow value which no other step rounds on its own: the last
// but the cast to the output.
int CountRoundings(const Program& program, ElementType type) {
  int count = 0;
  const Step& step = program.steps[program.steps.size() - 2];
  for (ExprId id : Reachable(program.exprs, BodyExprs(step))) {
    const ExprNode& node = program.exprs[id];
    count += node.op == ExprOp::kCast && node.type == type ? 1 : 0;
  }
  return count;
}

Program Fused(const Make& make, bool has_fast_algorithms) {
  ProgramMaker maker;
  make(maker);
  maker.program.has_fast_algorithms = has_fast_algorithms;
  FuseEpilogues(maker.program, AcceptNarrow);
  FuseMaps(maker.program, AcceptNarrow);
  return std::move(maker.program);
}

std::vector<std::vector<float>> ResultsOf(const Make& make) {
  ProgramMaker maker;
  make(maker);
  return RunOnNumbers(maker.program);
}

// a x b, of operands of `type`, in float32.
Operand Product(ProgramMaker& maker, ElementType type) {
  const Operand a = maker.Map({3, 4}, {maker.Input({3, 4})}, To(type));
  const Operand product = maker.MatMul(a, maker.Map({4, 5}, {maker.Input({4, 5})}, To(type)));
  Contract& contract = *maker.program.steps.back().As<Contract>();
  for (ExprId* id : {&contract.a_prologue, &contract.b_prologue}) {
    *id = Cast(Expr(&maker.program.exprs, *id), kWide).id();
  }
  return product;
}

class KeptPrecisionTest : public testing::TestWithParam<ElementType> {};

TEST_P(KeptPrecisionTest, OnlyTheLastRoundingIsLeft) {
  const auto make = [](ElementType between) {
    return [between](ProgramMaker& maker) {
      const Operand rounded = maker.Map({3, 5}, {Product(maker, GetParam())}, Node(between, Third));
      const Operand again = maker.Map({3, 5}, {rounded}, Node(between, Plus));
      const Operand last = maker.Map({3, 5}, {again}, Node(GetParam(), Third));
      maker.Output(maker.Map({3, 5}, {last}, To(kWide)));
    };
  };
  const Program exact = Fused(make(GetParam()), /*has_fast_algorithms=*/false);
  EXPECT_EQ(exact.steps.size(), 4u) << ToString(exact);
  EXPECT_EQ(CountRoundings(exact, GetParam()), 3);
  EXPECT_EQ(RunOnNumbers(exact), ResultsOf(make(GetParam())));
  const Program fast = Fused(make(GetParam()), /*has_fast_algorithms=*/true);
  EXPECT_EQ(fast.steps.size(), 4u) << ToString(fast);
  EXPECT_EQ(CountRoundings(fast, GetParam()), 1);
  EXPECT_EQ(RunOnNumbers(fast), ResultsOf(make(kWide)));
  EXPECT_NE(RunOnNumbers(fast), RunOnNumbers(exact)) << "the numbers tell nothing";
}

// Whatever rounds of the model's own, or of another type, or where a small difference grows, gives
// what it gave.
TEST_P(KeptPrecisionTest, OtherRoundingsStay) {
  const ElementType other =
      GetParam() == ElementType::kFloat16 ? ElementType::kBfloat16 : ElementType::kFloat16;
  const auto floor = [](Expr x) { return Unary(ExprOp::kFloor, x * Like(x, 3)); };
  const auto sign = [](Expr x) { return Select(x < Like(x, 0), Like(x, -1), Like(x, 1)); };
  const auto of_product = [&](const ProgramMaker::Formula& first,
                              const ProgramMaker::Formula& second) -> Make {
    return [first, second](ProgramMaker& maker) {
      const Operand rounded = maker.Map({3, 5}, {Product(maker, GetParam())}, first);
      const Operand last = maker.Map({3, 5}, {rounded}, second);
      maker.Output(maker.Map({3, 5}, {last}, To(kWide)));
    };
  };
  // Rounded it is 1, at the edge of the domain; unrounded there is no answer.
  const auto at_edge = [&](ExprOp op, double beside) {
    const auto near_one = [beside](Expr x) { return (x - x) + Like(x, beside); };
    return of_product(Node(GetParam(), near_one),
                      Node(GetParam(), [op](Expr x) { return Unary(op, x); }));
  };
  const Make makes[] = {
      at_edge(ExprOp::kAcos, 1.00001),
      at_edge(ExprOp::kAsin, 1.00001),
      at_edge(ExprOp::kAcosh, 0.99999),
      at_edge(ExprOp::kAtanh, 1.00001),
      of_product(Node(GetParam(), Third), Node(GetParam(), floor)),
      of_product(Node(GetParam(), [](Expr x) { return (x - x) + Third(x) - Third(x); }),
                 Node(GetParam(), sign)),
      of_product(Node(other, Third), Node(GetParam(), Plus)),
      // What is left of a number when it is rounded.
      [](ProgramMaker& maker) {
        const Operand x = maker.Map({3, 5}, {maker.Input({3, 5})}, Node(kWide, Third));
        const Operand rounded = maker.Map({3, 5}, {x}, To(GetParam()));
        const Operand widened = maker.Map({3, 5}, {rounded}, To(kWide));
        const Operand rest =
            maker.Map({3, 5}, {x, widened}, [](ExprPool&, const std::vector<Expr>& loads) {
              return Cast(loads[0] - loads[1], GetParam());
            });
        maker.Output(maker.Map({3, 5}, {rest}, To(kWide)));
      },
  };
  for (const Make& make : makes) {
    ProgramMaker maker;
    make(maker);
    const Accepts accept_all = [](const Program&, const Step&, const Step&) { return true; };
    FuseEpilogues(maker.program, accept_all);
    FuseMaps(maker.program, accept_all);
    EXPECT_EQ(RunOnNumbers(maker.program), ResultsOf(make)) << ToString(maker.program);
  }
}

TEST(KeptPrecisionOfFloat16Test, NothingIsLeftOut) {
  const Make make = [](ProgramMaker& maker) {
    const Operand product = Product(maker, ElementType::kFloat16);
    const Operand rounded = maker.Map({3, 5}, {product}, Node(ElementType::kFloat16, Third));
    const Operand last = maker.Map({3, 5}, {rounded}, Node(ElementType::kFloat16, Plus));
    maker.Output(maker.Map({3, 5}, {last}, To(kWide)));
  };
  const Program fast = Fused(make, /*has_fast_algorithms=*/true);
  EXPECT_EQ(CountRoundings(fast, ElementType::kFloat16), 2);
  EXPECT_EQ(RunOnNumbers(fast), ResultsOf(make));
}

INSTANTIATE_TEST_SUITE_P(All, KeptPrecisionTest, testing::Values(ElementType::kBfloat16),
                         [](const testing::TestParamInfo<ElementType>& info) {
                           return std::string(tensor::Name(info.param));
                         });

}  // namespace
}  // namespace onnxifi::program
