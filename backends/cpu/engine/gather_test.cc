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
#include <vector>

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

}  // namespace
}  // namespace onnxifi::engine
