// SPDX-License-Identifier: Apache-2.0
//
// Reduction: a tuple state carried over elements, as Reduce and Row share it. The update is cut in
// two: what it computes from an element alone runs over whole tiles, what needs the state over the
// lanes of the state.

#ifndef ONNXIFI_BACKENDS_CPU_ENGINE_REDUCTION_H_
#define ONNXIFI_BACKENDS_CPU_ENGINE_REDUCTION_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "backends/core/program/step.h"
#include "backends/cpu/engine/frame.h"
#include "backends/cpu/engine/row_reduction.h"

namespace onnxifi::engine {

struct ReductionCode {
  Code init;
  Code elements;  // roots: what enters the update, as its kAccumulator
  Code update;
  Code merge;
  std::vector<tensor::ElementType> types;
  std::vector<program::ExprId> element_nodes;  // the roots of `elements`

  // The nodes in `provided` are not computed per element but come from outside, as kAccumulator of
  // `elements`.
  static ReductionCode Compile(const program::ExprPool& pool, const program::Reduction& reduction,
                               LoopSet loops, std::span<const program::ExprId> provided = {});
};

// How the axes of a step that reduces are walked: those of A one coordinate at a time, then the
// reduced axes in row-major order, then, innermost, lanes of different results. One result is
// reduced in `parts` parts side by side (element n into part n modulo parts, joined at the end in
// halves), so a tile is [elements, lanes] and the state [parts, lanes]. Parts and their order are
// those of the reference (UsesPartialSums, kBlock), so sums are the same to the last bit, on every
// processor and with any number of threads. Or by row: a tile is [lanes, elements], with all
// elements of its results, and parts are lanes of vectors.
class ReductionGrid {
 public:
  struct Options {
    int64_t tile_lanes;
    // Whether the parts are those of rows (RowUsesPartialSums).
    bool is_row = false;
    // Whether reductions can be done by row; they are where elements lie closer than results.
    bool allows_rows = false;
    // Reductions of at most so many elements are else done side by side, even if that takes a
    // transposition.
    int64_t short_reduction = 0;
    // Of a tile that does not hold its reduction.
    int64_t max_result_lanes = INT64_MAX;
    // A tile has all elements of its results; CanHold allows it.
    bool holds_reduction = false;
  };

  ReductionGrid() = default;
  // The last `axes` axes of `domain` are reduced. `primary`, one of `forms` or null, says what
  // should be met in order. All forms change with the axes.
  ReductionGrid(std::span<const int64_t> domain, int axes, const LinearForm* primary,
                std::span<LinearForm* const> forms, const Options& options);

  // Whether that many elements fit in one tile, if not in the L1 cache.
  static bool CanHold(int64_t elements, int64_t tile_lanes) {
    return elements > 0 && elements <= kHeldTiles * tile_lanes;
  }

  // Results of a tile that has all of so many elements of each.
  static int64_t HeldLanes(int64_t elements, int64_t tile_lanes) {
    return kHeldTiles * tile_lanes / std::max<int64_t>(1, elements);
  }

  // Nothing to write.
  bool has_no_results() const { return has_no_results_; }
  // Results are those of no elements.
  bool has_no_elements() const { return has_no_elements_; }
  int64_t elements() const { return elements_; }
  int64_t parts() const { return parts_; }
  bool is_by_row() const { return is_by_row_; }

  // Grids of the same axes whose tiles are [elements, lanes], and [1, lanes].
  const Grid& elements_grid() const { return elements_grid_; }
  const Grid& results_grid() const { return results_grid_; }
  int64_t tile_lanes() const;    // of the former
  int64_t result_lanes() const;  // of the latter

  // Tiles of results are numbered; `box` becomes [1, lanes] of one.
  int64_t result_tile_count() const;
  void MoveToResult(int64_t tile, Box& box) const;
  // The first tile of elements of the results in `box`, and the next ones.
  Box FirstElements(const Box& result) const;
  void MoveOn(Box& box) const { elements_grid_.MoveOn(reduced_begin_, reduced_end_, box); }
  int64_t element_tile_count() const {
    return elements_grid_.TileCount(reduced_begin_, reduced_end_);
  }
  // Lanes of different results in a tile of either grid.
  int64_t LanesOf(const Box& box) const;

 private:
  static constexpr int64_t kHeldTiles = 8;

  void TileByLanes(const LinearForm* primary, bool in_parts, const Options& options);

  bool has_no_results_ = false;
  bool has_no_elements_ = false;
  bool is_by_row_ = false;
  int64_t elements_ = 1;
  int64_t parts_ = 1;
  int reduced_begin_ = 0;
  int reduced_end_ = 0;
  // Axes of different results in a tile.
  int lanes_begin_ = 0;
  int lanes_end_ = 0;
  Grid elements_grid_;
  Grid results_grid_;
};

// Immutable once laid out.
class BoundReduction {
 public:
  BoundReduction(const ReductionCode& code, const device::BoundStep& step);

  const ReductionCode& code() const { return *code_; }
  void AppendForms(std::vector<LinearForm*>& forms);
  std::span<const Access> accesses() const { return elements_.accesses(); }
  void LayOut(const ReductionGrid& grid);
  int64_t scratch_bytes() const { return scratch_bytes_; }
  // Whether a grid by row can be.
  bool CanReduceRows() const { return row_reduction_ != nullptr; }
  // Whether all elements of a tile are reduced at once, in parts.
  bool CanReduceColumnsInParts() const { return column_reduction_in_parts_ != nullptr; }

 private:
  friend class ReductionFrame;
  // A loop that is the whole of an update or merge, and which of its inputs the state is.
  struct Direct {
    Loop loop = nullptr;
    program::ExprOp op{};
    int state_input = 0;
    LoopOperands operands{};
  };
  static Direct FindDirect(const Code& code, program::ExprOp other);

  const ReductionCode* code_;
  BoundCode init_, elements_, update_, merge_;
  Direct direct_update_, direct_merge_;
  RowReduction row_reduction_ = nullptr;
  // Reduces all elements of a tile at once: where a state has a single part, or for all parts of
  // it; and, in parts, where the tile has all elements of its results.
  ColumnReduction column_reduction_ = nullptr;
  ColumnReduction column_reduction_in_parts_ = nullptr;
  std::vector<int64_t> state_offsets_;
  int64_t tile_lanes_ = 0;
  int64_t parts_ = 1;
  int64_t scratch_bytes_ = 0;
};

// The states of one tile of results. For one thread.
class ReductionFrame {
 public:
  // `scratch` holds bound.scratch_bytes() on a cache line boundary.
  ReductionFrame(const BoundReduction& bound, const ReductionGrid& grid,
                 device::Addresses addresses, std::byte* scratch);

  // Makes kRow read from at(payload), which for elements has a lane for each of a tile.
  template <typename AtResult, typename AtElement>
  void AttachRows(AtResult&& at_result, AtElement&& at_element) {
    init_.Attach(program::ExprOp::kRow, at_result);
    elements_.Attach(program::ExprOp::kRow, at_element);
  }
  // Makes the elements' kAccumulator read from at(payload).
  template <typename At>
  void AttachProvided(At&& at) {
    elements_.Attach(program::ExprOp::kAccumulator, at);
  }
  // Reduces all elements of a tile of results; state(k) is then that of each of its lanes.
  void Run(const Box& result);
  // Root k of the code of elements, for the last tile of elements.
  const std::byte* element(int k) const { return elements_.root(k); }
  std::byte* state(int k) const { return scratch_ + bound_.state_offsets_[k]; }

 private:
  void Begin(const Box& result, int64_t lanes);
  // Reduces `count` lanes, whose elements begin at lane `from` of the tile, into the state from
  // lane `to` on.
  void Update(int64_t from, int64_t to, int64_t count);
  void Merge(int64_t parts, int64_t lanes);
  void TakeRoots(const Frame& frame, int64_t to, int64_t count);

  const BoundReduction& bound_;
  const ReductionGrid& grid_;
  std::byte* scratch_;
  Frame init_, elements_, update_, merge_;
};

// The form of the first read of memory that steps at all, or null: what a walk should meet in
// order.
const LinearForm* FindPrimary(std::span<const Access> accesses);

// Repeats the first `lanes` lanes until there are `count`.
void Repeat(std::byte* column, int64_t lane_bytes, int64_t lanes, int64_t count);

}  // namespace onnxifi::engine

#endif  // ONNXIFI_BACKENDS_CPU_ENGINE_REDUCTION_H_
