// SPDX-License-Identifier: Apache-2.0
//
// TiledProduct::Bind: all that the kernels must agree on is numbers found at the binding, so that
// one source serves every extent.

#include <algorithm>
#include <utility>

#include "backends/core/codegen/tiled_numbers.h"
#include "backends/core/codegen/tiled_product.h"
#include "backends/core/codegen/tuning.h"

namespace onnxifi::codegen {
namespace {

using device::BoundStep;
using device::BoundView;
using program::Contract;
using program::ExprId;
using program::ExprNode;
using program::ExprOp;
using tensor::Extents;

// Up to this many rows, columns are read once or twice, for which they are not laid out anew.
constexpr int64_t kFewRowTiles = 2;

// Where nobody knows how many groups keep the device busy, a depth up to the first is no work to
// share out. One behind the second is too much for a group of any number. Parts are as long as they
// are worth their sums, and not longer than a group's loops may be anywhere.
constexpr int64_t kShallow = 16384;
constexpr int64_t kDeep = 49152;
constexpr int64_t kFewBlocks = 64;
constexpr int64_t kMinPart = 4096;
constexpr int64_t kMaxPart = 32768;

// The numbers of extents that lie row-major, per axis.
Extents PitchesOf(std::span<const int64_t> extents) {
  Extents pitches(extents.size());
  int64_t pitch = 1;
  for (size_t axis = extents.size(); axis-- > 0;) {
    pitches[axis] = pitch;
    pitch *= extents[axis];
  }
  return pitches;
}

// Whether axes [first, first + extents.size()) of a view are one axis.
bool IsOneAxis(const BoundView& view, size_t first, std::span<const int64_t> extents) {
  for (size_t axis = extents.size(); axis-- > 1;) {
    if (!IsEven(view, first + axis - 1, first + axis, extents[axis])) return false;
  }
  return true;
}

}  // namespace

// Makes the numbers of a binding.
class TiledProduct::Geometry {
 public:
  Geometry(const TiledProduct& product, const BoundStep& step)
      : product_(product), step_(step), contract_(product.contract_) {
    for (const program::Dim& dim : contract_.inner) inner_.push_back(step.Number(dim));
    const auto domain = std::span<const int64_t>(step.domain);
    const auto batch = static_cast<size_t>(product.batch_axes());
    batch_.assign(domain.begin(), domain.begin() + static_cast<std::ptrdiff_t>(batch));
    const auto cut = batch + static_cast<size_t>(product.is_window() ? 1 : contract_.m_axes);
    first_rows_ = batch;
    first_columns_ = cut;
    row_extents_.assign(domain.begin() + static_cast<std::ptrdiff_t>(batch),
                        domain.begin() + static_cast<std::ptrdiff_t>(cut));
    column_extents_.assign(domain.begin() + static_cast<std::ptrdiff_t>(cut), domain.end());
    if (!product.is_window() && product.columns_are_a_) {
      std::swap(row_extents_, column_extents_);
      std::swap(first_rows_, first_columns_);
    }
    output_extents_ = column_extents_;
    if (!product.is_transposed()) return;
    for (size_t axis = 0; axis < column_extents_.size(); ++axis) {
      const Span span = SpanOf(column_extents_[axis], step.Number(contract_.pads_begin[axis]),
                               contract_.strides[axis]);
      column_extents_[axis] = span.count;
      firsts_.push_back(span.first);
      output_phases_ *= contract_.strides[axis];
    }
  }

  Bound Make() {
    Bound bound;
    const TileShape& tile = product_.tile_;
    parts_ = product_.is_window() ? contract_.group : 1;
    at(kRows) = tensor::ElementCount(row_extents_) / parts_;
    at(kRowTiles) = CeilDiv(at(kRows), tile.block_rows());
    at(kInner) = tensor::ElementCount(inner_);
    const int64_t channels = product_.is_window() ? inner_[0] : at(kInner);
    at(kChannels) = CeilDiv(channels, word_) * word_;
    at(kDepth) = channels == 0 ? 0 : at(kInner) / channels * at(kChannels);
    at(kChannelWords) = at(kChannels) / word_;
    at(kDepthWords) = at(kDepth) / word_;
    at(kChunks) = CeilDiv(at(kDepth), kChunk);
    pitches_ = PitchesOf(column_extents_);
    at(kColumns) = tensor::ElementCount(column_extents_);
    bool has_gaps = false;
    if (product_.is_window()) has_gaps = MakeImage();
    at(kColumnTiles) = CeilDiv(at(kColumns), tile.block_columns());
    at(kLastStart) = at(kColumnTiles) * tile.block_columns();
    MakeOperands();
    bound.has_columns_in_place = product_.reads_tensor() || TryInPlace(bound);
    bound.has_rows_in_place = TryRowsInPlace(bound);
    const bool is_empty = tensor::ElementCount(step_.domain) == 0;
    at(kItems) = is_empty ? 0
                          : tensor::ElementCount(batch_) * parts_ * output_phases_ * at(kRowTiles) *
                                at(kColumnTiles);
    if (is_empty) at(kRowItems) = at(kColumnItems) = 0;
    CutDepth(bound);
    bound.row_bytes = bound.has_rows_in_place ? 0 : row_elements_ * ElementBytes(Part::kRows);
    bound.column_bytes =
        bound.has_columns_in_place ? 0 : column_elements_ * ElementBytes(Part::kColumns);

    given_.insert(given_.end(), row_batch_.begin(), row_batch_.end());
    given_.insert(given_.end(), column_batch_.begin(), column_batch_.end());
    given_.insert(given_.end(), row_packed_.begin(), row_packed_.end());
    given_.insert(given_.end(), column_packed_.begin(), column_packed_.end());
    given_.insert(given_.end(), pitches_.begin(), pitches_.end());
    given_.insert(given_.end(), image_.begin(), image_.end());
    given_.insert(given_.end(), phases_.begin(), phases_.end());
    if (product_.is_transposed()) {
      given_.insert(given_.end(), column_extents_.begin(), column_extents_.end());
      given_.insert(given_.end(), firsts_.begin(), firsts_.end());
    }
    bound.rows = MakeOperandLoops(!product_.columns_are_a_, row_elements_);
    bound.columns = MakeOperandLoops(product_.columns_are_a_, column_elements_);
    bound.sums = MakeSumLoops(has_gaps, bound.has_columns_in_place, bound.has_rows_in_place);
    bound.sums.form.lanes = ColumnLanes(bound);
    bound.depth_parts = bound.sums;
    bound.sums.form.is_grouped = bound.part_bytes > 0;
    return bound;
  }

 private:
  // Of what is laid out for fragments, how many elements of a column follow each other. Else how
  // many columns are a word of 16 bytes, if every block's columns begin with one at each place of
  // the depth.
  int ColumnLanes(const Bound& bound) const {
    const TileShape& tile = product_.tile_;
    if (!tile.is_of_group() || product_.reads_tensor()) return 1;
    if (word_ > 1) return bound.has_columns_in_place ? 1 : word_;
    const auto bytes = static_cast<int>(ElementBytes(Part::kColumns));
    if (bytes != 4 && (bytes != 2 || tile.depth > 0)) return 1;
    const int lanes = 16 / bytes;
    const auto is_word = [&](int64_t step) { return step % lanes == 0; };
    bool is_aligned = !product_.is_window();
    if (bound.has_columns_in_place) {
      is_aligned = is_word(bound.column_offset_bytes / bytes) && is_word(given_[kStep]) &&
                   std::all_of(column_batch_.begin(), column_batch_.end(), is_word);
    }
    return is_aligned && tile.columns() % lanes == 0 ? lanes : 1;
  }

  // Taps of transposed convolutions are few.
  void CutDepth(Bound& bound) {
    const TileShape& tile = product_.tile_;
    if (!tile.is_of_group() || product_.is_transposed() || product_.reads_tensor() ||
        at(kItems) == 0) {
      return;
    }
    const int64_t length = DepthPartLength();
    if (length >= at(kDepth)) return;
    at(kDepthPartLength) = length;
    at(kDepthPartCount) = CeilDiv(at(kDepth), length);
    bound.part_count = at(kDepthPartCount);
    at(kDepthPartItems) = at(kItems) * at(kDepthPartCount);
    at(kJoinItems) = at(kItems) * tile.rows;
    bound.part_bytes = at(kDepthPartItems) * tile.block_rows() * tile.block_columns() *
                       (tensor::BitWidth(contract_.accumulator) / 8);
  }

  int64_t DepthPartLength() const {
    const TileShape& tile = product_.tile_;
    const int64_t depth = given_[kDepth];
    const int64_t blocks = given_[kItems];
    // Items that read for themselves share it out as they are.
    if (tile.depth == 0) return depth;
    int64_t length = depth;
    if (tile.busy_groups > 0) {
      const int64_t count = std::min(tile.busy_groups / blocks, depth / Tuning::kMinBusyDepth);
      if (count >= 2) length = CeilDiv(depth, count);
    } else if (blocks <= kFewBlocks && depth > kShallow) {
      length = std::max(kMinPart, CeilDiv(depth, kFewBlocks));
    }
    if (length > kDeep) length = kMaxPart;
    // Whole rounds of what a group brings at once.
    const int64_t step = std::max({tile.depth, 16, kPieceWords * word_});
    return std::min(depth, CeilDiv(length, step) * step);
  }

  int64_t& at(int number) { return given_[static_cast<size_t>(number)]; }
  int64_t ElementBytes(Part part) const { return tensor::BitWidth(product_.stored_type(part)) / 8; }

  // The image of a channel: for each phase of the strides, the elements of that phase. Gives
  // whether rows of it are longer than those of the output.
  bool MakeImage() {
    const size_t axes = column_extents_.size();
    for (size_t axis = 0; axis < axes; ++axis) {
      const int64_t taps = inner_[axis + 1];
      const int64_t shift = MaxShift(taps, contract_.dilations[axis], contract_.strides[axis]);
      image_.push_back(column_extents_[axis] + shift);
      phases_.push_back(taps == 1 || product_.is_transposed() ? 1 : contract_.strides[axis]);
    }
    if (product_.reads_tensor()) {
      at(kColumns) = tensor::ElementCount(column_extents_);
      return false;
    }
    pitches_ = PitchesOf(image_);
    bool has_gaps = false;
    int64_t last = 0;
    for (size_t axis = 0; axis < axes; ++axis) {
      if (axis > 0 && image_[axis] != column_extents_[axis]) has_gaps = true;
      last += (column_extents_[axis] - 1) * pitches_[axis];
    }
    at(kColumns) = last + 1;
    at(kPhasePitch) = tensor::ElementCount(image_);
    return has_gaps;
  }

  // Whether what is laid out of an operand is the same for every coordinate of a batch axis.
  bool IsBroadcast(bool is_a, size_t axis) const {
    for (const ExprId leaf : Leaves(product_.program_.exprs, product_.prologue(is_a))) {
      const ExprNode& node = product_.program_.exprs[leaf];
      if (node.op == ExprOp::kIndex || !node.operands.empty()) return false;
      const BoundView& view = step_.reads[node.payload];
      if (axis < view.strides.size() && view.strides[axis] != 0) return false;
      for (const device::BoundGuard& guard : view.guards) {
        if (axis < guard.coefficients.size() && guard.coefficients[axis] != 0) return false;
      }
    }
    return true;
  }

  // What is laid out per coordinate of the batch, and how far apart: `packed` gets the extents,
  // `steps` the distances in matrices. Gives how many there are.
  int64_t MakeBatch(bool is_a, Extents& packed, Extents& steps) const {
    for (size_t axis = 0; axis < batch_.size(); ++axis) {
      packed.push_back(IsBroadcast(is_a, axis) ? 1 : batch_[axis]);
    }
    steps = PitchesOf(packed);
    for (size_t axis = 0; axis < batch_.size(); ++axis) {
      if (packed[axis] == 1) steps[axis] = 0;
    }
    return tensor::ElementCount(packed);
  }

  void MakeOperands() {
    const TileShape& tile = product_.tile_;
    const int64_t panel = at(kDepth) * tile.block_rows();
    int64_t matrices = parts_;
    if (product_.is_window()) {
      row_packed_ = row_batch_ = {0};
    } else {
      matrices = MakeBatch(!product_.columns_are_a_, row_packed_, row_batch_);
    }
    row_elements_ = matrices * at(kRowTiles) * panel;
    at(kRowStep) = tile.block_rows();
    at(kRowPitch) = 1;
    at(kRowTilePitch) = panel;
    at(kRowPartPitch) = at(kRowTiles) * panel;
    for (int64_t& step : row_batch_) step *= at(kRowPartPitch);
    at(kRowItems) = tile.are_items_lanes ? row_elements_ : matrices * at(kRowTiles) * at(kChunks);
    if (product_.is_window()) {
      const int64_t channels = contract_.group * at(kChannels);
      // Whole cache lines, and an odd number of them, so that channels do not share sets of a
      // cache.
      const int64_t line = 64 / ElementBytes(Part::kColumns);
      int64_t lines = CeilDiv(tensor::ElementCount(phases_) * at(kPhasePitch), line);
      lines += 1 - lines % 2;
      at(kStep) = lines * line;
      at(kPartPitch) = at(kChannels) * at(kStep);
      at(kTilePitch) = int64_t{tile.block_columns()} * word_;
      column_packed_ = {0};
      column_batch_ = {channels * at(kStep)};
      const int64_t rows_of_image =
          tensor::ElementCount(std::span(image_).first(image_.size() - 1)) *
          tensor::ElementCount(phases_);
      at(kColumnItems) = batch_[0] * channels * rows_of_image;
      if (tile.are_items_lanes) at(kColumnItems) *= image_.back();
      // The last block of the last channel is read to its end.
      column_elements_ = batch_[0] * column_batch_[0] + at(kTilePitch);
      return;
    }
    matrices = MakeBatch(product_.columns_are_a_, column_packed_, column_batch_);
    at(kStep) = tile.block_columns();
    at(kTilePitch) = at(kDepth) * tile.block_columns();
    const int64_t matrix = at(kColumnTiles) * at(kTilePitch);
    for (int64_t& step : column_batch_) step *= matrix;
    column_elements_ = matrices * matrix;
    at(kColumnItems) =
        tile.are_items_lanes ? column_elements_ : matrices * at(kColumnTiles) * at(kChunks);
  }

  // Whether the columns' operand is read where it lies: consecutive columns lie next to each other,
  // and there are enough of them for a block to end before the last.
  bool TryInPlace(Bound& bound) {
    const BoundView& view = step_.reads[static_cast<size_t>(product_.column_read())];
    const int64_t columns = product_.tile_.block_columns();
    // A group reads no column behind the last.
    const bool is_of_group = product_.tile_.is_of_group();
    if (!product_.IsPlain(Part::kColumns) || !view.guards.empty() ||
        (!is_of_group && at(kColumns) < columns)) {
      return false;
    }
    const size_t batch = batch_.size();
    size_t first_column = 2;
    int64_t step = 0;
    if (product_.is_window()) {
      for (size_t axis = 0; axis < column_extents_.size(); ++axis) {
        if (inner_[axis + 1] != 1 || contract_.strides[axis] != 1 ||
            step_.Number(contract_.pads_begin[axis]) != 0 ||
            step_.Number(contract_.a_spatial[axis]) != column_extents_[axis]) {
          return false;
        }
      }
      step = view.strides[1];
    } else {
      // Constants are laid out once, but for items that read them once, and anything else that is
      // read often enough.
      const bool is_read_often = (!is_of_group || word_ > 1) && at(kRowTiles) > kFewRowTiles;
      const bool is_laid_out_once =
          product_.IsConstant(Part::kColumns) && !product_.reads_rows_anywhere();
      if (is_laid_out_once || is_read_often || inner_.empty()) return false;
      const size_t first_inner = product_.columns_are_a_ ? batch + column_extents_.size() : batch;
      first_column = product_.columns_are_a_ ? batch : batch + inner_.size();
      if (!IsOneAxis(view, first_inner, inner_)) return false;
      step = view.strides[first_inner + inner_.size() - 1];
    }
    if (column_extents_.empty() || !IsOneAxis(view, first_column, column_extents_) ||
        view.strides[first_column + column_extents_.size() - 1] != 1 || step < 0) {
      return false;
    }
    at(kStep) = step;
    at(kTilePitch) = columns;
    at(kPartPitch) = (product_.is_window() ? inner_[0] : at(kInner)) * step;
    if (!is_of_group) at(kLastStart) = at(kColumns) - columns;
    for (size_t axis = 0; axis < batch; ++axis) column_batch_[axis] = view.strides[axis];
    bound.column_offset_bytes = view.offset * ElementBytes(Part::kColumns);
    return true;
  }

  // Whether the rows' operand is read where it lies: few rows, of which items read their own.
  bool TryRowsInPlace(Bound& bound) {
    const BoundView& view = step_.reads[static_cast<size_t>(product_.row_read())];
    if (!product_.reads_rows_anywhere() || !product_.IsPlain(Part::kRows) || !view.guards.empty() ||
        product_.IsConstant(Part::kRows) || inner_.empty()) {
      return false;
    }
    const size_t batch = batch_.size();
    const size_t rows = row_extents_.size();
    const bool is_a = !product_.columns_are_a_;
    const size_t first_row = is_a ? batch : batch + inner_.size();
    const size_t first_inner = is_a ? batch + rows : batch;
    if (!IsOneAxis(view, first_inner, inner_) ||
        (rows > 0 && !IsOneAxis(view, first_row, row_extents_))) {
      return false;
    }
    at(kRowStep) = view.strides[first_inner + inner_.size() - 1];
    at(kRowPitch) = rows == 0 ? 0 : view.strides[first_row + rows - 1];
    at(kRowTilePitch) = product_.tile_.block_rows() * at(kRowPitch);
    for (size_t axis = 0; axis < batch; ++axis) row_batch_[axis] = view.strides[axis];
    bound.row_offset_bytes = view.offset * ElementBytes(Part::kRows);
    return true;
  }

  // The extents that an operand's own coordinates are below.
  Extents OperandExtents(bool is_a) const {
    Extents extents = batch_;
    if (!product_.is_window()) {
      const Extents& own = is_a == product_.columns_are_a_ ? column_extents_ : row_extents_;
      if (is_a) extents.insert(extents.end(), own.begin(), own.end());
      extents.insert(extents.end(), inner_.begin(), inner_.end());
      if (!is_a) extents.insert(extents.end(), own.begin(), own.end());
    } else if (is_a) {
      extents.push_back(contract_.group * inner_[0]);
      for (const program::Dim& dim : contract_.a_spatial) extents.push_back(step_.Number(dim));
    } else if (product_.is_transposed()) {
      extents = {contract_.group * inner_[0], row_extents_[0] / contract_.group};
      extents.insert(extents.end(), inner_.begin() + 1, inner_.end());
    } else {
      extents = {row_extents_[0]};
      extents.insert(extents.end(), inner_.begin(), inner_.end());
    }
    return extents;
  }

  LoopNest MakeLoops() const {
    LoopNest loops;
    loops.reads = step_.reads;
    loops.writes = step_.writes;
    loops.dims = step_.dims;
    loops.given = given_;
    loops.extents = step_.domain;
    loops.form.axis_of.assign(step_.domain.size(), -1);
    loops.form.rank = static_cast<int>(step_.domain.size());
    return loops;
  }

  static constexpr int64_t kNarrow = int64_t{1} << 30;

  LoopNest MakeOperandLoops(bool is_a, int64_t elements) const {
    LoopNest loops = MakeLoops();
    const ExprId roots[] = {product_.prologue(is_a)};
    const std::vector<bool> is_read = ReadsOf(product_.program_, product_.step_, roots);
    const Extents extents = OperandExtents(is_a);
    bool is_narrow = elements <= kNarrow && tensor::ElementCount(extents) <= kNarrow;
    for (size_t read = 0; read < is_read.size(); ++read) {
      const BoundView& view = loops.reads[read];
      loops.form.read_steps.push_back(is_read[read] ? LastStepOf(view) : LastStep::kNone);
      is_narrow = is_narrow && (!is_read[read] || IsNarrow(view, extents));
    }
    loops.form.is_narrow = is_narrow;
    return loops;
  }

  LoopNest MakeSumLoops(bool has_gaps, bool is_in_place, bool has_rows_in_place) const {
    LoopNest loops = MakeLoops();
    const std::vector<bool> is_read = ReadsOf(product_.program_, product_.step_, contract_.roots);
    const auto is_one_axis = [&](size_t first, const Extents& extents) {
      for (size_t axis = 0; axis < extents.size(); ++axis) {
        if (product_.facts_.is_axis_named[first + axis]) return false;
      }
      for (size_t read = 0; read < is_read.size(); ++read) {
        if (is_read[read] && !IsOneAxis(loops.reads[read], first, extents)) return false;
      }
      return std::all_of(loops.writes.begin(), loops.writes.end(),
                         [&](const BoundView& view) { return IsOneAxis(view, first, extents); });
    };
    std::vector<int> kept;
    loops.extents.clear();
    const auto keep = [&](size_t axis, int64_t extent) {
      if (product_.facts_.is_axis_named[axis]) {
        loops.form.axis_of[axis] = static_cast<int>(kept.size());
      }
      kept.push_back(static_cast<int>(axis));
      loops.extents.push_back(extent);
    };
    const auto keep_all = [&](size_t first, const Extents& extents, bool may_join) {
      if (may_join && extents.size() > 1 && is_one_axis(first, extents)) {
        keep(first + extents.size() - 1, tensor::ElementCount(extents));
        return;
      }
      for (size_t axis = 0; axis < extents.size(); ++axis) keep(first + axis, extents[axis]);
    };
    keep_all(0, batch_, /*may_join=*/false);
    keep_all(first_rows_, row_extents_, /*may_join=*/true);
    loops.form.outer_rank = static_cast<int>(kept.size());
    keep_all(first_columns_, output_extents_,
             !has_gaps && !product_.is_transposed() && !product_.reads_tensor());
    loops.form.rank = static_cast<int>(kept.size());
    loops.form.is_over_domain = true;
    bool is_narrow =
        row_elements_ <= kNarrow && column_elements_ <= kNarrow && given_[kItems] <= kNarrow &&
        given_[kDepthPartItems] * product_.tile_.block_rows() * product_.tile_.block_columns() <=
            kNarrow;
    if (is_in_place) {
      const bool is_a = product_.columns_are_a_;
      is_narrow = is_narrow && IsNarrow(loops.reads[is_a ? 0 : 1], OperandExtents(is_a));
    }
    if (has_rows_in_place) {
      const bool is_a = !product_.columns_are_a_;
      is_narrow = is_narrow && IsNarrow(loops.reads[is_a ? 0 : 1], OperandExtents(is_a));
    }
    const ExprId prologue[] = {product_.prologue(/*is_a=*/true)};
    const std::vector<bool> is_read_before = ReadsOf(product_.program_, product_.step_, prologue);
    for (size_t read = 0; read < is_read.size(); ++read) {
      BoundView& view = loops.reads[read];
      if (product_.reads_tensor() && is_read_before[read]) {
        // At coordinates of its own; the loops have as many axes.
        loops.form.read_steps.push_back(LastStepOf(view));
        is_narrow = is_narrow && IsNarrow(view, OperandExtents(/*is_a=*/true));
        continue;
      }
      if (!is_read[read]) {
        loops.form.read_steps.push_back(LastStep::kNone);
        continue;
      }
      KeepAxes(view, kept);
      loops.form.read_steps.push_back(LastStepOf(view));
      is_narrow = is_narrow && IsNarrow(view, loops.extents);
    }
    for (BoundView& view : loops.writes) {
      KeepAxes(view, kept);
      loops.form.write_steps.push_back(LastStepOf(view));
      is_narrow = is_narrow && IsNarrow(view, loops.extents);
    }
    loops.form.is_narrow = is_narrow;
    return loops;
  }

  const TiledProduct& product_;
  const BoundStep& step_;
  const Contract& contract_;
  Extents inner_, batch_, row_extents_, column_extents_;
  const int word_ = product_.word_elements();
  Extents output_extents_;  // of the columns; those of a transposed convolution are of one phase
  Extents firsts_;          // the first q of an axis
  int64_t output_phases_ = 1;
  size_t first_rows_ = 0, first_columns_ = 0;  // axes of the domain
  int64_t parts_ = 1;
  Extents row_batch_, column_batch_, row_packed_, column_packed_;
  Extents pitches_, image_, phases_;
  int64_t row_elements_ = 0, column_elements_ = 0;
  std::vector<int64_t> given_ = std::vector<int64_t>(kFixed, 0);
};

TiledProduct::Bound TiledProduct::Bind(const BoundStep& step) const {
  return Geometry(*this, step).Make();
}

}  // namespace onnxifi::codegen
