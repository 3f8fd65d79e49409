// SPDX-License-Identifier: Apache-2.0
//
// Gather, Scatter: elements of every size at positions on both sides of the first, in numbers
// around the vector's length.

#include "backends/cpu/engine/gather.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <random>
#include <string_view>
#include <vector>

#include "backends/cpu/processor/testing/each_target.h"

namespace onnxifi::engine {
namespace {

template <typename T>
void CheckBothWays(int64_t count) {
  constexpr int64_t kBefore = 50;
  std::vector<int32_t> positions(static_cast<size_t>(count));
  std::iota(positions.begin(), positions.end(), static_cast<int32_t>(-kBefore));
  std::mt19937 random(static_cast<uint32_t>(count));
  std::shuffle(positions.begin(), positions.end(), random);

  std::vector<T> elements(static_cast<size_t>(count + kBefore));
  std::iota(elements.begin(), elements.end(), static_cast<T>(1));
  const auto first = [](std::vector<T>& of) {
    return reinterpret_cast<std::byte*>(of.data() + kBefore);
  };
  std::vector<T> expected(static_cast<size_t>(count));
  for (size_t k = 0; k < expected.size(); ++k) {
    expected[k] = elements[static_cast<size_t>(positions[k] + kBefore)];
  }
  std::vector<T> lanes(expected.size());
  Gather(first(elements), positions.data(), count, reinterpret_cast<std::byte*>(lanes.data()),
         sizeof(T));
  EXPECT_EQ(lanes, expected) << count << " of " << sizeof(T) << " bytes";

  std::vector<T> scattered(elements.size());
  std::copy_n(elements.end() - kBefore, kBefore, scattered.end() - kBefore);
  Scatter(reinterpret_cast<const std::byte*>(lanes.data()), positions.data(), count,
          first(scattered), sizeof(T));
  EXPECT_EQ(scattered, elements) << count << " of " << sizeof(T) << " bytes";
}

TEST(GatherTest, FindsElementsOfEverySize) {
  for (int64_t count : {1, 3, 8, 15, 16, 17, 60, 200}) {
    CheckBothWays<uint8_t>(count);
    CheckBothWays<uint16_t>(count);
    CheckBothWays<uint32_t>(count);
    CheckBothWays<uint64_t>(count);
  }
}

// Positions of `count` elements, `scale` for each of the source, with neighbours that change
// places.
void CheckNear(int64_t count, double scale, bool is_expected) {
  std::vector<int32_t> positions(static_cast<size_t>(count));
  for (size_t k = 0; k < positions.size(); ++k) {
    positions[k] = static_cast<int32_t>(static_cast<double>(k) / scale);
  }
  for (size_t k = 1; k < positions.size(); k += 3) std::swap(positions[k - 1], positions[k]);
  const int32_t last = *std::max_element(positions.begin(), positions.end());
  // As long as it is asked for, so that whatever is read beyond it is found.
  std::vector<float> elements(static_cast<size_t>(last) + 1);
  std::iota(elements.begin(), elements.end(), 0.5F);
  NearGather near;
  const bool is_near = near.Find(positions.data(), count, sizeof(float));
  if (!is_near) {
    EXPECT_FALSE(is_expected) << count << " x " << scale;
    return;
  }
  EXPECT_TRUE(is_expected) << count << " x " << scale;
  std::vector<float> lanes(positions.size() + 1, -1.0F);
  near.Run(reinterpret_cast<const std::byte*>(elements.data()),
           reinterpret_cast<std::byte*>(lanes.data()));
  for (size_t k = 0; k < positions.size(); ++k) {
    ASSERT_EQ(lanes[k], static_cast<float>(positions[k]) + 0.5F) << k << " of " << count;
  }
  EXPECT_EQ(lanes.back(), -1.0F);
}

TEST(NearGatherTest, PermutesWhatVectorsHold) {
  processor::ForEachTarget([](const char* target) {
    SCOPED_TRACE(target);
    // Others have no instruction for it.
    const bool permutes = std::string_view(target).starts_with("AVX");
    for (int64_t count : {16, 17, 31, 32, 64, 100, 255, 256}) {
      for (double scale : {0.55, 0.75, 1.0, 1.5, 2.0, 3.7, 16.0, 200.0}) {
        CheckNear(count, scale, permutes);
      }
      if (count >= 64) CheckNear(count, 0.1, false);
    }
    CheckNear(5, 2.0, false);
    const int32_t positions[64] = {};
    EXPECT_FALSE(NearGather().Find(positions, 64, sizeof(double)));
  });
}

}  // namespace
}  // namespace onnxifi::engine
