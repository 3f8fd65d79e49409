// SPDX-License-Identifier: Apache-2.0
//
// MakeIntegerProducts: what dequantizes both operands goes, and the program computes the same on
// the reference, of numbers that no step rounds; what one product of integers is not stays.

#include <gtest/gtest.h>

#include <functional>
#include <optional>
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

Program Replaced(const std::function<void(ProgramMaker&)>& make,
                 const PrefersNarrowOperands& prefers = PreferAll) {
  ProgramMaker plain, replaced;
  make(plain);
  make(replaced);
  MakeIntegerProducts(replaced.program, prefers);
  EXPECT_TRUE(Verify(replaced.program).ok()) << ToString(replaced.program);
  const std::vector<std::vector<float>> expected = RunOnNumbers(plain.program);
  EXPECT_EQ(RunOnNumbers(replaced.program), expected) << ToString(replaced.program);
  EXPECT_NE(expected.at(0), std::vector<float>(expected.at(0).size()));
  return std::move(replaced.program);
}

Operand Bytes(ProgramMaker& maker, const Shape& shape, ElementType type) {
  return maker.Map(shape, {maker.Input(shape)}, [type](ExprPool&, const std::vector<Expr>& loads) {
    const double middle = type == kUint8 ? 100 : 0;
    return Cast(loads[0] * Like(loads[0], 8) + Like(loads[0], middle), type);
  });
}

// Powers of two, of any shape.
Operand Scales(ProgramMaker& maker, const Shape& shape) {
  return maker.Map(shape, {maker.Input(shape)}, [](ExprPool&, const std::vector<Expr>& loads) {
    const Expr zero = Like(loads[0], 0);
    return Select(loads[0] < zero, Like(loads[0], 0.5), Like(loads[0], 0.25));
  });
}

// As DequantizeLinear becomes. Scale and zero point stretch over the tensor.
Operand Dequantize(ProgramMaker& maker, const Operand& bytes, const Operand& scale,
                   const Operand* zero_point) {
  std::vector<Operand> reads = {bytes, scale};
  if (zero_point != nullptr) reads.push_back(*zero_point);
  return maker.Map(bytes.shape, reads, [](ExprPool&, const std::vector<Expr>& loads) {
    Expr value = Cast(loads[0], kFloat32);
    if (loads.size() == 3) value = Cast(Cast(loads[0], kInt32) - Cast(loads[2], kInt32), kFloat32);
    return value * loads[1];
  });
}

// Bytes with a scale and a zero point of a shape.
Operand Quantized(ProgramMaker& maker, const Shape& shape, ElementType type,
                  const Shape& granules) {
  const Operand zero_point = Bytes(maker, granules, type);
  return Dequantize(maker, Bytes(maker, shape, type), Scales(maker, granules), &zero_point);
}

// The only Contract, if it is of bytes on both sides.
const Step* FindIntegerProduct(const Program& program) {
  const Step* found = nullptr;
  for (const Step& step : program.steps) {
    const Contract* contract = step.As<Contract>();
    if (contract == nullptr || contract->accumulator != kInt32) continue;
    EXPECT_EQ(found, nullptr);
    found = &step;
    for (int operand = 0; operand < 2; ++operand) {
      EXPECT_TRUE(FindProductOperand(program, step, operand).is_stored);
      EXPECT_EQ(tensor::BitWidth(FindProductOperand(program, step, operand).type), 8);
    }
  }
  return found;
}

TEST(IntegerProductsTest, MultipliesBytesWithOneScaleEach) {
  for (const ElementType type : {kInt8, kUint8}) {
    const Program program = Replaced([type](ProgramMaker& maker) {
      maker.Output(
          maker.MatMul(Quantized(maker, {5, 7}, kUint8, {}), Quantized(maker, {7, 3}, type, {})));
    });
    EXPECT_NE(FindIntegerProduct(program), nullptr) << ToString(program);
  }
}

TEST(IntegerProductsTest, KeepsScalesOfRowsAndColumns) {
  const Program program = Replaced([](ProgramMaker& maker) {
    maker.Output(maker.MatMul(Quantized(maker, {5, 7}, kInt8, {5, 1}),
                              Quantized(maker, {7, 3}, kInt8, {3})));
  });
  EXPECT_NE(FindIntegerProduct(program), nullptr) << ToString(program);
}

TEST(IntegerProductsTest, FollowsATransposedMatrix) {
  const Program program = Replaced([](ProgramMaker& maker) {
    Operand weights = Quantized(maker, {3, 7}, kInt8, {3, 1});
    maker.Output(maker.MatMul(Quantized(maker, {5, 7}, kUint8, {}), Permute(weights, {1, 0})));
  });
  EXPECT_NE(FindIntegerProduct(program), nullptr) << ToString(program);
}

// A view transposes, or skips, what is dequantized behind it.
TEST(IntegerProductsTest, TakesBytesInAnotherOrder) {
  const Program program = Replaced([](ProgramMaker& maker) {
    const Operand rows = Slice(Bytes(maker, {5, 14}, kUint8), 1, 1, 2, 7);
    const Operand turned = Permute(Bytes(maker, {7, 3}, kInt8), {1, 0});
    const Operand scale = Scales(maker, {3, 1}), zero_point = Bytes(maker, {3, 1}, kInt8);
    const Operand a = Dequantize(maker, rows, Scales(maker, {}), nullptr);
    const Operand weights = Dequantize(maker, turned, scale, &zero_point);
    maker.Output(maker.MatMul(a, Permute(weights, {1, 0})));
  });
  EXPECT_NE(FindIntegerProduct(program), nullptr) << ToString(program);
}

TEST(IntegerProductsTest, TakesTensorsWithoutZeroPoints) {
  const Program program = Replaced([](ProgramMaker& maker) {
    const Operand a = Dequantize(maker, Bytes(maker, {5, 7}, kInt8), Scales(maker, {}), nullptr);
    const Operand b = Dequantize(maker, Bytes(maker, {7, 3}, kInt8), Scales(maker, {3}), nullptr);
    maker.Output(maker.MatMul(a, b));
  });
  EXPECT_NE(FindIntegerProduct(program), nullptr) << ToString(program);
}

// In one group or with a kernel per channel.
void CheckConvolution(int64_t group) {
  const Program program = Replaced([group](ProgramMaker& maker) {
    const int64_t channels = group == 1 ? 3 : 1;  // of a group
    const Operand image = Quantized(maker, {2, channels * group, 6, 7}, kUint8, {});
    const Operand kernels = Quantized(maker, {4, channels, 3, 3}, kInt8, {4, 1, 1, 1});
    Contract contract;
    contract.form = Contract::Form::kConv;
    contract.group = group;
    contract.inner = {channels, 3, 3};
    contract.a_spatial = {6, 7};
    contract.strides = contract.dilations = {1, 1};
    contract.pads_begin = {1, 1};
    ExprPool& pool = maker.program.exprs;
    contract.a_prologue = Load(pool, kFloat32, 0).id();
    contract.b_prologue = Load(pool, kFloat32, 1).id();
    const Expr sum = Accumulator(pool, kFloat32) + Load(pool, kFloat32, 2);
    contract.roots = {Maximum(sum, Like(sum, 0)).id()};
    const Operand bias = maker.Input({4, 1, 1});
    const Operand result = maker.Temporary({2, 4, 6, 7});
    maker.AddStep({result.shape,
                   {image.view, kernels.view, BroadcastTo(bias, result.shape)},
                   {result.view},
                   std::move(contract)});
    maker.Output(result);
  });
  EXPECT_NE(FindIntegerProduct(program), nullptr) << ToString(program);
}

TEST(IntegerProductsTest, ScalesTheSumsOfConvolutionsPerOutput) {
  CheckConvolution(1);
  CheckConvolution(4);
}

TEST(IntegerProductsTest, LeavesWhatIsNoProductOfIntegers) {
  const auto product = [](const Shape& a_granules, const Shape& b_granules) {
    return [=](ProgramMaker& maker) {
      maker.Output(maker.MatMul(Quantized(maker, {5, 7}, kUint8, a_granules),
                                Quantized(maker, {7, 3}, kInt8, b_granules)));
    };
  };
  // Scales along what is added up.
  EXPECT_EQ(FindIntegerProduct(Replaced(product({}, {7, 1}))), nullptr);
  EXPECT_EQ(FindIntegerProduct(Replaced(product({7}, {}))), nullptr);
  EXPECT_EQ(FindIntegerProduct(
                Replaced(product({}, {}), [](const Program&, const Step&) { return false; })),
            nullptr);
  // More products than an int32 holds the sum of.
  const Program deep = Replaced([](ProgramMaker& maker) {
    maker.Output(maker.MatMul(Quantized(maker, {1, 40'000}, kInt8, {}),
                              Quantized(maker, {40'000, 1}, kInt8, {})));
  });
  EXPECT_EQ(FindIntegerProduct(deep), nullptr);
}

}  // namespace
}  // namespace onnxifi::program
