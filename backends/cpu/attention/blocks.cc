// SPDX-License-Identifier: Apache-2.0
//
// Attention in blocks of queries and keys (Dao et al., "FlashAttention", 2022): a thread has a
// chunk of the rows of a head. A block of keys and values is packed once and meets all blocks of
// these rows, whose largest scores, totals and sums are kept until the last block of keys. Blocks
// that are wholly masked are left out where that leaves the result what it is.

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "backends/cpu/attention/score_rows.h"
#include "backends/cpu/attention/shape.h"
#include "backends/cpu/engine/runtime.h"
#include "backends/cpu/gemm/bfloat16_gemm.h"
#include "backends/cpu/gemm/gemm.h"

namespace onnxifi::attention {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr int64_t kMaxBlocksOfChunk = 32;

// How the rows of all heads are divided.
struct Division {
  int64_t block_keys;
  int64_t block_rows;
  int64_t chunks;      // of a head
  int64_t chunk_rows;  // but the last may have fewer

  Division(const AttentionShape& shape, int64_t threads)
      : block_keys(KeysOfBlock(shape.keys, shape.width, shape.values)) {
    const int64_t row_floats = std::max<int64_t>(1, shape.width + shape.values);
    const int64_t rows = shape.heads.rows();
    const int64_t heads = shape.heads.count();
    const int64_t step = gemm::BlockRows();
    // Scores of a block stay in an L1 cache, queries and sums of a chunk in an L2 cache.
    constexpr int64_t kRowsOfBlock = 48, kFloatsOfChunk = 1 << 17, kMaxRows = 256;
    block_rows =
        row_floats > kFloatsOfChunk / 16 ? step : std::max(step, kRowsOfBlock / step * step);
    const int64_t most = std::clamp(kFloatsOfChunk / row_floats, block_rows, kMaxRows);
    chunks = DivideUp(rows, most);
    // As many as threads, or a multiple; but none of only a few rows.
    const int64_t most_chunks = std::max(chunks, rows / block_rows);
    while (chunks < most_chunks && heads * chunks < threads) ++chunks;
    for (int64_t more = chunks; more <= std::min(most_chunks, 2 * chunks); ++more) {
      if (heads * more % threads != 0 || heads * chunks >= 8 * threads) continue;
      chunks = more;
      break;
    }
    chunk_rows = DivideUp(DivideUp(rows, chunks), step) * step;
    chunks = DivideUp(rows, chunk_rows);
    // Blocks of about as many rows each.
    const int64_t blocks = DivideUp(chunk_rows, block_rows);
    block_rows = DivideUp(DivideUp(chunk_rows, blocks), step) * step;
  }
};

class BoundBlocks final : public device::BoundKernel {
 public:
  BoundBlocks(std::shared_ptr<const AttentionCode> code, const device::BoundStep& step,
              AttentionShape shape, int64_t threads, engine::Runtime& engine)
      : code_(std::move(code)),
        shape_(std::move(shape)),
        division_(shape_, threads),
        query_(code_->query, step, shape_.query_extents, division_.block_rows, shape_.width),
        key_(code_->key, step, shape_.key_extents, shape_.width, division_.block_keys),
        value_(code_->value, step, shape_.value_extents, division_.block_keys, shape_.values),
        results_(code_->epilogue, step),
        is_narrow_(step.writes[0].type == tensor::ElementType::kBfloat16 &&
                   code_->query.is_bfloat16 && code_->key.is_bfloat16 && code_->value.is_bfloat16 &&
                   gemm::HasBfloat16Gemm()),
        engine_(engine) {
    if (shape_.keys > 0) {
      score_.emplace(code_->score, step, shape_.keys, division_.block_keys,
                     engine.settings().tile_lanes);
    }
    engine.scratch().Reserve(ScratchBytes());
  }

  std::string Detail() const override {
    return "blocks of " + std::to_string(division_.block_rows) + " queries and " +
           std::to_string(division_.block_keys) + " keys" + (is_narrow_ ? ", bfloat16" : "");
  }

  base::Status Run(device::Addresses addresses) const override {
    const int64_t chunks = division_.chunks;
    const int64_t per_score =
        (shape_.width + shape_.values) * 30 + 500 + (score_ ? score_->cost() : 0);
    const double cost = static_cast<double>(division_.chunk_rows) *
                        static_cast<double>(shape_.keys + 1) * static_cast<double>(per_score);
    return engine_.For(shape_.heads.count() * chunks, static_cast<int64_t>(std::min(cost, 1e15)),
                       [&](int64_t begin, int64_t end, std::byte* scratch) {
                         Worker worker(*this, addresses, scratch);
                         for (int64_t number = begin; number < end; ++number) {
                           // From both ends by turns: with a causal mask the last chunks have most
                           // to do.
                           const int64_t k = number % chunks;
                           worker.Run(number / chunks, k % 2 == 0 ? k / 2 : chunks - 1 - k / 2);
                         }
                       });
  }

 private:
  int64_t ScratchBytes() const {
    const int64_t rows = division_.chunk_rows;
    return (is_narrow_ ? 2 : 1) * LineBytes(rows * shape_.width) + LineBytes(rows * shape_.values) +
           2 * LineBytes(rows) + LineBytes(division_.block_rows) +
           LineBytes(division_.block_rows * division_.block_keys) +
           LineBytes(gemm::PackedSize(shape_.width, division_.block_keys)) +
           LineBytes(gemm::PackedSize(division_.block_keys, shape_.values)) +
           query_.scratch_bytes() + key_.scratch_bytes() + value_.scratch_bytes() +
           results_.scratch_bytes() + (score_ ? score_->scratch_bytes() : 0);
  }

  // One thread's.
  class Worker {
   public:
    Worker(const BoundBlocks& kernel, device::Addresses addresses, std::byte* scratch)
        : kernel_(kernel),
          shape_(kernel.shape_),
          scratch_(scratch),
          queries_(TakeFloats(kernel.division_.chunk_rows * shape_.width)),
          narrow_queries_(kernel.is_narrow_ ? TakeFloats(kernel.division_.chunk_rows * shape_.width)
                                            : nullptr),
          sums_(TakeFloats(kernel.division_.chunk_rows * shape_.values)),
          largest_(TakeFloats(kernel.division_.chunk_rows)),
          totals_(TakeFloats(kernel.division_.chunk_rows)),
          shrink_(TakeFloats(kernel.division_.block_rows)),
          scores_(TakeFloats(kernel.division_.block_rows * kernel.division_.block_keys)),
          packed_keys_(TakeFloats(gemm::PackedSize(shape_.width, kernel.division_.block_keys))),
          packed_values_(TakeFloats(gemm::PackedSize(kernel.division_.block_keys, shape_.values))),
          query_(kernel.query_, addresses, Take(kernel.query_.scratch_bytes())),
          key_(kernel.key_, addresses, Take(kernel.key_.scratch_bytes())),
          value_(kernel.value_, addresses, Take(kernel.value_.scratch_bytes())),
          results_(kernel.results_, addresses, Take(kernel.results_.scratch_bytes())) {
      if (kernel.score_) score_.emplace(*kernel.score_, addresses, scratch_);
    }

    void Run(int64_t head, int64_t chunk) {
      head_ = head;
      first_row_ = chunk * kernel_.division_.chunk_rows;
      rows_ = std::min(kernel_.division_.chunk_rows, shape_.heads.rows() - first_row_);
      ReadQueries();
      if (kernel_.is_narrow_) {
        std::copy_n(queries_, rows_ * shape_.width, narrow_queries_);
        gemm::RoundRows(narrow_queries_, shape_.width, shape_.width, rows_);
      }
      largest_query_ = -1;
      const int64_t blocks = DivideUp(rows_, kernel_.division_.block_rows);
      for (int64_t block = 0; block < blocks; ++block) Begin(block);
      MeetKeys(0, blocks, /*may_skip=*/true);
      for (int64_t block = 0; block < blocks; ++block) {
        if (!IsSkippingRight(block)) {
          Begin(block);
          MeetKeys(block, block + 1, /*may_skip=*/false);
        }
        Finish(block);
      }
    }

   private:
    // Rows of the chunk, and what became of them so far.
    struct RowBlock {
      bool has_sums;
      float skipped = -kInfinity;  // the largest score of keys that were left out
    };

    std::byte* Take(int64_t size_bytes) {
      std::byte* const taken = scratch_;
      scratch_ += size_bytes;
      return taken;
    }
    float* TakeFloats(int64_t floats) { return reinterpret_cast<float*>(Take(LineBytes(floats))); }

    int64_t FirstRow(int64_t block) const { return block * kernel_.division_.block_rows; }
    int64_t RowsOf(int64_t block) const {
      return std::min(kernel_.division_.block_rows, rows_ - FirstRow(block));
    }
    // Calls visit(run, its first row in the chunk) for rows [first, first + rows) of the chunk.
    template <class Visit>
    void ForRuns(int64_t first, int64_t rows, const Visit& visit) const {
      for (int64_t row = first; row < first + rows;) {
        const QueryRun run = shape_.heads.RunAt(head_, first_row_ + row, first + rows - row);
        visit(run, row);
        row += run.queries;
      }
    }

    // Next to each other.
    void ReadQueries() {
      const int64_t width = shape_.width;
      const int64_t most = kernel_.division_.block_rows;
      ForRuns(0, rows_, [&](const QueryRun& run, int64_t row) {
        for (int64_t query = 0; query < run.queries; query += most) {
          const int64_t count = std::min(most, run.queries - query);
          const FloatBlock block =
              query_.Read({run.batch.data(), run.first_query + query, 0}, count, width);
          float* to = queries_ + (row + query) * width;
          for (int64_t k = 0; k < count; ++k, to += width) {
            const float* const from = block.data + k * block.row_stride;
            if (block.column_stride == 1) {
              std::copy_n(from, width, to);
            } else {
              for (int64_t c = 0; c < width; ++c) to[c] = from[c * block.column_stride];
            }
          }
        }
      });
    }

    void Begin(int64_t block) {
      blocks_[static_cast<size_t>(block)] = {false, -kInfinity};
      std::fill_n(largest_ + FirstRow(block), RowsOf(block), -kInfinity);
      std::fill_n(totals_ + FirstRow(block), RowsOf(block), 0.0F);
    }

    // All keys, block by block, for blocks of rows.
    void MeetKeys(int64_t first_block, int64_t end_block, bool may_skip) {
      const size_t key_axis = shape_.query_extents.size() - 1;
      for (int64_t key = 0; key < shape_.keys; key += kernel_.division_.block_keys) {
        KeyBlock keys = {key, std::min(kernel_.division_.block_keys, shape_.keys - key)};
        for (int64_t block = first_block; block < end_block; ++block) {
          CoordinateRange range =
              shape_.heads.RangeOf(head_, first_row_ + FirstRow(block), RowsOf(block));
          range.first[key_axis] = key;
          range.last[key_axis] = key + keys.count - 1;
          size_t form = kernel_.score_->FormFor(range);
          if (const std::optional<MaskedScore>& masked = kernel_.score_->masked(form)) {
            if (may_skip && LeavesNothing(*masked, keys)) {
              float& skipped = blocks_[static_cast<size_t>(block)].skipped;
              skipped = std::max(skipped, masked->score);
              continue;
            }
            form = BoundScore::kWhole;
          }
          if (!keys.is_packed) Pack(keys);
          Meet(block, keys, form);
        }
      }
    }

    struct KeyBlock {
      int64_t first;
      int64_t count;
      bool is_packed = false;
      // The largest of values, and of keys; below 0 where they are not known.
      float largest_value = -1;
      float largest_key = -1;
    };

    FloatBlock ReadKeys(const KeyBlock& keys) {
      return key_.Read({Batch().data(), 0, keys.first}, shape_.width, keys.count);
    }
    FloatBlock ReadValues(const KeyBlock& keys) {
      return value_.Read({Batch().data(), keys.first, 0}, keys.count, shape_.values);
    }
    // Of any member of the head: keys and values are the same for all.
    const std::array<int64_t, engine::kMaxAxes>& Batch() {
      batch_ = shape_.heads.RunAt(head_, first_row_, 1).batch;
      return batch_;
    }

    void Pack(KeyBlock& keys) {
      const FloatBlock k = ReadKeys(keys);
      gemm::PackPanels({k.data, k.row_stride, k.column_stride}, shape_.width, keys.count, 0,
                       Panels(keys.count), packed_keys_);
      const FloatBlock v = ReadValues(keys);
      gemm::PackPanels({v.data, v.row_stride, v.column_stride}, keys.count, shape_.values, 0,
                       Panels(shape_.values), packed_values_);
      if (kernel_.is_narrow_) {
        gemm::PairPanelRows(packed_keys_, shape_.width, keys.count);
        gemm::PairPanelRows(packed_values_, keys.count, shape_.values);
      }
      keys.is_packed = true;
    }
    static int64_t Panels(int64_t columns) { return DivideUp(columns, gemm::PanelColumns()); }

    void Meet(int64_t block, const KeyBlock& keys, size_t form) {
      const int64_t first = FirstRow(block);
      const int64_t rows = RowsOf(block);
      Multiply((kernel_.is_narrow_ ? narrow_queries_ : queries_) + first * shape_.width,
               shape_.width, packed_keys_, rows, keys.count, scores_, /*adds=*/false);
      ForRuns(first, rows, [&](const QueryRun& run, int64_t row) {
        score_->Write(form, run, keys.first,
                      {scores_ + (row - first) * keys.count, keys.count, run.queries, keys.count});
      });
      WeighRows({scores_, keys.count, rows, keys.count},
                {largest_ + first, totals_ + first, shrink_});
      float* const sums = sums_ + first * shape_.values;
      bool& has_sums = blocks_[static_cast<size_t>(block)].has_sums;
      if (has_sums) ShrinkRows(shrink_, rows, sums, shape_.values, shape_.values);
      // The model rounds the weights once they are divided by their sum, which is as exact.
      if (kernel_.is_narrow_) gemm::RoundRows(scores_, keys.count, keys.count, rows);
      Multiply(scores_, keys.count, packed_values_, rows, shape_.values, sums, has_sums);
      has_sums = true;
    }

    // c = a * b, or c + a * b; rows of `a` are of the type that is multiplied.
    void Multiply(const float* a, int64_t depth, const float* b, int64_t rows, int64_t columns,
                  float* c, bool adds) const {
      if (kernel_.is_narrow_) {
        gemm::MultiplyBfloat16({a, depth, b, c, columns, rows, depth, columns, adds});
        return;
      }
      gemm::Epilogue epilogue;
      if (adds) {
        epilogue.addend = c;
        epilogue.addend_stride = columns;
      }
      gemm::Multiply({a, depth, b, c, columns, rows, depth, columns, {}}, epilogue, 0,
                     Panels(columns));
    }

    static float LargestIn(const FloatBlock& block, int64_t rows, int64_t columns) {
      const bool is_turned = block.column_stride != 1 && block.row_stride == 1;
      const int64_t lines = is_turned ? columns : rows;
      const int64_t count = is_turned ? rows : columns;
      const int64_t line_stride = is_turned ? block.column_stride : block.row_stride;
      const int64_t step = is_turned ? block.row_stride : block.column_stride;
      float largest = 0;
      for (int64_t line = 0; line < lines; ++line) {
        const float* const from = block.data + line * line_stride;
        if (step == 1) {
          largest = std::max(largest, LargestOf(from, count));
        } else {
          for (int64_t k = 0; k < count; ++k)
            largest = std::max(largest, LargestOf(from + k * step, 1));
        }
      }
      return largest;
    }

    // Whether weights of 0, which a mask makes, leave the sums what they are: 0 times a number is
    // 0, and a finite sum is masked by what is added to it.
    bool LeavesNothing(const MaskedScore& masked, KeyBlock& keys) {
      if (keys.largest_value < 0) {
        keys.largest_value = LargestIn(ReadValues(keys), keys.count, shape_.values);
      }
      if (keys.largest_value == kInfinity) return false;
      if (masked.replaces_sum) return true;
      if (keys.largest_key < 0) {
        keys.largest_key = LargestIn(ReadKeys(keys), shape_.width, keys.count);
      }
      if (largest_query_ < 0) largest_query_ = LargestOf(queries_, rows_ * shape_.width);
      const auto wide = [](float number) { return static_cast<double>(number); };
      const double sum =
          wide(largest_query_) * wide(keys.largest_key) * static_cast<double>(shape_.width);
      const double number = std::fabs(wide(masked.added_to.number));
      const double score = masked.added_to.divides ? sum / number : sum * number;
      // False for NaN.
      return std::max(sum, score) < 1e38 && std::isfinite(score);
    }

    // Whether what was left out of a block has no weight beside what was not.
    bool IsSkippingRight(int64_t block) const {
      // Beyond this a weight is less than half of the least float.
      constexpr float kNothing = 110;
      const float skipped = blocks_[static_cast<size_t>(block)].skipped;
      if (skipped == -kInfinity) return true;
      const float* const largest = largest_ + FirstRow(block);
      return std::all_of(largest, largest + RowsOf(block),
                         [&](float score) { return score - kNothing > skipped; });
    }

    void Finish(int64_t block) {
      const int64_t first = FirstRow(block);
      const int64_t rows = RowsOf(block);
      if (!blocks_[static_cast<size_t>(block)].has_sums) {
        std::fill_n(sums_ + first * shape_.values, rows * shape_.values, 0.0F);
      }
      // Sums of no keys are 0.
      if (shape_.keys == 0) std::fill_n(totals_ + first, rows, 1.0F);
      ForRuns(first, rows, [&](const QueryRun& run, int64_t row) {
        results_.Write(run, totals_ + row, sums_ + row * shape_.values);
      });
    }

    const BoundBlocks& kernel_;
    const AttentionShape& shape_;
    std::byte* scratch_;
    float* const queries_;
    float* const narrow_queries_;  // null where products are of float32
    float* const sums_;
    float* const largest_;
    float* const totals_;
    float* const shrink_;
    float* const scores_;
    float* const packed_keys_;
    float* const packed_values_;
    OperandReader query_, key_, value_;
    ResultWriter results_;
    std::optional<ScoreWriter> score_;
    // Of the chunk.
    int64_t head_ = 0;
    int64_t first_row_ = 0;
    int64_t rows_ = 0;
    float largest_query_ = -1;  // below 0 where it is not known
    std::array<int64_t, engine::kMaxAxes> batch_{};
    std::array<RowBlock, kMaxBlocksOfChunk> blocks_;
  };

  const std::shared_ptr<const AttentionCode> code_;  // shared with the kernel
  const AttentionShape shape_;
  const Division division_;
  const BoundOperand query_, key_, value_;
  const BoundResults results_;
  const bool is_narrow_;             // products are of bfloat16
  std::optional<BoundScore> score_;  // nothing without keys
  engine::Runtime& engine_;
};

}  // namespace

std::unique_ptr<device::BoundKernel> BindBlocks(std::shared_ptr<const AttentionCode> code,
                                                const device::BoundStep& step, AttentionShape shape,
                                                int64_t threads, engine::Runtime& engine) {
  return std::make_unique<BoundBlocks>(std::move(code), step, std::move(shape), threads, engine);
}

}  // namespace onnxifi::attention
