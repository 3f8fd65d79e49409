// SPDX-License-Identifier: Apache-2.0
//
// Row: the elements of a view along the last axis of a domain, as lanes.

#ifndef ONNXIFI_BACKENDS_CPU_RANKING_ROW_H_
#define ONNXIFI_BACKENDS_CPU_RANKING_ROW_H_

#include <cstddef>
#include <cstdint>

#include "backends/cpu/engine/access.h"

namespace onnxifi::ranking {

// The rows of a domain in boxes of some that lie side by side, numbered in row-major order. No axis
// has extent 0.
class Rows {
 public:
  // Boxes have at most `rows_of_box` rows.
  explicit Rows(std::span<const int64_t> domain, int64_t rows_of_box = 1);

  int64_t box_count() const { return box_count_; }
  // Of a box that is whole.
  int64_t rows_of_box() const { return rows_of_box_; }
  int64_t length() const { return length_; }
  engine::Box BoxOf(int64_t number) const;
  // The box of one row of a box.
  static engine::Box RowOf(const engine::Box& box, int64_t row);

 private:
  engine::Grid grid_;
  int64_t box_count_ = 1;
  int64_t rows_of_box_ = 1;
  int64_t length_ = 1;
};

// Where element 0 of the row in `box` is: an element's number in the buffer of an unguarded view.
inline int64_t FirstElement(const engine::Access& access, const engine::Box& box) {
  return engine::ValueAtBegin(access.form, box);
}

}  // namespace onnxifi::ranking

#endif  // ONNXIFI_BACKENDS_CPU_RANKING_ROW_H_
