// SPDX-License-Identifier: Apache-2.0
//
// Sums of float32 as three products of TF32 (codegen/split_product_text.cc): which steps get them,
// whether they are right, and how far they lie from float64, beside plain multiply-adds.
// docs/cuda.md has the table of these errors on the emulated device; on a GPU the same bound holds.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "backends/core/codegen/testing/tiled_fixture.h"
#include "backends/cuda/testing/errors.h"
#include "backends/cuda/testing/split_fixture.h"

namespace onnxifi::cuda {
namespace {

using codegen::Axis;
using codegen::Contract;
using codegen::StepMaker;
using reference::RandomStep;
using tensor::ElementType;
using tensor::Extents;
using testing::HasSubstr;
using testing::Not;

constexpr int kDepth = kSplitDepth;
// 64 rows by 64 columns, and by 32.
constexpr const char* kBlocks[] = {"8, 8, 8, 8, 8, 1", "4, 4, 16, 8, 16, 1"};
constexpr const char kUnits[] = "matrix units, 3xTF32";

class SplitProductsTest : public SplitTest {
 protected:
  void SetUp() override { Open(kBlocks[0]); }

  // Devices that sum in blocks of this shape whatever the extents, so that each has edges.
  void Open(const char* block) { SplitTest::Open(fmt::format("a, block, 0, 0, {}\n", block)); }

  void ExpectSplit(const RandomStep& step, const char* implementation) {
    std::vector<bool> reads;
    EXPECT_THAT(DetailOf(step, reads), HasSubstr(kUnits));
    ExpectRight(step, implementation);
  }
};

TEST_F(SplitProductsTest, ProductsAreRight) {
  std::mt19937 random(3);
  const auto below = [&](int64_t limit) { return static_cast<int64_t>(random() % limit); };
  for (uint32_t seed = 0; seed < 24; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    if (seed % 12 == 0) Open(kBlocks[seed / 12]);
    codegen::ProductShape shape{.batch = 1 + below(3), .m = 9 + below(150), .n = 1 + below(150)};
    shape.k = kDepth + below(100);
    shape.a_transposed = below(2) == 0;
    shape.b_transposed = below(2) == 0;
    shape.b_shared = below(3) == 0;
    shape.b_kind = below(2) == 0 ? codegen::kConstant : codegen::kVariable;
    ExpectSplit(MakeProduct(shape, seed), "tiled product");
  }
}

TEST_F(SplitProductsTest, ConvolutionsAreRight) {
  std::mt19937 random(4);
  const auto below = [&](int64_t limit) { return static_cast<int64_t>(random() % limit); };
  for (uint32_t seed = 0; seed < 16; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    if (seed % 8 == 0) Open(kBlocks[seed / 8]);
    const std::vector<Axis> axes = {
        {5 + below(9), 1 + below(3), 1 + below(2), 1 + below(2), below(3), below(2)},
        {7 + below(9), 1 + below(3), 1 + below(3), 1, below(2), below(3)}};
    const int64_t group = 1 + below(2), channels = kDepth + below(40), outputs = 9 + below(90);
    if (seed % 2 == 0) {
      ExpectSplit(MakeConvolution(1 + below(2), group, channels, outputs, axes,
                                  ElementType::kFloat32, seed),
                  "tiled convolution");
    } else {
      ExpectSplit(MakeTransposed(1, group, channels, outputs, axes, ElementType::kFloat32, seed),
                  "tiled transposed convolution");
    }
  }
}

// What is rounded anyway, is exact without, or is too short for the bound.
TEST_F(SplitProductsTest, OtherSumsAreMadeAsBefore) {
  std::vector<bool> reads;
  const codegen::ProductShape deep{.batch = 1, .m = 40, .n = 50, .k = kDepth};
  RandomStep step = MakeProduct(deep, 1);
  EXPECT_THAT(DetailOf(step, reads), HasSubstr(kUnits));
  EXPECT_EQ(device_->Select({step.program, step.program.steps[0]})->recipe->precision(),
            tensor::Precision::kFloat32);
  step.program.precision = tensor::Precision::kTf32;
  EXPECT_THAT(DetailOf(step, reads), Not(HasSubstr("3xTF32")));
  codegen::ProductShape other = deep;
  other.k = kDepth - 1;
  EXPECT_THAT(DetailOf(MakeProduct(other, 1), reads), Not(HasSubstr("matrix units")));
  other = deep;
  other.type = ElementType::kFloat16;
  EXPECT_THAT(DetailOf(MakeProduct(other, 1), reads), Not(HasSubstr("3xTF32")));
  other.type = other.accumulator = ElementType::kFloat64;
  EXPECT_THAT(DetailOf(MakeProduct(other, 1), reads), Not(HasSubstr("matrix units")));
  // The taps of a transposed convolution are shared out to its outputs.
  const std::vector<Axis> axes = {{9, 4, 2}, {9, 4, 2}};
  EXPECT_THAT(
      DetailOf(codegen::MakeTransposed(1, 1, kDepth - 1, 40, axes, codegen::kFloat, 1), reads),
      Not(HasSubstr("matrix units")));
  // Nobody has measured this device.
  device_ = plain_.get();
  EXPECT_THAT(DetailOf(MakeProduct(deep, 1), reads), Not(HasSubstr("matrix units")));
}

// ---- Errors

struct Layer {
  const char* name;
  Contract::Form form = Contract::Form::kMatMul;
  // Products: batch, m, n, k. Convolutions: images, groups, channels and outputs of a group.
  Extents extents;
  std::vector<Axis> axes;
  Values values = Values::kNormal;
};

// The layer's step in float32 or float64, without values.
RandomStep MakeStep(const Layer& layer, ElementType type) {
  StepMaker make(/*seed=*/1);
  Contract contract;
  contract.form = layer.form;
  contract.accumulator = type;
  Extents a, b, domain;
  if (layer.form == Contract::Form::kMatMul) {
    const int64_t batch = layer.extents[0], m = layer.extents[1], n = layer.extents[2],
                  k = layer.extents[3];
    contract.batch_axes = contract.m_axes = contract.n_axes = 1;
    contract.inner = {k};
    a = {batch, m, k};
    b = {batch, k, n};
    domain = {batch, m, n};
  } else {
    const bool is_transposed = layer.form == Contract::Form::kConvTranspose;
    const int64_t images = layer.extents[0], group = layer.extents[1], channels = layer.extents[2],
                  outputs = layer.extents[3];
    contract.group = group;
    contract.inner = {channels};
    a = {images, group * channels};
    b = {group * (is_transposed ? channels : outputs), is_transposed ? outputs : channels};
    domain = {images, group * outputs};
    for (const Axis& axis : layer.axes) {
      a.push_back(axis.extent);
      b.push_back(axis.kernel);
      domain.push_back(is_transposed ? axis.transposed_out() : axis.out());
      contract.inner.push_back(axis.kernel);
      contract.a_spatial.push_back(axis.extent);
      contract.strides.push_back(axis.stride);
      contract.dilations.push_back(axis.dilation);
      contract.pads_begin.push_back(axis.before);
    }
  }
  contract.a_prologue = make.Read(make.Buffer(a, type)).id();
  contract.b_prologue = make.Read(make.Buffer(b, type, codegen::kConstant)).id();
  contract.roots = {Accumulator(make.pool(), type).id()};
  make.step.domain = program::Shape(domain.begin(), domain.end());
  make.step.writes = {make.Buffer(domain, type)};
  make.step.body = std::move(contract);
  make.FinishStep(0);
  return std::move(make.made);
}

struct Operands {
  std::vector<float> a, b;
};

Operands DrawOperands(const Layer& layer, const RandomStep& step, uint32_t seed) {
  Drawing drawing(seed);
  Operands operands;
  for (const bool is_first : {true, false}) {
    std::vector<float>& to = is_first ? operands.a : operands.b;
    to.resize(static_cast<size_t>(step.buffers[is_first ? 0 : 1].element_count()));
    for (float& value : to) value = Draw(drawing, layer.values, is_first);
  }
  if (layer.values == Values::kHalvesCancel || layer.values == Values::kNeighboursCancel) {
    const auto n = static_cast<size_t>(layer.extents[2]);
    const auto depth = static_cast<size_t>(layer.extents[3]);
    const size_t step = layer.values == Values::kHalvesCancel ? depth / 2 : 1;
    for (size_t k = 0; k < depth; ++k) {
      if (k / step % 2 == 0) continue;
      for (size_t row = k; row < operands.a.size(); row += depth) {
        operands.a[row] = -operands.a[row - step];
      }
      for (size_t column = 0; column < n; ++column) {
        operands.b[k * n + column] = operands.b[(k - step) * n + column] * (1 + 0x1p-12F);
      }
    }
  }
  return operands;
}

template <typename T>
std::vector<T> RunOn(device::Device& device, RandomStep& step, const Operands& operands,
                     bool takes_magnitudes = false) {
  for (const size_t number : {0, 1}) {
    const std::vector<float>& from = number == 0 ? operands.a : operands.b;
    auto* const to = reinterpret_cast<T*>(step.buffers[number].mutable_data());
    for (size_t k = 0; k < from.size(); ++k) {
      to[k] = takes_magnitudes ? std::abs(static_cast<T>(from[k])) : static_cast<T>(from[k]);
    }
  }
  const auto results = RunStep(device, step);
  EXPECT_TRUE(results.ok()) << results.status().Text();
  if (!results.ok()) return {};
  const auto values = results->back().template values<T>();
  return {values.begin(), values.end()};
}

std::vector<Layer> ListLayers() {
  using enum Values;
  constexpr auto kMatMul = Contract::Form::kMatMul;
  constexpr auto kConv = Contract::Form::kConv;
  constexpr auto kTransposed = Contract::Form::kConvTranspose;
  const std::vector<Axis> padded = {{14, 3, 1, 1, 1, 1}, {13, 3, 1, 1, 1, 1}};
  return {
      {"65x67x32", kMatMul, {1, 65, 67, 32}, {}, kNormal},
      {"33x129x33", kMatMul, {1, 33, 129, 33}, {}, kPositive},
      {"70x66x40", kMatMul, {1, 70, 66, 40}, {}, kMixed},
      {"17x70x64", kMatMul, {1, 17, 70, 64}, {}, kRelu},
      {"3 of 33x35x77", kMatMul, {3, 33, 35, 77}, {}, kNormal},
      {"70x66x100", kMatMul, {1, 70, 66, 100}, {}, kOutliers},
      {"65x67x128", kMatMul, {1, 65, 67, 128}, {}, kHalvesCancel},
      {"65x67x128", kMatMul, {1, 65, 67, 128}, {}, kNeighboursCancel},
      {"66x34x257", kMatMul, {1, 66, 34, 257}, {}, kNormal},
      {"34x66x1000", kMatMul, {1, 34, 66, 1000}, {}, kPositive},
      {"33x35x4099", kMatMul, {1, 33, 35, 4099}, {}, kRelu},
      {"20x70x4099", kMatMul, {1, 20, 70, 4099}, {}, kMixed},
      {"17x19x20000", kMatMul, {1, 17, 19, 20000}, {}, kPositive},
      {"65x67x96", kMatMul, {1, 65, 67, 96}, {}, kSubnormal},
      {"65x67x96", kMatMul, {1, 65, 67, 96}, {}, kSubnormalAndHuge},
      {"65x67x96", kMatMul, {1, 65, 67, 96}, {}, kHuge},
      {"65x67x96", kMatMul, {1, 65, 67, 96}, {}, kNearMax},
      {"65x67x96", kMatMul, {1, 65, 67, 96}, {}, kSpecial},
      {"conv 3x3 pads 1", kConv, {1, 1, 16, 20}, padded, kNormal},
      {"conv 3x3 pads 1", kConv, {1, 1, 16, 20}, padded, kMixed},
      {"conv 3x3 pads 1", kConv, {1, 1, 16, 20}, padded, kSubnormal},
      {"conv 3x3 pads 1", kConv, {1, 1, 16, 20}, padded, kSpecial},
      {"conv 1x1", kConv, {2, 1, 130, 33}, {{9, 1}, {11, 1}}, kRelu},
      {"conv 5x5 strides 2 dilations 2",
       kConv,
       {1, 1, 7, 18},
       {{19, 5, 2, 2, 3, 2}, {17, 5, 2, 2, 1, 4}},
       kPositive},
      {"conv 3x3 of 2 groups", kConv, {1, 2, 8, 17}, padded, kOutliers},
      {"conv 9 taps in a line", kConv, {1, 1, 40, 24}, {{101, 9, 1, 1, 4, 4}}, kNormal},
      {"conv 3x3x3",
       kConv,
       {1, 1, 5, 21},
       {{5, 3, 1, 1, 1, 1}, {6, 3, 1, 1, 1, 1}, {7, 3, 1, 1, 0, 0}},
       kRelu},
      {"transposed conv 4x4 strides 2",
       kTransposed,
       {1, 1, 40, 19},
       {{9, 4, 2, 1, 1, 0}, {8, 4, 2, 1, 1, 0}},
       kMixed},
  };
}

// The depth of a sum inside.
int64_t DepthOf(const Layer& layer) {
  if (layer.form == Contract::Form::kMatMul) return layer.extents[3];
  int64_t depth = layer.extents[2];
  for (const Axis& axis : layer.axes) {
    depth *= layer.form == Contract::Form::kConv ? axis.kernel : axis.kernel / axis.stride;
  }
  return depth;
}

TEST_F(SplitProductsTest, ErrorsAreAtMostTwiceThoseOfPlainMultiplyAdds) {
  reference::Device reference;
  std::string table =
      "| layer | depth | values | plain | 3xTF32 | ratio | absolute |\n"
      "|---|---|---|---|---|---|---|\n";
  uint32_t seed = 0;
  for (const Layer& layer : ListLayers()) {
    SCOPED_TRACE(fmt::format("{}, {}", layer.name, Name(layer.values)));
    RandomStep step = MakeStep(layer, ElementType::kFloat32);
    RandomStep exact = MakeStep(layer, ElementType::kFloat64);
    std::vector<bool> reads;
    EXPECT_THAT(DetailOf(step, reads), HasSubstr(kUnits));
    const Operands operands = DrawOperands(layer, step, ++seed);
    const std::vector<double> expected = RunOn<double>(reference, exact, operands);
    const std::vector<double> magnitudes = RunOn<double>(reference, exact, operands, true);
    const Errors plain = Compare(RunOn<float>(*plain_, step, operands), expected, magnitudes);
    const Errors split = Compare(RunOn<float>(*split_, step, operands), expected, magnitudes);
    const double ratio = split.relative / plain.relative;
    EXPECT_GT(plain.relative, 0);
    // Plain multiply-adds round one of two terms that cancel, and the difference hardly. The parts
    // left out of either stay.
    EXPECT_LE(ratio, layer.values == Values::kNeighboursCancel ? 5 : 2)
        << split.relative << " and " << plain.relative;
    table += fmt::format("| {} | {} | {} | {:.2f} | {:.2f} | {:.2f} | {:.2f} |\n", layer.name,
                         DepthOf(layer), Name(layer.values), plain.relative, split.relative, ratio,
                         split.absolute / plain.absolute);
  }
  ExpectInDocument(table);
}

}  // namespace
}  // namespace onnxifi::cuda
