// SPDX-License-Identifier: Apache-2.0
//
// Heads: which queries meet which keys. A head is all queries that share keys and values: those of
// one batch coordinate, or of several along axes where keys and values repeat (grouped heads).

#ifndef ONNXIFI_BACKENDS_CPU_ATTENTION_HEADS_H_
#define ONNXIFI_BACKENDS_CPU_ATTENTION_HEADS_H_

#include <array>
#include <cstdint>
#include <vector>

#include "backends/core/device/device.h"
#include "backends/cpu/attention/condition.h"
#include "backends/cpu/engine/geometry.h"

namespace onnxifi::attention {

// Queries of one batch coordinate, which lie one after the other among the rows of a head.
struct QueryRun {
  std::array<int64_t, engine::kMaxAxes> batch;
  int64_t first_query;
  int64_t queries;
};

class Heads {
 public:
  // `is_shared` says of each batch axis whether keys and values are the same all along it.
  Heads(const device::BoundStep& step, std::vector<bool> is_shared);

  int64_t count() const { return count_; }
  // Of queries, in a head: the members of its group one after the other.
  int64_t rows() const { return members_ * queries_; }
  // The queries of a head from `row` on, up to `rows` of them.
  QueryRun RunAt(int64_t head, int64_t row, int64_t rows) const;
  // The coordinates of all rows from `row` to `row + rows`: batch axes and queries.
  CoordinateRange RangeOf(int64_t head, int64_t row, int64_t rows) const;

 private:
  tensor::Extents batch_;
  std::vector<bool> is_shared_;
  int64_t count_ = 1;
  int64_t members_ = 1;
  int64_t queries_;
};

}  // namespace onnxifi::attention

#endif  // ONNXIFI_BACKENDS_CPU_ATTENTION_HEADS_H_
