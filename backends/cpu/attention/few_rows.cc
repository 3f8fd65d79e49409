// SPDX-License-Identifier: Apache-2.0
//
// Attention of few rows, as one token has with a cache: keys and values are read once, where they
// lie. Spans of keys are weighed independently, by all threads, and joined in their order.

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "backends/cpu/attention/score_rows.h"
#include "backends/cpu/attention/shape.h"
#include "backends/cpu/engine/runtime.h"
#include "backends/cpu/gemm/matrix_vector.h"
#include "backends/cpu/gemm/vector_matrix.h"

namespace onnxifi::attention {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// What a span leaves of each row of a head.
struct Partial {
  float* largest;
  float* total;
  float* sums;
};

class BoundFewRows final : public device::BoundKernel {
 public:
  BoundFewRows(std::shared_ptr<const AttentionCode> code, const device::BoundStep& step,
               AttentionShape shape, runtime::Runtime& runtime, engine::Runtime& engine)
      : code_(std::move(code)),
        shape_(std::move(shape)),
        rows_(shape_.heads.rows()),
        spans_(std::max<int64_t>(1, DivideUp(shape_.keys, kKeysOfSpan))),
        span_keys_(std::max<int64_t>(1, DivideUp(shape_.keys, spans_))),
        query_(code_->query, step, shape_.query_extents, rows_, shape_.width),
        key_(code_->key, step, shape_.key_extents, shape_.width, span_keys_),
        value_(code_->value, step, shape_.value_extents, span_keys_, shape_.values),
        results_(code_->epilogue, step),
        runtime_(runtime),
        engine_(engine) {
    if (shape_.keys > 0) {
      score_.emplace(code_->score, step, shape_.keys, span_keys_, engine.settings().tile_lanes);
    }
    engine.scratch().Reserve(ScratchBytes());
  }

  std::string Detail() const override {
    return "keys where they lie" + (spans_ > 1 ? ", " + std::to_string(spans_) + " spans" : "");
  }

  base::Status Run(device::Addresses addresses) const override {
    const int64_t heads = shape_.heads.count();
    // Of keys and values that come from memory, and of the sums and exponentials.
    const int64_t per_key = (shape_.width + shape_.values) * (250 + 50 * rows_) + 1000 * rows_;
    const int64_t cost = 100'000 + span_keys_ * per_key;
    if (spans_ == 1) {
      return engine_.For(heads, cost, [&](int64_t begin, int64_t end, std::byte* scratch) {
        Worker worker(*this, addresses, scratch);
        for (int64_t head = begin; head < end; ++head) {
          worker.Weigh(head, 0, worker.own());
          worker.Finish(head);
        }
      });
    }
    ONNXIFI_ASSIGN_OR_RETURN(const runtime::WorkMemory::Lease partials,
                             runtime_.work_memory().Lend(heads * spans_ * PartialBytes()));
    const auto partial = [&](int64_t number) {
      return PartialAt(partials.data() + number * PartialBytes());
    };
    ONNXIFI_RETURN_IF_ERROR(
        engine_.For(heads * spans_, cost, [&](int64_t begin, int64_t end, std::byte* scratch) {
          Worker worker(*this, addresses, scratch);
          for (int64_t number = begin; number < end; ++number) {
            worker.Weigh(number / spans_, number % spans_, partial(number));
          }
        }));
    return engine_.For(heads, 1000 * rows_ * spans_ * (shape_.values / 8 + 20),
                       [&](int64_t begin, int64_t end, std::byte* scratch) {
                         Worker worker(*this, addresses, scratch);
                         for (int64_t head = begin; head < end; ++head) {
                           worker.Join([&](int64_t span) { return partial(head * spans_ + span); });
                           worker.Finish(head);
                         }
                       });
  }

 private:
  static constexpr int64_t kKeysOfSpan = 512;

  int64_t PartialBytes() const { return 2 * LineBytes(rows_) + LineBytes(rows_ * shape_.values); }
  Partial PartialAt(std::byte* memory) const {
    const int64_t line = LineBytes(rows_);
    return {reinterpret_cast<float*>(memory), reinterpret_cast<float*>(memory + line),
            reinterpret_cast<float*>(memory + 2 * line)};
  }
  // Floats in which an operand is laid out whose rows and columns are both apart.
  int64_t TurnedFloats() const { return span_keys_ * std::max(shape_.width, shape_.values); }
  int64_t ScratchBytes() const {
    return PartialBytes() + LineBytes(rows_) + LineBytes(rows_ * shape_.width) +
           LineBytes(rows_ * span_keys_) + LineBytes(TurnedFloats()) + query_.scratch_bytes() +
           key_.scratch_bytes() + value_.scratch_bytes() + (score_ ? score_->scratch_bytes() : 0) +
           results_.scratch_bytes();
  }

  // One thread's.
  class Worker {
   public:
    Worker(const BoundFewRows& kernel, device::Addresses addresses, std::byte* scratch)
        : kernel_(kernel),
          scratch_(scratch),
          own_(kernel.PartialAt(Take(kernel.PartialBytes()))),
          shrink_(TakeFloats(kernel.rows_)),
          queries_(TakeFloats(kernel.rows_ * kernel.shape_.width)),
          scores_(TakeFloats(kernel.rows_ * kernel.span_keys_)),
          turned_(TakeFloats(kernel.TurnedFloats())),
          query_(kernel.query_, addresses, Take(kernel.query_.scratch_bytes())),
          key_(kernel.key_, addresses, Take(kernel.key_.scratch_bytes())),
          value_(kernel.value_, addresses, Take(kernel.value_.scratch_bytes())),
          results_(kernel.results_, addresses, Take(kernel.results_.scratch_bytes())) {
      if (kernel.score_) score_.emplace(*kernel.score_, addresses, scratch_);
    }

    const Partial& own() const { return own_; }

    void Weigh(int64_t head, int64_t span, const Partial& to) {
      const AttentionShape& shape = kernel_.shape_;
      const int64_t rows = kernel_.rows_;
      const int64_t first_key = span * kernel_.span_keys_;
      const int64_t keys =
          std::max<int64_t>(0, std::min(kernel_.span_keys_, shape.keys - first_key));
      std::fill_n(to.largest, rows, -kInfinity);
      std::fill_n(to.total, rows, 0.0F);
      std::fill_n(to.sums, rows * shape.values, 0.0F);
      if (keys == 0) return;
      ReadQueries(head);
      const QueryRun first = shape.heads.RunAt(head, 0, rows);
      const BoxPlace of_keys = {first.batch.data(), 0, first_key};
      MultiplyColumns(key_.Read(of_keys, shape.width, keys), queries_, shape.width, keys, scores_);
      CoordinateRange range = shape.heads.RangeOf(head, 0, rows);
      const size_t key_axis = shape.query_extents.size() - 1;
      range.first[key_axis] = first_key;
      range.last[key_axis] = first_key + keys - 1;
      size_t form = kernel_.score_->FormFor(range);
      if (kernel_.score_->masked(form)) form = BoundScore::kWhole;
      for (int64_t row = 0; row < rows;) {
        const QueryRun run = shape.heads.RunAt(head, row, rows - row);
        score_->Write(form, run, first_key, {scores_ + row * keys, keys, run.queries, keys});
        row += run.queries;
      }
      WeighRows({scores_, keys, rows, keys}, {to.largest, to.total, shrink_});
      const BoxPlace of_values = {first.batch.data(), first_key, 0};
      MultiplyColumns(value_.Read(of_values, keys, shape.values), scores_, keys, shape.values,
                      to.sums);
    }

    template <class PartialOf>
    void Join(const PartialOf& partial_of) {
      const int64_t values = kernel_.shape_.values;
      std::fill_n(own_.sums, kernel_.rows_ * values, 0.0F);
      for (int64_t row = 0; row < kernel_.rows_; ++row) {
        float largest = -kInfinity;
        for (int64_t span = 0; span < kernel_.spans_; ++span) {
          largest = std::max(largest, partial_of(span).largest[row]);
        }
        own_.total[row] = 0;
        for (int64_t span = 0; span < kernel_.spans_; ++span) {
          const Partial partial = partial_of(span);
          // Without any score above minus infinity the totals are 0, and so is their sum.
          const float weight =
              largest == -kInfinity ? 1.0F : std::exp(partial.largest[row] - largest);
          own_.total[row] += partial.total[row] * weight;
          AddRow(partial.sums + row * values, weight, values, own_.sums + row * values);
        }
      }
    }

    void Finish(int64_t head) {
      const AttentionShape& shape = kernel_.shape_;
      // Sums of no keys are 0.
      if (shape.keys == 0) std::fill_n(own_.total, kernel_.rows_, 1.0F);
      for (int64_t row = 0; row < kernel_.rows_;) {
        const QueryRun run = shape.heads.RunAt(head, row, kernel_.rows_ - row);
        results_.Write(run, own_.total + row, own_.sums + row * shape.values);
        row += run.queries;
      }
    }

   private:
    std::byte* Take(int64_t size_bytes) {
      std::byte* const taken = scratch_;
      scratch_ += size_bytes;
      return taken;
    }
    float* TakeFloats(int64_t floats) { return reinterpret_cast<float*>(Take(LineBytes(floats))); }

    void ReadQueries(int64_t head) {
      const int64_t width = kernel_.shape_.width;
      for (int64_t row = 0; row < kernel_.rows_;) {
        const QueryRun run = kernel_.shape_.heads.RunAt(head, row, kernel_.rows_ - row);
        const FloatBlock block =
            query_.Read({run.batch.data(), run.first_query, 0}, run.queries, width);
        CopyRows(block, run.queries, width, queries_ + row * width);
        row += run.queries;
      }
    }

    // to[row, column] = sum over the depth of rows * block[depth, column].
    void MultiplyColumns(const FloatBlock& block, const float* rows, int64_t depth, int64_t columns,
                         float* to) {
      const int64_t count = kernel_.rows_;
      if (block.row_stride == 1 || depth <= 1) {
        gemm::MultiplyVectors(
            {rows, depth, block.data, block.column_stride, to, columns, count, depth}, {}, 0,
            columns);
        return;
      }
      const float* data = block.data;
      int64_t stride = block.row_stride;
      if (block.column_stride != 1) {
        CopyRows(block, depth, columns, turned_);
        data = turned_;
        stride = columns;
      }
      gemm::SumRows({rows, depth, data, stride, count}, 0, depth, 0, columns, to, columns);
    }

    static void CopyRows(const FloatBlock& block, int64_t rows, int64_t columns, float* to) {
      for (int64_t row = 0; row < rows; ++row, to += columns) {
        const float* const from = block.data + row * block.row_stride;
        if (block.column_stride == 1) {
          std::copy_n(from, columns, to);
        } else {
          for (int64_t column = 0; column < columns; ++column) {
            to[column] = from[column * block.column_stride];
          }
        }
      }
    }

    const BoundFewRows& kernel_;
    std::byte* scratch_;
    const Partial own_;
    float* const shrink_;
    float* const queries_;
    float* const scores_;
    float* const turned_;
    OperandReader query_, key_, value_;
    ResultWriter results_;
    std::optional<ScoreWriter> score_;
  };

  const std::shared_ptr<const AttentionCode> code_;  // shared with the kernel
  const AttentionShape shape_;
  const int64_t rows_;
  const int64_t spans_;
  const int64_t span_keys_;
  const BoundOperand query_, key_, value_;
  const BoundResults results_;
  std::optional<BoundScore> score_;  // nothing without keys
  runtime::Runtime& runtime_;
  engine::Runtime& engine_;
};

}  // namespace

std::unique_ptr<device::BoundKernel> BindFewRows(std::shared_ptr<const AttentionCode> code,
                                                 const device::BoundStep& step,
                                                 AttentionShape shape, runtime::Runtime& runtime,
                                                 engine::Runtime& engine) {
  return std::make_unique<BoundFewRows>(std::move(code), step, std::move(shape), runtime, engine);
}

}  // namespace onnxifi::attention
