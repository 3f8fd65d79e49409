// SPDX-License-Identifier: Apache-2.0
//
// Attention: which kernels do a step: blocks of how many rows, and whether groups share the keys.

#include "backends/core/codegen/attention.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <span>
#include <string_view>
#include <utility>

#include "backends/core/codegen/attention_writer.h"
#include "backends/core/codegen/family.h"
#include "backends/core/program/expr.h"
#include "backends/core/program/operand_extents.h"
#include "backends/core/program/product_operand.h"

namespace onnxifi::codegen {
namespace {

using program::Attention;

int64_t Blocks(int64_t count, int64_t size) { return count / size + (count % size != 0 ? 1 : 0); }
int64_t Times(int64_t a, int64_t b) { return __builtin_mul_overflow(a, b, &a) ? INT64_MAX : a; }

// Rounds of loops that an item may do in all, so that no driver minds.
constexpr int64_t kMaxRounds = 49152;

// Binds a step.
class AttentionBinding {
 public:
  AttentionBinding(const LoopFacts& facts, const device::BoundStep& step, LoopNest loops,
                   const Capabilities& capabilities)
      : facts_(facts),
        capabilities_(capabilities),
        step_(step),
        attention_(*step.step->As<Attention>()),
        loops_(std::move(loops)),
        rank_(step.domain.size()),
        queries_(step.domain[rank_ - 2]),
        values_(step.domain[rank_ - 1]),
        keys_(step.Number(attention_.keys)),
        width_(step.Number(attention_.width)) {}

  KernelSequence Make() {
    for (int operand = 0; operand < 3; ++operand) {
      loops_.form.has_words.push_back(HasWords(operand));
    }
    const std::span<const int64_t> batch = std::span(step_.domain).first(rank_ - 2);
    batches_ = tensor::ElementCount(batch);
    shared_rows_ = queries_;
    if (HasSharedKeys()) {
      last_batch_ = 1;
      batches_ = tensor::ElementCount(batch.first(batch.size() - 1));
      if (__builtin_mul_overflow(shared_rows_, batch.back(), &shared_rows_)) {
        shared_rows_ = INT64_MAX;
      }
    } else if (!batch.empty()) {
      last_batch_ = batch.back();
    }
    if (queries_ <= kMaxFewRows) return MakeFewRows();
    return MakeManyRows();
  }

 private:
  KernelSequence MakeFewRows() {
    const auto* block = std::begin(kAttentionFewRowBlocks);
    while (block->rows < std::min(shared_rows_, kMaxFewRows)) ++block;
    if (values_ > block->columns) ++block;
    const int64_t at_once = KeysAtOnce(kAttentionFewRowKeys, /*rounds=*/512, kAttentionFewRowDepth,
                                       /*rounds_of_piece=*/128);
    // Groups enough for any device.
    constexpr int64_t kManyGroups = 1024;
    Cut(*block, kAttentionFewRowKeys, kManyGroups, at_once);
    const auto number = static_cast<int>(block - std::begin(kAttentionFewRowBlocks));
    loops_.form.is_grouped = parts_ > 1;
    KernelSequence sequence;
    sequence.launches.push_back({.kernel = kAttentionFewRows + number, .loops = loops_});
    if (parts_ > 1) Join(sequence);
    return sequence;
  }

  KernelSequence MakeManyRows() {
    const auto* block = std::begin(kAttentionManyRowBlocks);
    if (values_ > block->columns) ++block;
    const auto number = static_cast<int>(block - std::begin(kAttentionManyRowBlocks));
    const int64_t at_once = KeysAtOnce(kAttentionManyRowKeys, /*rounds=*/400,
                                       kAttentionManyRowDepth, /*rounds_of_piece=*/64);
    constexpr int64_t kManyGroups = 512;
    const Products products = FindProducts();
    KernelSequence sequence;
    sequence.detail = products.detail;
    Cut(*block, kAttentionManyRowKeys, kManyGroups, INT64_MAX);
    if (parts_ > 1 && part_length_ <= at_once) {
      sequence.launches.push_back({.kernel = products.of_parts + number, .loops = loops_});
      Join(sequence);
      return sequence;
    }
    Cut(*block, kAttentionManyRowKeys, /*wanted=*/1, INT64_MAX);
    const int kernel = products.of_all + number;
    if (keys_ <= at_once || groups_ == 0) {
      sequence.launches.push_back({.kernel = kernel, .loops = std::move(loops_)});
      return sequence;
    }
    const int64_t carried =
        AttentionCarried(*block, products.of_all == kAttentionManyRows ? AttentionItems(*block)
                                                                       : kAttentionUnitItems);
    loops_.form.is_grouped = true;
    loops_.form.is_narrow = loops_.form.is_narrow && groups_ <= kNarrow / carried;
    for (int64_t first = 0; first < keys_; first += at_once) {
      loops_.given[kAttentionFirstKey] = first;
      loops_.given[kAttentionEndKey] = std::min(first + at_once, keys_);
      sequence.launches.push_back({.kernel = kernel, .loops = loops_});
    }
    sequence.scratch_bytes[0] = groups_ * carried * static_cast<int64_t>(sizeof(float));
    return sequence;
  }

  // Keys that a group takes in one start, in blocks of `block`: an item does so many rounds for
  // each of them, and for each piece of `depth` of the scores.
  int64_t KeysAtOnce(int64_t block, int64_t rounds, int64_t depth, int64_t rounds_of_piece) const {
    rounds += Blocks(width_, depth) * rounds_of_piece;
    return block * std::max<int64_t>(1, std::min(kMaxRounds, capabilities_.most_rounds) / rounds);
  }

  // Cuts the step into blocks, and the keys into parts, so that there are `wanted` groups; no part
  // has more keys than `most_keys`.
  void Cut(const AttentionBlock& block, int64_t key_block, int64_t wanted, int64_t most_keys) {
    const int64_t row_blocks = Blocks(shared_rows_, block.rows);
    const int64_t value_blocks = Blocks(values_, block.columns);
    groups_ = Times(batches_, Times(row_blocks, value_blocks));
    const int64_t key_blocks = Blocks(keys_, key_block);
    const int64_t wanted_parts = groups_ == 0 ? 1 : std::max<int64_t>(1, wanted / groups_);
    const int64_t blocks =
        std::clamp<int64_t>(Blocks(key_blocks, wanted_parts), 1, most_keys / key_block);
    parts_ = groups_ == 0 ? 1 : std::max<int64_t>(1, Blocks(key_blocks, blocks));
    part_length_ = blocks * key_block;
    const int64_t all_groups = Times(groups_, parts_);
    loops_.given = {all_groups,  row_blocks, value_blocks, shared_rows_,
                    last_batch_, parts_,     part_length_};
    loops_.form.is_narrow = IsNarrowWithin(all_groups) &&
                            Times(Times(rows(), parts_), std::max<int64_t>(values_, 2)) <= kNarrow;
  }

  int64_t rows() const { return Times(batches_, shared_rows_); }

  void Join(KernelSequence& sequence) {
    loops_.form.is_grouped = false;
    loops_.given = {rows(), parts_};
    sequence.launches.push_back({.kernel = kAttentionJoin, .loops = std::move(loops_)});
    const int64_t count = rows() * parts_ * static_cast<int64_t>(sizeof(float));
    sequence.scratch_bytes[kAttentionPartSums] = count * values_;
    sequence.scratch_bytes[kAttentionPartStates] = count * 2;
  }

  // Whether so many groups, and coordinates a block beyond their end, fit 32 bits. What a view may
  // be over: an operand, the scores or the domain.
  bool IsNarrowWithin(int64_t groups) const {
    tensor::Extents reached(step_.domain);
    for (int operand = 0; operand < 3; ++operand) {
      const tensor::Extents extents = program::OperandExtents(*step_.step, operand, step_.dims);
      for (size_t axis = 0; axis < rank_; ++axis) {
        reached[axis] = std::max(reached[axis], extents[axis]);
      }
    }
    reached[rank_ - 1] = std::max(reached[rank_ - 1], keys_);
    bool is_narrow =
        groups <= kNarrow && reached[rank_ - 2] <= kNarrow && reached[rank_ - 1] <= kNarrow;
    for (size_t k = 0; k < loops_.reads.size(); ++k) {
      // Loads at coordinates of their own are in 64 bits.
      is_narrow = is_narrow && (facts_.is_indexed[k] || IsNarrow(loops_.reads[k], reached));
    }
    for (const device::BoundView& view : loops_.writes) {
      is_narrow = is_narrow && IsNarrow(view, step_.domain);
    }
    return is_narrow;
  }

  // Whether a query's, key's or value's elements of an operand are whole words in a row.
  bool HasWords(int operand) const {
    const device::BoundView& view = loops_.reads[static_cast<size_t>(operand)];
    const bool has_type = view.type == tensor::ElementType::kFloat32 ||
                          view.type == tensor::ElementType::kFloat16 ||
                          view.type == tensor::ElementType::kBfloat16;
    if (!has_type || !view.guards.empty() ||
        !program::FindProductOperand(*step_.program, *step_.step, operand).is_stored) {
      return false;
    }
    const int64_t lanes = 128 / tensor::BitWidth(view.type);
    const size_t fast = operand == 1 ? rank_ - 2 : rank_ - 1;
    const int64_t extent = operand == 2 ? values_ : width_;
    if (view.offset % lanes != 0 || extent % lanes != 0) return false;
    for (size_t axis = 0; axis < rank_; ++axis) {
      const int64_t stride = view.strides[axis];
      if (axis == fast ? stride != 1 : stride % lanes != 0) return false;
    }
    return true;
  }

  // By what many rows are multiplied: kernels for all keys and for parts of them.
  struct Products {
    int of_all, of_parts;
    std::string_view detail;
  };
  Products FindProducts() const {
    constexpr int64_t kSharedBytes = int64_t{46} << 10;
    const MatrixUnits& units = capabilities_.matrix_units;
    if (units.kind == MatrixUnits::Kind::kFragments &&
        capabilities_.row_shared_bytes >= kSharedBytes) {
      if (HasHalves()) return {kAttentionUnits, kAttentionUnitParts, "matrix units"};
      // Of both products, whose sums are that deep.
      if (units.split_depth > 0 && step_.program->has_fast_algorithms &&
          std::min(width_, keys_) >= units.split_depth) {
        return {kAttentionSplits, kAttentionSplitParts, "matrix units, 3xTF32"};
      }
    }
    return {kAttentionManyRows, kAttentionManyRowParts, {}};
  }

  // Whether matrix units multiply the operands as they are in memory.
  bool HasHalves() const {
    const tensor::ElementType type = loops_.reads[0].type;
    return tensor::BitWidth(type) == 16 && loops_.reads[1].type == type &&
           loops_.reads[2].type == type &&
           std::ranges::all_of(loops_.form.has_words, [](bool has_words) { return has_words; });
  }

  // Whether all along the last batch axis have the same keys and values.
  bool HasSharedKeys() const {
    if (rank_ < 3 || step_.domain[rank_ - 3] == 1) return false;
    const size_t axis = rank_ - 3;
    const program::ExprId roots[] = {attention_.key_prologue, attention_.value_prologue};
    for (const program::ExprId id : program::Reachable(step_.program->exprs, roots)) {
      const program::ExprNode& node = step_.program->exprs[id];
      if (node.op == program::ExprOp::kIndex && node.payload == axis) return false;
      if (node.op != program::ExprOp::kLoad) continue;
      if (!node.operands.empty()) return false;
      const device::BoundView& view = loops_.reads[node.payload];
      if (view.strides.empty()) continue;
      if (view.strides[axis] != 0) return false;
      for (const device::BoundGuard& guard : view.guards) {
        if (guard.coefficients.size() > axis && guard.coefficients[axis] != 0) return false;
      }
    }
    return true;
  }

  // More queries are taken in blocks of their own.
  static constexpr int64_t kMaxFewRows =
      kAttentionFewRowBlocks[std::size(kAttentionFewRowBlocks) - 1].rows;
  static constexpr int64_t kNarrow = int64_t{1} << 29;

  const LoopFacts& facts_;
  const Capabilities& capabilities_;
  const device::BoundStep& step_;
  const Attention& attention_;
  LoopNest loops_;
  const size_t rank_;
  const int64_t queries_, values_, keys_, width_;
  // Rows that share keys and values, batches of them, and the extent of the last axis of those.
  int64_t shared_rows_ = 0;
  int64_t batches_ = 0;
  int64_t last_batch_ = 1;
  // As Cut has found them; of the groups those of one part.
  int64_t groups_ = 0;
  int64_t parts_ = 1;
  int64_t part_length_ = 0;
};

}  // namespace

bool IsWorthwhileAttention(const program::Step& step) {
  // Many values mean that scores are computed for each block of them.
  constexpr int64_t kMaxValues = 128;
  const program::Dim& values = step.domain.back();
  return values.is_constant() && values.constant() <= kMaxValues;
}

KernelSequence MakeAttentionKernels(const LoopFacts& facts, const device::BoundStep& step,
                                    LoopNest loops, const Capabilities& capabilities) {
  return AttentionBinding(facts, step, std::move(loops), capabilities).Make();
}

Launch WriteAttention(Writer& writer, const Source& source, int kernel) {
  if (kernel == kAttentionJoin) return WriteAttentionJoin(writer, source);
  if (kernel < kAttentionManyRows) {
    return WriteAttentionOfFewRows(writer, source,
                                   kAttentionFewRowBlocks[kernel - kAttentionFewRows]);
  }
  if (kernel >= kAttentionSplits) {
    const bool has_parts = kernel >= kAttentionSplitParts;
    const int number = kernel - (has_parts ? kAttentionSplitParts : kAttentionSplits);
    return WriteAttentionBySplits(writer, source, kAttentionManyRowBlocks[number], has_parts);
  }
  if (kernel >= kAttentionUnits) {
    const bool has_parts = kernel >= kAttentionUnitParts;
    const int number = kernel - (has_parts ? kAttentionUnitParts : kAttentionUnits);
    return WriteAttentionByUnits(writer, source, kAttentionManyRowBlocks[number], has_parts);
  }
  const bool has_parts = kernel >= kAttentionManyRowParts;
  const int number = kernel - (has_parts ? kAttentionManyRowParts : kAttentionManyRows);
  return WriteAttentionOfManyRows(writer, source, kAttentionManyRowBlocks[number], has_parts);
}

}  // namespace onnxifi::codegen
