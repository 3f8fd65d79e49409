// SPDX-License-Identifier: Apache-2.0
//
// Coordinates, against divisions.

#include "backends/cpu/non_zero/coordinates.h"

#include <gtest/gtest.h>

#include <vector>

namespace onnxifi::non_zero {
namespace {

TEST(CoordinatesTest, AreThoseOfDivisions) {
  for (const std::vector<int64_t>& extents :
       std::vector<std::vector<int64_t>>{{5000}, {50, 100}, {1000, 1, 3}, {2, 3, 4, 5, 6, 7}}) {
    int64_t count = 1;
    for (int64_t extent : extents) count *= extent;
    for (const int64_t step : {1, 2, 17, 300}) {
      Coordinates coordinates(extents);
      for (int64_t position = 0; position < count; position += step) {
        coordinates.MoveTo(position);
        ASSERT_EQ(position - coordinates.row_begin(), position % extents.back());
        ASSERT_EQ(coordinates.row_end() - coordinates.row_begin(), extents.back());
        int64_t rest = position / extents.back();
        for (size_t axis = extents.size() - 1; axis-- > 0;) {
          ASSERT_EQ(coordinates[axis], rest % extents[axis]) << position << ", axis " << axis;
          rest /= extents[axis];
        }
      }
    }
  }
}

}  // namespace
}  // namespace onnxifi::non_zero
