// SPDX-License-Identifier: Apache-2.0
//
// Column: how the engine holds values while it evaluates expressions, a block of lanes at a time,
// and how lanes reach memory. Everything in reference/ that reads or writes a buffer does it
// through the functions here, so that views and their guards are honoured in one place.

#ifndef ONNXIFI_BACKENDS_CORE_REFERENCE_COLUMN_H_
#define ONNXIFI_BACKENDS_CORE_REFERENCE_COLUMN_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "backends/core/device/device.h"

namespace onnxifi::reference {

// Lanes of a block. Large enough to hide the cost of one instruction, small enough that columns
// stay in the L1 cache.
inline constexpr int64_t kBlock = 128;

// Bytes of one lane of a column: the element itself; elements narrower than a byte have a byte
// each, in its low bits.
int64_t LaneBytes(tensor::ElementType type);

// Which coordinates the lanes of a block stand for: `lanes` consecutive ones, in row-major order,
// of the axes [first_axis, last_axis) of a domain; the other axes stay at one coordinate.
class Sweep {
 public:
  // Over all axes, at coordinate 0. `extents` outlives the sweep.
  explicit Sweep(std::span<const int64_t> extents)
      : Sweep(extents, 0, static_cast<int>(extents.size())) {}
  Sweep(std::span<const int64_t> extents, int first_axis, int last_axis)
      : extents_(extents),
        first_axis_(first_axis),
        last_axis_(last_axis),
        coordinates_(extents.size(), 0) {}

  // Moves the block to `lanes` positions from the row-major `position` of the swept axes. lanes <=
  // kBlock.
  void Move(int64_t position, int64_t lanes);
  // Moves the axes [first_axis, last_axis) that are not swept to a row-major position of them.
  void Fix(int first_axis, int last_axis, int64_t position);

  int64_t lanes() const { return lanes_; }
  int rank() const { return static_cast<int>(extents_.size()); }
  std::span<const int64_t> extents() const { return extents_; }
  int first_axis() const { return first_axis_; }
  int last_axis() const { return last_axis_; }
  // Of the first lane.
  std::span<const int64_t> coordinates() const { return coordinates_; }

 private:
  std::span<const int64_t> extents_;
  int first_axis_;
  int last_axis_;
  int64_t lanes_ = 0;
  std::vector<int64_t> coordinates_;
};

// Cuts the lanes of a sweep into runs along its last swept axis, or along its last `merged` axes
// taken as one: calls run(coordinates, first_lane, lane_count). `coordinates` are those of the
// run's first lane.
template <typename Run>
void ForEachRun(const Sweep& sweep, int merged, Run&& run) {
  const int end = sweep.last_axis();
  const int begin = end - merged;  // of the merged axes
  if (end == sweep.first_axis()) {
    if (sweep.lanes() > 0) run(sweep.coordinates(), int64_t{0}, sweep.lanes());
    return;
  }
  constexpr int kInlineRank = 16;
  int64_t inline_storage[kInlineRank];
  std::vector<int64_t> heap_storage;
  int64_t* coordinates = inline_storage;
  if (sweep.rank() > kInlineRank) {
    heap_storage.resize(static_cast<size_t>(sweep.rank()));
    coordinates = heap_storage.data();
  }
  for (int axis = 0; axis < sweep.rank(); ++axis) coordinates[axis] = sweep.coordinates()[axis];
  // Position and extent of the merged axes as one.
  int64_t position = 0;
  int64_t extent = 1;
  for (int axis = begin; axis < end; ++axis) {
    position = position * sweep.extents()[axis] + coordinates[axis];
    extent *= sweep.extents()[axis];
  }
  for (int64_t lane = 0; lane < sweep.lanes();) {
    const int64_t left = extent - position;
    const int64_t count = left < sweep.lanes() - lane ? left : sweep.lanes() - lane;
    run(std::span<const int64_t>(coordinates, static_cast<size_t>(sweep.rank())), lane, count);
    lane += count;
    position = 0;
    for (int axis = begin; axis < end; ++axis) coordinates[axis] = 0;
    for (int axis = begin; axis-- > sweep.first_axis();) {
      if (++coordinates[axis] < sweep.extents()[axis]) break;
      coordinates[axis] = 0;
    }
  }
}

// column[lane] = the element of `view` at the lane's coordinates, or its fill. `base` is the
// address of the view's buffer. The view has an axis for each axis of the sweep.
void LoadColumn(const device::BoundView& view, const std::byte* base, const Sweep& sweep,
                std::byte* column);
// As above at coordinates given by columns of int64, one per axis of the view.
void LoadColumnAt(const device::BoundView& view, const std::byte* base,
                  std::span<const std::byte* const> coordinates, int64_t lanes, std::byte* column);
// Writes the lanes. The view has at least as many axes as the sweep sweeps; axes of the sweep
// beyond the view's rank count nothing. Lanes of packed types that share a byte must not be stored
// by two threads at once.
void StoreColumn(const device::BoundView& view, std::byte* base, const Sweep& sweep,
                 const std::byte* column);

}  // namespace onnxifi::reference

#endif  // ONNXIFI_BACKENDS_CORE_REFERENCE_COLUMN_H_
