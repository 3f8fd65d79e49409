// SPDX-License-Identifier: Apache-2.0
//
// AddCoordinate: coordinates within and out of range, of small and large targets.

#include "backends/cpu/scatter/add_coordinate.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <vector>

namespace onnxifi::scatter {
namespace {

TEST(AddCoordinateTest, LeavesOutWhatIsOutOfRange) {
  constexpr int64_t kFar = int64_t{1} << 40;
  for (const int64_t extent : {int64_t{0}, int64_t{1}, int64_t{5}, int64_t{INT32_MAX}, kFar}) {
    for (const int64_t stride : {int64_t{1}, int64_t{-7}, int64_t{1} << 20, -(int64_t{1} << 33)}) {
      if (extent > (int64_t{1} << 57) / std::abs(stride)) continue;  // No target is as large.
      std::vector<int64_t> coordinates;
      for (const int64_t near : {int64_t{0}, extent, kFar, INT64_MIN + 1, INT64_MAX - 1}) {
        for (const int64_t apart : {-1, 0, 1}) coordinates.push_back(near + apart);
      }
      std::vector<int64_t> offsets(coordinates.size(), 3);
      const CoordinateLanes lanes{coordinates.data(), static_cast<int64_t>(coordinates.size()),
                                  extent, stride};
      AddCoordinate(lanes, offsets.data(), offsets.data());
      for (size_t k = 0; k < coordinates.size(); ++k) {
        const bool is_inside = coordinates[k] >= 0 && coordinates[k] < extent;
        EXPECT_EQ(offsets[k], 3 + (is_inside ? coordinates[k] * stride : kOutside))
            << coordinates[k] << " of " << extent;
      }
    }
  }
}

}  // namespace
}  // namespace onnxifi::scatter
