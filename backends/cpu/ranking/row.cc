// SPDX-License-Identifier: Apache-2.0
//
// Rows: a grid whose tiles are of whole rows.

#include "backends/cpu/ranking/row.h"

namespace onnxifi::ranking {

Rows::Rows(std::span<const int64_t> domain, int64_t rows_of_box)
    : grid_(domain), length_(domain.back()) {
  const int last = grid_.rank() - 1;
  rows_of_box_ = grid_.Tile(0, last, rows_of_box);
  box_count_ = grid_.TileCount(0, last);
}

engine::Box Rows::BoxOf(int64_t number) const {
  engine::Box box;
  grid_.MoveTo(0, grid_.rank(), number, box);
  return box;
}

engine::Box Rows::RowOf(const engine::Box& box, int64_t row) {
  engine::Box one = box;
  one.lanes = box.extents[box.rank - 1];
  for (int axis = box.rank - 1; axis-- > 0;) {
    one.begin[axis] += row % box.extents[axis];
    row /= box.extents[axis];
    one.extents[axis] = 1;
  }
  return one;
}

}  // namespace onnxifi::ranking
