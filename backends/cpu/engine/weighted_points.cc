// SPDX-License-Identifier: Apache-2.0
//
// BindWeightedPoints: the walk over tiles of points. A tile's numbers are computed for all of its
// points, as for any step; channels follow, as many as are summed up together.

#include "backends/cpu/engine/weighted_points.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "backends/cpu/engine/frame.h"
#include "backends/cpu/processor/processor.h"

namespace onnxifi::engine {
namespace {

using Tap = WeightedRows::Tap;

constexpr bool IsNarrow(int64_t number) {
  return number >= std::numeric_limits<int32_t>::min() &&
         number <= std::numeric_limits<int32_t>::max();
}

// What of a tap is the same in every tile. Nothing where a guard depends on more than one
// coordinate, or where there is more than one of a coordinate.
std::optional<PointTap> MakeTap(const Tap& tap, const device::BoundView& view) {
  PointTap made = {};
  if (!IsNarrow(view.offset)) return std::nullopt;
  made.offset = static_cast<int32_t>(view.offset);
  for (size_t axis = 0; axis < tap.coordinates.size(); ++axis) {
    if (!IsNarrow(view.strides[axis])) return std::nullopt;
    const auto step = static_cast<int32_t>(view.strides[axis]);
    if (tap.coordinates[axis] >= 0) {
      made.coordinates[made.count++] = {nullptr, step, 0, -1};
    } else {
      made.channel_step = step;
    }
  }
  for (const device::BoundGuard& guard : view.guards) {
    int at = 0;
    PointTap::Coordinate* guarded = nullptr;
    for (size_t axis = 0; axis < tap.coordinates.size(); ++axis) {
      const int64_t factor = guard.coefficients[axis];
      PointTap::Coordinate* const own =
          tap.coordinates[axis] >= 0 ? &made.coordinates[at++] : nullptr;
      if (factor == 0) continue;
      if (factor != 1 || own == nullptr || guarded != nullptr) return std::nullopt;
      guarded = own;
    }
    if (guarded == nullptr || guarded->extent >= 0) return std::nullopt;
    if (guard.offset < -kMaxGuardNumber || guard.offset > kMaxGuardNumber ||
        guard.extent > kMaxGuardNumber) {
      return std::nullopt;
    }
    guarded->start = static_cast<int32_t>(guard.offset);
    guarded->extent = static_cast<int32_t>(std::max<int64_t>(0, guard.extent));
  }
  return made;
}

class BoundPoints final : public device::BoundKernel {
 public:
  BoundPoints(std::shared_ptr<const WeightedRows> rows, std::vector<PointTap> taps,
              const device::BoundStep& step, const device::BoundStep& of_points, Runtime& runtime)
      : rows_(std::move(rows)),
        taps_(std::move(taps)),
        source_(step.reads[static_cast<size_t>(rows_->taps[0].read)].buffer),
        floats_(step.reads[static_cast<size_t>(rows_->taps[0].read)].buffer_bytes /
                static_cast<int64_t>(sizeof(float))),
        numbers_(rows_->numbers, of_points),
        target_(MakeAccess(step.writes[0], static_cast<int>(step.domain.size()))),
        grid_(of_points.domain),
        runtime_(runtime) {
    if (rows_->row_axis != kNoRowAxis) {
      const auto axis = static_cast<size_t>(rows_->row_axis);
      channels_ = step.domain[axis];
      target_step_ = step.writes[0].strides[axis];
    }
    std::vector<LinearForm*> forms;
    numbers_.AppendForms(forms);
    AppendForms(target_, forms);
    grid_.Permute(Grid::SortedAxes(target_.form, 0, grid_.rank()), forms);
    grid_.Join({}, forms);
    grid_.Tile(0, grid_.rank(), runtime.settings().tile_lanes);
    tile_lanes_ = grid_.TileLanes(0, grid_.rank());
    numbers_.LayOut(grid_, tile_lanes_);
    LayOut(target_, grid_);
    for (const Tap& tap : rows_->taps) {
      for (const int root : tap.coordinates) {
        if (root >= 0 && std::ranges::find(narrowed_, root) == narrowed_.end()) {
          narrowed_.push_back(root);
        }
      }
    }
    runtime.scratch().Reserve(numbers_.scratch_bytes() + SumBytes() + NarrowBytes() + TapBytes());
  }

  std::string Detail() const override {
    return "weighted points, " + std::string(processor::VectorName());
  }

  base::Status Run(device::Addresses addresses) const override {
    constexpr int64_t kCostOfTap = 600;  // picoseconds, of a point and a channel
    const auto taps = static_cast<int64_t>(taps_.size());
    const int64_t cost =
        tile_lanes_ * (taps * channels_ * kCostOfTap + numbers_.code().cost() + 100);
    return runtime_.For(grid_.TileCount(0, grid_.rank()), cost,
                        [&](int64_t begin, int64_t end, std::byte* scratch) {
                          RunTiles(addresses, begin, end, scratch);
                        });
  }

 private:
  int64_t SumBytes() const {
    return std::min(channels_, kMaxPointChannels) * ColumnLanes() *
           static_cast<int64_t>(sizeof(float));
  }
  int64_t NarrowBytes() const {
    return static_cast<int64_t>(narrowed_.size()) * ColumnLanes() *
           static_cast<int64_t>(sizeof(int32_t));
  }
  // Columns begin on cache lines.
  int64_t ColumnLanes() const { return (tile_lanes_ + 15) / 16 * 16; }
  int64_t TapBytes() const { return static_cast<int64_t>(taps_.size() * sizeof(PointTap)); }

  void RunTiles(device::Addresses addresses, int64_t begin, int64_t end, std::byte* scratch) const {
    Frame frame(numbers_, addresses, scratch, tile_lanes_);
    scratch += numbers_.scratch_bytes();
    auto* const sums = reinterpret_cast<float*>(scratch);
    auto* const narrow = reinterpret_cast<int32_t*>(scratch + SumBytes());
    const std::span<PointTap> taps(
        reinterpret_cast<PointTap*>(scratch + SumBytes() + NarrowBytes()), taps_.size());
    const auto* const source = reinterpret_cast<const float*>(addresses[source_]);
    const float first = rows_->begins_with_zero ? 0.0F : -0.0F;
    Box box;
    box.extents.fill(1);
    box.rank = grid_.rank();
    grid_.MoveTo(0, grid_.rank(), begin, box);
    for (int64_t tile = begin; tile < end; ++tile) {
      frame.Run(box);
      for (size_t k = 0; k < narrowed_.size(); ++k) {
        NarrowNumbers(reinterpret_cast<const int64_t*>(frame.root(narrowed_[k])), box.lanes,
                      narrow + static_cast<int64_t>(k) * ColumnLanes());
      }
      for (int64_t channel = 0; channel < channels_; channel += kMaxPointChannels) {
        const int64_t count = std::min(kMaxPointChannels, channels_ - channel);
        for (size_t t = 0; t < taps.size(); ++t) {
          taps[t] = taps_[t];
          taps[t].offset += static_cast<int32_t>(channel) * taps[t].channel_step;
          PlaceNumbers(frame, narrow, rows_->taps[t], taps[t]);
        }
        SumPoints(source, floats_, taps, box.lanes, count, first, sums, ColumnLanes());
        for (int64_t c = 0; c < count; ++c) {
          std::byte* const base =
              addresses[target_.buffer] +
              (channel + c) * target_step_ * static_cast<int64_t>(sizeof(float));
          StoreBox(target_, base, box,
                   reinterpret_cast<const std::byte*>(sums + c * ColumnLanes()));
        }
      }
      grid_.MoveOn(0, grid_.rank(), box);
    }
  }

  void PlaceNumbers(const Frame& frame, const int32_t* narrow, const Tap& tap,
                    PointTap& placed) const {
    if (tap.weight >= 0) {
      placed.weights = reinterpret_cast<const float*>(frame.root(tap.weight));
    }
    int at = 0;
    for (const int root : tap.coordinates) {
      if (root < 0) continue;
      const auto column = std::ranges::find(narrowed_, root) - narrowed_.begin();
      placed.coordinates[at++].numbers = narrow + column * ColumnLanes();
    }
  }

  const std::shared_ptr<const WeightedRows> rows_;  // shared with the kernel
  const std::vector<PointTap> taps_;
  const program::BufferId source_;
  const int64_t floats_;
  int64_t channels_ = 1;
  int64_t target_step_ = 0;    // from channel to channel
  std::vector<int> narrowed_;  // roots that are coordinates
  BoundCode numbers_;
  Access target_;
  Grid grid_;
  int64_t tile_lanes_ = 0;
  Runtime& runtime_;
};

}  // namespace

std::unique_ptr<device::BoundKernel> BindWeightedPoints(std::shared_ptr<const WeightedRows> rows,
                                                        const device::BoundStep& step,
                                                        Runtime& runtime) {
  if (rows->reduced_axes > 0 || tensor::ElementCount(step.domain) == 0) return nullptr;
  std::vector<PointTap> taps;
  for (const Tap& tap : rows->taps) {
    const device::BoundView& view = step.reads[static_cast<size_t>(tap.read)];
    // Every place is one of a buffer of so many.
    const int64_t floats = view.buffer_bytes / static_cast<int64_t>(sizeof(float));
    if (view.fill.u != 0 || floats < 1 || !IsNarrow(floats)) return nullptr;
    const std::optional<PointTap> made = MakeTap(tap, view);
    if (!made) return nullptr;
    taps.push_back(*made);
  }
  device::BoundStep of_points = step;
  if (rows->row_axis != kNoRowAxis) of_points.domain[static_cast<size_t>(rows->row_axis)] = 1;
  return std::make_unique<BoundPoints>(std::move(rows), std::move(taps), step, of_points, runtime);
}

}  // namespace onnxifi::engine
