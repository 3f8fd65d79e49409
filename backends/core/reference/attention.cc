// SPDX-License-Identifier: Apache-2.0
//
// Attention: a row of scores at a time, in the memory of one thread. Sums and the softmax are in
// float64; scores and results are rounded once.

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "backends/core/program/operand_extents.h"
#include "backends/core/reference/compiled_step.h"
#include "backends/core/reference/dense_operand.h"
#include "backends/core/reference/epilogue.h"

namespace onnxifi::reference {
namespace {

using program::Attention;
using tensor::Extents;

constexpr size_t kOperands = 3;

struct AttentionExpressions {
  Expression operands[kOperands];
  int direct[kOperands];  // the read that a prologue is without change, or -1
  Expression score, roots;
};

class BoundAttention final : public device::BoundKernel {
 public:
  BoundAttention(std::shared_ptr<const CompiledStep> owner, const AttentionExpressions& expressions,
                 const device::BoundStep& step, device::Parallel& parallel)
      : owner_(std::move(owner)),
        expressions_(expressions),
        score_dims_(expressions.score.BindDims(step.dims)),
        width_(step.Number(step.step->As<Attention>()->width)),
        keys_(step.Number(step.step->As<Attention>()->keys)),
        scores_(step.domain),
        epilogue_(expressions.roots, tensor::ElementType::kFloat32, step, parallel),
        parallel_(parallel) {
    scores_.back() = keys_;
    for (size_t k = 0; k < kOperands; ++k) {
      operand_dims_.push_back(expressions.operands[k].BindDims(step.dims));
      extents_.push_back(program::OperandExtents(*step.step, static_cast<int>(k), step.dims));
    }
  }

  std::string Detail() const override { return "loops"; }

  base::Status Run(device::Addresses addresses) const override {
    if (epilogue_.count() == 0) return base::Ok();
    return Guarded([&] { return RunRows(addresses); });
  }

 private:
  base::Status RunRows(device::Addresses addresses) const {
    std::vector<DenseOperand> operands;
    for (size_t k = 0; k < kOperands; ++k) {
      ONNXIFI_ASSIGN_OR_RETURN(
          DenseOperand operand,
          MakeDense(expressions_.operands[k], operand_dims_[k], epilogue_.reads(),
                    expressions_.direct[k], extents_[k], addresses, parallel_));
      operands.push_back(std::move(operand));
    }
    const int64_t values = epilogue_.domain().back();
    const int64_t rows = epilogue_.count() / values;
    Scratch sums(epilogue_.count() * static_cast<int64_t>(sizeof(float)));
    auto* const out = reinterpret_cast<float*>(sums.data());
    ONNXIFI_RETURN_IF_ERROR(ForRange(parallel_, rows, 1, [&](int64_t begin, int64_t end) {
      Frame score(expressions_.score, score_dims_, epilogue_.reads(), addresses);
      std::vector<double> weights(static_cast<size_t>(keys_));
      std::vector<double> sums_of_row(static_cast<size_t>(values));
      for (int64_t row = begin; row < end; ++row) {
        FindScores(operands, row, score, weights);
        const double total = Normalise(weights);
        std::fill(sums_of_row.begin(), sums_of_row.end(), 0.0);
        AddValues(operands[2], row, weights, sums_of_row);
        for (int64_t k = 0; k < values; ++k) {
          out[row * values + k] =
              static_cast<float>(keys_ == 0 ? 0.0 : sums_of_row[static_cast<size_t>(k)] / total);
        }
      }
    }));
    return epilogue_.Run(sums.data(), addresses);
  }

  // Where the batch of a row begins in an operand.
  const float* BatchOf(const DenseOperand& operand, int64_t row) const {
    const size_t batch_axes = scores_.size() - 2;
    int64_t position = row / scores_[batch_axes];
    const auto* data = reinterpret_cast<const float*>(operand.data);
    for (size_t axis = batch_axes; axis-- > 0;) {
      data += position % scores_[axis] * operand.strides[axis];
      position /= scores_[axis];
    }
    return data;
  }

  void FindScores(const std::vector<DenseOperand>& operands, int64_t row, Frame& score,
                  std::vector<double>& scores) const {
    const size_t last = scores_.size() - 1;
    const float* const query =
        BatchOf(operands[0], row) + row % scores_[last - 1] * operands[0].strides[last - 1];
    const int64_t query_step = operands[0].strides[last];
    const float* const keys = BatchOf(operands[1], row);
    const int64_t width_step = operands[1].strides[last - 1];
    const int64_t key_step = operands[1].strides[last];
    Sweep sweep(scores_);
    float products[kBlock];
    for (int64_t first = 0; first < keys_; first += kBlock) {
      const int64_t lanes = std::min(kBlock, keys_ - first);
      for (int64_t lane = 0; lane < lanes; ++lane) {
        double sum = 0;
        for (int64_t k = 0; k < width_; ++k) {
          sum += static_cast<double>(query[k * query_step]) *
                 static_cast<double>(keys[k * width_step + (first + lane) * key_step]);
        }
        products[lane] = static_cast<float>(sum);
      }
      std::byte* const column[] = {reinterpret_cast<std::byte*>(products)};
      score.Attach(program::ExprOp::kAccumulator, column);
      sweep.Move(row * keys_ + first, lanes);
      score.Run(sweep);
      const auto* const found = reinterpret_cast<const float*>(score.root(0));
      for (int64_t lane = 0; lane < lanes; ++lane) {
        scores[static_cast<size_t>(first + lane)] = static_cast<double>(found[lane]);
      }
    }
  }

  // Makes exponentials of the scores, less the largest of them, and gives their sum.
  static double Normalise(std::vector<double>& scores) {
    double largest = -std::numeric_limits<double>::infinity();
    for (const double score : scores) largest = std::max(largest, score);
    double total = 0;
    for (double& score : scores) {
      score = std::exp(score - largest);
      total += score;
    }
    return total;
  }

  void AddValues(const DenseOperand& operand, int64_t row, const std::vector<double>& weights,
                 std::vector<double>& sums) const {
    const size_t last = scores_.size() - 1;
    const float* const values = BatchOf(operand, row);
    for (int64_t key = 0; key < keys_; ++key) {
      const float* const of_key = values + key * operand.strides[last - 1];
      for (size_t k = 0; k < sums.size(); ++k) {
        sums[k] += weights[static_cast<size_t>(key)] *
                   static_cast<double>(of_key[static_cast<int64_t>(k) * operand.strides[last]]);
      }
    }
  }

  std::shared_ptr<const CompiledStep> owner_;  // of the expressions
  const AttentionExpressions& expressions_;
  std::vector<std::vector<int64_t>> operand_dims_;
  std::vector<Extents> extents_;  // of the operands
  std::vector<int64_t> score_dims_;
  int64_t width_;
  int64_t keys_;
  Extents scores_;  // [batch, queries, keys]
  Epilogue epilogue_;
  device::Parallel& parallel_;
};

class AttentionStep final : public CompiledStep {
 public:
  explicit AttentionStep(AttentionExpressions expressions) : expressions_(std::move(expressions)) {}

  std::unique_ptr<device::BoundKernel> Bind(const device::BoundStep& step,
                                            device::Parallel& parallel) const override {
    return std::make_unique<BoundAttention>(shared_from_this(), expressions_, step, parallel);
  }

 private:
  AttentionExpressions expressions_;
};

}  // namespace

CompileResult CompileAttention(const program::Program& program, const program::Step& step) {
  const Attention& attention = *step.As<Attention>();
  const program::ExprPool& pool = program.exprs;
  // The read that a prologue is, if no prologue changes it.
  const auto direct = [&](program::ExprId root) {
    const program::ExprNode& node = pool[root];
    return node.op == program::ExprOp::kLoad && node.operands.empty()
               ? static_cast<int>(node.payload)
               : -1;
  };
  ONNXIFI_ASSIGN_OR_RETURN(Expression query, Expression::Compile(pool, {attention.query_prologue}));
  ONNXIFI_ASSIGN_OR_RETURN(Expression key, Expression::Compile(pool, {attention.key_prologue}));
  ONNXIFI_ASSIGN_OR_RETURN(Expression value, Expression::Compile(pool, {attention.value_prologue}));
  ONNXIFI_ASSIGN_OR_RETURN(Expression score, Expression::Compile(pool, {attention.score}));
  ONNXIFI_ASSIGN_OR_RETURN(Expression roots, Expression::Compile(pool, attention.roots));
  AttentionExpressions expressions{
      {std::move(query), std::move(key), std::move(value)},
      {direct(attention.query_prologue), direct(attention.key_prologue),
       direct(attention.value_prologue)},
      std::move(score),
      std::move(roots)};
  return std::shared_ptr<const CompiledStep>(
      std::make_shared<AttentionStep>(std::move(expressions)));
}

}  // namespace onnxifi::reference
