// SPDX-License-Identifier: Apache-2.0
//
// Both variants of Winograd on every instruction set, compared with float64, and with the error
// that plain sums in float32 make.

#include "backends/cpu/convolution/winograd.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <functional>
#include <limits>
#include <random>
#include <vector>

#include "backends/cpu/convolution/winograd_weights.h"
#include "backends/cpu/processor/testing/each_target.h"

namespace onnxifi::convolution {
namespace {

// Rounding may be so many times that of the direct algorithm, root mean square over a result.
constexpr double kMaxError = 8;

class OneThread final : public device::Parallel {
 public:
  void For(int64_t count, int64_t /*grain*/,
           const std::function<void(int64_t begin, int64_t end)>& body) override {
    body(0, count);
  }
};

struct Errors {
  double winograd = 0, direct = 0;  // root mean square
  int64_t compared = 0;
};

// A convolution of seeded numbers: weights scaled after He, so that results are of size 1. The
// result is a slice of a wider tensor, whose rest must stay as it was.
Errors Measure(Tile tile, const WinogradShape& shape, int threads, uint32_t seed) {
  constexpr int64_t kGap = 5;
  constexpr float kUntouched = -777.0F;
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal(0, 1);
  auto draw = [&](int64_t count, float scale) {
    std::vector<float> values(static_cast<size_t>(count));
    for (float& value : values) value = scale * normal(generator);
    return values;
  };
  const int64_t c = shape.in_channels, m = shape.out_channels;
  const std::vector<float> source = draw(shape.batch * shape.in_height * shape.in_width * c, 1);
  const std::vector<float> weights = draw(m * c * 9, std::sqrt(2.0F / static_cast<float>(9 * c)));
  const std::vector<float> bias = draw(m, 1);
  const std::vector<float> addend = draw(shape.batch * shape.out_height * shape.out_width * m, 1);
  std::vector<float> result(
      static_cast<size_t>(shape.batch * shape.out_height * shape.out_width * (m + kGap)),
      kUntouched);

  OneThread parallel;
  std::vector<float> transformed(static_cast<size_t>(TransformedSize(tile, c, m)));
  TransformWeights(tile, {weights.data(), c * 9, 9, 3, 1}, c, m, parallel, transformed.data());
  const WinogradPlan plan = MakePlan(tile, shape, threads);
  std::vector<float> work(static_cast<size_t>(plan.work_floats),
                          std::numeric_limits<float>::quiet_NaN());
  const Images images = {source.data(), DensePixels(shape.in_height, shape.in_width, c),
                         result.data(), DensePixels(shape.out_height, shape.out_width, m + kGap),
                         addend.data(), DensePixels(shape.out_height, shape.out_width, m)};
  gemm::Epilogue epilogue;
  epilogue.bias = bias.data();
  epilogue.activation = gemm::Activation::kLeaky;
  epilogue.low = 0.5F;
  RunChunks(plan, shape, transformed.data(), images, epilogue, 0,
            (plan.tiles + plan.chunk - 1) / plan.chunk, work.data());

  Errors errors;
  for (int64_t n = 0; n < shape.batch; ++n) {
    for (int64_t y = 0; y < shape.out_height; ++y) {
      for (int64_t x = 0; x < shape.out_width; ++x) {
        const float* found = result.data() + images.result_strides.At(n, y, x);
        for (int64_t k = m; k < m + kGap; ++k) EXPECT_EQ(found[k], kUntouched);
        for (int64_t k = 0; k < m; ++k) {
          double exact = static_cast<double>(bias[static_cast<size_t>(k)]);
          float direct = bias[static_cast<size_t>(k)];
          for (int64_t tap = 0; tap < 9; ++tap) {
            const int64_t in_y = y + tap / 3 - shape.pad_top, in_x = x + tap % 3 - shape.pad_left;
            if (in_y < 0 || in_y >= shape.in_height || in_x < 0 || in_x >= shape.in_width) continue;
            const float* pixel = source.data() + images.source_strides.At(n, in_y, in_x);
            for (int64_t channel = 0; channel < c; ++channel) {
              const float weight = weights[static_cast<size_t>((k * c + channel) * 9 + tap)];
              exact += static_cast<double>(pixel[channel]) * static_cast<double>(weight);
              direct = std::fma(pixel[channel], weight, direct);
            }
          }
          const float summand = addend[static_cast<size_t>(images.addend_strides.At(n, y, x) + k)];
          exact += static_cast<double>(summand);
          direct += summand;
          if (exact < 0) exact *= 0.5;
          if (direct < 0) direct *= 0.5F;
          errors.winograd += std::pow(static_cast<double>(found[k]) - exact, 2);
          errors.direct += std::pow(static_cast<double>(direct) - exact, 2);
          ++errors.compared;
        }
      }
    }
  }
  const auto count = static_cast<double>(errors.compared);
  errors.winograd = std::sqrt(errors.winograd / count);
  errors.direct = std::sqrt(errors.direct / count);
  return errors;
}

TEST(WinogradTest, AgreesWithFloat64OverOddShapes) {
  const WinogradShape shapes[] = {
      // batch, channels in and out, height and width in and out, padding
      {1, 1, 1, 3, 3, 1, 1, 0, 0},      {1, 3, 5, 7, 4, 7, 4, 1, 1},
      {2, 16, 32, 8, 12, 8, 12, 1, 1},  {3, 17, 33, 13, 5, 12, 4, 1, 0},
      {1, 40, 70, 9, 11, 10, 12, 2, 1}, {1, 65, 16, 30, 2, 28, 1, 0, 0},
  };
  processor::ForEachTarget([&](const char* target) {
    SCOPED_TRACE(target);
    for (const Tile tile : {Tile::k2x2, Tile::k4x4}) {
      for (const WinogradShape& shape : shapes) {
        for (const int threads : {1, 2, 5}) {
          const Errors errors = Measure(tile, shape, threads, /*seed=*/7);
          ASSERT_LT(errors.winograd, 4e-6)
              << "tiles of " << static_cast<int64_t>(tile) << ", " << shape.in_channels << " to "
              << shape.out_channels << " channels, " << threads << " threads";
        }
      }
    }
  });
}

// Layers of networks in use; the share of error is printed.
TEST(WinogradTest, StaysWithinEightTimesTheDirectError) {
  const WinogradShape shapes[] = {
      {1, 64, 64, 28, 28, 28, 28, 1, 1},  {1, 128, 32, 28, 28, 28, 28, 1, 1},
      {1, 256, 64, 14, 14, 14, 14, 1, 1}, {1, 384, 48, 13, 13, 13, 13, 1, 1},
      {1, 512, 64, 14, 14, 14, 14, 1, 1},
  };
  for (const WinogradShape& shape : shapes) {
    for (const Tile tile : {Tile::k2x2, Tile::k4x4}) {
      const Errors errors = Measure(tile, shape, /*threads=*/2, /*seed=*/11);
      std::printf("%3d channels, F(%dx%d, 3x3): %.2g, %.2f times the direct error\n",
                  static_cast<int>(shape.in_channels), static_cast<int>(tile),
                  static_cast<int>(tile), errors.winograd, errors.winograd / errors.direct);
      EXPECT_LT(errors.winograd, kMaxError * errors.direct);
    }
  }
}

// Frequencies on all threads at once, or chunks of tiles on each: the same bits.
TEST(WinogradTest, RoundsTheSameInEveryDivision) {
  const WinogradShape shape = {1, 130, 140, 20, 20, 20, 20, 1, 1};
  ASSERT_TRUE(MakePlan(Tile::k4x4, shape, 2).is_by_frequency);
  ASSERT_FALSE(MakePlan(Tile::k4x4, shape, 1).is_by_frequency);
  EXPECT_EQ(Measure(Tile::k4x4, shape, 1, /*seed=*/3).winograd,
            Measure(Tile::k4x4, shape, 2, /*seed=*/3).winograd);
}

// A batch whose number is known late may be empty.
TEST(WinogradTest, HasNothingToDoForNoImages) {
  for (const int threads : {1, 2}) {
    for (const int64_t channels : {8, 256}) {
      const WinogradPlan plan =
          MakePlan(Tile::k4x4, {0, channels, channels, 20, 20, 20, 20, 1, 1}, threads);
      EXPECT_EQ(plan.tiles, 0);
      EXPECT_GT(plan.chunk, 0);
    }
  }
}

}  // namespace
}  // namespace onnxifi::convolution
