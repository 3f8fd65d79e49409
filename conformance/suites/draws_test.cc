// SPDX-License-Identifier: Apache-2.0
//
// Draws that may be, and generators that are broken in one way each.

#include "conformance/suites/draws.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "client/onnx_file/model_writer.h"

namespace onnxifi::suites {
namespace {

using cases::Draws;
using onnx_file::DenseTensor;
using ::testing::HasSubstr;

constexpr int64_t kRows = 16;
constexpr int64_t kColumns = 601;

template <typename Draw>
DenseTensor Tensor(Draw draw) {
  std::vector<float> values(kRows * kColumns);
  for (float& value : values) value = static_cast<float>(draw());
  return onnx_file::MakeFloatTensor("y", {kRows, kColumns}, values);
}

Draws Normal() {
  return {.kind = Draws::Kind::kNormal, .mean = 1.5, .deviation = 0.75, .values = {}, .shares = {}};
}
Draws Uniform() {
  return {.kind = Draws::Kind::kUniform, .low = -0.5, .high = 1.5, .values = {}, .shares = {}};
}
Draws Coin() { return {.kind = Draws::Kind::kClasses, .values = {0, 1}, .shares = {0.75, 0.25}}; }

TEST(DrawsTest, RightDrawsPass) {
  for (uint32_t seed = 1; seed <= 20; ++seed) {
    std::mt19937 engine(seed);
    std::normal_distribution<double> normal(1.5, 0.75);
    std::uniform_real_distribution<double> uniform(-0.5, 1.5);
    std::bernoulli_distribution coin(0.25);
    EXPECT_EQ(CheckDistribution(Tensor([&] { return normal(engine); }), Normal()).Text(), "");
    EXPECT_EQ(CheckDistribution(Tensor([&] { return uniform(engine); }), Uniform()).Text(), "");
    EXPECT_EQ(CheckDistribution(Tensor([&] { return coin(engine) ? 1 : 0; }), Coin()).Text(), "");
  }
}

TEST(DrawsTest, OneNumberThroughoutIsNoDraw) {
  EXPECT_THAT(CheckDistribution(Tensor([] { return 0; }), Coin()).Text(), HasSubstr("instead of"));
  EXPECT_THAT(CheckDistribution(Tensor([] { return 1.5; }), Normal()).Text(),
              HasSubstr("variance"));
  EXPECT_THAT(CheckDistribution(Tensor([] { return 0.5; }), Uniform()).Text(),
              HasSubstr("variance"));
}

TEST(DrawsTest, AnotherMeanOrVarianceIsFound) {
  std::mt19937 engine(1);
  std::normal_distribution<double> moved(1.6, 0.75), wide(1.5, 0.85);
  EXPECT_THAT(CheckDistribution(Tensor([&] { return moved(engine); }), Normal()).Text(),
              HasSubstr("mean"));
  EXPECT_THAT(CheckDistribution(Tensor([&] { return wide(engine); }), Normal()).Text(),
              HasSubstr("variance"));
}

TEST(DrawsTest, AnotherShapeOfTheSameMomentsIsFound) {
  std::mt19937 engine(1);
  const double half = 0.75 * std::sqrt(3.0);
  std::uniform_real_distribution<double> uniform(1.5 - half, 1.5 + half);
  EXPECT_THAT(CheckDistribution(Tensor([&] { return uniform(engine); }), Normal()).Text(),
              HasSubstr("Kolmogorov-Smirnov"));
}

TEST(DrawsTest, WhatCannotBeDrawnIsFound) {
  std::mt19937 engine(1);
  std::uniform_real_distribution<double> wide(-0.55, 1.55);
  EXPECT_THAT(CheckDistribution(Tensor([&] { return wide(engine); }), Uniform()).Text(),
              HasSubstr("cannot be drawn"));
  std::bernoulli_distribution coin(0.25);
  EXPECT_THAT(CheckDistribution(Tensor([&] { return coin(engine) ? 0.999 : 0; }), Coin()).Text(),
              HasSubstr("instead of"));
  EXPECT_THAT(CheckDistribution(Tensor([] { return NAN; }), Normal()).Text(),
              HasSubstr("cannot be drawn"));
}

TEST(DrawsTest, RowsThatRepeatAreFound) {
  std::mt19937 engine(1);
  std::uniform_real_distribution<double> uniform(-0.5, 1.5);
  DenseTensor drawn = Tensor([&] { return uniform(engine); });
  Draws draws = Uniform();
  draws.has_rows = true;
  EXPECT_EQ(CheckDistribution(drawn, draws).Text(), "");
  const size_t row_bytes = drawn.bytes.size() / kRows;
  std::copy_n(drawn.bytes.begin(), row_bytes,
              drawn.bytes.begin() + static_cast<ptrdiff_t>(3 * row_bytes));
  EXPECT_THAT(CheckDistribution(drawn, draws).Text(), HasSubstr("Rows 0 and 3"));
}

}  // namespace
}  // namespace onnxifi::suites
