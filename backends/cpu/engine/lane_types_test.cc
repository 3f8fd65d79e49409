// SPDX-License-Identifier: Apache-2.0
//
// Runs of one element and bytes made bool, of every length around a vector's, at every address:
// nothing beside them changes.

#include "backends/cpu/engine/lane_types.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "backends/cpu/processor/testing/each_target.h"

namespace onnxifi::engine {
namespace {

constexpr int64_t kLengths[] = {0, 1, 2, 15, 16, 17, 31, 33, 63, 64, 65, 127, 128, 129, 1000};

template <typename T>
void CheckFill() {
  constexpr T kAround = static_cast<T>(77);
  const T value = static_cast<T>(0x8123456789ABCDEF);
  for (const int64_t length : kLengths) {
    for (int64_t begin = 1; begin < 4; ++begin) {
      std::vector<T> lanes(static_cast<size_t>(begin + length + 1), kAround);
      Fill(lanes.data() + begin, length, value);
      for (int64_t lane = 0; lane < static_cast<int64_t>(lanes.size()); ++lane) {
        const bool is_inside = lane >= begin && lane < begin + length;
        ASSERT_EQ(lanes[static_cast<size_t>(lane)], is_inside ? value : kAround)
            << "lane " << lane << " of " << length;
      }
    }
  }
}

TEST(LaneTypesTest, FillsRuns) {
  processor::ForEachTarget([](const char* target) {
    SCOPED_TRACE(target);
    CheckFill<uint8_t>();
    CheckFill<uint16_t>();
    CheckFill<uint32_t>();
    CheckFill<uint64_t>();
  });
}

TEST(LaneTypesTest, MakesBytesBool) {
  processor::ForEachTarget([](const char* target) {
    SCOPED_TRACE(target);
    for (const int64_t length : kLengths) {
      std::vector<uint8_t> lanes(static_cast<size_t>(length + 2), 9);
      for (int64_t lane = 0; lane < length; ++lane) {
        lanes[static_cast<size_t>(lane + 1)] = static_cast<uint8_t>(lane * 85);
      }
      MakeBool(lanes.data() + 1, length);
      for (int64_t lane = 0; lane < length; ++lane) {
        const int expected = static_cast<uint8_t>(lane * 85) != 0 ? 1 : 0;
        ASSERT_EQ(lanes[static_cast<size_t>(lane + 1)], expected) << lane << " of " << length;
      }
      EXPECT_EQ(lanes.front(), 9);
      EXPECT_EQ(lanes.back(), 9);
    }
  });
}

}  // namespace
}  // namespace onnxifi::engine
