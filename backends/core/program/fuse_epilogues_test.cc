// SPDX-License-Identifier: Apache-2.0
//
// FuseEpilogues: what moves into a Contract or Window computes the same as before, on the
// reference; what may not move stays.

#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "backends/core/execution/testing/run_on_numbers.h"
#include "backends/core/program/passes.h"
#include "backends/core/program/testing/program_maker.h"

namespace onnxifi::program {
namespace {

using execution::RunOnNumbers;

bool AcceptAll(const Program&, const Step&, const Step&) { return true; }

// Fuses what `make` makes; it still computes the same.
Program Fused(const std::function<void(ProgramMaker&)>& make, const Accepts& accepts = AcceptAll) {
  ProgramMaker plain, fused;
  make(plain);
  make(fused);
  FuseEpilogues(fused.program, accepts);
  EXPECT_EQ(RunOnNumbers(fused.program), RunOnNumbers(plain.program)) << ToString(fused.program);
  return std::move(fused.program);
}

Expr Relu(ExprPool&, const std::vector<Expr>& loads) {
  return Maximum(loads[0], Like(loads[0], 0));
}
Expr Sum(ExprPool&, const std::vector<Expr>& loads) { return loads[0] + loads[1]; }
Expr Difference(ExprPool&, const std::vector<Expr>& loads) { return loads[0] - loads[1]; }

Operand Product(ProgramMaker& maker) {
  return maker.MatMul(maker.Input({3, 4}), maker.Input({4, 5}));
}

// The maximum over windows of 2 x 2, x[N, C, H, W].
Operand MaxPool(ProgramMaker& maker, const Operand& x, bool has_indices = false) {
  Window window;
  window.in_spatial = {x.shape[2], x.shape[3]};
  window.kernel = {2, 2};
  window.strides = {1, 1};
  window.dilations = {1, 1};
  window.pads_begin = {0, 0};
  window.pads_end = {0, 0};
  window.roots = {Accumulator(maker.program.exprs, ElementType::kFloat32).id()};
  const Operand out = maker.Temporary({x.shape[0], x.shape[1], x.shape[2] - 1, x.shape[3] - 1});
  Step step{out.shape, {x.view}, {out.view}, std::move(window)};
  if (has_indices) {
    const Operand indices = maker.Temporary(out.shape, ElementType::kInt64);
    step.writes.push_back(indices.view);
    maker.Output(indices);
  }
  maker.AddStep(std::move(step));
  return out;
}

TEST(FuseEpiloguesTest, TakesBiasActivationAndResidual) {
  const Program program = Fused([](ProgramMaker& maker) {
    const Operand product = Product(maker);
    const Operand biased = maker.Map({3, 5}, {product, maker.Input({5})}, Sum);
    const Operand active = maker.Map({3, 5}, {biased}, Relu);
    // The residual on the left: its order in the subtraction has to stay.
    maker.Output(maker.Map({3, 5}, {maker.Input({3, 5}), active}, Difference));
  });
  ASSERT_EQ(program.steps.size(), 1u);
  const Step& step = program.steps[0];
  EXPECT_NE(step.As<Contract>(), nullptr);
  ASSERT_EQ(step.reads.size(), 4u);
  EXPECT_EQ(step.reads[2].strides, (Dims{0, 1})) << "the bias, along the last axis";
  EXPECT_EQ(step.node, 0) << "the product's";
}

TEST(FuseEpiloguesTest, RunsWhereAllThatItReadsHasBeenComputed) {
  const Program program = Fused([](ProgramMaker& maker) {
    const Operand product = Product(maker);
    const Operand other = maker.SumRows(maker.Input({3, 6}));
    maker.Output(maker.Map({3, 5}, {product, {InsertAxis(other, 1)}}, Sum));
  });
  ASSERT_EQ(program.steps.size(), 2u);
  EXPECT_NE(program.steps[0].As<Reduce>(), nullptr);
  EXPECT_NE(program.steps[1].As<Contract>(), nullptr);
}

TEST(FuseEpiloguesTest, TakesThePartOfAChainThatTheDeviceTakes) {
  const auto make = [](ProgramMaker& maker) {
    const Operand active = maker.Map({3, 5}, {Product(maker)}, Relu);
    const Operand root = maker.Map({3, 5}, {active}, [](ExprPool&, const std::vector<Expr>& loads) {
      return Unary(ExprOp::kSqrt, loads[0]);
    });
    maker.Output(maker.Map({3, 5}, {root}, Relu));
  };
  const Program program =
      Fused(make, [](const Program& whole, const Step& before, const Step& after) {
        EXPECT_NE(before.As<Contract>(), nullptr);
        const ExprId root = after.As<Contract>()->roots[0];
        return whole.exprs[root].op != ExprOp::kSqrt;
      });
  ASSERT_EQ(program.steps.size(), 3u);
  const Contract* contract = program.steps[0].As<Contract>();
  ASSERT_NE(contract, nullptr);
  EXPECT_EQ(program.exprs[contract->roots[0]].op, ExprOp::kMax);
  EXPECT_NE(program.steps[2].As<Map>(), nullptr);
}

TEST(FuseEpiloguesTest, TakesWhatFollowsAWindowButNotItsIndices) {
  for (const bool has_indices : {false, true}) {
    const Program program = Fused([has_indices](ProgramMaker& maker) {
      const Operand pooled = MaxPool(maker, maker.Input({2, 3, 4, 5}));
      const Operand again = MaxPool(maker, pooled, has_indices);
      maker.program.outputs.clear();
      maker.Output(maker.Map(again.shape, {again, maker.Input({3, 1, 1})}, Sum));
    });
    EXPECT_EQ(program.steps.size(), has_indices ? 3u : 2u);
  }
}

TEST(FuseEpiloguesTest, LeavesWhatDoesNotFollowElementForElement) {
  const std::function<Operand(ProgramMaker&, const Operand&)> consumers[] = {
      [](ProgramMaker& maker, const Operand& p) {  // another order
        return maker.Map({5, 3}, {Permute(p, {1, 0})}, Relu);
      },
      [](ProgramMaker& maker, const Operand& p) {  // another order, and its own
        const Operand square = maker.MatMul(p, maker.Input({5, 3}));
        return maker.Map({3, 3}, {square, Permute(square, {1, 0})}, Difference);
      },
      [](ProgramMaker& maker, const Operand& p) {  // a part
        return maker.Map({3, 4}, {Slice(p, 1, 1, 1, 4)}, Relu);
      },
      [](ProgramMaker& maker, const Operand& p) {  // more than once
        return maker.Map({2, 3, 5}, {p}, Relu);
      },
      [](ProgramMaker& maker, const Operand& p) {  // with its place
        return maker.Map({3, 5}, {p}, [](ExprPool& pool, const std::vector<Expr>& loads) {
          return loads[0] + Cast(Coordinate(pool, 1), ElementType::kFloat32);
        });
      },
      [](ProgramMaker& maker, const Operand& p) { return maker.SumRows(p); },
  };
  for (const auto& consumer : consumers) {
    size_t count = 0;
    const Program program = Fused([&](ProgramMaker& maker) {
      maker.Output(consumer(maker, Product(maker)));
      count = maker.program.steps.size();
    });
    EXPECT_EQ(program.steps.size(), count) << ToString(program);
  }
}

TEST(FuseEpiloguesTest, KeepsResultsThatOthersNeed) {
  const Program two_readers = Fused([](ProgramMaker& maker) {
    const Operand product = Product(maker);
    maker.Output(maker.Map({3, 5}, {product}, Relu));
    maker.Output(maker.SumRows(product));
  });
  EXPECT_EQ(two_readers.steps.size(), 3u);
  const Program output = Fused([](ProgramMaker& maker) {
    const Operand product = Product(maker);
    maker.Output(product);
    maker.Output(maker.Map({3, 5}, {product}, Relu));
  });
  EXPECT_EQ(output.steps.size(), 2u);
}

TEST(FuseEpiloguesTest, LeavesAStepWhereWhatItReadsIsStillThere) {
  const Program program = Fused([](ProgramMaker& maker) {
    const Operand a = maker.Temporary({3, 4});
    maker.MapTo(a, {maker.Input({3, 4})}, Relu);
    const Operand product = maker.MatMul(a, maker.Input({4, 5}));
    maker.MapTo(a, {maker.Input({3, 4})}, Relu);  // a second time
    maker.Output(maker.Map({3, 5}, {product, InsertAxis(maker.SumRows(a), 1)}, Sum));
  });
  EXPECT_EQ(program.steps.size(), 5u);
}

// Products in a row, each with two Maps behind it: large enough that a pass that walked the program
// for each of them, or moved its tail, would not end.
TEST(FuseEpiloguesTest, WorkGrowsWithTheProgram) {
  ProgramMaker maker;
  const Operand w = maker.Input({2, 2});
  Operand value = maker.Input({2, 2});
  constexpr int kProducts = 10000;
  for (int k = 0; k < kProducts; ++k) {
    const Operand product = maker.MatMul(value, w);
    value = maker.Map({2, 2}, {maker.Map({2, 2}, {product, w}, Sum)}, Relu);
  }
  maker.Output(value);
  int asked = 0;
  FuseEpilogues(maker.program, [&asked](const Program&, const Step&, const Step&) {
    ++asked;
    return true;
  });
  EXPECT_EQ(asked, 2 * kProducts);
  EXPECT_EQ(maker.program.steps.size(), static_cast<size_t>(kProducts));
}

}  // namespace
}  // namespace onnxifi::program
