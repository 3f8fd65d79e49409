// SPDX-License-Identifier: Apache-2.0
//
// ScanGrid: the order of axes, and the shape of a tile.

#include "backends/cpu/scan/grid.h"

#include <algorithm>
#include <vector>

namespace onnxifi::scan {

using engine::Box;
using engine::Grid;
using engine::LinearForm;

namespace {

uint64_t Size(int64_t step) {
  return step < 0 ? ~static_cast<uint64_t>(step) + 1 : static_cast<uint64_t>(step);
}

}  // namespace

ScanGrid::ScanGrid(std::span<const int64_t> domain, const LinearForm* primary,
                   std::span<LinearForm* const> forms, int64_t tile_lanes) {
  const int scanned = static_cast<int>(domain.size()) - 1;
  const LinearForm nothing;
  const LinearForm& met = primary != nullptr ? *primary : nothing;
  // Where there is one element, all that is left are lanes.
  const uint64_t element_step = domain[scanned] > 1 ? Size(met.steps[scanned]) : ~uint64_t{0};
  std::vector<int> order, lane_axes;
  for (int axis : Grid::SortedAxes(met, 0, scanned)) {
    const uint64_t step = Size(met.steps[axis]);
    const bool is_inner = domain[axis] > 1 && step > 0 && step < element_step;
    (is_inner ? lane_axes : order).push_back(axis);
  }
  int boundaries[] = {static_cast<int>(order.size()), static_cast<int>(order.size()) + 1};
  order.push_back(scanned);
  order.insert(order.end(), lane_axes.begin(), lane_axes.end());
  elements_grid_ = Grid(domain);
  elements_grid_.Permute(order, forms);
  elements_grid_.Join(boundaries, forms);
  scan_begin_ = boundaries[0];
  scan_end_ = boundaries[1];
  const int rank = elements_grid_.rank();
  lanes_are_inner_ = scan_end_ < rank;
  // Axes of lanes are [lanes_begin, lanes_end).
  const int lanes_begin = lanes_are_inner_ ? scan_end_ : 0;
  const int lanes_end = lanes_are_inner_ ? rank : scan_begin_;
  int64_t lanes = 1;
  for (int axis = lanes_begin; axis < lanes_end; ++axis) lanes *= elements_grid_.extent(axis);
  if (lanes_are_inner_) {
    // Groups enough for threads, but each with whole cache lines.
    constexpr int64_t kGroups = 8;
    constexpr int64_t kLine = 32;
    const int64_t outer = elements_grid_.TileLanes(0, scan_begin_);
    if (outer < kGroups) lanes = (lanes / kGroups + kLine - 1) / kLine * kLine;
    lanes = std::min(std::max(lanes, kLine), tile_lanes);
  } else {
    // As many states as hide the time that each takes.
    constexpr int64_t kRows = 8;
    lanes = std::min(lanes, kRows);
  }
  elements_grid_.Tile(0, scan_begin_, 1);
  lanes = elements_grid_.Tile(lanes_begin, lanes_end, std::max<int64_t>(1, lanes));
  elements_grid_.Tile(scan_begin_, scan_end_, std::max<int64_t>(1, tile_lanes / lanes));
  states_grid_ = elements_grid_;
  states_grid_.Tile(scan_begin_, scan_end_, 1);
  lane_axis_ = lanes_begin < lanes_end ? lanes_end - 1 : -1;
  has_even_lanes_ = lane_axis_ < 0 || elements_grid_.tile_extent(lane_axis_) == lanes;
}

int64_t ScanGrid::group_count() const {
  return states_grid_.TileCount(0, scan_begin_) *
         states_grid_.TileCount(scan_end_, states_grid_.rank());
}

Box ScanGrid::MoveTo(int64_t group, const Grid& grid) const {
  const int rank = grid.rank();
  const int64_t inner = grid.TileCount(scan_end_, rank);
  Box box;
  box.extents.fill(1);
  grid.MoveTo(0, scan_begin_, group / inner, box);
  grid.MoveTo(scan_begin_, scan_end_, 0, box);
  grid.MoveTo(scan_end_, rank, group % inner, box);
  return box;
}

int64_t ScanGrid::ElementsOf(const Box& box) const {
  return scan_begin_ < scan_end_ ? box.extents[scan_begin_] : 1;
}

ScanGrid::Steps ScanGrid::StepsInTile(const Box& box) const {
  const int64_t elements = ElementsOf(box);
  if (lanes_are_inner_) return {box.lanes / elements, 1};
  return {1, elements};
}

ScanGrid::Steps ScanGrid::StepsOf(const LinearForm& form) const {
  return {scan_begin_ < scan_end_ ? form.steps[scan_begin_] : 0,
          lane_axis_ >= 0 ? form.steps[lane_axis_] : 0};
}

}  // namespace onnxifi::scan
