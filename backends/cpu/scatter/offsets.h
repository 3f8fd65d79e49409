// SPDX-License-Identifier: Apache-2.0
//
// Offsets: which elements of the target the lanes of a tile of updates enter.

#ifndef ONNXIFI_BACKENDS_CPU_SCATTER_OFFSETS_H_
#define ONNXIFI_BACKENDS_CPU_SCATTER_OFFSETS_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "backends/cpu/engine/access.h"
#include "backends/cpu/scatter/add_coordinate.h"

namespace onnxifi::scatter {

// The coordinates along one axis of the target.
struct Coordinate {
  engine::Access access;  // int64, over the domain
  int64_t extent;         // of the target
  int64_t stride;         // of the target's view, in elements
};

// Where updates go.
struct Target {
  program::BufferId buffer;
  int64_t lane_bytes;
  // Of the elements of the view; highest is less than lowest where there are none.
  int64_t lowest = 0;
  int64_t highest = -1;
  // No element has two coordinates.
  bool is_distinct = true;

  Target(const device::BoundView& view, std::span<const int64_t> extents);
  bool is_empty() const { return highest < lowest; }
};

// The axes of a domain along which a view does not stay the same, as bits.
uint32_t FindAxes(const device::BoundView& view, std::span<const int64_t> domain);

// For one thread, over some axes of a domain cut into tiles. Coordinates that are the same in every
// tile are loaded once.
class Offsets {
 public:
  // Coordinates whose accesses are laid out for a grid.
  struct Layout {
    std::vector<Coordinate> steady;   // the same in every tile that Begin's is the first of
    std::vector<Coordinate> varying;  // by tile
    int64_t lanes = 0;                // of a whole tile

    int64_t scratch_bytes() const { return 3 * lanes * static_cast<int64_t>(sizeof(int64_t)); }
  };

  // `scratch` holds layout.scratch_bytes() on a cache line boundary.
  Offsets(const Layout& layout, device::Addresses addresses, std::byte* scratch);

  // Loads the steady coordinates of the whole tile `box`, those of all tiles until it is called
  // again. Offsets count from `origin`.
  void Begin(const engine::Box& box, int64_t origin);
  // For each lane of a tile the element of the target; less than 0 where a coordinate is out of
  // range. Valid until the next call.
  const int64_t* Find(const engine::Box& box);

 private:
  const int64_t* Load(const Coordinate& coordinate, const engine::Box& box);
  void Add(const Coordinate& coordinate, const engine::Box& box, const int64_t* before,
           int64_t* offsets);

  const Layout& layout_;
  device::Addresses addresses_;
  int64_t* steady_;
  int64_t* offsets_;
  int64_t* loaded_;
};

}  // namespace onnxifi::scatter

#endif  // ONNXIFI_BACKENDS_CPU_SCATTER_OFFSETS_H_
