// SPDX-License-Identifier: Apache-2.0
//
// LoopNest: the loops of a bound step as a kernel runs them: axes that every view steps through
// evenly are one axis, and axes of one coordinate are gone. What a kernel's source depends on
// beyond its step is `form`; everything else here is numbers.

#ifndef ONNXIFI_BACKENDS_CORE_CODEGEN_LOOP_NEST_H_
#define ONNXIFI_BACKENDS_CORE_CODEGEN_LOOP_NEST_H_

#include <compare>
#include <cstdint>
#include <span>
#include <vector>

#include "backends/core/device/device.h"

namespace onnxifi::codegen {

// How a view steps along its last axis; a step known to the compiler lets it load vectors.
enum class LastStep : uint8_t { kNone, kOne, kAny };

// Map: a tile of two axes of the loops that a group takes. Reads that `is_tiled` lie in memory
// along `read_axis`, writes along `write_axis`.
struct MapTile {
  int read_axis = -1;  // -1: there are no tiles
  int write_axis = -1;
  // Its elements along these axes, powers of two.
  int read_extent = 0;
  int write_extent = 0;
  std::vector<bool> is_tiled;  // by read

  auto operator<=>(const MapTile&) const = default;  // NOLINT(modernize-use-nullptr)
};

// The part of a loop nest that decides a kernel's source.
struct LoopForm {
  std::vector<int> axis_of;  // by axis of the domain: the axis of the loops, or -1 if it is gone
  int rank = 0;              // axes of the loops
  int outer_rank = 0;        // of them, those before the axes that are reduced
  // The views, but those loaded at coordinates of their own, have the axes of the loops.
  bool is_over_domain = false;
  std::vector<LastStep> read_steps, write_steps;  // by read and write
  // Coordinates and addresses fit 32 bits.
  bool is_narrow = false;
  // Each reduction is long enough for a whole group of items (Reduce, Row, Window and Contract), or
  // for several starts or parts of it (Attention); a product's sums are those of parts of its
  // depth.
  bool is_grouped = false;
  // Per write, for Row: whether it is written once per row.
  std::vector<bool> is_per_row;
  // A row of so many elements or fewer may be kept in shared memory; 0: it is read each time.
  int row_capacity = 0;
  // Neighbours that an item takes by words of 16 bytes: along the last axis of a Map, and of the
  // columns of a Contract.
  int lanes = 1;
  MapTile tile;
  // Attention, by operand: its elements of a query, key or value are whole words of 16 bytes in a
  // row.
  std::vector<bool> has_words;

  auto operator<=>(const LoopForm&) const = default;  // NOLINT(modernize-use-nullptr)
};

struct LoopNest {
  LoopForm form;
  tensor::Extents extents;
  std::vector<device::BoundView> reads;
  std::vector<device::BoundView> writes;
  std::span<const int64_t> dims;
  std::vector<int64_t> given;  // what the kernels of a sequence agree on; else empty
};

// Whether coordinates below `extents` and what a view makes of them fit 32 bits.
bool IsNarrow(const device::BoundView& view, std::span<const int64_t> extents);
// Whether axis `outer` of a view is `extent` steps of axis `inner`.
bool IsEven(const device::BoundView& view, size_t outer, size_t inner, int64_t extent);
// Gives a view the axes `kept` in place of its own.
void KeepAxes(device::BoundView& view, std::span<const int> kept);
LastStep LastStepOf(const device::BoundView& view);

// The axes of the domain whose coordinates the step's expressions name, and the reads that they
// load at coordinates of their own. Found once per step.
struct LoopFacts {
  bool can_be_grouped = false;      // Reduce and Row: their reductions can be merged
  int reduced_axes = 0;             // of Reduce, Row and Scan: the last axes of the domain
  std::vector<bool> is_axis_named;  // by axis of the domain; such an axis is kept as it is
  std::vector<bool> is_indexed;     // by read
  // Whether the views are over the domain's axes, so that axes may be joined at all.
  bool is_over_domain = false;
  std::vector<bool> is_root_per_row;  // Row: by root, whether no element of the row enters it
};
LoopFacts FindLoopFacts(const program::Program& program, const program::Step& step);

// `step` lives as long as what is returned.
LoopNest MakeLoopNest(const LoopFacts& facts, const device::BoundStep& step);

}  // namespace onnxifi::codegen

#endif  // ONNXIFI_BACKENDS_CORE_CODEGEN_LOOP_NEST_H_
