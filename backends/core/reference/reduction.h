// SPDX-License-Identifier: Apache-2.0
//
// Reduction: a tuple state carried over elements, as Reduce, Row and Scan share it. Lanes of a
// block are either different reductions, each taking one element at a time, or parts of one
// reduction that are merged at its end.

#ifndef ONNXIFI_BACKENDS_CORE_REFERENCE_REDUCTION_H_
#define ONNXIFI_BACKENDS_CORE_REFERENCE_REDUCTION_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "backends/core/base/result.h"
#include "backends/core/program/step.h"
#include "backends/core/reference/expression.h"

namespace onnxifi::reference {

// Columns of one block of lanes, by position, with their memory.
class Columns {
 public:
  explicit Columns(std::span<const tensor::ElementType> types);
  std::span<std::byte* const> all() const { return columns_; }
  // Copies `lanes` lanes into column k.
  void Set(int k, const std::byte* source, int64_t lanes);
  // Copies the lane at `source` into the first `lanes` lanes of column k.
  void Repeat(int k, const std::byte* source, int64_t lanes);

 private:
  std::vector<int64_t> lane_bytes_;
  Scratch memory_;
  std::vector<std::byte*> columns_;
};

struct CompiledReduction {
  Expression init;
  Expression update;
  Expression merge;
  std::vector<tensor::ElementType> types;

  static base::Result<CompiledReduction> Compile(const program::ExprPool& pool,
                                                 const program::Reduction& reduction);
};

struct BoundReduction {
  const CompiledReduction* reduction;
  std::vector<int64_t> init_dims, update_dims, merge_dims;

  BoundReduction(const CompiledReduction& compiled, std::span<const int64_t> dims);
};

// The state of one block of lanes. For one thread.
class ReductionFrame {
 public:
  ReductionFrame(const BoundReduction& bound, std::span<const device::BoundView> reads,
                 device::Addresses addresses);

  // For expressions that read results of earlier passes.
  void AttachRows(std::span<const std::vector<std::byte*>> rows);
  // Lanes are different reductions: begins one per lane of `sweep`.
  void Begin(const Sweep& sweep);
  // Lanes are parts of one reduction: begins `lanes` parts of it, at the first lane of `sweep`.
  void BeginParts(const Sweep& sweep, int64_t lanes);
  // Reduces the element of each lane into its state.
  void Update(const Sweep& sweep);
  // Joins the states of `lanes` parts into lane 0: part n + 64 into part n, then n + 32, and so on.
  void MergeParts(int64_t lanes);
  std::span<std::byte* const> state() const { return state_.all(); }

 private:
  const CompiledReduction& reduction_;
  Columns state_;
  std::vector<std::byte*> other_;  // the state columns from a later lane on
  Frame init_;
  Frame update_;
  Frame merge_;
};

// Whether to reduce `count` elements for each of `reduction_count` results as parts side by side:
// long reductions gain accuracy by it (a sum of sums), few reductions speed. Depends on extents
// alone, so that results do not depend on threads.
inline bool UsesPartialSums(int64_t reduction_count, int64_t count) {
  return count >= 64 || count > reduction_count;
}

// The same for rows, which are short and many: in parts too, but for the shortest.
inline bool RowUsesPartialSums(int64_t row_count, int64_t row_length) {
  return row_length >= 4 || row_length > row_count;
}

}  // namespace onnxifi::reference

#endif  // ONNXIFI_BACKENDS_CORE_REFERENCE_REDUCTION_H_
