// SPDX-License-Identifier: Apache-2.0
//
// RankColumns, against a stable sort of each column.

#include "backends/cpu/ranking/column_ranking.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

namespace onnxifi::ranking {
namespace {

using tensor::ElementType;

template <typename Bits>
void Check(ElementType type, int64_t length, int64_t count, int64_t found, bool is_largest) {
  std::mt19937_64 random(static_cast<uint64_t>(length * count));
  const int64_t step = count + 3;
  std::vector<Bits> elements(static_cast<size_t>(length * step));
  // Many are equal; of floats some are NaN, and zeros have both signs.
  const auto sign = static_cast<Bits>(~(static_cast<Bits>(~Bits{0}) >> 1));
  for (Bits& element : elements) {
    const Bits some[] = {0, sign, static_cast<Bits>(~Bits{0}), 7, static_cast<Bits>(random())};
    element = some[random() % 5];
  }
  constexpr Bits kUntouched = 99;
  std::vector<Bits> values(static_cast<size_t>(found * step), kUntouched);
  std::vector<int64_t> positions(values.size(), -1);
  const auto make = KeyMaker<Bits>::For(type);
  RankColumns(make, is_largest,
              Columns<Bits>{elements.data(), step, length, count, found, values.data(), step,
                            positions.data(), step});
  const auto at = [&](int64_t row, int64_t column) {
    return static_cast<size_t>(row * step + column);
  };
  for (int64_t column = 0; column < count; ++column) {
    std::vector<int64_t> order(static_cast<size_t>(length));
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
      const Bits first = make(elements[at(a, column)]), second = make(elements[at(b, column)]);
      return is_largest ? first > second : first < second;
    });
    for (int64_t rank = 0; rank < found; ++rank) {
      const int64_t wanted = order[static_cast<size_t>(rank)];
      ASSERT_EQ(positions[at(rank, column)], wanted) << tensor::Name(type) << ", rank " << rank;
      ASSERT_EQ(values[at(rank, column)], elements[at(wanted, column)]);
    }
  }
  for (int64_t rank = 0; rank < found; ++rank) {
    for (int64_t gap = count; gap < step; ++gap) {
      ASSERT_EQ(values[at(rank, gap)], kUntouched);
      ASSERT_EQ(positions[at(rank, gap)], -1);
    }
  }
}

TEST(ColumnRankingTest, ColumnsAreInTheOrderOfAStableSort) {
  for (const int64_t count : {1, 4, 7, 16, 37, 64}) {
    for (const int64_t length : {1, 2, 5, 16, 133}) {
      for (const int64_t found : {1, 2, 3, 5, 16}) {
        if (found > length) continue;
        for (const bool is_largest : {false, true}) {
          for (const ElementType type :
               {ElementType::kFloat32, ElementType::kInt32, ElementType::kUint32}) {
            Check<uint32_t>(type, length, count, found, is_largest);
          }
          for (const ElementType type :
               {ElementType::kFloat64, ElementType::kInt64, ElementType::kUint64}) {
            Check<uint64_t>(type, length, count, found, is_largest);
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace onnxifi::ranking
