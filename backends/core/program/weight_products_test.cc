// SPDX-License-Identifier: Apache-2.0
//
// MakeWeightProducts: what dequantizes constant weights moves into the product, and the program
// computes the same on the reference; weights that are no constants, or are read in parts, stay.

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

// Bytes that begin with `first` and go on in steps of 7.
Operand Bytes(ProgramMaker& maker, const tensor::Extents& extents, ElementType type, int first) {
  std::vector<uint8_t> bytes(static_cast<size_t>(tensor::ElementCount(extents)));
  for (size_t k = 0; k < bytes.size(); ++k) bytes[k] = static_cast<uint8_t>(first + 7 * k);
  return maker.Constant(tensor::Tensor::FromValues<uint8_t>(type, extents, bytes));
}

// Powers of two.
Operand Scales(ProgramMaker& maker, const tensor::Extents& extents) {
  std::vector<float> scales(static_cast<size_t>(tensor::ElementCount(extents)));
  for (size_t k = 0; k < scales.size(); ++k) scales[k] = k % 3 == 0 ? 0.5F : 0.125F;
  return maker.Constant(tensor::Tensor::FromValues<float>(kFloat32, extents, scales));
}

// weights[n, k] with a scale and a zero point per `block` elements of a row.
Operand Dequantize(ProgramMaker& maker, const Operand& bytes, const Operand& scale,
                   const Operand& zero_point, int64_t block) {
  Step step;
  step.domain = bytes.shape;
  step.reads = {bytes.view, scale.view, zero_point.view};
  ExprPool& pool = maker.program.exprs;
  const Expr at[] = {Coordinate(pool, 0), Coordinate(pool, 1) / IntConstant(pool, kInt64, block)};
  const Expr number = Cast(Load(pool, bytes.type(), 0), kInt32);
  const Expr zero = Cast(LoadAt(pool, zero_point.type(), 2, at), kInt32);
  const Expr value = Cast(number - zero, kFloat32) * LoadAt(pool, kFloat32, 1, at);
  const Operand weights = maker.Temporary(bytes.shape);
  step.writes = {weights.view};
  step.body = Map{{value.id()}};
  maker.AddStep(std::move(step));
  return weights;
}

// What a pass that prefers all leaves, after it has computed the same as before.
Program Replaced(const std::function<void(ProgramMaker&)>& make,
                 const PrefersQuantizedWeights& prefers = PreferAll) {
  ProgramMaker plain, replaced;
  make(plain);
  make(replaced);
  MakeWeightProducts(replaced.program, prefers);
  EXPECT_TRUE(Verify(replaced.program).ok()) << ToString(replaced.program);
  const std::vector<std::vector<float>> expected = RunOnNumbers(plain.program);
  EXPECT_EQ(RunOnNumbers(replaced.program), expected) << ToString(replaced.program);
  EXPECT_NE(expected.at(0), std::vector<float>(expected.at(0).size()));
  return std::move(replaced.program);
}

// Whether the only product has the bytes as its operand B, and nothing is left that dequantizes.
bool HasBytes(const Program& program) {
  return program.steps.size() == 1 && tensor::BitWidth(program.steps[0].reads[1].type) == 8;
}

TEST(WeightProductsTest, TakesBlocksOfATransposedMatrix) {
  for (const ElementType type : {kInt8, kUint8}) {
    const Program program = Replaced([type](ProgramMaker& maker) {
      const Operand weights = Dequantize(maker, Bytes(maker, {3, 10}, type, 5),
                                         Scales(maker, {3, 3}), Bytes(maker, {3, 3}, type, 2), 4);
      maker.Output(maker.MatMul(maker.Input({5, 10}), Permute(weights, {1, 0})));
    });
    EXPECT_TRUE(HasBytes(program)) << ToString(program);
  }
}

TEST(WeightProductsTest, TakesBlocksAlongColumns) {
  const Program program = Replaced([](ProgramMaker& maker) {
    const Operand weights = Dequantize(maker, Bytes(maker, {10, 6}, kInt8, 5),
                                       Scales(maker, {10, 2}), Bytes(maker, {10, 2}, kInt8, 2), 3);
    maker.Output(maker.MatMul(maker.Input({5, 10}), weights));
  });
  EXPECT_TRUE(HasBytes(program)) << ToString(program);
}

TEST(WeightProductsTest, TakesAScaleThatIsRead) {
  for (const tensor::Extents& granules : {tensor::Extents{}, {6}, {10, 1}}) {
    const Program program = Replaced([&](ProgramMaker& maker) {
      const Operand weights =
          maker.Map({10, 6}, {Bytes(maker, {10, 6}, kInt8, 5), Scales(maker, granules)},
                    [](ExprPool&, const std::vector<Expr>& loads) {
                      return Cast(loads[0], kFloat32) * loads[1];
                    });
      maker.Output(maker.MatMul(maker.Input({5, 10}), weights));
    });
    EXPECT_TRUE(HasBytes(program)) << ToString(program);
  }
}

// As where bytes are taken apart: what is dequantized is computed of constants.
TEST(WeightProductsTest, TakesWhatIsComputedFromConstants) {
  const Program program = Replaced([](ProgramMaker& maker) {
    const Operand nibbles = maker.Map({3, 10}, {Bytes(maker, {3, 10}, kUint8, 5)},
                                      [](ExprPool&, const std::vector<Expr>& loads) {
                                        return Binary(ExprOp::kAnd, loads[0], Like(loads[0], 15));
                                      });
    const Operand weights =
        Dequantize(maker, nibbles, Scales(maker, {3, 3}), Bytes(maker, {3, 3}, kUint8, 2), 4);
    maker.Output(maker.MatMul(maker.Input({5, 10}), Permute(weights, {1, 0})));
  });
  ASSERT_EQ(program.steps.size(), 2U) << ToString(program);
  EXPECT_EQ(program.steps[1].reads[1].type, kUint8);
}

// Bytes that BitShift and BitwiseAnd take apart, as their lowering writes it.
Operand Halves(ProgramMaker& maker, const Operand& bytes, uint8_t second_shift, uint8_t mask) {
  const auto constant = [&](const tensor::Extents& extents, std::vector<uint8_t> values) {
    return maker.Constant(tensor::Tensor::FromValues<uint8_t>(kUint8, extents, values));
  };
  Shape shape = bytes.shape;
  shape.push_back(Dim(2));
  const Operand shifted =
      maker.Map(shape, {InsertAxis(bytes, bytes.rank()), constant({2}, {0, second_shift})},
                [](ExprPool&, const std::vector<Expr>& loads) {
                  const Expr is_out = loads[1] >= Like(loads[1], 8);
                  const Expr amount = Select(is_out, Like(loads[1], 0), loads[1]);
                  return Select(is_out, Like(loads[0], 0), Binary(ExprOp::kShr, loads[0], amount));
                });
  return maker.Map(shape, {shifted, constant({}, {mask})},
                   [](ExprPool&, const std::vector<Expr>& loads) {
                     return Binary(ExprOp::kAnd, loads[0], loads[1]);
                   });
}

Program WithHalves(uint8_t second_shift, uint8_t mask) {
  return Replaced([&](ProgramMaker& maker) {
    const Operand halves = Halves(maker, Bytes(maker, {3, 5}, kUint8, 5), second_shift, mask);
    const Operand weights = Dequantize(maker, *Reshape(halves, {3, 10}), Scales(maker, {3, 3}),
                                       Bytes(maker, {3, 3}, kUint8, 2), 4);
    maker.Output(maker.MatMul(maker.Input({5, 10}), Permute(weights, {1, 0})));
  });
}

// They are not taken apart: the constant is read as elements of 4 bits.
TEST(WeightProductsTest, ReadsHalvesOfBytesInPlace) {
  const Program program = WithHalves(4, 15);
  ASSERT_EQ(program.steps.size(), 1U) << ToString(program);
  EXPECT_EQ(program.steps[0].reads[1].type, kUint4);
}

TEST(WeightProductsTest, LeavesOtherPartsOfBytes) {
  for (const auto& [shift, mask] : {std::pair<int, int>{3, 15}, {4, 7}, {0, 15}}) {
    const Program program = WithHalves(static_cast<uint8_t>(shift), static_cast<uint8_t>(mask));
    ASSERT_EQ(program.steps.size(), 3U) << ToString(program);
    EXPECT_EQ(program.steps[2].reads[1].type, kUint8);
  }
}

TEST(WeightProductsTest, LeavesWhatIsComputedInARun) {
  const Program program = Replaced([](ProgramMaker& maker) {
    const Operand bytes =
        maker.Map({3, 10}, {maker.Input({3, 10})}, [](ExprPool&, const std::vector<Expr>& loads) {
          return Cast(loads[0] * Like(loads[0], 8), kInt8);
        });
    const Operand weights =
        Dequantize(maker, bytes, Scales(maker, {3, 3}), Bytes(maker, {3, 3}, kInt8, 2), 4);
    maker.Output(maker.MatMul(maker.Input({5, 10}), Permute(weights, {1, 0})));
  });
  EXPECT_EQ(program.steps.size(), 3U) << ToString(program);
}

TEST(WeightProductsTest, LeavesPartsOfAMatrix) {
  const Program program = Replaced([](ProgramMaker& maker) {
    const Operand weights = Dequantize(maker, Bytes(maker, {3, 12}, kInt8, 5),
                                       Scales(maker, {3, 3}), Bytes(maker, {3, 3}, kInt8, 2), 4);
    const Operand part = Slice(weights, 1, Dim(2), Dim(1), Dim(10));
    maker.Output(maker.MatMul(maker.Input({5, 10}), Permute(part, {1, 0})));
  });
  EXPECT_EQ(program.steps.size(), 2U) << ToString(program);
}

// An axis of the matrix is walked for each element of a batch.
TEST(WeightProductsTest, LeavesASquareThatIsReadAlongItsDiagonal) {
  const Program program = Replaced([](ProgramMaker& maker) {
    const Operand weights = Dequantize(maker, Bytes(maker, {10, 10}, kInt8, 5),
                                       Scales(maker, {10, 5}), Bytes(maker, {10, 5}, kInt8, 2), 2);
    Operand diagonal = weights;
    diagonal.view.strides = {Dim(11), Dim(0)};
    maker.Output(maker.MatMul(maker.Input({5, 10}), diagonal));
  });
  EXPECT_EQ(program.steps.size(), 2U) << ToString(program);
}

TEST(WeightProductsTest, LeavesWhatTheDeviceDoesNotPrefer) {
  const auto make = [](ProgramMaker& maker) {
    const Operand weights = Dequantize(maker, Bytes(maker, {3, 10}, kInt8, 5),
                                       Scales(maker, {3, 3}), Bytes(maker, {3, 3}, kInt8, 2), 4);
    maker.Output(maker.MatMul(maker.Input({5, 10}), Permute(weights, {1, 0})));
  };
  const Program program = Replaced(make, [](const Program&, const Step&) { return false; });
  EXPECT_EQ(program.steps.size(), 2U) << ToString(program);
}

}  // namespace
}  // namespace onnxifi::program
