// SPDX-License-Identifier: Apache-2.0
//
// Transpose: blocks of every shape around the vector's length, with gaps between rows and columns
// that stay untouched.

#include "backends/cpu/engine/transpose.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <numeric>
#include <vector>

namespace onnxifi::engine {
namespace {

template <typename T>
void CheckTranspose(int64_t rows, int64_t columns) {
  const int64_t source_stride = rows + 3;
  const int64_t target_stride = columns + 5;
  std::vector<T> source(static_cast<size_t>(columns * source_stride));
  std::iota(source.begin(), source.end(), static_cast<T>(1));
  const T untouched = static_cast<T>(99);
  std::vector<T> expected(static_cast<size_t>(rows * target_stride), untouched);
  std::vector<T> target = expected;
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c) {
      expected[static_cast<size_t>(r * target_stride + c)] =
          source[static_cast<size_t>(c * source_stride + r)];
    }
  }
  Transpose(reinterpret_cast<const std::byte*>(source.data()), source_stride,
            reinterpret_cast<std::byte*>(target.data()), target_stride, rows, columns, sizeof(T));
  EXPECT_EQ(target, expected) << rows << " x " << columns << " of " << sizeof(T) << " bytes";
}

TEST(TransposeTest, PutsColumnsIntoRows) {
  for (int64_t rows : {1, 3, 4, 8, 15, 16, 17, 33, 64}) {
    for (int64_t columns : {1, 2, 4, 5, 8, 16, 19, 32, 67}) {
      CheckTranspose<uint8_t>(rows, columns);
      CheckTranspose<uint16_t>(rows, columns);
      CheckTranspose<uint32_t>(rows, columns);
      CheckTranspose<uint64_t>(rows, columns);
    }
  }
}

}  // namespace
}  // namespace onnxifi::engine
