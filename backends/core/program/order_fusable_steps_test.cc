// SPDX-License-Identifier: Apache-2.0
//
// OrderFusableSteps: steps that a device fuses come to follow each other, others stay where they
// are, and what is computed stays the same.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "backends/core/execution/testing/run_on_numbers.h"
#include "backends/core/program/passes.h"
#include "backends/core/program/sole_consumer.h"
#include "backends/core/program/testing/program_maker.h"
#include "backends/core/program/verify.h"

namespace onnxifi::program {
namespace {

using testing::ElementsAre;

Expr Sum(ExprPool&, const std::vector<Expr>& loads) {
  Expr sum = loads[0] * Like(loads[0], 2);
  for (size_t k = 1; k < loads.size(); ++k) sum = sum + loads[k];
  return sum;
}

class OrderFusableStepsTest : public testing::Test {
 protected:
  Operand Add(const std::vector<Operand>& reads) { return maker_.Map({3}, reads, Sum); }
  // The numbers that the steps had before, in their new order.
  std::vector<int> Gather(const Joins& joins) {
    std::vector<int> order;
    OrderFusableSteps(maker_.program, joins);
    for (const Step& step : maker_.program.steps) order.push_back(step.node);
    const base::Status verified = Verify(maker_.program);
    EXPECT_TRUE(verified.ok()) << verified.Text();
    return order;
  }

  ProgramMaker maker_;
};

bool All(const Program&, const Step&, const Step&) { return true; }

TEST_F(OrderFusableStepsTest, BringsAStepAndThoseBeforeItToItsReader) {
  const Operand x = maker_.Input({3});
  const Operand a = Add({x});           // 0
  const Operand b = Add({a});           // 1
  const Operand other = Add({x});       // 2
  const Operand c = Add({b, other});    // 3
  const Operand two = Add({other, x});  // 4: of what others read too
  maker_.Output(Add({two, c}));         // 5: the sole consumer of 4, by read 0
  const auto before = execution::RunOnNumbers(maker_.program);
  EXPECT_THAT(Gather(All), ElementsAre(2, 0, 1, 3, 4, 5));
  EXPECT_EQ(execution::RunOnNumbers(maker_.program), before);
}

TEST_F(OrderFusableStepsTest, LeavesStepsThatAreNotJoined) {
  const Operand x = maker_.Input({3});
  const Operand a = Add({x});         // 0
  const Operand other = Add({x});     // 1
  const Operand b = Add({a, other});  // 2
  maker_.Output(b);
  EXPECT_THAT(Gather([](const Program&, const Step&, const Step&) { return false; }),
              ElementsAre(0, 1, 2));
  std::vector<std::vector<int>> asked;
  EXPECT_THAT(Gather([&](const Program&, const Step& first, const Step& second) {
                asked.push_back({first.node, second.node});
                return true;
              }),
              ElementsAre(1, 0, 2));
  EXPECT_THAT(asked, ElementsAre(ElementsAre(0, 2))) << "2 consumes 1 by read 1";
}

// Step 0 would read what step 1 writes over.
TEST_F(OrderFusableStepsTest, MovesNothingBehindAWriteOfWhatItReads) {
  const Operand x = maker_.Input({3});
  const Operand twice = maker_.Temporary({3});
  maker_.MapTo(twice, {x}, Sum);   // 0
  const Operand a = Add({twice});  // 1
  maker_.MapTo(twice, {a}, Sum);   // 2
  const Operand b = Add({twice});  // 3
  const Operand c = Add({x});      // 4
  const Operand d = Add({b, c});   // 5
  maker_.Output(Add({d, twice}));  // 6
  EXPECT_THAT(Gather(All), ElementsAre(0, 1, 2, 4, 3, 5, 6));
}

}  // namespace
}  // namespace onnxifi::program
