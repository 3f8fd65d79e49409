// SPDX-License-Identifier: Apache-2.0
//
// Computed loads: elements of a view at coordinates that an expression computes, as Gather, Resize
// and GridSample read them. Addresses are computed modulo 2^64: a coordinate may be any number, and
// is only an address once the guards let it pass.

#ifndef ONNXIFI_BACKENDS_CPU_ENGINE_COMPUTED_LOADS_H_
#define ONNXIFI_BACKENDS_CPU_ENGINE_COMPUTED_LOADS_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "backends/core/device/device.h"

namespace onnxifi::engine {

// sums[k] += step * numbers[k], modulo 2^64. They do not overlap.
void AddMultiples(int64_t step, const int64_t* numbers, int64_t count, int64_t* sums);

// One element per lane, at columns of int64 coordinates of the view.
void LoadAt(const device::BoundView& view, const std::byte* base,
            std::span<const std::byte* const> coordinates, int64_t count, std::byte* lanes);

// The coordinates of lanes [rows, length].
struct RowCoordinates {
  // Per axis of the view int64 numbers: one per row, or one per lane of a row.
  std::span<const std::byte* const> numbers;
  // The axis whose coordinate is `begin` plus the lane's number in its row; -1: none.
  int along = -1;
  int64_t begin = 0;
  // Bit k: axis k has numbers per lane, the same in every row.
  uint32_t columns = 0;
  int64_t rows = 0;
  int64_t length = 0;
};
void LoadRowsAt(const device::BoundView& view, const std::byte* base,
                const RowCoordinates& coordinates, std::byte* lanes);

}  // namespace onnxifi::engine

#endif  // ONNXIFI_BACKENDS_CPU_ENGINE_COMPUTED_LOADS_H_
