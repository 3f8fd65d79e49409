// SPDX-License-Identifier: Apache-2.0
//
// AttentionCode, AttentionShape: checks first, then compilation of the expressions.

#include "backends/cpu/attention/shape.h"

#include <algorithm>
#include <string>

#include "backends/core/program/body_exprs.h"
#include "backends/core/program/operand_extents.h"
#include "backends/cpu/attention/accumulators.h"
#include "backends/cpu/engine/geometry.h"

namespace onnxifi::attention {
namespace {

std::vector<bool> SharedAxes(const AttentionCode& code, const device::BoundStep& step) {
  std::vector<bool> is_shared;
  for (size_t axis = 0; axis + 2 < step.domain.size(); ++axis) {
    is_shared.push_back(step.domain[axis] > 1 && code.key.IsRepeatedAlong(step, axis) &&
                        code.value.IsRepeatedAlong(step, axis));
  }
  return is_shared;
}

}  // namespace

base::Status AttentionCode::Check(const device::Facts& facts) {
  const program::Step& step = facts.step;
  if (step.domain.size() > static_cast<size_t>(engine::kMaxAxes)) {
    return base::Status(base::Code::kUnsupportedShape,
                        "The step has " + std::to_string(step.domain.size()) +
                            " axes; attention has up to " + std::to_string(engine::kMaxAxes) + ".");
  }
  const program::ExprIds expressions = program::BodyExprs(step);
  return engine::CheckExpressions(facts.program.exprs, expressions,
                                  AccumulatorsBelow(facts.program.exprs, expressions));
}

AttentionCode AttentionCode::Compile(const device::Facts& facts, engine::LoopSet loops) {
  const auto& attention = *facts.step.As<program::Attention>();
  return {OperandCode::Compile(facts, 0, attention.query_prologue, loops),
          OperandCode::Compile(facts, 1, attention.key_prologue, loops),
          OperandCode::Compile(facts, 2, attention.value_prologue, loops),
          ScoreCode::Compile(facts, loops), EpilogueCode::Compile(facts, loops)};
}

int64_t KeysOfBlock(int64_t keys, int64_t width, int64_t values) {
  // Packed keys and values of a block stay in an L2 cache, its scores in an L1 cache.
  constexpr int64_t kFloatsOfBlock = 8192;
  constexpr int64_t kMin = 32, kMax = 128, kStep = 32;
  const int64_t fitting = kFloatsOfBlock / std::max<int64_t>({1, width, values});
  const int64_t most = std::clamp(fitting / kStep * kStep, kMin, kMax);
  const int64_t blocks = DivideUp(keys, most);
  if (blocks <= 1) return std::max<int64_t>(1, keys);
  // About as many in each, and whole panels.
  return std::min(most, DivideUp(DivideUp(keys, blocks), kStep / 2) * (kStep / 2));
}

AttentionShape::AttentionShape(const AttentionCode& code, const device::BoundStep& step)
    : width(step.Number(step.step->As<program::Attention>()->width)),
      keys(step.Number(step.step->As<program::Attention>()->keys)),
      values(step.domain.back()),
      heads(step, SharedAxes(code, step)),
      query_extents(program::OperandExtents(*step.step, 0, step.dims)),
      key_extents(program::OperandExtents(*step.step, 1, step.dims)),
      value_extents(program::OperandExtents(*step.step, 2, step.dims)) {}

}  // namespace onnxifi::attention
