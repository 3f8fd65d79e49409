// SPDX-License-Identifier: Apache-2.0
//
// BoundScore: an addend whose keys are neither neighbours nor one number is left to the tile
// engine.

#include "backends/cpu/attention/bound_score.h"

#include <algorithm>
#include <cstring>

namespace onnxifi::attention {
namespace {

float FloatAt(const std::byte* address) {
  float number;
  std::memcpy(&number, address, sizeof(number));
  return number;
}

}  // namespace

BoundScore::BoundScore(const ScoreCode& code, const device::BoundStep& step, int64_t keys,
                       int64_t block_keys, int64_t tile_lanes)
    : code_(code), conditions_(code.conditions()) {
  for (Condition& condition : conditions_) condition.Bind(step);
  tensor::Extents scores = step.domain;
  scores.back() = keys;
  const int64_t rows = std::max<int64_t>(1, tile_lanes / std::min(keys, block_keys));
  for (size_t k = 0; k < code.form_count(); ++k) {
    const ScoreForm& of_code = code.form(k);
    Form& form = forms_.emplace_back();
    if (of_code.masked) continue;
    if (of_code.simple) {
      Simple simple{*of_code.simple, {}, {}};
      const auto view = [&](int read) { return step.reads[static_cast<size_t>(read)]; };
      if (simple.score.number_read >= 0) simple.number = view(simple.score.number_read);
      if (simple.score.addend_read >= 0) simple.addend = view(simple.score.addend_read);
      const int64_t along_keys = simple.addend ? simple.addend->strides.back() : 0;
      if (along_keys == 0 || along_keys == 1 || keys == 1) {
        form.simple = std::move(simple);
        continue;
      }
    }
    form.expression.emplace(of_code.code, step, scores, rows, block_keys, /*swaps=*/false);
    form.scratch_at = scratch_bytes_;
    scratch_bytes_ += form.expression->scratch_bytes();
    cost_ = std::max(cost_, of_code.code.cost());
  }
}

size_t BoundScore::FormFor(const CoordinateRange& range) const {
  if (conditions_.empty()) return kWhole;
  size_t truths = 0;
  for (size_t k = 0; k < conditions_.size(); ++k) {
    const Truth truth = conditions_[k].Over(range);
    if (truth == Truth::kUnknown) return kWhole;
    if (truth == Truth::kAlways) truths |= size_t{1} << k;
  }
  return 1 + truths;
}

ScoreWriter::ScoreWriter(const BoundScore& score, device::Addresses addresses, std::byte* scratch)
    : score_(score), addresses_(addresses), scratch_(scratch) {}

void ScoreWriter::Write(size_t number, const QueryRun& run, int64_t first_key,
                        const ScoreRows& rows) {
  const BoundScore::Form& form = score_.forms_[number];
  if (form.simple) return WriteSimple(*form.simple, run, first_key, rows);
  const BoxExpression& expression = *form.expression;
  std::optional<engine::Frame>& frame = frames_[number];
  if (!frame) frame.emplace(expression.MakeFrame(addresses_, scratch_ + form.scratch_at));
  for (int64_t row = 0; row < rows.rows; row += expression.rows()) {
    const int64_t count = std::min(expression.rows(), rows.rows - row);
    auto* const scores = reinterpret_cast<std::byte*>(rows.scores + row * rows.stride);
    frame->Attach(program::ExprOp::kAccumulator, [&](uint64_t) { return scores; });
    frame->Run(
        expression.BoxAt({run.batch.data(), run.first_query + row, first_key}, count, rows.keys),
        &scores);
    if (frame->root(0) != scores) {
      std::memcpy(scores, frame->root(0), static_cast<size_t>(count * rows.keys) * sizeof(float));
    }
  }
}

void ScoreWriter::WriteSimple(const BoundScore::Simple& simple, const QueryRun& run,
                              int64_t first_key, const ScoreRows& rows) const {
  Scaling scaling{.factor = simple.score.number, .divides = simple.score.divides};
  if (simple.number) {
    constexpr auto kFloat = static_cast<int64_t>(sizeof(float));
    scaling.factor = FloatAt(addresses_[simple.number->buffer] + simple.number->offset * kFloat);
  }
  if (!simple.addend) {
    if (scaling.factor == 1) return;
    for (int64_t row = 0; row < rows.rows; ++row) {
      ScaleRow(scaling, rows.scores + row * rows.stride, rows.keys);
    }
    return;
  }
  const device::BoundView& view = *simple.addend;
  const size_t row_axis = view.strides.size() - 2;
  int64_t offset = view.offset + run.first_query * view.strides[row_axis] +
                   first_key * view.strides[row_axis + 1];
  for (size_t axis = 0; axis < row_axis; ++axis) offset += run.batch[axis] * view.strides[axis];
  scaling.is_addend_one = view.strides[row_axis + 1] == 0;
  const auto* const data = reinterpret_cast<const float*>(addresses_[view.buffer]);
  for (int64_t row = 0; row < rows.rows; ++row) {
    scaling.addend = data + offset + row * view.strides[row_axis];
    ScaleRow(scaling, rows.scores + row * rows.stride, rows.keys);
  }
}

}  // namespace onnxifi::attention
