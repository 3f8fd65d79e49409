// SPDX-License-Identifier: Apache-2.0
//
// ElementPlan: updates one element at a time, at any coordinates.

#ifndef ONNXIFI_BACKENDS_CPU_SCATTER_ELEMENTS_H_
#define ONNXIFI_BACKENDS_CPU_SCATTER_ELEMENTS_H_

#include <optional>

#include "backends/cpu/scatter/combine.h"
#include "backends/cpu/scatter/offsets.h"

namespace onnxifi::scatter {

// An axis of the domain that alone decides about one coordinate. Where that ascends along the axis,
// parts of the axis have no element of the target in common.
struct SplitAxis {
  int axis;
  int read;  // of the coordinate
};

// The longest such axis.
std::optional<SplitAxis> FindSplitAxis(const device::BoundStep& step);
// Whether the coordinate ascends, which is known only at the run.
bool Ascends(const device::BoundStep& step, const SplitAxis& split, device::Addresses addresses);

// Immutable; threads share it.
class ElementPlan {
 public:
  // All updates are one part, in order; or, with `split_axis` >= 0, those of a tile along that axis
  // are, and only those of one part are in order. `step` has updates and a target with elements.
  ElementPlan(const device::BoundStep& step, int split_axis, const Target& target,
              const Combination& combination);

  int64_t part_count() const { return grid_.TileCount(split_begin_, split_end_); }
  int64_t scratch_bytes() const;
  void Run(device::Addresses addresses, int64_t first_part, int64_t end_part,
           std::byte* scratch) const;

 private:
  void Tile();
  bool IsSteady(const engine::Access& access) const;
  const std::byte* LoadUpdates(device::Addresses addresses, const engine::Box& box,
                               std::byte* lanes) const;

  const Target& target_;
  const Combination& combination_;
  const int64_t origin_;
  engine::Grid grid_;
  int split_begin_ = 0;
  int split_end_ = 0;
  engine::Access updates_;
  Offsets::Layout layout_;
};

}  // namespace onnxifi::scatter

#endif  // ONNXIFI_BACKENDS_CPU_SCATTER_ELEMENTS_H_
