// SPDX-License-Identifier: Apache-2.0
//
// Geometry: sorting, joining and tiling of axes.

#include "backends/cpu/engine/geometry.h"

#include <algorithm>
#include <numeric>

namespace onnxifi::engine {
namespace {

// The size of a step, with no overflow for the smallest number.
uint64_t Size(int64_t step) {
  return step < 0 ? ~static_cast<uint64_t>(step) + 1 : static_cast<uint64_t>(step);
}

}  // namespace

int64_t ValueAtBegin(const LinearForm& form, const Box& box) {
  int64_t value = form.offset;
  for (int axis = 0; axis < box.rank; ++axis) {
    value = WrapMulAdd(value, form.steps[axis], box.begin[axis]);
  }
  return value;
}

Grid::Grid(std::span<const int64_t> extents) : rank_(static_cast<int>(extents.size())) {
  std::copy(extents.begin(), extents.end(), extents_.begin());
  tile_ = extents_;
}

std::vector<int> Grid::SortedAxes(const LinearForm& form, int first_axis, int end_axis) {
  std::vector<int> order(static_cast<size_t>(end_axis - first_axis));
  std::iota(order.begin(), order.end(), first_axis);
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return Size(form.steps[a]) > Size(form.steps[b]); });
  return order;
}

void Grid::Permute(std::span<const int> order, std::span<LinearForm* const> forms) {
  const std::array<int64_t, kMaxAxes> extents = extents_;
  for (int axis = 0; axis < rank_; ++axis) extents_[axis] = extents[order[axis]];
  for (LinearForm* form : forms) {
    const std::array<int64_t, kMaxAxes> steps = form->steps;
    for (int axis = 0; axis < rank_; ++axis) form->steps[axis] = steps[order[axis]];
  }
  tile_ = extents_;
}

void Grid::Join(std::span<int> boundaries, std::span<LinearForm* const> forms) {
  int kept = 0;
  int run_begin = 0;  // no axis joins one before this
  size_t boundary = 0;
  for (int axis = 0; axis < rank_; ++axis) {
    for (; boundary < boundaries.size() && boundaries[boundary] == axis; ++boundary) {
      boundaries[boundary] = run_begin = kept;
    }
    if (extents_[axis] == 1) continue;
    const bool is_joined =
        kept > run_begin && std::all_of(forms.begin(), forms.end(), [&](const LinearForm* form) {
          return form->steps[kept - 1] == WrapMulAdd(0, form->steps[axis], extents_[axis]);
        });
    const int target = is_joined ? kept - 1 : kept++;
    extents_[target] = is_joined ? extents_[target] * extents_[axis] : extents_[axis];
    for (LinearForm* form : forms) form->steps[target] = form->steps[axis];
  }
  for (; boundary < boundaries.size(); ++boundary) boundaries[boundary] = kept;
  rank_ = kept;
  tile_ = extents_;
}

namespace {

// The longest part of an axis cut evenly into as few as have up to `most` each, but for the last.
// Parts of whole vectors where there are several.
int64_t EvenPart(int64_t extent, int64_t most) {
  constexpr int64_t kVector = 64;
  if (most <= 1) return 1;
  if (extent <= most) return extent;
  const int64_t count = (extent + most - 1) / most;
  const int64_t part = (extent + count - 1) / count;
  return std::min(most, (part + kVector - 1) / kVector * kVector);
}

}  // namespace

int64_t Grid::Tile(int first_axis, int end_axis, int64_t lanes) {
  int64_t left = lanes;
  int64_t filled = 1;
  for (int axis = end_axis; axis-- > first_axis;) {
    tile_[axis] = EvenPart(extents_[axis], left);
    filled *= tile_[axis];
    left = tile_[axis] == extents_[axis] ? left / tile_[axis] : 0;
  }
  return filled;
}

void Grid::TileTransposed(int axis, int64_t lanes) {
  const int last = rank_ - 1;
  int64_t side = 1;
  while (side * side * 4 <= lanes) side *= 2;
  const int64_t rows = std::min(extents_[axis], side);
  tile_.fill(1);
  tile_[last] = std::min(extents_[last], lanes / rows);
  tile_[axis] = std::min(extents_[axis], lanes / tile_[last]);
  int64_t left = lanes / (tile_[axis] * tile_[last]);
  for (int other = last; other-- > 0 && left > 1;) {
    if (other == axis) continue;
    tile_[other] = std::min(extents_[other], left);
    left = tile_[other] == extents_[other] ? left / tile_[other] : 0;
  }
}

int64_t Grid::TileCount(int first_axis, int end_axis) const {
  int64_t count = 1;
  for (int axis = first_axis; axis < end_axis; ++axis) {
    count *= (extents_[axis] + tile_[axis] - 1) / tile_[axis];
  }
  return count;
}

int64_t Grid::TileLanes(int first_axis, int end_axis) const {
  int64_t lanes = 1;
  for (int axis = first_axis; axis < end_axis; ++axis) lanes *= tile_[axis];
  return lanes;
}

void Grid::Measure(int first_axis, int end_axis, Box& box) const {
  for (int axis = first_axis; axis < end_axis; ++axis) {
    box.extents[axis] = std::min(tile_[axis], extents_[axis] - box.begin[axis]);
  }
  box.lanes = 1;
  for (int axis = 0; axis < rank_; ++axis) box.lanes *= box.extents[axis];
}

void Grid::MoveTo(int first_axis, int end_axis, int64_t tile, Box& box) const {
  box.rank = rank_;
  for (int axis = end_axis; axis-- > first_axis;) {
    const int64_t count = (extents_[axis] + tile_[axis] - 1) / tile_[axis];
    box.begin[axis] = tile % count * tile_[axis];
    tile /= count;
  }
  Measure(first_axis, end_axis, box);
}

void Grid::MoveOn(int first_axis, int end_axis, Box& box) const {
  for (int axis = end_axis; axis-- > first_axis;) {
    box.begin[axis] += tile_[axis];
    if (box.begin[axis] < extents_[axis]) break;
    box.begin[axis] = 0;
  }
  Measure(first_axis, end_axis, box);
}

bool Grid::IsDense(const LinearForm& form) const {
  int64_t expected = 1;
  bool is_cut = false;  // the lanes of a tile at an edge lie closer there
  for (int axis = rank_; axis-- > 0;) {
    if (tile_[axis] == 1) continue;
    if (is_cut || form.steps[axis] != expected) return false;
    is_cut = extents_[axis] % tile_[axis] != 0;
    expected *= tile_[axis];
  }
  return true;
}

bool Grid::HasPrefixesAtEdges() const {
  bool is_cut = false;
  for (int axis = rank_; axis-- > 0;) {
    if (tile_[axis] == 1) continue;
    if (is_cut) return false;
    is_cut = extents_[axis] % tile_[axis] != 0;
  }
  return true;
}

bool Grid::IsRepeated(const LinearForm& form) const {
  for (int axis = 0; axis < rank_; ++axis) {
    if (tile_[axis] < extents_[axis] && form.steps[axis] != 0) return false;
  }
  return HasPrefixesAtEdges();
}

bool Grid::IsUniformInTiles(const LinearForm& form) const {
  for (int axis = 0; axis < rank_; ++axis) {
    if (tile_[axis] > 1 && form.steps[axis] != 0) return false;
  }
  return true;
}

Box Grid::WholeTile() const {
  Box box;
  MoveTo(0, rank_, 0, box);
  return box;
}

}  // namespace onnxifi::engine
