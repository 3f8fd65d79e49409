// SPDX-License-Identifier: Apache-2.0
//
// Taps against a loop over all taps of every window.

#include "backends/cpu/pooling/taps.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

namespace onnxifi::pooling {
namespace {

TEST(TapsTest, AgreeWithALoopOverTaps) {
  std::mt19937 random(5);
  auto roll = [&](int64_t least, int64_t most) {
    return std::uniform_int_distribution<int64_t>(least, most)(random);
  };
  for (int k = 0; k < 20'000; ++k) {
    const Sliding sliding = {roll(1, 12), roll(1, 9), roll(1, 6), roll(1, 4),
                             roll(1, 4),  roll(0, 7), roll(0, 7)};
    const std::vector<Taps> taps = FindTaps(sliding);
    ASSERT_EQ(static_cast<int64_t>(taps.size()), sliding.out);
    for (int64_t out = 0; out < sliding.out; ++out) {
      Taps expected;
      for (int64_t tap = sliding.kernel; tap-- > 0;) {
        const int64_t position = out * sliding.stride - sliding.pad_begin + tap * sliding.dilation;
        if (position < sliding.in + sliding.pad_end) ++expected.counted;
        if (position < 0 || position >= sliding.in) continue;
        ++expected.count;
        expected.first = position;
      }
      const Taps& actual = taps[static_cast<size_t>(out)];
      EXPECT_EQ(actual.first, expected.first);
      EXPECT_EQ(actual.count, expected.count);
      EXPECT_EQ(actual.counted, expected.counted);
    }
  }
}

TEST(TapsTest, SeesNothingWithStrangeNumbers) {
  const Taps taps = FindTaps({.in = 3,
                              .out = 2,
                              .kernel = INT64_MAX,
                              .stride = INT64_MAX,
                              .dilation = INT64_MAX,
                              .pad_begin = 1,
                              .pad_end = INT64_MAX})[1];
  EXPECT_EQ(taps.count, 0);
  EXPECT_EQ(taps.first, 0);
}

}  // namespace
}  // namespace onnxifi::pooling
