// SPDX-License-Identifier: Apache-2.0
//
// RankColumns: the few elements that come first of each of many columns that lie side by side, a
// vector of columns at a time.

#ifndef ONNXIFI_BACKENDS_CPU_RANKING_COLUMN_RANKING_H_
#define ONNXIFI_BACKENDS_CPU_RANKING_COLUMN_RANKING_H_

#include <cstdint>

#include "backends/cpu/ranking/sort_key.h"

namespace onnxifi::ranking {

// Of more, a row at a time is faster.
inline constexpr int64_t kMaxRankedOfColumns = 16;

// Element k of column c is elements[k * element_step + c]; the one of rank r goes to
// values[r * value_step + c], and its k to positions[r * position_step + c], where these are not
// null.
template <typename Bits>
struct Columns {
  const Bits* elements;
  int64_t element_step;
  int64_t length;  // of a column
  int64_t count;   // of columns
  int64_t found;   // 1 to kMaxRankedOfColumns, at most `length`
  Bits* values;
  int64_t value_step;
  int64_t* positions;
  int64_t position_step;
};

// In the order of the keys that MakeKeys makes; of equal ones the lower position comes first. Of
// uint32_t, with a length below 2^32, and uint64_t.
template <typename Bits>
void RankColumns(const KeyMaker<Bits>& make, bool is_largest, const Columns<Bits>& columns);

}  // namespace onnxifi::ranking

#endif  // ONNXIFI_BACKENDS_CPU_RANKING_COLUMN_RANKING_H_
