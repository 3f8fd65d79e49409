// SPDX-License-Identifier: Apache-2.0
//
// FoldConstantSteps: chains of constants become constants, and what depends on an input, on a
// number that is not known, on chance or on a caller's memory stays a step.

#include "backends/core/plugin/constant_steps.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "backends/core/program/testing/program_maker.h"
#include "backends/core/program/verify.h"
#include "backends/core/reference/device.h"

namespace onnxifi::plugin {
namespace {

using program::Buffer;
using program::Dim;
using program::Expr;
using program::ExprPool;
using program::Operand;
using program::ProgramMaker;
using tensor::ElementType;
using tensor::Tensor;
using testing::ElementsAre;

constexpr ElementType kFloat = ElementType::kFloat32;

Tensor Floats(const tensor::Extents& extents, const std::vector<float>& values) {
  return Tensor::FromValues<float>(kFloat, extents, values);
}

Expr Sum(ExprPool&, const std::vector<Expr>& loads) { return loads[0] + loads[1]; }
Expr Twice(ExprPool&, const std::vector<Expr>& loads) { return loads[0] + loads[0]; }

void FoldSteps(ProgramMaker& maker) {
  reference::Device device;
  const base::Status status = FoldConstantSteps(maker.program, device);
  ASSERT_TRUE(status.ok()) << status.Text();
  const base::Status verdict = program::Verify(maker.program);
  EXPECT_TRUE(verdict.ok()) << verdict.Text();
}

TEST(ConstantStepsTest, FoldsChainsWhole) {
  ProgramMaker maker;
  const Operand x = maker.Input({2, 3});
  const Operand a = maker.Constant(Floats({2, 3}, {1, 2, 3, 4, 5, 6}));
  const Operand b = maker.Constant(Floats({3}, {10, 20, 30}));
  // The second reads the first transposed.
  const Operand sum = maker.Map({2, 3}, {a, b}, Sum);
  const Operand twice = maker.Map({3, 2}, {Permute(sum, {1, 0})}, Twice);
  maker.Output(maker.Map({3, 2}, {Permute(x, {1, 0}), twice}, Sum));
  FoldSteps(maker);
  ASSERT_EQ(maker.program.steps.size(), 1u);
  const Buffer& folded = maker.program.buffers[static_cast<size_t>(twice.view.buffer)];
  ASSERT_EQ(folded.kind, Buffer::Kind::kConstant);
  EXPECT_THAT(maker.program.constants[static_cast<size_t>(folded.index)].values<float>(),
              ElementsAre(22, 28, 44, 50, 66, 72));
}

// Weights of 4 bits: two elements of each byte, which are widened then.
TEST(ConstantStepsTest, UnpacksAndWidensWeights) {
  ProgramMaker maker;
  constexpr int64_t kBytes = 70'000;
  std::vector<uint8_t> packed(kBytes);
  for (size_t k = 0; k < packed.size(); ++k) packed[k] = static_cast<uint8_t>(k * 37);
  const Operand x = maker.Input({kBytes, 2});
  const Operand bytes =
      maker.Constant(Tensor::FromValues<uint8_t>(ElementType::kUint8, {kBytes, 1}, packed));
  const uint8_t divisors[] = {1, 16};
  const Operand by =
      maker.Constant(Tensor::FromValues<uint8_t>(ElementType::kUint8, {2}, divisors));
  const Operand codes = maker.Map({kBytes, 2}, {bytes, by}, [](ExprPool& pool, const auto& loads) {
    return loads[0] / loads[1] && Constant(pool, ElementType::kUint8, 15);
  });
  const Operand numbers = maker.Map(
      {kBytes, 2}, {codes}, [](ExprPool&, const auto& loads) { return Cast(loads[0], kFloat); });
  maker.Output(maker.Map({kBytes, 2}, {x, numbers}, Sum));
  FoldSteps(maker);
  ASSERT_EQ(maker.program.steps.size(), 1u);
  const Buffer& folded = maker.program.buffers[static_cast<size_t>(numbers.view.buffer)];
  ASSERT_EQ(folded.kind, Buffer::Kind::kConstant);
  const auto values = maker.program.constants[static_cast<size_t>(folded.index)].values<float>();
  ASSERT_EQ(values.size(), 2u * kBytes);
  for (size_t k = 0; k < packed.size(); k += 997) {
    EXPECT_EQ(values[2 * k], static_cast<float>(packed[k] & 15)) << k;
    EXPECT_EQ(values[2 * k + 1], static_cast<float>(packed[k] >> 4)) << k;
  }
}

TEST(ConstantStepsTest, WidensWeightsOfPackedTypes) {
  ProgramMaker maker;
  constexpr int64_t kCount = 200'000;
  std::vector<uint8_t> packed(kCount / 2);
  for (size_t k = 0; k < packed.size(); ++k) packed[k] = static_cast<uint8_t>(k * 37);
  const Operand x = maker.Input({kCount});
  const Operand codes = maker.Constant(
      Tensor::FromBytes(ElementType::kUint4, {kCount}, std::as_bytes(std::span(packed))));
  const Operand numbers = maker.Map(
      {kCount}, {codes}, [](ExprPool&, const auto& loads) { return Cast(loads[0], kFloat); });
  maker.Output(maker.Map({kCount}, {x, numbers}, Sum));
  FoldSteps(maker);
  ASSERT_EQ(maker.program.steps.size(), 1u);
  const Buffer& folded = maker.program.buffers[static_cast<size_t>(numbers.view.buffer)];
  ASSERT_EQ(folded.kind, Buffer::Kind::kConstant);
  const auto values = maker.program.constants[static_cast<size_t>(folded.index)].values<float>();
  for (size_t k = 0; k < packed.size(); k += 997) {
    EXPECT_EQ(values[2 * k], static_cast<float>(packed[k] & 15)) << k;
    EXPECT_EQ(values[2 * k + 1], static_cast<float>(packed[k] >> 4)) << k;
  }
}

TEST(ConstantStepsTest, FoldsReductions) {
  ProgramMaker maker;
  ExprPool& pool = maker.program.exprs;
  const Operand x = maker.Input({2});
  const Operand a = maker.Constant(Floats({2, 3}, {1, 2, 3, 4, 5, 6}));
  const Operand sums = maker.Temporary({2});
  const Expr state = State(pool, kFloat, 0);
  program::Reduce reduce;
  reduce.axes = 1;
  reduce.reduction.states = {{kFloat, Constant(pool, kFloat, 0).id(),
                              (state + Load(pool, kFloat, 0)).id(),
                              (state + Other(pool, kFloat, 0)).id()}};
  reduce.roots = {state.id()};
  maker.AddStep({{2, 3}, {a.view}, {sums.view}, std::move(reduce)});
  maker.Output(maker.Map({2}, {x, sums}, Sum));
  FoldSteps(maker);
  ASSERT_EQ(maker.program.steps.size(), 1u);
  const Buffer& folded = maker.program.buffers[static_cast<size_t>(sums.view.buffer)];
  ASSERT_EQ(folded.kind, Buffer::Kind::kConstant);
  EXPECT_THAT(maker.program.constants[static_cast<size_t>(folded.index)].values<float>(),
              ElementsAre(6, 15));
}

TEST(ConstantStepsTest, LeavesWhatCallersSeeOrGive) {
  ProgramMaker maker;
  const Operand x = maker.Input({3});
  const Operand a = maker.Constant(Floats({3}, {1, 2, 3}));
  const Operand given = maker.Map({3}, {x, a}, Sum);
  maker.Output(maker.Map({3}, {given}, Twice));
  maker.Output(maker.Map({3}, {a}, Twice));
  FoldSteps(maker);
  EXPECT_EQ(maker.program.steps.size(), 3u);
}

TEST(ConstantStepsTest, LeavesNumbersThatOnlyARunKnows) {
  ProgramMaker maker;
  const Dim n = maker.program.dims->NewSymbol("N", /*is_data=*/false);
  const Operand x = maker.Input({n, 3});
  const Operand a = maker.Constant(Floats({3}, {1, 2, 3}));
  const Operand wide = maker.Map({n, 3}, {a}, Twice);
  const Operand counted = maker.Map({3}, {a}, [&](ExprPool& pool, const std::vector<Expr>& loads) {
    return loads[0] + Cast(program::DimExpr(pool, n), kFloat);
  });
  maker.Output(maker.Map({n, 3}, {x, wide, counted},
                         [](ExprPool&, const std::vector<Expr>& l) { return l[0] + l[1] + l[2]; }));
  FoldSteps(maker);
  EXPECT_EQ(maker.program.steps.size(), 3u);
}

TEST(ConstantStepsTest, LeavesPartsOfABufferAndLargeResults) {
  ProgramMaker maker;
  const Operand x = maker.Input({300, 300});
  const Operand one = maker.Constant(Floats({1, 1}, {1}));
  const Operand large = maker.Map({300, 300}, {one}, Twice);
  maker.Output(maker.Map({300, 300}, {x, large}, Sum));
  // Two halves of one buffer.
  const Operand half = maker.Constant(Floats({2}, {1, 2}));
  const Operand whole = maker.Temporary({4});
  Operand first{whole.view, {2}};
  Operand second{whole.view, {2}};
  second.view.offset = 2;
  maker.MapTo(first, {half}, Twice);
  maker.MapTo(second, {half}, Twice);
  maker.Output(maker.Map({4}, {whole}, Twice));
  FoldSteps(maker);
  EXPECT_EQ(maker.program.steps.size(), 5u);
}

// As the matrix of a Fourier transform is: made of positions alone.
TEST(ConstantStepsTest, FoldsLargeResultsThatTakeLongToCompute) {
  for (const bool is_costly : {true, false}) {
    ProgramMaker maker;
    const Operand x = maker.Input({300, 300});
    const Operand table = maker.Map({300, 300}, {}, [&](ExprPool& pool, const std::vector<Expr>&) {
      const Expr position = program::Coordinate(pool, 0) * program::Coordinate(pool, 1);
      Expr value = program::Cast(position, kFloat);
      for (int k = 0; is_costly && k < 3; ++k) {
        value = program::Unary(program::ExprOp::kSin, value * value + program::Like(value, 0.5));
      }
      return value;
    });
    maker.Output(maker.Map({300, 300}, {x, table}, Sum));
    FoldSteps(maker);
    EXPECT_EQ(maker.program.steps.size(), is_costly ? 1u : 2u);
  }
}

}  // namespace
}  // namespace onnxifi::plugin
