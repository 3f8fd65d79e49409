// SPDX-License-Identifier: Apache-2.0
//
// Results: a quotient per value, straight to memory where nothing follows it.

#include "backends/cpu/attention/results.h"

#include <vector>

#include "backends/cpu/attention/accumulators.h"
#include "backends/cpu/attention/score_rows.h"

namespace onnxifi::attention {

using program::ExprOp;
using tensor::ElementType;

EpilogueCode EpilogueCode::Compile(const device::Facts& facts, engine::LoopSet loops) {
  const program::ExprPool& pool = facts.program.exprs;
  const program::ExprIds& roots = facts.step.As<program::Attention>()->roots;
  const std::vector<program::ExprId> accumulators = AccumulatorsBelow(pool, roots);
  EpilogueCode epilogue;
  epilogue.is_nothing = roots.size() == 1 && pool[roots[0]].op == ExprOp::kAccumulator &&
                        facts.step.writes[0].type == ElementType::kFloat32;
  const ElementType type = facts.step.writes[0].type;
  const program::ExprNode& root = pool[roots[0]];
  const bool is_half = type == ElementType::kBfloat16 || type == ElementType::kFloat16;
  if (roots.size() == 1 && is_half && root.op == ExprOp::kCast && root.type == type &&
      pool[root.operands[0]].op == ExprOp::kAccumulator &&
      pool[root.operands[0]].type == ElementType::kFloat32) {
    epilogue.round = engine::FindCastLoop(ElementType::kFloat32, type);
  }
  epilogue.code = engine::Code::Compile(pool, roots, loops, accumulators);
  return epilogue;
}

BoundResults::BoundResults(const EpilogueCode& code, const device::BoundStep& step)
    : view_(step.writes[0]), values_(step.domain.back()) {
  if ((code.is_nothing || code.round != nullptr) && (view_.strides.back() == 1 || values_ == 1)) {
    round_ = code.round;
    return;
  }
  expression_.emplace(code.code, step, step.domain, /*rows=*/1, values_, /*swaps=*/false,
                      step.writes);
}

ResultWriter::ResultWriter(const BoundResults& results, device::Addresses addresses,
                           std::byte* scratch)
    : results_(results), addresses_(addresses), scratch_(scratch) {
  if (results_.expression_) frame_.emplace(results_.expression_->MakeFrame(addresses, scratch));
}

void ResultWriter::Write(const QueryRun& run, const float* totals, float* sums) {
  const int64_t values = results_.values_;
  if (!frame_) {
    const device::BoundView& view = results_.view_;
    const size_t row_axis = view.strides.size() - 2;
    int64_t offset = view.offset + run.first_query * view.strides[row_axis];
    for (size_t axis = 0; axis < row_axis; ++axis) offset += run.batch[axis] * view.strides[axis];
    const int64_t bytes = tensor::SizeBytes(view.type, 1);
    std::byte* to = addresses_[view.buffer] + offset * bytes;
    for (int64_t row = 0; row < run.queries; ++row, to += view.strides[row_axis] * bytes) {
      float* const mean = sums + row * values;
      if (results_.round_ == nullptr) {
        DivideRow(mean, totals[row], values, reinterpret_cast<float*>(to));
        continue;
      }
      DivideRow(mean, totals[row], values, mean);
      results_.round_({.result = to,
                       .inputs = {reinterpret_cast<const std::byte*>(mean)},
                       .lanes = values,
                       .payload = 0,
                       .type = view.type,
                       .from_type = ElementType::kFloat32});
    }
    return;
  }
  const BoxExpression& expression = *results_.expression_;
  for (int64_t row = 0; row < run.queries; ++row) {
    float* const mean = sums + row * values;
    DivideRow(mean, totals[row], values, mean);
    frame_->Attach(ExprOp::kAccumulator,
                   [&](uint64_t) { return reinterpret_cast<std::byte*>(mean); });
    expression.Store(*frame_,
                     expression.BoxAt({run.batch.data(), run.first_query + row, 0}, 1, values),
                     addresses_, scratch_);
  }
}

}  // namespace onnxifi::attention
