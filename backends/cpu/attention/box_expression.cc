// SPDX-License-Identifier: Apache-2.0
//
// BoxExpression: the grid of the tile engine has one more tile of rows than there are, so that no
// tile holds all of them and a box may begin at any row.

#include "backends/cpu/attention/box_expression.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <vector>

namespace onnxifi::attention {

using engine::Grid;

BoxExpression::BoxExpression(const engine::Code& code, const device::BoundStep& step,
                             std::span<const int64_t> extents, int64_t rows, int64_t columns,
                             bool swaps, std::span<const device::BoundView> writes)
    : bound_(code, step),
      writer_(writes, static_cast<int>(extents.size())),
      rank_(static_cast<int>(extents.size())),
      rows_(std::min(rows, extents[extents.size() - 2])),
      columns_(std::min(columns, extents.back())),
      swaps_(swaps) {
  std::vector<int64_t> of_grid(extents.begin(), extents.end());
  of_grid[of_grid.size() - 2] += rows_;
  Grid grid(of_grid);
  std::vector<engine::LinearForm*> forms;
  bound_.AppendForms(forms);
  writer_.AppendForms(forms);
  std::vector<int> order(extents.size());
  std::iota(order.begin(), order.end(), 0);
  if (swaps_) std::swap(order[order.size() - 2], order.back());
  grid.Permute(order, forms);
  const int last = rank_ - 1;
  grid.Tile(0, last - 1, 1);
  grid.Tile(last - 1, last, swaps_ ? columns_ : rows_);
  grid.Tile(last, rank_, swaps_ ? rows_ : columns_);
  bound_.LayOut(grid, lanes());
  writer_.LayOut(grid, engine::Writer::kNeverStreamed);
}

int64_t BoxExpression::scratch_bytes() const {
  constexpr int64_t kLine = 64;
  return (bound_.scratch_bytes() + writer_.scratch_bytes() + kLine - 1) / kLine * kLine;
}

engine::Box BoxExpression::BoxAt(const BoxPlace& place, int64_t rows, int64_t columns) const {
  engine::Box box;
  box.rank = rank_;
  box.lanes = rows * columns;
  const auto last = static_cast<size_t>(rank_ - 1);
  for (size_t axis = 0; axis + 2 < static_cast<size_t>(rank_); ++axis) {
    box.begin[axis] = place.batch[axis];
    box.extents[axis] = 1;
  }
  const size_t row_axis = swaps_ ? last : last - 1;
  const size_t column_axis = swaps_ ? last - 1 : last;
  box.begin[row_axis] = place.row;
  box.extents[row_axis] = rows;
  box.begin[column_axis] = place.column;
  box.extents[column_axis] = columns;
  return box;
}

bool BoxExpression::LiesInColumns(const engine::Code& code, const device::BoundStep& step) {
  const engine::BoundCode bound(code, step);
  const size_t row_axis = step.domain.size() - 2;
  for (const engine::Access& access : bound.accesses()) {
    if (access.buffer == program::kNoBuffer) continue;
    const int64_t along_rows = std::abs(access.form.steps[row_axis]);
    return along_rows != 0 && along_rows < std::abs(access.form.steps[row_axis + 1]);
  }
  return false;
}

}  // namespace onnxifi::attention
