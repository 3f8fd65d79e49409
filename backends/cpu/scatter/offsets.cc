// SPDX-License-Identifier: Apache-2.0
//
// Offsets: one pass over the lanes per coordinate.

#include "backends/cpu/scatter/offsets.h"

#include <algorithm>
#include <cstdlib>

#include "backends/core/reference/column.h"
#include "backends/cpu/engine/any_address.h"

namespace onnxifi::scatter {

using engine::Access;
using engine::Box;

uint32_t FindAxes(const device::BoundView& view, std::span<const int64_t> domain) {
  uint32_t axes = 0;
  for (size_t axis = 0; axis < domain.size(); ++axis) {
    if (domain[axis] == 1) continue;
    const bool enters_guard =
        std::any_of(view.guards.begin(), view.guards.end(),
                    [&](const device::BoundGuard& guard) { return guard.coefficients[axis] != 0; });
    if (view.strides[axis] != 0 || enters_guard) axes |= uint32_t{1} << axis;
  }
  return axes;
}

Target::Target(const device::BoundView& view, std::span<const int64_t> extents)
    : buffer(view.buffer), lane_bytes(reference::LaneBytes(view.type)) {
  if (tensor::ElementCount(extents) == 0) return;
  lowest = highest = view.offset;
  struct Axis {
    int64_t step;
    int64_t reach;
  };
  std::vector<Axis> axes;
  for (size_t axis = 0; axis < extents.size(); ++axis) {
    if (extents[axis] == 1) continue;
    const int64_t step = view.strides[axis];
    const int64_t reach = step * (extents[axis] - 1);
    (reach < 0 ? lowest : highest) += reach;
    axes.push_back({std::abs(step), std::abs(reach)});
  }
  std::sort(axes.begin(), axes.end(), [](const Axis& a, const Axis& b) { return a.step < b.step; });
  int64_t reached = 0;
  for (const Axis& axis : axes) {
    is_distinct = is_distinct && axis.step > reached;
    reached += axis.reach;
  }
}

Offsets::Offsets(const Layout& layout, device::Addresses addresses, std::byte* scratch)
    : layout_(layout),
      addresses_(addresses),
      steady_(reinterpret_cast<int64_t*>(scratch)),
      offsets_(steady_ + layout.lanes),
      loaded_(offsets_ + layout.lanes) {}

const int64_t* Offsets::Load(const Coordinate& coordinate, const Box& box) {
  const Access& access = coordinate.access;
  std::byte* base = addresses_[access.buffer];
  if (access.is_dense &&
      (access.guards.empty() || engine::FindInside(access, box) == engine::Inside::kAll)) {
    const std::byte* first = engine::AddressOf(access, box, base);
    if (engine::IsAligned(first, sizeof(int64_t))) return reinterpret_cast<const int64_t*>(first);
  }
  engine::LoadBox(access, base, box, reinterpret_cast<std::byte*>(loaded_));
  return loaded_;
}

void Offsets::Add(const Coordinate& coordinate, const Box& box, const int64_t* before,
                  int64_t* offsets) {
  AddCoordinate({Load(coordinate, box), box.lanes, coordinate.extent, coordinate.stride}, before,
                offsets);
}

void Offsets::Begin(const Box& box, int64_t origin) {
  std::fill_n(steady_, box.lanes, origin);
  for (const Coordinate& coordinate : layout_.steady) {
    Add(coordinate, box, steady_, steady_);
  }
}

const int64_t* Offsets::Find(const Box& box) {
  const int64_t* before = steady_;
  for (const Coordinate& coordinate : layout_.varying) {
    Add(coordinate, box, before, offsets_);
    before = offsets_;
  }
  return before;
}

}  // namespace onnxifi::scatter
