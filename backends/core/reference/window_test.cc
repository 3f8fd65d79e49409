// SPDX-License-Identifier: Apache-2.0
//
// Window on the reference against loops over all input positions: maxima and their indices,
// averages with and without padding, power means, local response normalisation.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "backends/core/reference/testing/one_step.h"

namespace onnxifi::reference {
namespace {

using program::Window;
using tensor::ElementType;

constexpr ElementType kFloat = ElementType::kFloat32;
constexpr int64_t kImages = 2, kChannels = 3, kHeight = 7, kWidth = 9;

std::vector<float> RandomInput() {
  std::mt19937 random(21);
  std::vector<float> values(kImages * kChannels * kHeight * kWidth);
  // Few different numbers, so that there are ties.
  for (float& value : values) value = static_cast<float>(random() % 9) - 6;
  return values;
}

// 3 x 2 windows, stride 2 x 3, dilation 2 x 1, padded by 2, 1 before and 1, 2 after.
Window MakeWindow(Window::Kind kind, int64_t& out_height, int64_t& out_width) {
  Window window;
  window.kind = kind;
  window.in_spatial = {kHeight, kWidth};
  window.kernel = {3, 2};
  window.strides = {2, 3};
  window.dilations = {2, 1};
  window.pads_begin = {2, 1};
  window.pads_end = {1, 2};
  out_height = (kHeight + 3 - 5) / 2 + 1;
  out_width = (kWidth + 3 - 2) / 3 + 1;
  return window;
}

// Calls visit(output, inside, y, x) for each tap of each window.
template <typename Visit>
void ForEachTap(int64_t out_height, int64_t out_width, Visit&& visit) {
  for (int64_t plane = 0; plane < kImages * kChannels; ++plane) {
    for (int64_t oy = 0; oy < out_height; ++oy) {
      for (int64_t ox = 0; ox < out_width; ++ox) {
        for (int64_t ky = 0; ky < 3; ++ky) {
          for (int64_t kx = 0; kx < 2; ++kx) {
            const int64_t y = oy * 2 - 2 + ky * 2, x = ox * 3 - 1 + kx;
            const bool inside = y >= 0 && y < kHeight && x >= 0 && x < kWidth;
            visit(plane, (plane * out_height + oy) * out_width + ox, inside, y, x);
          }
        }
      }
    }
  }
}

OneStep MakeStep(Window window, const std::vector<float>& x, int64_t out_height,
                 int64_t out_width) {
  OneStep one;
  one.Read(kFloat, {kImages, kChannels, kHeight, kWidth}, x);
  one.step.domain = {kImages, kChannels, out_height, out_width};
  one.Write(kFloat, one.step.domain,
            std::vector<float>(kImages * kChannels * out_height * out_width));
  window.roots = {Accumulator(one.pool(), kFloat).id()};
  one.step.body = std::move(window);
  return one;
}

TEST(WindowTest, MaximaAndTheirIndices) {
  const std::vector<float> x = RandomInput();
  for (const bool column_major : {false, true}) {
    int64_t height, width;
    Window window = MakeWindow(Window::Kind::kMax, height, width);
    window.column_major = column_major;
    OneStep one = MakeStep(window, x, height, width);
    one.Write(ElementType::kInt64, one.step.domain,
              std::vector<int64_t>(kImages * kChannels * height * width));
    const std::vector<float> out = one.Run<float>(0);
    const std::vector<int64_t> indices = one.Run<int64_t>(1);
    std::vector<float> maxima(out.size(), -1e9f);
    std::vector<int64_t> positions(out.size());
    ForEachTap(height, width, [&](int64_t plane, int64_t o, bool inside, int64_t y, int64_t c) {
      if (!inside || x[(plane * kHeight + y) * kWidth + c] <= maxima[o]) return;
      maxima[o] = x[(plane * kHeight + y) * kWidth + c];
      positions[o] = plane * kHeight * kWidth + (column_major ? c * kHeight + y : y * kWidth + c);
    });
    EXPECT_EQ(out, maxima);
    EXPECT_EQ(indices, positions);
  }
}

TEST(WindowTest, AveragesCountPaddingOnlyWhenAsked) {
  const std::vector<float> x = RandomInput();
  for (const bool count_include_pad : {false, true}) {
    int64_t height, width;
    Window window = MakeWindow(Window::Kind::kAverage, height, width);
    window.count_include_pad = count_include_pad;
    OneStep one = MakeStep(window, x, height, width);
    const std::vector<float> out = one.Run<float>();
    std::vector<double> sums(out.size());
    std::vector<int> counts(out.size());
    ForEachTap(height, width, [&](int64_t plane, int64_t o, bool inside, int64_t y, int64_t c) {
      if (inside) sums[o] += x[(plane * kHeight + y) * kWidth + c];
      const bool in_padding = y < kHeight + 1 && c < kWidth + 2;
      if (inside || (count_include_pad && in_padding)) ++counts[o];
    });
    for (size_t o = 0; o < out.size(); ++o) ASSERT_NEAR(out[o], sums[o] / counts[o], 1e-6);
  }
}

TEST(WindowTest, PowerMeans) {
  const std::vector<float> x = RandomInput();
  int64_t height, width;
  Window window = MakeWindow(Window::Kind::kLp, height, width);
  window.p = 3;
  OneStep one = MakeStep(window, x, height, width);
  const std::vector<float> out = one.Run<float>();
  std::vector<double> sums(out.size());
  ForEachTap(height, width, [&](int64_t plane, int64_t o, bool inside, int64_t y, int64_t c) {
    if (inside) sums[o] += std::pow(std::fabs(x[(plane * kHeight + y) * kWidth + c]), 3);
  });
  for (size_t o = 0; o < out.size(); ++o) ASSERT_NEAR(out[o], std::cbrt(sums[o]), 1e-5);
}

TEST(WindowTest, NormalisesAcrossChannels) {
  for (const int64_t size : {int64_t{1}, int64_t{2}, int64_t{3}, int64_t{4}}) {
    const std::vector<float> x = RandomInput();
    Window window;
    window.kind = Window::Kind::kLrn;
    window.in_spatial = {kHeight, kWidth};
    window.kernel = {size};
    window.alpha = 0.3;
    window.beta = 0.75;
    window.bias = 1.5;
    OneStep one = MakeStep(window, x, kHeight, kWidth);
    const std::vector<float> out = one.Run<float>();
    constexpr int64_t kPlane = kHeight * kWidth;
    for (int64_t n = 0; n < kImages; ++n) {
      for (int64_t c = 0; c < kChannels; ++c) {
        for (int64_t p = 0; p < kPlane; ++p) {
          double sum = 0;
          // ONNX: from c - floor((size - 1) / 2) to c + ceil((size - 1) / 2).
          for (int64_t k = 0; k < kChannels; ++k) {
            const int64_t below = (size - 1) / 2, above = size - 1 - below;
            if (k < c - below || k > c + above) continue;
            sum += std::pow(x[(n * kChannels + k) * kPlane + p], 2);
          }
          const int64_t at = (n * kChannels + c) * kPlane + p;
          const double scale = 1.5 + 0.3 / static_cast<double>(size) * sum;
          ASSERT_NEAR(out[at], x[at] / std::pow(scale, 0.75), 1e-5);
        }
      }
    }
  }
}

TEST(WindowTest, RefusesPowersOfIntegers) {
  OneStep one;
  one.Read(ElementType::kInt8, {1, 1, 4}, std::vector<int8_t>(4));
  one.step.domain = {1, 1, 4};
  Window window;
  window.kind = Window::Kind::kLp;
  window.accumulator = ElementType::kInt8;
  one.step.body = window;
  const base::Result<device::Selection> selection = Device().Select({one.program, one.step});
  ASSERT_FALSE(selection.ok());
  EXPECT_EQ(selection.status().code(), base::Code::kUnsupportedDatatype);
}

}  // namespace
}  // namespace onnxifi::reference
