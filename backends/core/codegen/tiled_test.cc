// SPDX-License-Identifier: Apache-2.0
//
// Contractions cut into tiles, compared with the reference on shapes around the edges of a tile,
// with every attribute off its default. Says which way the operands took: a device that fell back
// to the generated loops would be right too.

#include "backends/core/codegen/tiled.h"

#include <array>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "backends/core/codegen/testing/step_fixture.h"

namespace onnxifi::codegen {
namespace {

using program::Contract;
using program::Dim;
using program::View;
using reference::RandomStep;
using tensor::ElementType;
using tensor::Extents;

constexpr auto kVariable = program::Buffer::Kind::kTemporary;
constexpr auto kConstant = program::Buffer::Kind::kConstant;

// On kernels as they are cut for a processor, and as for a GPU.
class TiledTest : public StepTest, public testing::WithParamInterface<bool> {
 protected:
  bool is_gpu() const { return GetParam(); }
  void SetUp() override {
    const char* const before = std::getenv(kTuning);
    const std::optional<std::string> kept =
        before == nullptr ? std::nullopt : std::optional<std::string>(before);
    setenv(kTuning, is_gpu() ? "gpu" : "processor", 1);
    StepTest::SetUp();
    kept ? setenv(kTuning, kept->c_str(), 1) : unsetenv(kTuning);
  }

 private:
  static constexpr char kTuning[] = "ONNXIFI_TUNING";
};

INSTANTIATE_TEST_SUITE_P(Tunings, TiledTest, testing::Bool(),
                         [](const testing::TestParamInfo<bool>& info) {
                           return info.param ? "Gpu" : "Processor";
                         });

struct ProductShape {
  int64_t batch, m, n, k;
  bool a_transposed = false, b_transposed = false, b_shared = false;
  program::Buffer::Kind b_kind = kVariable;
  ElementType type = kFloat, accumulator = kFloat;
};

RandomStep MakeProduct(const ProductShape& shape, uint32_t seed) {
  StepMaker make(seed);
  Contract contract;
  contract.accumulator = shape.accumulator;
  contract.batch_axes = contract.m_axes = contract.n_axes = 1;
  contract.inner = {shape.k};
  View a = make.Buffer(shape.a_transposed ? Extents{shape.batch, shape.k, shape.m}
                                          : Extents{shape.batch, shape.m, shape.k},
                       shape.type);
  View b = make.Buffer(shape.b_transposed ? Extents{shape.batch, shape.n, shape.k}
                                          : Extents{shape.batch, shape.k, shape.n},
                       shape.type, shape.b_kind);
  if (shape.a_transposed) std::swap(a.strides[1], a.strides[2]);
  if (shape.b_transposed) std::swap(b.strides[1], b.strides[2]);
  if (shape.b_shared) b.strides[0] = 0;
  contract.a_prologue = Cast(make.Read(a), shape.accumulator).id();
  contract.b_prologue = Cast(make.Read(b), shape.accumulator).id();
  make.Finish(std::move(contract), {shape.batch, shape.m, shape.n}, 2);
  return std::move(make.made);
}

TEST_P(TiledTest, ProductsAreRightAroundTheEdgesOfATile) {
  uint32_t seed = 0;
  for (const int64_t m : {1, 2, 4, 7, 8, 9, 31}) {
    for (const int64_t n : {1, 15, 16, 31, 32, 33, 70}) {
      for (const int64_t k : {0, 1, 31, 33, 65}) {
        ProductShape shape{.batch = 1 + seed % 3, .m = m, .n = n, .k = k};
        shape.a_transposed = seed % 2 == 1;
        shape.b_transposed = seed % 5 >= 3;
        shape.b_shared = seed % 7 >= 4;
        shape.b_kind = seed % 11 >= 6 ? kConstant : kVariable;
        SCOPED_TRACE(testing::Message() << shape.batch << " of " << m << " x " << n << " x " << k);
        ExpectRight(MakeProduct(shape, seed++), "tiled product");
      }
    }
  }
  EXPECT_EQ(MakeProduct({.batch = 2, .m = 3, .n = 0, .k = 5}, 0).buffers.size(), 5U);
  ExpectRight(MakeProduct({.batch = 2, .m = 3, .n = 0, .k = 5}, 0), "tiled product");
  ExpectRight(MakeProduct({.batch = 0, .m = 3, .n = 40, .k = 5}, 0), "tiled product");
}

TEST_P(TiledTest, ProductsAreRightAroundTheEdgesOfABlockOfAGroup) {
  uint32_t seed = 0;
  for (const int64_t m : {16, 17, 33, 63, 64, 65, 130}) {
    for (const int64_t n : {63, 64, 65, 127, 129}) {
      ProductShape shape{.batch = 1 + seed % 2, .m = m, .n = n};
      shape.k = std::array<int64_t, 6>{0, 15, 16, 17, 32, 47}[seed % 6];
      shape.a_transposed = seed % 2 == 1;
      shape.b_transposed = seed % 5 >= 3;
      shape.b_kind = seed % 3 == 0 ? kConstant : kVariable;
      SCOPED_TRACE(testing::Message() << m << " x " << n << " x " << shape.k);
      ExpectRight(MakeProduct(shape, seed++), "tiled product");
    }
  }
}

// The parts of a deep sum, of which some have no place.
TEST_P(TiledTest, DeepProductsOfFewRowsAreRight) {
  uint32_t seed = 0;
  for (const int64_t rows : {1, 2, 3, 5, 8}) {
    for (const int64_t k : {65, 72, 200, 1001}) {
      // By columns, and by rows where these are the fewer.
      ProductShape shape{.batch = 1, .m = rows, .n = 67, .k = k};
      if (seed % 3 == 2) std::swap(shape.m, shape.n);
      shape.type = seed % 4 == 3 ? ElementType::kInt8 : kFloat;
      if (seed % 4 == 3) shape.accumulator = ElementType::kInt32;
      SCOPED_TRACE(testing::Message() << rows << " x " << k);
      ExpectRight(MakeProduct(shape, seed++), "tiled product");
    }
  }
}

TEST_P(TiledTest, EveryTypeOfSumIsRight) {
  for (const auto& [type, accumulator] : {std::pair{ElementType::kFloat16, kFloat},
                                          {ElementType::kBfloat16, kFloat},
                                          {ElementType::kInt8, ElementType::kInt32},
                                          {ElementType::kUint8, ElementType::kUint32},
                                          {ElementType::kInt4, ElementType::kInt32},
                                          {ElementType::kInt64, ElementType::kInt64},
                                          {ElementType::kUint64, ElementType::kUint64},
                                          {ElementType::kFloat64, ElementType::kFloat64}}) {
    if (accumulator == ElementType::kFloat64 && !has_float64_) continue;
    ProductShape shape{.batch = 2, .m = tensor::BitWidth(type) == 8 ? 3 : 10, .n = 37, .k = 41};
    shape.type = type;
    shape.accumulator = accumulator;
    SCOPED_TRACE(tensor::Name(type));
    ExpectRight(MakeProduct(shape, 3), "tiled product");
  }
}

TEST_P(TiledTest, WhatIsConstantIsLaidOutOnceAndNotReadAgain) {
  std::vector<bool> reads;
  ProductShape shape{.batch = 1, .m = 40, .n = 50, .k = 60};
  // A group reads columns that lie next to each other in whole lines, wherever they are.
  EXPECT_EQ(DetailOf(MakeProduct(shape, 1), reads),
            is_gpu() ? "rows laid out, columns in place" : "rows laid out, columns laid out");
  EXPECT_EQ(reads, std::vector<bool>({true, true, true, true}));
  shape.b_kind = kConstant;
  EXPECT_EQ(DetailOf(MakeProduct(shape, 1), reads), "rows laid out, columns constant");
  EXPECT_EQ(reads, std::vector<bool>({true, false, true, true}));
  // Few rows read their columns where they lie, as far as those lie next to each other.
  shape = {.batch = 2, .m = 3, .n = 50, .k = 60};
  EXPECT_EQ(DetailOf(MakeProduct(shape, 1), reads), "rows laid out, columns in place");
  shape.b_transposed = true;
  EXPECT_EQ(DetailOf(MakeProduct(shape, 1), reads), "rows laid out, columns laid out");
}

struct Axis {
  int64_t extent, kernel, stride = 1, dilation = 1, before = 0, after = 0;

  int64_t out() const {
    return (extent + before + after - dilation * (kernel - 1) - 1) / stride + 1;
  }
  // Of a transposed convolution; `after` is the output padding.
  int64_t transposed_out() const {
    return (extent - 1) * stride + dilation * (kernel - 1) + 1 - before + after;
  }
};

RandomStep MakeConvolution(int64_t images, int64_t group, int64_t channels, int64_t outputs,
                           const std::vector<Axis>& axes, ElementType type, uint32_t seed) {
  StepMaker make(seed);
  Contract contract;
  contract.form = Contract::Form::kConv;
  contract.group = group;
  contract.inner = {channels};
  Extents a = {images, group * channels}, b = {group * outputs, channels};
  Extents domain = {images, group * outputs};
  for (const Axis& axis : axes) {
    a.push_back(axis.extent);
    b.push_back(axis.kernel);
    domain.push_back(axis.out());
    contract.inner.push_back(axis.kernel);
    contract.a_spatial.push_back(axis.extent);
    contract.strides.push_back(axis.stride);
    contract.dilations.push_back(axis.dilation);
    contract.pads_begin.push_back(axis.before);
  }
  contract.a_prologue = Cast(make.Read(make.Buffer(a, type)), kFloat).id();
  contract.b_prologue = Cast(make.Read(make.Buffer(b, type, kConstant)), kFloat).id();
  make.Finish(std::move(contract), domain, 1);
  return std::move(make.made);
}

TEST_P(TiledTest, ConvolutionsAreRightWithEveryAttribute) {
  const std::vector<std::vector<Axis>> shapes = {
      {{7, 1}, {9, 1}},                          // in place, the last block begins early
      {{4, 1}, {8, 1}},                          // exactly one block
      {{3, 1}, {7, 1}},                          // too few pixels to be read in place
      {{7, 1, 2}, {9, 1, 3}},                    // one phase of the strides
      {{7, 3, 1, 1, 1, 1}, {7, 3, 1, 1, 1, 1}},  // rows longer than the output's
      {{9, 3, 2, 1, 1, 0}, {10, 3, 2, 1, 0, 1}},
      {{11, 2, 3, 1, 2, 2}, {12, 5, 2, 2, 4, 3}},  // phases without a tap; dilation
      {{13, 3, 2, 3, 2, 3}, {5, 3, 1, 2, 4, 4}},   // wider than the input
      {{40, 5, 1, 1, 2, 2}},
      {{5, 2, 2, 1, 1, 0}, {6, 3, 1, 2, 2, 2}, {7, 3, 2, 1, 0, 1}},
  };
  uint32_t seed = 0;
  for (const std::vector<Axis>& axes : shapes) {
    for (const auto& [group, channels, outputs] :
         {std::tuple{1, 3, 9}, {1, 1, 1}, {2, 5, 17}, {3, 2, 4}, {6, 1, 1}, {4, 1, 2}}) {
      SCOPED_TRACE(testing::Message() << "seed " << seed);
      const ElementType type = seed % 4 == 3 ? ElementType::kFloat16 : kFloat;
      ExpectRight(MakeConvolution(1 + seed % 2, group, channels, outputs, axes, type, seed),
                  "tiled convolution");
      ++seed;
    }
  }
}

RandomStep MakeTransposed(int64_t images, int64_t group, int64_t channels, int64_t outputs,
                          const std::vector<Axis>& axes, ElementType type, uint32_t seed) {
  StepMaker make(seed);
  Contract contract;
  contract.form = Contract::Form::kConvTranspose;
  contract.group = group;
  contract.inner = {channels};
  Extents a = {images, group * channels}, b = {group * channels, outputs};
  Extents domain = {images, group * outputs};
  for (const Axis& axis : axes) {
    a.push_back(axis.extent);
    b.push_back(axis.kernel);
    domain.push_back(axis.transposed_out());
    contract.inner.push_back(axis.kernel);
    contract.a_spatial.push_back(axis.extent);
    contract.strides.push_back(axis.stride);
    contract.dilations.push_back(axis.dilation);
    contract.pads_begin.push_back(axis.before);
  }
  contract.a_prologue = Cast(make.Read(make.Buffer(a, type)), kFloat).id();
  contract.b_prologue = Cast(make.Read(make.Buffer(b, type, kConstant)), kFloat).id();
  make.Finish(std::move(contract), domain, 1);
  return std::move(make.made);
}

const std::vector<std::vector<Axis>> kTransposedShapes = {
    {{7, 1}, {9, 1}},                           // in place
    {{7, 3}, {9, 3}},                           // one phase
    {{7, 2, 2}, {9, 2, 2}},                     // a tap per phase, nothing outside
    {{7, 3, 2, 1, 1, 1}, {9, 4, 2, 1, 1, 0}},   // the pad is no multiple of the stride
    {{5, 2, 3, 1, 0, 2}, {6, 5, 3, 1, 4, -1}},  // phases without a tap; fewer outputs
    {{9, 3, 2, 3, 2, 1}, {5, 3, 3, 2, 1, 0}},   // dilation shares factors with the stride, or not
    {{4, 3, 1, 2, 3, 0}, {8, 2, 4, 4, 5, -6}},  // all taps on one phase
    {{40, 5, 2, 1, 3, 1}},                      // one axis
    {{3, 2, 2, 1, 1, 0}, {4, 3, 1, 2, 2, 0}, {5, 3, 2, 1, 0, 1}},
};

TEST_P(TiledTest, TransposedConvolutionsAreRightWithEveryAttribute) {
  uint32_t seed = 0;
  for (const std::vector<Axis>& axes : kTransposedShapes) {
    for (const auto& [group, channels, outputs] :
         {std::tuple{1, 3, 9}, {1, 1, 1}, {2, 5, 17}, {6, 1, 1}, {4, 1, 2}}) {
      SCOPED_TRACE(testing::Message() << "seed " << seed);
      const ElementType type = seed % 4 == 3 ? ElementType::kFloat16 : kFloat;
      ExpectRight(MakeTransposed(1 + seed % 2, group, channels, outputs, axes, type, seed),
                  "tiled transposed convolution");
      ++seed;
    }
  }
}

TEST_P(TiledTest, TransposedConvolutionsMultiplyNoPadding) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  uint32_t seed = 0;
  for (const std::vector<Axis>& axes : kTransposedShapes) {
    for (const auto& [group, channels, outputs] : {std::tuple{2, 5, 9}, {6, 1, 1}}) {
      SCOPED_TRACE(testing::Message() << "seed " << seed);
      RandomStep step = MakeTransposed(1 + seed % 2, group, channels, outputs, axes, kFloat, seed);
      const int64_t count = step.buffers[1].element_count();
      auto* weights = reinterpret_cast<float*>(step.buffers[1].mutable_data());
      weights[0] = kInfinity;
      weights[count / 2] = -kInfinity;
      weights[count - 1] = seed % 2 == 0 ? kNan : kInfinity;
      if (seed % 3 == 0) reinterpret_cast<float*>(step.buffers[0].mutable_data())[3] = kNan;
      ExpectRight(step, "tiled transposed convolution");
      ++seed;
    }
  }
}

TEST_P(TiledTest, PointwiseConvolutionsAreReadInPlace) {
  std::vector<bool> reads;
  EXPECT_EQ(DetailOf(MakeConvolution(2, 2, 3, 5, {{7, 1}, {9, 1}}, kFloat, 1), reads),
            "rows constant, columns in place");
  EXPECT_EQ(reads, std::vector<bool>({true, false, true, true}));
  EXPECT_EQ(DetailOf(MakeConvolution(2, 2, 3, 9, {{7, 3}, {9, 1}}, kFloat, 1), reads),
            "rows constant, columns laid out");
  // Of few rows a group reads the tensor itself.
  EXPECT_EQ(DetailOf(MakeConvolution(2, 2, 3, 5, {{7, 3}, {9, 1}}, kFloat, 1), reads),
            is_gpu() ? "rows constant, columns in place" : "rows constant, columns laid out");
}

// What is beyond the edges of tensors and tiles enters no sum.
TEST_P(TiledTest, NoNumberStaysWhereItIs) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const bool is_product : {true, false}) {
    RandomStep step =
        is_product
            ? MakeProduct({.batch = 2, .m = 9, .n = 35, .k = 33}, 5)
            : MakeConvolution(1, 2, 3, 9, {{7, 3, 2, 1, 1, 1}, {9, 3, 1, 2, 2, 2}}, kFloat, 5);
    auto* a = reinterpret_cast<float*>(step.buffers[0].mutable_data());
    const int64_t count = step.buffers[0].element_count();
    a[7] = kNan;
    a[count - 3] = kInfinity;
    a[count / 2] = -kInfinity;
    ExpectRight(step, is_product ? "tiled product" : "tiled convolution");
    if (!is_product) continue;
    auto* b = reinterpret_cast<float*>(step.buffers[1].mutable_data());
    b[0] = kInfinity;
    b[step.buffers[1].element_count() - 1] = kNan;
    ExpectRight(step, "tiled product");
  }
}

// A weight that is infinite or NaN leaves alone the sums whose tap of it lies in the padding.
TEST_P(TiledTest, PaddingMeetsNoWeight) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const std::vector<std::vector<Axis>> shapes = {
      {{7, 3, 1, 1, 1, 1}, {40, 3, 1, 1, 1, 1}},  // blocks within a row and across rows
      {{9, 3, 2, 1, 1, 0}, {10, 3, 2, 1, 0, 1}},
      {{11, 2, 3, 1, 2, 2}, {12, 5, 2, 2, 4, 3}},
      {{5, 1, 1, 1, 1, 2}, {9, 1, 2, 1, 0, 2}},  // no tap but one, and outputs of padding alone
      {{40, 5, 1, 1, 2, 2}},
      {{5, 2, 2, 1, 1, 0}, {6, 3, 1, 2, 2, 2}, {7, 3, 2, 1, 0, 1}},
  };
  uint32_t seed = 0;
  for (const std::vector<Axis>& axes : shapes) {
    for (const auto& [group, channels, outputs] : {std::tuple{2, 5, 9}, {6, 1, 1}}) {
      SCOPED_TRACE(testing::Message() << "seed " << seed);
      RandomStep step = MakeConvolution(1 + seed % 2, group, channels, outputs, axes, kFloat, seed);
      const int64_t count = step.buffers[1].element_count();
      auto* weights = reinterpret_cast<float*>(step.buffers[1].mutable_data());
      weights[0] = kInfinity;
      weights[count / 2] = -kInfinity;
      weights[count - 1] = seed % 2 == 0 ? kNan : kInfinity;
      if (seed % 3 == 0) reinterpret_cast<float*>(step.buffers[0].mutable_data())[3] = kNan;
      ExpectRight(step, "tiled convolution");
      ++seed;
    }
  }
}

// Numbers of the tests are such that every precision has them, so that all is as in float32.
TEST_P(TiledTest, NumbersThatANarrowTypeHasStayWhatTheyAre) {
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
TEST_P(TiledTest, BytesAreExactLessTheirZeroPoints) {
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

// As many bits are lost as the caller permits, and no more.
TEST_P(TiledTest, OperandsAreRoundedAsPermitted) {
  for (const auto& [precision, unit] : {std::pair{tensor::Precision::kFloat32, 0x1p-24},
                                        {tensor::Precision::kTf32, 0x1p-24},
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
      const bool rounds = is_gpu() && unit > 0x1p-24;
      EXPECT_EQ(selection->recipe->precision(), rounds ? precision : tensor::Precision::kFloat32);
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

TEST_P(TiledTest, WhatIsNotCutIntoTilesIsRefusedWithItsReason) {
  RandomStep step = MakeConvolution(1, 1, 3, 5, {{3, 3}}, kFloat, 1);
  auto selection = device_->Select({step.program, step.program.steps[0]});
  ASSERT_TRUE(selection.ok());
  EXPECT_EQ(selection->recipe->implementation(), "generated");
  ASSERT_EQ(selection->rejected.size(), 1U);
  EXPECT_EQ(selection->rejected[0].sentence(),
            "A convolution of 1 pixels leaves most of a tile empty.");
  ExpectRight(step, "generated");
  // Each phase has one pixel.
  step = MakeTransposed(1, 1, 3, 5, {{1, 3, 3}, {1, 3, 3}}, kFloat, 1);
  selection = device_->Select({step.program, step.program.steps[0]});
  ASSERT_TRUE(selection.ok());
  EXPECT_EQ(selection->recipe->implementation(), "generated");
  ExpectRight(step, "generated");
}

TEST_P(TiledTest, NoExtentIsCompiledIn) {
  int64_t kernels = 0;
  for (int64_t rows = 1; rows <= 50; ++rows) {
    StepMaker make(static_cast<uint32_t>(rows));
    tensor::DimTable& dims = *make.made.program.dims;
    const Dim symbol = dims.NewSymbol("rows", false);
    Contract contract;
    contract.m_axes = contract.n_axes = 1;
    contract.inner = {20};
    View a = make.Buffer({rows, 20});
    View b = make.Buffer({20, 33});
    contract.a_prologue = make.Read(a).id();
    contract.b_prologue = make.Read(b).id();
    make.Finish(std::move(contract), {rows, 33}, 1);
    make.made.program.steps[0].domain[0] = symbol;
    make.made.symbols = {rows};
    make.made.dims.assign(static_cast<size_t>(dims.node_count()), 0);
    dims.Evaluate(make.made.symbols, 0, 1, make.made.dims);
    ExpectRight(make.made, "tiled product");
    // The few rows that are read in place have no kernel for the columns; all others are as one.
    if (rows == 17) kernels = tested_->kernel_count();
    if (rows > 17) {
      ASSERT_EQ(tested_->kernel_count(), kernels) << rows;
    }
  }
}

}  // namespace
}  // namespace onnxifi::codegen
