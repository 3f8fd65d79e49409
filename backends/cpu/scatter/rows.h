// SPDX-License-Identifier: Apache-2.0
//
// RowPlan: updates over [outer axes, row axes] whose coordinates come either from the outer axes or
// from the row axes, and whose rows lie contiguous, in the target too. ScatterND is such.

#ifndef ONNXIFI_BACKENDS_CPU_SCATTER_ROWS_H_
#define ONNXIFI_BACKENDS_CPU_SCATTER_ROWS_H_

#include <memory>
#include <optional>

#include "backends/cpu/scatter/combine.h"
#include "backends/cpu/scatter/offsets.h"

namespace onnxifi::scatter {

// Immutable; threads share it.
class RowPlan {
 public:
  // Null where no axes of the step are such. `step` has updates and a target with elements.
  static std::unique_ptr<const RowPlan> Create(const device::BoundStep& step, const Target& target,
                                               const Combination& combination);

  int64_t row_length() const { return row_length_; }
  int64_t scratch_bytes() const;

  // Where a row lies in the target, counted from where its outer coordinates are. Nothing if the
  // coordinates along the row, which are known only at the run, are not those of contiguous
  // elements, or the updates lie at no address of their type.
  std::optional<int64_t> FindRow(device::Addresses addresses, std::byte* scratch) const;
  // Combines, of all rows in order, those whose outer coordinates are at an element in
  // [first, end) of the target.
  void Run(device::Addresses addresses, int64_t row, int64_t first, int64_t end,
           std::byte* scratch) const;

 private:
  RowPlan(const device::BoundStep& step, size_t outer_rank, const Target& target,
          const Combination& combination);

  const Target& target_;
  const Combination& combination_;
  const int64_t origin_;
  const int64_t row_length_;
  engine::Grid outer_grid_;
  Offsets::Layout outer_;
  engine::Access update_at_;  // the number of a row's first update
  program::BufferId updates_;
  engine::Grid row_grid_;
  Offsets::Layout row_;
};

}  // namespace onnxifi::scatter

#endif  // ONNXIFI_BACKENDS_CPU_SCATTER_ROWS_H_
