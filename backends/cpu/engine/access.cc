// SPDX-License-Identifier: Apache-2.0
//
// Access: tiles from and to memory, by what the view looks like within the tile: rows that lie
// contiguous, a repeated element, elements a stride apart, columns to be turned into rows, planes
// to be turned into pixels, runs that repeat, short runs, or a table of positions where all of
// these are too short.

#include "backends/cpu/engine/access.h"

#include <algorithm>
#include <cstring>

#include "backends/core/reference/column.h"
#include "backends/cpu/engine/any_address.h"
#include "backends/cpu/engine/gather.h"
#include "backends/cpu/engine/interleave.h"
#include "backends/cpu/engine/lane_types.h"
#include "backends/cpu/engine/short_runs.h"
#include "backends/cpu/engine/stream.h"
#include "backends/cpu/transpose/transpose.h"

namespace onnxifi::engine {
namespace {

using tensor::ElementType;

template <typename T>
void Copy(const T* __restrict source, int64_t count, T* __restrict target) {
  constexpr int64_t kWorthACall = 128 / static_cast<int64_t>(sizeof(T));
  if (count >= kWorthACall) {
    std::memcpy(target, source, static_cast<size_t>(count) * sizeof(T));
    return;
  }
  for (int64_t lane = 0; lane < count; ++lane) target[lane] = source[lane];
}

template <typename T>
void StoreRun(T* target, int64_t step, int64_t count, const T* lanes) {
  if (step == 1) return Copy(lanes, count, target);
  for (int64_t lane = 0; lane < count; ++lane) target[lane * step] = lanes[lane];
}

// The axes along which a box has more than one lane, for one form.
struct Walk {
  int rank = 0;
  int64_t extents[kMaxAxes];
  int64_t steps[kMaxAxes];       // of the form
  int64_t lane_steps[kMaxAxes];  // of the lanes
  int axes[kMaxAxes];            // of the box

  // With `joins`, neighbours through which the form steps evenly are one.
  Walk(const LinearForm& form, const Box& box, bool joins) {
    for (int axis = 0; axis < box.rank; ++axis) {
      const int64_t extent = box.extents[axis];
      if (extent == 1) continue;
      const int64_t step = form.steps[axis];
      if (joins && rank > 0 && steps[rank - 1] == WrapMulAdd(0, step, extent)) {
        extents[rank - 1] *= extent;
        steps[rank - 1] = step;
        continue;
      }
      extents[rank] = extent;
      steps[rank] = step;
      axes[rank++] = axis;
    }
    if (rank == 0) {
      extents[0] = 1;
      steps[0] = 0;
      axes[0] = 0;
      rank = box.rank > 0 ? 1 : 0;
    }
    int64_t lane_step = 1;
    for (int k = rank; k-- > 0;) {
      lane_steps[k] = lane_step;
      lane_step *= extents[k];
    }
  }

  int64_t last_extent() const { return rank > 0 ? extents[rank - 1] : 1; }
  int64_t last_step() const { return rank > 0 ? steps[rank - 1] : 0; }

  // A position along which the form steps by 1 where it does not along the last one, or -1; both
  // long enough to be worth a transposition.
  int FindTransposed() const {
    constexpr int64_t kShortest = 4;
    if (rank < 2 || last_step() == 0 || last_step() == 1 || last_extent() < kShortest) return -1;
    for (int k = rank - 1; k-- > 0;) {
      if (steps[k] == 1 && extents[k] >= kShortest) return k;
    }
    return -1;
  }

  // Whether the last position is so few planes that they are interleaved: along the one before it
  // the form steps by 1, for long enough to be worth a call.
  bool IsInterleaved() const {
    constexpr int64_t kShortest = 16;
    return rank >= 2 && last_extent() >= kMinInterleavedPlanes &&
           last_extent() <= kMaxInterleavedPlanes && last_step() != 0 && last_step() != 1 &&
           steps[rank - 2] == 1 && extents[rank - 2] >= kShortest;
  }

  // Whether the last position is a run that a few vectors hold, of which there are several.
  bool HasShortRuns(int64_t lane_bytes) const {
    constexpr int64_t kMinRuns = 4;
    return rank >= 2 && extents[rank - 2] >= kMinRuns && (last_step() == 0 || last_step() == 1) &&
           last_extent() <= LongestShortRun(lane_bytes);
  }

  // Whether the last position is a run of elements apart, which the one before repeats.
  bool HasRepeatedRuns() const {
    return rank >= 2 && steps[rank - 2] == 0 && last_step() != 0 && last_step() != 1;
  }

  // Calls visit(value of the form, lane) at the first lane of every run along the positions
  // `left_out` and `also_left_out`, which may be one, with the form's value counted from 0.
  // `coordinates` follows.
  template <typename Visit>
  void ForEach(int left_out, int also_left_out, int64_t* coordinates, Visit&& visit) const {
    std::fill_n(coordinates, rank, 0);
    int64_t value = 0;
    int64_t lane = 0;
    while (true) {
      visit(value, lane);
      int k = rank - 1;
      for (; k >= 0; --k) {
        if (k == left_out || k == also_left_out) continue;
        value = WrapMulAdd(value, steps[k], 1);
        lane += lane_steps[k];
        if (++coordinates[k] < extents[k]) break;
        value = WrapMulAdd(value, steps[k], -extents[k]);
        lane -= lane_steps[k] * extents[k];
        coordinates[k] = 0;
      }
      if (k < 0) return;
    }
  }
};

// `first` is the address of lane 0; no guard fails.
template <typename T>
void LoadUnguarded(const LinearForm& form, const std::byte* first, const Box& box, T* lanes) {
  const Walk walk(form, box, /*joins=*/true);
  int64_t coordinates[kMaxAxes];
  const int last = walk.rank - 1;
  if (const int rows = walk.FindTransposed(); rows >= 0) {
    walk.ForEach(rows, last, coordinates, [&](int64_t value, int64_t lane) {
      transpose::Transpose(reinterpret_cast<const std::byte*>(ElementAt<T>(first, value)),
                           walk.last_step(), reinterpret_cast<std::byte*>(lanes + lane),
                           walk.lane_steps[rows], walk.extents[rows], walk.last_extent(),
                           sizeof(T));
    });
    return;
  }
  if (walk.IsInterleaved()) {
    walk.ForEach(last - 1, last, coordinates, [&](int64_t value, int64_t lane) {
      Interleave(reinterpret_cast<const std::byte*>(ElementAt<T>(first, value)), walk.last_step(),
                 walk.last_extent(), walk.extents[last - 1],
                 reinterpret_cast<std::byte*>(lanes + lane), sizeof(T));
    });
    return;
  }
  if (walk.HasRepeatedRuns()) {
    const int64_t length = walk.last_extent();
    walk.ForEach(last - 1, last, coordinates, [&](int64_t value, int64_t lane) {
      LoadRun(ElementAt<T>(first, value), walk.last_step(), length, lanes + lane);
      for (int64_t run = 1; run < walk.extents[last - 1]; ++run) {
        Copy(lanes + lane, length, lanes + lane + run * length);
      }
    });
    return;
  }
  if (walk.HasShortRuns(sizeof(T))) {
    walk.ForEach(last - 1, last, coordinates, [&](int64_t value, int64_t lane) {
      LoadShortRuns(reinterpret_cast<const std::byte*>(ElementAt<T>(first, value)),
                    walk.steps[last - 1], walk.last_step(), walk.extents[last - 1],
                    walk.last_extent(), reinterpret_cast<std::byte*>(lanes + lane), sizeof(T));
    });
    return;
  }
  walk.ForEach(last, last, coordinates, [&](int64_t value, int64_t lane) {
    LoadRun(ElementAt<T>(first, value), walk.last_step(), walk.last_extent(), lanes + lane);
  });
}

void LoadCoordinates(const LinearForm& form, const Box& box, int64_t* lanes) {
  const Walk walk(form, box, /*joins=*/true);
  const int64_t begin = ValueAtBegin(form, box);
  int64_t coordinates[kMaxAxes];
  const int64_t step = walk.last_step();
  const int64_t extent = walk.last_extent();
  walk.ForEach(walk.rank - 1, walk.rank - 1, coordinates, [&](int64_t value, int64_t lane) {
    for (int64_t k = 0; k < extent; ++k) lanes[lane + k] = begin + value + k * step;
  });
}

int64_t FloorDiv(int64_t a, int64_t b) {
  return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
}

template <typename T>
void LoadGuarded(const Access& access, const std::byte* first, const Box& box, T* lanes) {
  const Walk walk(access.form, box, /*joins=*/false);
  T fill;
  std::memcpy(&fill, access.fill, sizeof(fill));
  const int last = walk.rank - 1;
  const int64_t count = walk.last_extent();
  int64_t coordinates[kMaxAxes];
  walk.ForEach(last, last, coordinates, [&](int64_t value, int64_t lane) {
    int64_t low = 0;
    int64_t high = count;
    for (const GuardForm& guard : access.guards) {
      int64_t start = ValueAtBegin(guard.form, box);
      for (int k = 0; k < last; ++k) {
        start = WrapMulAdd(start, guard.form.steps[walk.axes[k]], coordinates[k]);
      }
      Narrow(start, last < 0 ? 0 : guard.form.steps[walk.axes[last]], guard.extent, low, high);
    }
    low = std::min(low, count);
    high = std::clamp(high, low, count);
    Fill(lanes + lane, low, fill);
    if (low < high) {
      const int64_t element = WrapMulAdd(value, walk.last_step(), low);
      LoadRun(ElementAt<T>(first, element), walk.last_step(), high - low, lanes + lane + low);
    }
    Fill(lanes + lane + high, count - high, fill);
  });
}

// Whether a tile is walked in steps so short that looking up each lane's position is faster.
bool IsScattered(const Walk& walk, int64_t lane_bytes) {
  constexpr int64_t kVector = 64;
  if (walk.rank == 0) return false;
  if (walk.last_step() == 0 || walk.last_step() == 1) {
    return walk.rank > 1 && walk.last_extent() * lane_bytes < kVector;
  }
  if (const int rows = walk.FindTransposed(); rows >= 0) {
    return walk.extents[rows] * lane_bytes < kVector;
  }
  // Vectors gather what is wide enough, in runs of any length.
  return lane_bytes >= 4 || walk.last_extent() * lane_bytes < kVector;
}

std::vector<int32_t> PositionsOf(const Walk& walk, int64_t lanes) {
  std::vector<int32_t> positions(static_cast<size_t>(lanes));
  int64_t coordinates[kMaxAxes];
  const int last = walk.rank - 1;
  walk.ForEach(last, last, coordinates, [&](int64_t value, int64_t lane) {
    for (int64_t k = 0; k < walk.last_extent(); ++k) {
      positions[static_cast<size_t>(lane + k)] = static_cast<int32_t>(value + k * walk.last_step());
    }
  });
  return positions;
}

LinearForm MakeForm(int64_t offset, std::span<const int64_t> steps, int rank) {
  LinearForm form{offset, {}};
  std::copy_n(steps.begin(), std::min<size_t>(steps.size(), static_cast<size_t>(rank)),
              form.steps.begin());
  return form;
}

}  // namespace

void Narrow(int64_t start, int64_t step, int64_t extent, int64_t& low, int64_t& high) {
  if (step == 0) {
    if (start < 0 || start >= extent) high = low;
    return;
  }
  // Numbers this large only come from saturated expressions; short of the ends they can be added
  // and negated.
  constexpr int64_t kFar = int64_t{1} << 61;
  start = std::clamp(start, -kFar, kFar);
  step = std::clamp(step, -kFar, kFar);
  extent = std::clamp(extent, -kFar, kFar);
  int64_t first;
  int64_t end;
  if (step > 0) {
    first = -FloorDiv(start, step);
    end = FloorDiv(extent - 1 - start, step) + 1;
  } else {
    first = FloorDiv(start - extent, -step) + 1;
    end = FloorDiv(start, -step) + 1;
  }
  low = std::max(low, first);
  high = std::max(low, std::min(high, end));
}

Access MakeAccess(const device::BoundView& view, int rank) {
  Access access{.buffer = view.buffer, .type = view.type};
  access.lane_bytes = reference::LaneBytes(view.type);
  access.form = MakeForm(view.offset, view.strides, rank);
  for (const device::BoundGuard& guard : view.guards) {
    access.guards.push_back({MakeForm(guard.offset, guard.coefficients, rank), guard.extent});
  }
  tensor::StoreScalar(view.type, access.fill, 0, view.fill);
  return access;
}

Access MakeCoordinate(int axis) {
  Access access;
  access.form.steps[axis] = 1;
  return access;
}

void AppendForms(Access& access, std::vector<LinearForm*>& forms) {
  forms.push_back(&access.form);
  for (GuardForm& guard : access.guards) forms.push_back(&guard.form);
}

void LayOut(Access& access, const Grid& grid) {
  access.is_uniform =
      grid.IsUniformInTiles(access.form) &&
      std::all_of(access.guards.begin(), access.guards.end(),
                  [&](const GuardForm& guard) { return grid.IsUniformInTiles(guard.form); });
  access.is_dense = access.buffer != program::kNoBuffer && grid.IsDense(access.form);
  if (access.is_dense || grid.TileCount(0, grid.rank()) == 1) return;
  access.is_repeated = access.guards.empty() && grid.IsRepeated(access.form);
  // A table as large as a register; larger ones leave too little of the cache.
  constexpr int64_t kMaxPositions = 2048;
  const Box tile = grid.WholeTile();
  if (access.is_repeated || access.buffer == program::kNoBuffer || tile.lanes > kMaxPositions ||
      !grid.HasPrefixesAtEdges()) {
    return;
  }
  __int128 reach = 0;
  for (int axis = 0; axis < tile.rank; ++axis) {
    const __int128 step = access.form.steps[axis];
    reach += (step < 0 ? -step : step) * (tile.extents[axis] - 1);
  }
  const Walk walk(access.form, tile, /*joins=*/true);
  if (reach > INT32_MAX || !IsScattered(walk, access.lane_bytes)) return;
  access.has_fast_loads =
      walk.IsInterleaved() || walk.HasRepeatedRuns() || walk.HasShortRuns(access.lane_bytes);
  access.positions = PositionsOf(walk, tile.lanes);
}

Inside FindInside(const Access& access, const Box& box) {
  using Wide = __int128;
  Inside inside = Inside::kAll;
  for (const GuardForm& guard : access.guards) {
    Wide lowest = guard.form.offset;
    for (int axis = 0; axis < box.rank; ++axis) {
      lowest += static_cast<Wide>(guard.form.steps[axis]) * box.begin[axis];
    }
    Wide highest = lowest;
    for (int axis = 0; axis < box.rank; ++axis) {
      const Wide reach = static_cast<Wide>(guard.form.steps[axis]) * (box.extents[axis] - 1);
      (reach < 0 ? lowest : highest) += reach;
    }
    if (highest < 0 || lowest >= guard.extent) return Inside::kNone;
    if (lowest < 0 || highest >= guard.extent) inside = Inside::kSome;
  }
  return inside;
}

void LoadBox(const Access& access, const std::byte* base, const Box& box, std::byte* lanes) {
  if (access.buffer == program::kNoBuffer) {
    return LoadCoordinates(access.form, box, reinterpret_cast<int64_t*>(lanes));
  }
  const Inside inside = FindInside(access, box);
  WithLaneType(access.lane_bytes, [&](auto lane_type) {
    using T = decltype(lane_type);
    auto* typed = reinterpret_cast<T*>(lanes);
    T fill;
    std::memcpy(&fill, access.fill, sizeof(fill));
    if (inside == Inside::kNone) return Fill(typed, box.lanes, fill);
    const std::byte* first = base + WrapMulAdd(0, ValueAtBegin(access.form, box), sizeof(T));
    const bool is_gathered = !access.positions.empty() && !access.has_fast_loads;
    if (inside == Inside::kAll && is_gathered && IsAligned(first, sizeof(T))) {
      return Gather(first, access.positions.data(), box.lanes, lanes, access.lane_bytes);
    }
    if (inside == Inside::kAll) return LoadUnguarded(access.form, first, box, typed);
    LoadGuarded(access, first, box, typed);
  });
  if (access.type == ElementType::kBool) MakeBool(reinterpret_cast<uint8_t*>(lanes), box.lanes);
}

void StoreBox(const Access& access, std::byte* base, const Box& box, const std::byte* lanes) {
  if (!access.positions.empty()) {
    return Scatter(lanes, access.positions.data(), box.lanes, AddressOf(access, box, base),
                   access.lane_bytes);
  }
  WithLaneType(access.lane_bytes, [&](auto lane_type) {
    using T = decltype(lane_type);
    const auto* typed = reinterpret_cast<const T*>(lanes);
    std::byte* first = AddressOf(access, box, base);
    const Walk walk(access.form, box, /*joins=*/true);
    int64_t coordinates[kMaxAxes];
    const int last = walk.rank - 1;
    if (const int rows = walk.FindTransposed(); rows >= 0) {
      walk.ForEach(rows, last, coordinates, [&](int64_t value, int64_t lane) {
        transpose::Transpose(reinterpret_cast<const std::byte*>(typed + lane),
                             walk.lane_steps[rows],
                             reinterpret_cast<std::byte*>(ElementAt<T>(first, value)),
                             walk.last_step(), walk.last_extent(), walk.extents[rows], sizeof(T));
      });
      return;
    }
    walk.ForEach(last, last, coordinates, [&](int64_t value, int64_t lane) {
      StoreRun(ElementAt<T>(first, value), walk.last_step(), walk.last_extent(), typed + lane);
    });
  });
}

void StreamBox(const Access& access, std::byte* base, const Box& box, const std::byte* lanes) {
  const Walk walk(access.form, box, /*joins=*/true);
  if (walk.rank > 0 && walk.last_step() != 1) return StoreBox(access, base, box, lanes);
  std::byte* first = AddressOf(access, box, base);
  const int last = walk.rank - 1;
  int64_t coordinates[kMaxAxes];
  walk.ForEach(last, last, coordinates, [&](int64_t value, int64_t lane) {
    StreamBytes(lanes + lane * access.lane_bytes, walk.last_extent() * access.lane_bytes,
                first + WrapMulAdd(0, value, access.lane_bytes));
  });
}

}  // namespace onnxifi::engine
