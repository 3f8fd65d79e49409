// SPDX-License-Identifier: Apache-2.0
//
// Contractions cut into tiles whose operands are of narrow types, or rounded to them as the caller
// permits, compared with the reference and with float64.

#include <cmath>
#include <cstdint>
#include <random>
#include <tuple>
#include <utility>
#include <vector>

#include "backends/core/codegen/testing/tiled_fixture.h"

namespace onnxifi::codegen {
namespace {

class NarrowOperandsTest : public TiledTest {};

INSTANTIATE_TEST_SUITE_P(Tunings, NarrowOperandsTest, testing::Bool(),
                         [](const testing::TestParamInfo<bool>& info) {
                           return info.param ? "Gpu" : "Processor";
                         });

// Numbers of the tests are such that every precision has them, so that all is as in float32.
TEST_P(NarrowOperandsTest, NumbersThatANarrowTypeHasStayWhatTheyAre) {
  if (!is_gpu()) GTEST_SKIP() << "An item sums its own block.";
  uint32_t seed = 0;
  const auto expect_right = [&](RandomStep step, tensor::Precision precision,
                                std::string_view implementation) {
    step.program.precision = precision;
    SCOPED_TRACE(testing::Message() << Name(precision) << " " << seed++);
    ExpectRight(step, implementation);
  };
  using enum tensor::Precision;
  const auto half = ElementType::kFloat16;
  ProductShape few{.batch = 2, .m = 3, .n = 67, .k = 33, .b_transposed = true};
  expect_right(MakeProduct(few, seed), kFloat16, "tiled product");
  ProductShape many{.batch = 2, .m = 65, .n = 67, .k = 33, .b_kind = kConstant};
  expect_right(MakeProduct(many, seed), kBfloat16, "tiled product");
  many.type = half;
  expect_right(MakeProduct(many, seed), kBfloat16, "tiled product");
  const std::vector<Axis> axes = {{9, 3, 2, 1, 1, 0}, {10, 3, 2, 1, 0, 1}};
  const auto convolution = "tiled convolution";
  expect_right(MakeConvolution(2, 2, 5, 17, axes, kFloat, seed), kFloat16, convolution);
  expect_right(MakeConvolution(1, 2, 5, 3, axes, kFloat, seed), kBfloat16, convolution);
  expect_right(MakeTransposed(2, 2, 5, 17, axes, half, seed), kBfloat16,
               "tiled transposed convolution");
  // Depthwise, in runs of neighbours.
  const std::vector<Axis> even = {{9, 3, 1, 1, 1, 1}, {80, 3, 1, 1, 1, 1}};
  expect_right(MakeConvolution(1, 6, 1, 1, even, kFloat, seed), kFloat16, convolution);
}

// Bytes at the ends of their range, less zero points at those of theirs.
TEST_P(NarrowOperandsTest, BytesAreExactLessTheirZeroPoints) {
  uint32_t seed = 0;
  for (const ElementType type : {ElementType::kInt8, ElementType::kUint8}) {
    for (const int64_t rows : {3, 20}) {
      for (const bool is_constant : {false, true}) {
        constexpr int64_t kN = 37, kK = 41;
        StepMaker make(++seed);
        Contract contract;
        contract.accumulator = ElementType::kInt32;
        contract.m_axes = contract.n_axes = 1;
        contract.inner = {kK};
        const View a = make.Buffer({rows, kK}, type);
        const View b = make.Buffer({kK, kN}, type, is_constant ? kConstant : kVariable);
        View a_zero = make.Buffer({rows}, type);
        a_zero.strides = {1, 0};
        View b_zero = make.Buffer({kN}, type, is_constant ? kConstant : kVariable);
        b_zero.strides = {0, 1};
        std::mt19937 random(seed);
        for (tensor::Tensor& buffer : make.made.buffers) {
          for (int64_t k = 0; k < buffer.element_count(); ++k) {
            const uint32_t number = random();
            buffer.mutable_data()[k] = static_cast<std::byte>(number % 4 == 0   ? 0x7f
                                                              : number % 4 == 1 ? 0x80
                                                                                : number >> 8);
          }
        }
        const auto widened = [&](const View& view) {
          return Cast(make.Read(view), ElementType::kInt32);
        };
        const program::Expr left = widened(a);
        const program::Expr right = widened(b);
        contract.a_prologue = (left - widened(a_zero)).id();
        contract.b_prologue = seed % 3 == 0 ? right.id() : (right - widened(b_zero)).id();
        make.Finish(std::move(contract), {rows, kN}, 1);
        SCOPED_TRACE(testing::Message() << "seed " << seed);
        ExpectRight(make.made, "tiled product");
      }
    }
  }
}

// Shapes whose blocks have edges everywhere, of the types and precisions of matrix units.
TEST_P(NarrowOperandsTest, BlocksOfMatrixUnitsAreRight) {
  if (!is_gpu()) GTEST_SKIP() << "An item sums its own block.";
  using tensor::Precision;
  using enum ElementType;
  std::mt19937 random(7);
  const auto below = [&](int64_t limit) { return static_cast<int64_t>(random() % limit); };
  for (uint32_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const ElementType types[] = {kFloat16, kBfloat16, kFloat32, kInt8, kUint8};
    const Precision precisions[] = {Precision::kFloat32, Precision::kTf32, Precision::kFloat16,
                                    Precision::kBfloat16};
    const ElementType type = types[seed % 5];
    const bool is_byte = tensor::BitWidth(type) == 8;
    const Precision precision = precisions[type == kFloat32 ? 1 + below(3) : below(4)];
    if (!is_byte && seed % 2 == 1) {
      const std::vector<Axis> axes = {
          {5 + below(9), 1 + below(3), 1 + below(2), 1 + below(2), below(3), below(2)},
          {7 + below(9), 1 + below(3), 1 + below(3), 1, below(2), below(3)}};
      const int64_t group = 1 + below(2), channels = 1 + below(40), outputs = 9 + below(90);
      RandomStep step =
          seed % 4 == 1 ? MakeConvolution(1 + below(2), group, channels, outputs, axes, type, seed)
                        : MakeTransposed(1, group, channels, outputs, axes, type, seed);
      step.program.precision = precision;
      ExpectRight(step, seed % 4 == 1 ? "tiled convolution" : "tiled transposed convolution");
      continue;
    }
    ProductShape shape{.batch = 1 + below(3), .m = 9 + below(150), .n = 1 + below(150)};
    shape.k = 1 + below(100);
    shape.a_transposed = below(2) == 0;
    shape.b_transposed = below(2) == 0;
    shape.b_shared = below(3) == 0;
    shape.b_kind = below(2) == 0 ? kConstant : kVariable;
    shape.type = type;
    shape.accumulator = !is_byte ? kFloat32 : type == kInt8 ? kInt32 : kUint32;
    RandomStep step = MakeProduct(shape, seed);
    step.program.precision = precision;
    ExpectRight(step, "tiled product");
  }
}

// Operands of two types, of which the narrower is widened on its way to the units.
TEST_P(NarrowOperandsTest, OperandsOfTwoWidthsAreRight) {
  uint32_t seed = 70;
  for (const bool is_first_narrow : {true, false}) {
    for (const auto& [m, n, k] : {std::tuple{20, 70, 37}, {65, 33, 130}, {3, 40, 100}}) {
      for (const ElementType type : {ElementType::kFloat16, ElementType::kBfloat16}) {
        StepMaker make(seed++);
        Contract contract;
        contract.m_axes = contract.n_axes = 1;
        contract.inner = {k};
        const View a = make.Buffer({m, k}, is_first_narrow ? type : kFloat);
        const View b = make.Buffer({k, n}, is_first_narrow ? kFloat : type);
        contract.a_prologue = Cast(make.Read(a), kFloat).id();
        contract.b_prologue = Cast(make.Read(b), kFloat).id();
        make.Finish(std::move(contract), {m, n}, 1);
        RandomStep step = std::move(make.made);
        step.program.precision = tensor::Precision::kTf32;
        step.tolerance = 0.05;
        SCOPED_TRACE(testing::Message() << m << " x " << n << " x " << k << ' ' << Name(type));
        ExpectRight(step, "tiled product");
      }
    }
  }
}

// As many bits are lost as the caller permits, and no more.
TEST_P(NarrowOperandsTest, OperandsAreRoundedAsPermitted) {
  for (const auto& [precision, unit] : {std::pair{tensor::Precision::kFloat32, 0x1p-24},
                                        {tensor::Precision::kTf32, 0x1p-11},
                                        {tensor::Precision::kFloat16, 0x1p-11},
                                        {tensor::Precision::kBfloat16, 0x1p-8}}) {
    for (const program::Buffer::Kind kind : {kVariable, kConstant}) {
      SCOPED_TRACE(Name(precision));
      constexpr int64_t kM = 20, kN = 70, kK = 50;
      RandomStep step = MakeProduct({.batch = 1, .m = kM, .n = kN, .k = kK, .b_kind = kind}, 3);
      step.program.precision = precision;
      std::mt19937 random(4);
      for (size_t operand = 0; operand < 2; ++operand) {
        auto* values = reinterpret_cast<float*>(step.buffers[operand].mutable_data());
        for (int64_t k = 0; k < step.buffers[operand].element_count(); ++k) {
          values[k] = static_cast<float>(random() % 100'000) / 50'000 + 0.1F;
        }
      }
      const auto selection = device_->Select({step.program, step.program.steps[0]});
      ASSERT_TRUE(selection.ok());
      const tensor::Precision used = selection->recipe->precision();
      const bool rounds = used != tensor::Precision::kFloat32;
      // TF32 is of matrix units alone.
      if (precision != tensor::Precision::kTf32) {
        EXPECT_EQ(rounds, is_gpu() && precision != tensor::Precision::kFloat32);
      }
      EXPECT_EQ(used, rounds ? precision : tensor::Precision::kFloat32);
      const auto result = RunStep(*device_, step);
      ASSERT_TRUE(result.ok()) << result.status().Text();
      const auto a = step.buffers[0].values<float>();
      const auto b = step.buffers[1].values<float>();
      const auto bias = step.buffers[2].values<float>();
      const auto addend = step.buffers[3].values<float>();
      const auto out = result->back().values<float>();
      double worst = 0;
      for (int64_t m = 0; m < kM; ++m) {
        for (int64_t n = 0; n < kN; ++n) {
          double sum = 0;
          for (int64_t k = 0; k < kK; ++k) {
            sum += static_cast<double>(a[m * kK + k]) * b[k * kN + n];
          }
          const double expected =
              std::max(sum + bias[n] + static_cast<double>(addend[m * kN + n]), 0.0);
          // All terms are positive: relative errors are those of the operands.
          worst = std::max(worst, std::abs(out[m * kN + n] - expected) / sum);
        }
      }
      const double permitted = rounds ? unit : 0x1p-24;
      EXPECT_LT(worst, 2 * permitted + kK * 0x1p-24);
      if (rounds) {
        EXPECT_GT(worst, permitted / 64) << "It was not rounded.";
      }
    }
  }
}

}  // namespace
}  // namespace onnxifi::codegen
