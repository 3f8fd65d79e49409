// SPDX-License-Identifier: Apache-2.0
//
// FuseWidenings: casts that keep every value move into products, which compute the same on the
// reference; what rounds, is read by others or was overwritten meanwhile stays.

#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "backends/core/execution/testing/run_on_numbers.h"
#include "backends/core/program/passes.h"
#include "backends/core/program/product_operand.h"
#include "backends/core/program/testing/program_maker.h"
#include "backends/core/program/verify.h"

namespace onnxifi::program {
namespace {

using execution::RunOnNumbers;
using enum tensor::ElementType;

bool PreferAll(const Program&, const Step&) { return true; }

// Fuses what `make` makes; it still computes the same, and that is not zero.
Program Fused(const std::function<void(ProgramMaker&)>& make,
              const PrefersNarrowOperands& prefers = PreferAll) {
  ProgramMaker plain, fused;
  make(plain);
  make(fused);
  FuseWidenings(fused.program, prefers);
  EXPECT_TRUE(Verify(fused.program).ok()) << ToString(fused.program);
  const std::vector<std::vector<float>> expected = RunOnNumbers(plain.program);
  EXPECT_EQ(RunOnNumbers(fused.program), expected) << ToString(fused.program);
  EXPECT_NE(expected.at(0), std::vector<float>(expected.at(0).size()));
  return std::move(fused.program);
}

ProgramMaker::Formula To(ElementType type) {
  return [type](ExprPool&, const std::vector<Expr>& loads) { return Cast(loads[0], type); };
}

const Step& LastOf(const Program& program) { return program.steps.back(); }

TEST(FuseWideningsTest, PutsBothOperandsInTheirOwnTypes) {
  const Program program = Fused([](ProgramMaker& maker) {
    const Operand a = maker.Map({5, 7}, {maker.Input({5, 7})}, To(kFloat16));
    const Operand b = maker.Map({7, 3}, {maker.Input({7, 3})}, To(kBfloat16));
    maker.Output(
        maker.MatMul(maker.Map({5, 7}, {a}, To(kFloat32)), maker.Map({7, 3}, {b}, To(kFloat32))));
  });
  ASSERT_EQ(program.steps.size(), 3u) << ToString(program);
  EXPECT_EQ(FindProductOperand(program, LastOf(program), 0).type, kFloat16);
  EXPECT_EQ(FindProductOperand(program, LastOf(program), 1).type, kBfloat16);
  EXPECT_TRUE(FindProductOperand(program, LastOf(program), 1).is_stored);
}

TEST(FuseWideningsTest, FollowsViewsOfTheWidenedTensor) {
  const Program program = Fused([](ProgramMaker& maker) {
    const Operand x = maker.Map({4, 7, 5}, {maker.Input({4, 7, 5})}, To(kFloat16));
    Operand wide = maker.Map({4, 7, 5}, {x}, To(kFloat32));
    // One of its matrices, transposed.
    wide.view.offset = wide.view.offset + Dim(2 * 35);
    wide.view.strides = {1, 5};
    wide.shape = {5, 7};
    maker.Output(maker.MatMul(wide, maker.Input({7, 3})));
  });
  ASSERT_EQ(program.steps.size(), 2u) << ToString(program);
  EXPECT_EQ(LastOf(program).reads[0].offset, Dim(70));
  EXPECT_TRUE(FindProductOperand(program, LastOf(program), 0).is_stored);
}

TEST(FuseWideningsTest, TakesATensorThatIsBothOperands) {
  const Program program = Fused([](ProgramMaker& maker) {
    const Operand x = maker.Map({6, 6}, {maker.Input({6, 6})}, To(kFloat16));
    const Operand wide = maker.Map({6, 6}, {x}, To(kFloat32));
    maker.Output(maker.MatMul(wide, wide));
  });
  ASSERT_EQ(program.steps.size(), 2u) << ToString(program);
  EXPECT_EQ(FindProductOperand(program, LastOf(program), 1).type, kFloat16);
}

TEST(FuseWideningsTest, LeavesWhatRounds) {
  const Program program = Fused([](ProgramMaker& maker) {
    const Operand rounded =
        maker.Map({5, 7}, {maker.Input({5, 7})}, [](ExprPool&, const std::vector<Expr>& loads) {
          return Cast(Cast(loads[0] * Like(loads[0], 0.3), kFloat16), kFloat32);
        });
    maker.Output(maker.MatMul(rounded, maker.Input({7, 3})));
  });
  EXPECT_EQ(program.steps.size(), 2u) << ToString(program);
}

TEST(FuseWideningsTest, LeavesWhatOthersRead) {
  const Program program = Fused([](ProgramMaker& maker) {
    const Operand x = maker.Map({5, 7}, {maker.Input({5, 7})}, To(kFloat16));
    const Operand wide = maker.Map({5, 7}, {x}, To(kFloat32));
    maker.Output(maker.MatMul(wide, maker.Input({7, 3})));
    maker.Output(wide);
  });
  EXPECT_EQ(program.steps.size(), 3u) << ToString(program);
}

TEST(FuseWideningsTest, LeavesWhatIsOverwrittenBeforeTheProduct) {
  const Program program = Fused([](ProgramMaker& maker) {
    const Operand x = maker.Map({5, 7}, {maker.Input({5, 7})}, To(kFloat16));
    const Operand wide = maker.Map({5, 7}, {x}, To(kFloat32));
    maker.MapTo(x, {maker.Input({5, 7})}, To(kFloat16));
    maker.Output(maker.MatMul(wide, maker.Input({7, 3})));
  });
  EXPECT_EQ(LastOf(program).reads[0].type, kFloat32) << ToString(program);
}

TEST(FuseWideningsTest, LeavesPaddedViewsAndWhatTheDeviceDoesNotPrefer) {
  const auto make = [](bool is_padded) {
    return [is_padded](ProgramMaker& maker) {
      const Operand x = maker.Map({5, 7}, {maker.Input({5, 7})}, To(kFloat16));
      Operand wide = maker.Map({5, 7}, {x}, To(kFloat32));
      if (is_padded) {
        // Behind row 3 all is 0.5, which float16 has, but as bits of another type it is not.
        wide.view.guards.push_back({{1, 0}, 0, 4});
        wide.view.fill = tensor::Scalar{.f = 0.5};
      }
      maker.Output(maker.MatMul(wide, maker.Input({7, 3})));
    };
  };
  EXPECT_EQ(Fused(make(/*is_padded=*/true)).steps.size(), 3u);
  EXPECT_EQ(Fused(make(/*is_padded=*/false)).steps.size(), 2u);
  EXPECT_EQ(Fused(make(/*is_padded=*/false), [](const Program&, const Step&) { return false; })
                .steps.size(),
            3u);
}

}  // namespace
}  // namespace onnxifi::program
