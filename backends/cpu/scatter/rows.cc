// SPDX-License-Identifier: Apache-2.0
//
// RowPlan: the outer coordinates of a tile of rows, then row by row.

#include "backends/cpu/scatter/rows.h"

#include <algorithm>

#include "backends/cpu/engine/any_address.h"

namespace onnxifi::scatter {
namespace {

using device::BoundStep;
using device::BoundView;
using engine::Box;
using engine::Grid;

// Lanes of a tile: the coordinates of one fit in the L1 cache with what is made of them.
constexpr int64_t kTileLanes = 512;

int64_t RowLength(const BoundStep& step, size_t outer_rank) {
  return tensor::ElementCount(std::span(step.domain).subspan(outer_rank));
}

// Whether the last axes of the updates lie contiguous.
bool HasContiguousRows(const BoundStep& step, size_t outer_rank) {
  const BoundView& updates = step.reads[0];
  // A bool in memory may be any byte, of which rows are copied as 0 or 1.
  const bool is_copied = step.step->As<program::Index>()->combine == program::Index::Combine::kNone;
  if (!updates.guards.empty() || (tensor::IsBool(updates.type) && !is_copied)) return false;
  int64_t expected = 1;
  for (size_t axis = step.domain.size(); axis-- > outer_rank;) {
    if (step.domain[axis] != 1 && updates.strides[axis] != expected) return false;
    expected *= step.domain[axis];
  }
  return true;
}

// The fewest outer axes with which no coordinate comes from both sides; nothing if there are none.
std::optional<size_t> FindOuterRank(const BoundStep& step) {
  for (size_t outer_rank = 1; outer_rank < step.domain.size(); ++outer_rank) {
    const uint32_t outer_axes = (uint32_t{1} << outer_rank) - 1;
    const bool is_apart =
        std::all_of(step.reads.begin() + 1, step.reads.end(), [&](const BoundView& view) {
          const uint32_t axes = FindAxes(view, step.domain);
          return (axes & outer_axes) == 0 || (axes & ~outer_axes) == 0;
        });
    if (is_apart && HasContiguousRows(step, outer_rank)) return outer_rank;
  }
  return std::nullopt;
}

BoundView WithoutAxes(BoundView view, size_t count) {
  const auto erased = static_cast<std::ptrdiff_t>(count);
  view.strides.erase(view.strides.begin(), view.strides.begin() + erased);
  for (device::BoundGuard& guard : view.guards) {
    guard.coefficients.erase(guard.coefficients.begin(), guard.coefficients.begin() + erased);
  }
  return view;
}

void LayOut(Grid& grid, Offsets::Layout& layout, engine::Access* other) {
  std::vector<engine::LinearForm*> forms;
  for (Coordinate& coordinate : layout.varying) engine::AppendForms(coordinate.access, forms);
  if (other != nullptr) engine::AppendForms(*other, forms);
  grid.Join({}, forms);
  layout.lanes = grid.Tile(0, grid.rank(), kTileLanes);
  for (Coordinate& coordinate : layout.varying) engine::LayOut(coordinate.access, grid);
}

}  // namespace

std::unique_ptr<const RowPlan> RowPlan::Create(const BoundStep& step, const Target& target,
                                               const Combination& combination) {
  // Of shorter rows each costs more than its elements would.
  constexpr int64_t kMinLength = 4;
  const std::optional<size_t> outer_rank = FindOuterRank(step);
  if (!outer_rank || RowLength(step, *outer_rank) < kMinLength) return nullptr;
  return std::unique_ptr<const RowPlan>(new RowPlan(step, *outer_rank, target, combination));
}

RowPlan::RowPlan(const BoundStep& step, size_t outer_rank, const Target& target,
                 const Combination& combination)
    : target_(target),
      combination_(combination),
      origin_(step.writes[0].offset),
      row_length_(RowLength(step, outer_rank)),
      updates_(step.reads[0].buffer) {
  const std::span<const int64_t> domain = step.domain;
  const uint32_t outer_axes = (uint32_t{1} << outer_rank) - 1;
  const program::Index& index = *step.step->As<program::Index>();
  for (size_t axis = 0; axis + 1 < step.reads.size(); ++axis) {
    const BoundView& view = step.reads[axis + 1];
    const int64_t extent = step.Number(index.target[axis]);
    const int64_t stride = step.writes[0].strides[axis];
    if ((FindAxes(view, domain) & ~outer_axes) == 0) {
      outer_.varying.push_back(
          {engine::MakeAccess(view, static_cast<int>(outer_rank)), extent, stride});
    } else {
      const BoundView along_row = WithoutAxes(view, outer_rank);
      row_.varying.push_back(
          {engine::MakeAccess(along_row, static_cast<int>(domain.size() - outer_rank)), extent,
           stride});
    }
  }
  update_at_ = engine::MakeAccess(step.reads[0], static_cast<int>(outer_rank));
  update_at_.buffer = program::kNoBuffer;
  outer_grid_ = Grid(domain.first(outer_rank));
  LayOut(outer_grid_, outer_, &update_at_);
  row_grid_ = Grid(domain.subspan(outer_rank));
  LayOut(row_grid_, row_, nullptr);
}

int64_t RowPlan::scratch_bytes() const {
  const int64_t numbers_bytes = outer_.lanes * static_cast<int64_t>(sizeof(int64_t));
  return std::max(outer_.scratch_bytes() + numbers_bytes, row_.scratch_bytes());
}

std::optional<int64_t> RowPlan::FindRow(device::Addresses addresses, std::byte* scratch) const {
  Offsets offsets(row_, addresses, scratch);
  Box box = row_grid_.WholeTile();
  offsets.Begin(box, /*origin=*/0);
  int64_t row = 0;
  for (int64_t lane = 0; lane < row_length_;) {
    const int64_t* at = offsets.Find(box);
    if (lane == 0) row = at[0];
    for (int64_t k = 0; k < box.lanes; ++k) {
      if (at[k] != row + lane + k) return std::nullopt;
    }
    lane += box.lanes;
    row_grid_.MoveOn(0, row_grid_.rank(), box);
  }
  const bool is_aligned = engine::IsAligned(addresses[updates_], target_.lane_bytes);
  if (row < kOutside / 2 || !is_aligned) return std::nullopt;
  return row;
}

void RowPlan::Run(device::Addresses addresses, int64_t row, int64_t first, int64_t end,
                  std::byte* scratch) const {
  Offsets offsets(outer_, addresses, scratch);
  auto* update_at = reinterpret_cast<int64_t*>(scratch + outer_.scratch_bytes());
  const std::byte* updates = addresses[updates_];
  std::byte* target = addresses[target_.buffer] + row * target_.lane_bytes;
  Box box = outer_grid_.WholeTile();
  offsets.Begin(box, origin_);
  for (int64_t left = outer_grid_.TileCount(0, outer_grid_.rank()); left-- > 0;) {
    const int64_t* at = offsets.Find(box);
    engine::LoadBox(update_at_, nullptr, box, reinterpret_cast<std::byte*>(update_at));
    for (int64_t k = 0; k < box.lanes; ++k) {
      if (at[k] < first || at[k] >= end) continue;
      combination_.Row(target + at[k] * target_.lane_bytes,
                       updates + update_at[k] * target_.lane_bytes, row_length_);
    }
    outer_grid_.MoveOn(0, outer_grid_.rank(), box);
  }
}

}  // namespace onnxifi::scatter
