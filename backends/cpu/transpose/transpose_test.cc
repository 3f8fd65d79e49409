// SPDX-License-Identifier: Apache-2.0
//
// Transpose: blocks of every shape around the vector's length, with gaps between rows and columns
// that stay untouched.

#include "backends/cpu/transpose/transpose.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <vector>

#include "backends/cpu/processor/testing/each_target.h"

namespace onnxifi::transpose {
namespace {

// Where rows of the target begin: all at lines, all as far behind one, or anywhere.
enum class Begin : uint8_t { kAtLines, kBehindLines, kAnywhere };

template <typename T>
void CheckTranspose(int64_t rows, int64_t columns, Begin begin) {
  constexpr int64_t kLine = 64 / sizeof(T);
  const int64_t source_stride = rows + 3;
  const int64_t target_stride =
      begin == Begin::kAnywhere ? columns + 5 : (columns / kLine + 1) * kLine;
  std::vector<T> source(static_cast<size_t>(columns * source_stride));
  std::iota(source.begin(), source.end(), static_cast<T>(1));
  const T untouched = static_cast<T>(99);
  std::vector<T> expected(static_cast<size_t>(rows * target_stride), untouched);
  std::vector<T> memory(expected.size() + 2 * kLine);
  void* place = memory.data();
  size_t room = memory.size() * sizeof(T);
  std::align(64, expected.size() * sizeof(T), place, room);
  T* const target = static_cast<T*>(place) + (begin == Begin::kAtLines ? 0 : 3);
  std::copy(expected.begin(), expected.end(), target);
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c) {
      expected[static_cast<size_t>(r * target_stride + c)] =
          source[static_cast<size_t>(c * source_stride + r)];
    }
  }
  Transpose(reinterpret_cast<const std::byte*>(source.data()), source_stride,
            reinterpret_cast<std::byte*>(target), target_stride, rows, columns, sizeof(T));
  EXPECT_EQ(std::vector<T>(target, target + expected.size()), expected)
      << rows << " x " << columns << " of " << sizeof(T) << " bytes";
}

TEST(TransposeTest, PutsColumnsIntoRows) {
  processor::ForEachTarget([](const char* target) {
    SCOPED_TRACE(target);
    for (int64_t rows : {1, 3, 4, 8, 15, 16, 17, 33, 64}) {
      for (int64_t columns : {1, 2, 4, 5, 8, 16, 19, 32, 67, 150}) {
        for (const Begin begin : {Begin::kAtLines, Begin::kBehindLines, Begin::kAnywhere}) {
          CheckTranspose<uint8_t>(rows, columns, begin);
          CheckTranspose<uint16_t>(rows, columns, begin);
          CheckTranspose<uint32_t>(rows, columns, begin);
          CheckTranspose<uint64_t>(rows, columns, begin);
        }
      }
    }
  });
}

}  // namespace
}  // namespace onnxifi::transpose
