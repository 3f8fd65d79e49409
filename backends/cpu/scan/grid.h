// SPDX-License-Identifier: Apache-2.0
//
// ScanGrid: how the axes of a scan are walked. Lanes are coordinates of other axes than the scanned
// one, each with a state of its own. Where they lie closer together than elements along the scanned
// axis, a tile is [elements, lanes], and vectors go over lanes; else it is [lanes, elements].

#ifndef ONNXIFI_BACKENDS_CPU_SCAN_GRID_H_
#define ONNXIFI_BACKENDS_CPU_SCAN_GRID_H_

#include <cstdint>
#include <span>

#include "backends/cpu/engine/geometry.h"

namespace onnxifi::scan {

class ScanGrid {
 public:
  ScanGrid() = default;
  // The last axis of `domain`, of which none has extent 0, is scanned. `primary`, one of `forms` or
  // null, says how elements lie in memory. All forms change with the axes.
  ScanGrid(std::span<const int64_t> domain, const engine::LinearForm* primary,
           std::span<engine::LinearForm* const> forms, int64_t tile_lanes);

  // Tiles of elements, and the same with one element per lane.
  const engine::Grid& elements_grid() const { return elements_grid_; }
  const engine::Grid& states_grid() const { return states_grid_; }
  int64_t tile_lanes() const { return elements_grid_.TileLanes(0, elements_grid_.rank()); }
  int64_t state_lanes() const { return states_grid_.TileLanes(0, states_grid_.rank()); }

  // Tiles of the same lanes are a group, whose states run from one tile to the next.
  int64_t group_count() const;
  // Moves to the first elements of a group, and on.
  engine::Box MoveTo(int64_t group, const engine::Grid& grid) const;
  void MoveOn(engine::Box& box) const { elements_grid_.MoveOn(scan_begin_, scan_end_, box); }
  int64_t tiles_of_group() const { return elements_grid_.TileCount(scan_begin_, scan_end_); }
  int64_t ElementsOf(const engine::Box& box) const;

  // How a tile is laid out in registers: elements from one element, or lane, to the next.
  struct Steps {
    int64_t element;
    int64_t lane;
  };
  Steps StepsInTile(const engine::Box& box) const;
  // The same in memory, for a form whose lanes are evenly apart.
  bool HasEvenLanes() const { return has_even_lanes_; }
  Steps StepsOf(const engine::LinearForm& form) const;
  bool lanes_are_inner() const { return lanes_are_inner_; }

 private:
  engine::Grid elements_grid_;
  engine::Grid states_grid_;
  int scan_begin_ = 0;  // the scanned axis, if it has more than one element
  int scan_end_ = 0;
  int lane_axis_ = -1;  // the innermost of those of lanes
  bool lanes_are_inner_ = false;
  bool has_even_lanes_ = false;
};

}  // namespace onnxifi::scan

#endif  // ONNXIFI_BACKENDS_CPU_SCAN_GRID_H_
