// SPDX-License-Identifier: Apache-2.0
//
// Buffer uses: who alone writes and reads a buffer, as steps come and go.

#include "backends/core/program/buffer_uses.h"

#include <gtest/gtest.h>

#include <utility>

#include "backends/core/program/passes.h"
#include "backends/core/program/testing/program_maker.h"

namespace onnxifi::program {
namespace {

Expr Sum(ExprPool&, const std::vector<Expr>& loads) { return loads[0] + loads[1]; }

TEST(BufferUsesTest, KnowsTheOnlyWriterAndTheOnlyReader) {
  ProgramMaker maker;
  const Operand x = maker.Input({2, 3});
  const Operand a = maker.Map({2, 3}, {x, x}, Sum);  // step 0, two views of x
  const Operand b = maker.Map({2, 3}, {a, x}, Sum);  // step 1
  const Operand y = maker.Map({2, 3}, {b, b}, Sum);  // step 2
  maker.Output(y);
  const BufferUses uses(maker.program);
  EXPECT_EQ(uses.OnlyWriter(x.view.buffer), BufferUses::kNoStep);
  EXPECT_EQ(uses.OnlyReader(x.view.buffer), BufferUses::kNoStep) << "steps 0 and 1 read it";
  EXPECT_EQ(uses.OnlyWriter(a.view.buffer), 0);
  EXPECT_EQ(uses.OnlyReader(a.view.buffer), 1);
  EXPECT_EQ(uses.OnlyReader(b.view.buffer), 2) << "two views, one reader";
  EXPECT_EQ(uses.OnlyReader(y.view.buffer), BufferUses::kNoStep);
  EXPECT_TRUE(uses.IsOutput(y.view.buffer));
  EXPECT_FALSE(uses.IsOutput(b.view.buffer));
  EXPECT_EQ(uses.StepsWith(x.view.buffer), (std::set<int>{0, 1}));
  EXPECT_EQ(uses.StepsWith(a.view.buffer), (std::set<int>{0, 1})) << "its writer and its reader";
  EXPECT_EQ(uses.CountOf(a.view.buffer), 2);
  EXPECT_EQ(uses.OnlyWriter(kNoBuffer), BufferUses::kNoStep);
  EXPECT_EQ(uses.OnlyReader(kNoBuffer), BufferUses::kNoStep);
}

TEST(BufferUsesTest, FollowsStepsThatComeAndGo) {
  ProgramMaker maker;
  const Operand x = maker.Input({2, 3});
  const Operand a = maker.Map({2, 3}, {x, x}, Sum);
  const Operand b = maker.Map({2, 3}, {a, x}, Sum);
  const Operand c = maker.Map({2, 3}, {a, b}, Sum);
  maker.Output(c);
  BufferUses uses(maker.program);
  EXPECT_EQ(uses.OnlyReader(a.view.buffer), BufferUses::kNoStep);
  uses.Remove(1, maker.program.steps[1]);
  EXPECT_EQ(uses.OnlyReader(a.view.buffer), 2);
  EXPECT_EQ(uses.OnlyReader(x.view.buffer), 0);
  EXPECT_EQ(uses.OnlyWriter(b.view.buffer), BufferUses::kNoStep);
  EXPECT_EQ(uses.StepsWith(b.view.buffer), std::set<int>{2});
  uses.Add(1, maker.program.steps[0]);
  EXPECT_EQ(uses.OnlyWriter(a.view.buffer), BufferUses::kNoStep) << "steps 0 and 1 write it now";
}

TEST(BufferUsesTest, AJoinedStepTakesTheConsumersPlace) {
  ProgramMaker maker;
  const Operand x = maker.Input({2, 3});
  const Operand a = maker.Map({2, 3}, {x, x}, Sum);
  const Operand y = maker.Map({2, 3}, {a, a}, Sum);
  maker.Output(y);
  Step joined{{2, 3}, {x.view}, {y.view}, Map{{Load(maker.program.exprs, x.type(), 0).id()}}};
  BufferUses uses(maker.program);
  JoinSteps(maker.program, uses, 0, 1, std::move(joined));
  EXPECT_EQ(uses.OnlyReader(x.view.buffer), 1);
  EXPECT_EQ(uses.OnlyWriter(y.view.buffer), 1);
  EXPECT_TRUE(uses.StepsWith(a.view.buffer).empty());
  RemoveDeadSteps(maker.program);
  ASSERT_EQ(maker.program.steps.size(), 1u);
  EXPECT_TRUE(maker.program.steps[0].reads[0] == x.view);
}

TEST(BufferUsesTest, SeesLaterWritesToWhatAStepReads) {
  ProgramMaker maker;
  const Operand x = maker.Input({3});
  const Operand a = maker.Temporary({3});
  maker.MapTo(a, {x, x}, Sum);                    // step 0
  const Operand b = maker.Map({3}, {a, x}, Sum);  // step 1
  maker.MapTo(a, {b, x}, Sum);                    // step 2 writes a again
  maker.Output(maker.Map({3}, {a, b}, Sum));      // step 3
  const BufferUses uses(maker.program);
  EXPECT_FALSE(uses.ReadsWhatIsWrittenAfter(0, maker.program.steps[0]));
  EXPECT_TRUE(uses.ReadsWhatIsWrittenAfter(1, maker.program.steps[1]));
  EXPECT_FALSE(uses.ReadsWhatIsWrittenAfter(3, maker.program.steps[3]));
}

}  // namespace
}  // namespace onnxifi::program
