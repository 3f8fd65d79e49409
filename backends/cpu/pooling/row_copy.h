// SPDX-License-Identifier: Apache-2.0
//
// RowCopy: how the rows of a plane are copied, with padding, for the windows of a block; and where
// the copies lie in its scratch memory.

#ifndef ONNXIFI_BACKENDS_CPU_POOLING_ROW_COPY_H_
#define ONNXIFI_BACKENDS_CPU_POOLING_ROW_COPY_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "backends/cpu/pooling/taps.h"

namespace onnxifi::pooling {

// Wide enough for any product and sum of the numbers of a model.
using Wide = __int128;

// Positions [begin, end) along an axis.
struct Range {
  int64_t begin = 0;
  int64_t end = 0;

  int64_t size() const { return end - begin; }
};

// What outputs [first, first + count) see, along one axis; empty if they see nothing.
inline Range RangeOf(const std::vector<Taps>& taps, int64_t dilation, int64_t first,
                     int64_t count) {
  Range range;
  for (int64_t out = first; out < first + count; ++out) {
    const Taps& seen = taps[static_cast<size_t>(out)];
    if (seen.count == 0) continue;
    const int64_t end = seen.first + (seen.count - 1) * dilation + 1;
    if (range.size() == 0) range = {seen.first, end};
    range = {std::min(range.begin, seen.first), std::max(range.end, end)};
  }
  return range;
}

// The taps of the last axis that fall on an element for some output of a block, and how its rows
// are copied: element u of a row is that of the source at `source_begin` + u, and lies as number u
// / stride of those with its remainder.
struct RowCopy {
  RowCopy(const Sliding& sliding, int64_t first, int64_t count) {
    const Wide begin = static_cast<Wide>(first) * sliding.stride - sliding.pad_begin;
    const Wide last = begin + static_cast<Wide>(count - 1) * sliding.stride;
    const Wide dilation = sliding.dilation;
    const auto up = [&](Wide x) { return x <= 0 ? 0 : (x + dilation - 1) / dilation; };
    const Wide first_tap = std::min<Wide>(up(-last), sliding.kernel);
    const Wide end_tap = std::min<Wide>(up(sliding.in - begin), sliding.kernel);
    if (first_tap >= end_tap) return;
    taps = static_cast<int64_t>(end_tap - first_tap);
    source_begin = begin + first_tap * dilation;
    elements = static_cast<Wide>(count - 1) * sliding.stride + (taps - 1) * dilation + 1;
    remainders = sliding.stride;
    length = (elements + remainders - 1) / remainders;
  }

  Wide total() const { return remainders * length; }

  int64_t taps = 0;
  Wide source_begin = 0;
  Wide elements = 0;
  Wide remainders = 1, length = 0;
};

// The parts of a block's scratch memory, one after the other: pointers to taps, what windows count
// along the last axis, copied rows.
struct Scratch {
  static constexpr int64_t kAlignment = 64;

  static int64_t PointerBytes(int64_t taps) { return Up(taps * int64_t{sizeof(void*)}); }
  static int64_t CountBytes(int64_t windows) { return Up(windows * int64_t{sizeof(double)}); }
  static int64_t Up(int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }
};

}  // namespace onnxifi::pooling

#endif  // ONNXIFI_BACKENDS_CPU_POOLING_ROW_COPY_H_
