// SPDX-License-Identifier: Apache-2.0
//
// Access: a view as the engine reads and writes it, one tile at a time. With transpose.h the only
// place of the engine that computes addresses.

#ifndef ONNXIFI_BACKENDS_CPU_ENGINE_ACCESS_H_
#define ONNXIFI_BACKENDS_CPU_ENGINE_ACCESS_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "backends/core/device/device.h"
#include "backends/cpu/engine/geometry.h"

namespace onnxifi::engine {

struct GuardForm {
  LinearForm form;
  int64_t extent;
};

// What the lanes of a tile are read from or written to: elements of a buffer, or, for a coordinate
// of the domain, the form's own values.
struct Access {
  program::BufferId buffer = program::kNoBuffer;
  tensor::ElementType type = tensor::ElementType::kInt64;
  int64_t lane_bytes = 8;
  LinearForm form;  // in elements
  std::vector<GuardForm> guards;
  std::byte fill[8] = {};
  // Lanes lie in memory as in a tile, in every tile: where no guard fails, no copy is needed.
  bool is_dense = false;
  // Where the lanes of a whole tile lie, in elements from lane 0; a tile at an edge has the first
  // of them. Empty where there is a faster way.
  std::vector<int32_t> positions;
  // Loads interleave planes or take short runs, which is faster than to look positions up. Stores
  // scatter: no slower.
  bool has_fast_loads = false;
  // Every tile has the same lanes, one at an edge the first of them.
  bool is_repeated = false;
  // All lanes of a tile are one number.
  bool is_uniform = false;
};

// An access through `view` of a domain of `rank` axes; axes beyond the view's own count nothing.
Access MakeAccess(const device::BoundView& view, int rank);
// The coordinate along an axis.
Access MakeCoordinate(int axis);
// All forms of an access: its own and its guards'.
void AppendForms(Access& access, std::vector<LinearForm*>& forms);

// Once, when the forms are those of `grid`: whether the access is dense, repeated or uniform, or
// wants a table of positions.
void LayOut(Access& access, const Grid& grid);

// Where lane 0 is.
inline std::byte* AddressOf(const Access& access, const Box& box, std::byte* base) {
  return base + WrapMulAdd(0, ValueAtBegin(access.form, box), access.lane_bytes);
}

enum class Inside : uint8_t { kAll, kSome, kNone };
// How much of a tile the guards let through.
Inside FindInside(const Access& access, const Box& box);

// Copies a tile of any access to `lanes`, dense. bool is read as 0 or 1.
void LoadBox(const Access& access, const std::byte* base, const Box& box, std::byte* lanes);
// Copies lanes to a tile of an access without guards. Where several lanes have one address, the
// last counts.
void StoreBox(const Access& access, std::byte* base, const Box& box, const std::byte* lanes);
// As StoreBox, past the caches where lanes lie contiguous.
void StreamBox(const Access& access, std::byte* base, const Box& box, const std::byte* lanes);

}  // namespace onnxifi::engine

#endif  // ONNXIFI_BACKENDS_CPU_ENGINE_ACCESS_H_
