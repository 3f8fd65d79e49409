// SPDX-License-Identifier: Apache-2.0
//
// Contractions cut into tiles, compared with the reference on shapes around the edges of a tile,
// with every attribute off its default. Says which way the operands took: a device that fell back
// to the generated loops would be right too.

#include "backends/core/codegen/tiled.h"

#include <array>
#include <limits>
#include <tuple>
#include <utility>
#include <vector>

#include "backends/core/codegen/testing/tiled_fixture.h"

namespace onnxifi::codegen {
namespace {

using program::Dim;

INSTANTIATE_TEST_SUITE_P(Tunings, TiledTest, testing::Bool(),
                         [](const testing::TestParamInfo<bool>& info) {
                           return info.param ? "Gpu" : "Processor";
                         });

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
      shape.type = seed % 4 == 3   ? ElementType::kInt8
                   : seed % 4 == 2 ? ElementType::kFloat16
                                   : kFloat;
      if (seed % 4 == 3) shape.accumulator = ElementType::kInt32;
      SCOPED_TRACE(testing::Message() << rows << " x " << k);
      ExpectRight(MakeProduct(shape, seed++), "tiled product");
    }
  }
}

// Blocks too few for the device share out their depth among groups, whose sums others add up.
TEST_P(TiledTest, FewBlocksOfDeepSumsAreRight) {
  uint32_t seed = 0;
  int cut = 0;
  const auto expect_right = [&](RandomStep step, const char* implementation) {
    step.tolerance = 0.01;
    std::vector<bool> reads;
    if (DetailOf(step, reads).find("depth in ") != std::string::npos) ++cut;
    ExpectRight(step, implementation);
    ++seed;
  };
  for (const int64_t k : {127, 128, 129, 200, 1000}) {
    for (const auto& [m, n] : {std::pair<int64_t, int64_t>{9, 20}, {17, 70}, {65, 33}}) {
      ProductShape shape{.batch = 1 + seed % 2, .m = m, .n = n, .k = k};
      shape.a_transposed = seed % 2 == 1;
      shape.b_transposed = seed % 5 >= 3;
      shape.b_kind = seed % 3 == 0 ? kConstant : kVariable;
      shape.type = std::array{kFloat, ElementType::kFloat16, kFloat, ElementType::kInt8}[seed % 4];
      if (shape.type == ElementType::kInt8) shape.accumulator = ElementType::kInt32;
      SCOPED_TRACE(testing::Message() << m << " x " << n << " x " << k);
      expect_right(MakeProduct(shape, seed), "tiled product");
    }
  }
  for (const int64_t channels : {15, 33}) {
    SCOPED_TRACE(testing::Message() << channels << " channels");
    expect_right(
        MakeConvolution(2, 1, channels, 20, {{5, 3, 1, 1, 1, 1}, {6, 3, 2, 1, 1, 1}}, kFloat, seed),
        "tiled convolution");
    expect_right(MakeConvolution(1, 2, channels, 20, {{7, 3, 1, 2, 2, 2}, {4, 2, 1, 1, 0, 1}},
                                 ElementType::kFloat16, seed),
                 "tiled convolution");
  }
  if (is_gpu()) {
    EXPECT_GE(cut, 15);
  } else {
    EXPECT_EQ(cut, 0);
  }
}

// Rows that only a binding knows: few of them have a tile of their own.
TEST_P(TiledTest, SymbolsOfRowsGetTheTileOfTheirNumber) {
  std::vector<bool> reads;
  uint32_t seed = 40;
  for (const int64_t rows : {1, 3, 5, 8, 9, 40}) {
    SCOPED_TRACE(rows);
    RandomStep step = MakeProduct({.batch = 1, .m = rows, .n = 70, .k = 60}, seed++);
    tensor::DimTable& dims = *step.program.dims;
    step.program.steps[0].domain[1] = dims.NewSymbol("rows", /*is_data=*/false);
    step.symbols = {rows};
    step.dims.assign(static_cast<size_t>(dims.node_count()), 0);
    dims.Evaluate(step.symbols, 0, 1, step.dims);
    const bool is_few = is_gpu() && rows <= 8;
    EXPECT_THAT(DetailOf(step, reads), testing::StartsWith(is_few ? "rows in place" : "rows laid"));
    ExpectRight(step, "tiled product");
  }
}

// Constant columns that are laid out are so for one tile, which then has all numbers of rows.
TEST_P(TiledTest, SymbolsOfRowsMeetConstantsThatAreLaidOutOnce) {
  std::vector<bool> reads;
  uint32_t seed = 50;
  for (const int64_t rows : {1, 3, 8, 9, 40}) {
    SCOPED_TRACE(rows);
    ProductShape shape{.batch = 1, .m = rows, .n = 70, .k = 60};
    shape.b_kind = kConstant;
    shape.b_transposed = true;
    RandomStep step = MakeProduct(shape, seed++);
    tensor::DimTable& dims = *step.program.dims;
    step.program.steps[0].domain[1] = dims.NewSymbol("rows", /*is_data=*/false);
    step.symbols = {rows};
    step.dims.assign(static_cast<size_t>(dims.node_count()), 0);
    dims.Evaluate(step.symbols, 0, 1, step.dims);
    EXPECT_EQ(DetailOf(step, reads), "rows laid out, columns constant");
    ExpectRight(step, "tiled product");
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
  // Few rows read their columns where they lie, as far as those lie next to each other, and items
  // of a group their rows, too.
  const std::string rows = is_gpu() ? "rows in place" : "rows laid out";
  shape = {.batch = 2, .m = 3, .n = 50, .k = 60};
  EXPECT_EQ(DetailOf(MakeProduct(shape, 1), reads), rows + ", columns in place");
  shape.b_transposed = true;
  EXPECT_EQ(DetailOf(MakeProduct(shape, 1), reads), rows + ", columns laid out");
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

TEST_P(TiledTest, WhatIsNotCutIntoTilesIsRefusedWithItsReason) {
  RandomStep step = MakeConvolution(1, 1, 3, 5, {{3, 3}}, kFloat, 1);
  auto selection = device_->Select({step.program, step.program.steps[0]});
  ASSERT_TRUE(selection.ok());
  EXPECT_EQ(selection->recipe->implementation(), "generated");
  // Of a device's own implementations come first.
  ASSERT_FALSE(selection->rejected.empty());
  EXPECT_EQ(selection->rejected.back().sentence(),
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
