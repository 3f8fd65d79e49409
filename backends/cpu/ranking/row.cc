// SPDX-License-Identifier: Apache-2.0
//
// Rows: a grid whose tiles are whole rows.

#include "backends/cpu/ranking/row.h"

namespace onnxifi::ranking {

Rows::Rows(std::span<const int64_t> domain) : grid_(domain), length_(domain.back()) {
  const int last = grid_.rank() - 1;
  grid_.Tile(0, last, 1);
  count_ = grid_.TileCount(0, last);
}

engine::Box Rows::BoxOf(int64_t row) const {
  engine::Box box;
  grid_.MoveTo(0, grid_.rank(), row, box);
  return box;
}

}  // namespace onnxifi::ranking
