// SPDX-License-Identifier: Apache-2.0
//
// ElementPlan: the offsets of a tile of updates, then its elements.

#include "backends/cpu/scatter/elements.h"

#include <algorithm>
#include <bit>

#include "backends/cpu/engine/lane_types.h"

namespace onnxifi::scatter {
namespace {

using device::BoundStep;
using device::BoundView;
using engine::Access;
using engine::Box;

// Lanes of a tile: its updates and their coordinates fit in the L1 cache.
constexpr int64_t kTileLanes = 512;

}  // namespace

std::optional<SplitAxis> FindSplitAxis(const BoundStep& step) {
  std::optional<SplitAxis> longest;
  for (size_t read = 1; read < step.reads.size(); ++read) {
    const BoundView& view = step.reads[read];
    const uint32_t axes = FindAxes(view, step.domain);
    if (!view.guards.empty() || std::popcount(axes) != 1) continue;
    const int axis = std::countr_zero(axes);
    if (!longest ||
        step.domain[static_cast<size_t>(axis)] > step.domain[static_cast<size_t>(longest->axis)]) {
      longest = {axis, static_cast<int>(read)};
    }
  }
  return longest;
}

bool Ascends(const BoundStep& step, const SplitAxis& split, device::Addresses addresses) {
  const BoundView& view = step.reads[static_cast<size_t>(split.read)];
  const auto axis = static_cast<size_t>(split.axis);
  const auto* first = engine::ElementAt<int64_t>(
      static_cast<const std::byte*>(addresses[view.buffer]), view.offset);
  int64_t before = first->value;
  for (int64_t k = 1; k < step.domain[axis]; ++k) {
    const int64_t at = first[k * view.strides[axis]].value;
    if (at <= before) return false;
    before = at;
  }
  return true;
}

ElementPlan::ElementPlan(const BoundStep& step, int split_axis, const Target& target,
                         const Combination& combination)
    : target_(target),
      combination_(combination),
      origin_(step.writes[0].offset),
      grid_(step.domain) {
  const int rank = grid_.rank();
  const program::Index& index = *step.step->As<program::Index>();
  updates_ = engine::MakeAccess(step.reads[0], rank);
  std::vector<Coordinate> coordinates;
  for (size_t axis = 0; axis + 1 < step.reads.size(); ++axis) {
    coordinates.push_back({engine::MakeAccess(step.reads[axis + 1], rank),
                           step.Number(index.target[axis]), step.writes[0].strides[axis]});
  }
  std::vector<engine::LinearForm*> forms;
  engine::AppendForms(updates_, forms);
  for (Coordinate& coordinate : coordinates) engine::AppendForms(coordinate.access, forms);
  if (split_axis >= 0) {
    int boundaries[] = {split_axis, split_axis + 1};
    grid_.Join(boundaries, forms);
    split_begin_ = boundaries[0];
    split_end_ = boundaries[1];
  } else {
    grid_.Join({}, forms);
  }
  Tile();
  layout_.lanes = grid_.TileLanes(0, grid_.rank());
  engine::LayOut(updates_, grid_);
  // A bool in memory may be any byte.
  if (tensor::IsBool(updates_.type)) updates_.is_dense = false;
  for (Coordinate& coordinate : coordinates) {
    engine::LayOut(coordinate.access, grid_);
    auto& kind = IsSteady(coordinate.access) ? layout_.steady : layout_.varying;
    kind.push_back(std::move(coordinate));
  }
}

void ElementPlan::Tile() {
  const int rank = grid_.rank();
  const int64_t inner = grid_.Tile(split_end_, rank, kTileLanes);
  int64_t split = 1;
  if (split_begin_ < split_end_) {
    // Parts enough for threads, but each with whole cache lines.
    constexpr int64_t kParts = 8;
    constexpr int64_t kMinLanes = 16;
    const int64_t extent = grid_.extent(split_begin_);
    split = std::max((extent + kParts - 1) / kParts, (kMinLanes + inner - 1) / inner);
    split = std::clamp<int64_t>(split, 1, std::max<int64_t>(1, kTileLanes / inner));
    split = grid_.Tile(split_begin_, split_end_, split);
  }
  grid_.Tile(0, split_begin_, std::max<int64_t>(1, kTileLanes / (inner * split)));
}

// Whether tiles that differ only along other axes than the split one have the same lanes, those at
// an edge the first of them.
bool ElementPlan::IsSteady(const Access& access) const {
  bool is_cut = false;
  for (int axis = grid_.rank(); axis-- > 0;) {
    const bool is_whole = grid_.tile_extent(axis) == grid_.extent(axis);
    const bool is_split = axis >= split_begin_ && axis < split_end_;
    if (!is_whole && !is_split) {
      if (access.form.steps[axis] != 0) return false;
      for (const engine::GuardForm& guard : access.guards) {
        if (guard.form.steps[axis] != 0) return false;
      }
    }
    if (grid_.tile_extent(axis) == 1) continue;
    if (is_cut) return false;
    is_cut = !is_split && grid_.extent(axis) % grid_.tile_extent(axis) != 0;
  }
  return true;
}

int64_t ElementPlan::scratch_bytes() const {
  return layout_.scratch_bytes() + layout_.lanes * target_.lane_bytes;
}

const std::byte* ElementPlan::LoadUpdates(device::Addresses addresses, const Box& box,
                                          std::byte* lanes) const {
  std::byte* base = addresses[updates_.buffer];
  if (updates_.is_dense &&
      (updates_.guards.empty() || engine::FindInside(updates_, box) == engine::Inside::kAll)) {
    const std::byte* first = engine::AddressOf(updates_, box, base);
    if (engine::IsAligned(first, updates_.lane_bytes)) return first;
  }
  engine::LoadBox(updates_, base, box, lanes);
  return lanes;
}

void ElementPlan::Run(device::Addresses addresses, int64_t first_part, int64_t end_part,
                      std::byte* scratch) const {
  Offsets offsets(layout_, addresses, scratch);
  std::byte* lanes = scratch + layout_.scratch_bytes();
  std::byte* target = addresses[target_.buffer];
  const int rank = grid_.rank();
  Box box;
  for (int64_t part = first_part; part < end_part; ++part) {
    grid_.MoveTo(split_begin_, split_end_, part, box);
    grid_.MoveTo(0, split_begin_, 0, box);
    grid_.MoveTo(split_end_, rank, 0, box);
    offsets.Begin(box, origin_);
    for (int64_t outer = grid_.TileCount(0, split_begin_); outer-- > 0;) {
      for (int64_t inner = grid_.TileCount(split_end_, rank); inner-- > 0;) {
        const int64_t* at = offsets.Find(box);
        combination_.Elements(target, at, LoadUpdates(addresses, box, lanes), box.lanes);
        grid_.MoveOn(split_end_, rank, box);
      }
      grid_.MoveOn(0, split_begin_, box);
    }
  }
}

}  // namespace onnxifi::scatter
