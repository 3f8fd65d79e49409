// SPDX-License-Identifier: Apache-2.0
//
// ScoreCode: the expression is copied with constants in the place of its conditions, once for every
// way in which they can be decided.

#include "backends/cpu/attention/score.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <span>
#include <unordered_map>
#include <utility>

#include "backends/cpu/attention/accumulators.h"

namespace onnxifi::attention {
namespace {

using program::ExprId;
using program::ExprNode;
using program::ExprOp;
using program::ExprPool;
using tensor::ElementType;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
// A constant score of at most this is a mask: what it leaves a key is nothing beside other scores.
constexpr float kMaskedBelow = -1000;

// The largest conditions below `root`: no other contains one of them.
std::vector<ExprId> FindConditions(const ExprPool& pool, ExprId root) {
  std::vector<ExprId> found;
  const std::vector<ExprId> nodes = program::Reachable(pool, std::span(&root, 1));
  std::unordered_map<ExprId, bool> is_met;
  is_met[root] = true;
  for (auto id = nodes.rbegin(); id != nodes.rend(); ++id) {
    if (!is_met[*id]) continue;
    if (pool[*id].op != ExprOp::kConstant && Condition::IsOne(pool, *id)) {
      found.push_back(*id);
      continue;
    }
    for (const ExprId operand : pool[*id].operands) is_met[operand] = true;
  }
  return found;
}

// `from`'s node without what a constant decides.
ExprId AddSimplified(ExprPool& pool, ExprNode node) {
  const auto constant = [&](size_t k) -> std::optional<bool> {
    const ExprNode& operand = pool[node.operands[k]];
    if (operand.op != ExprOp::kConstant) return std::nullopt;
    return operand.payload != 0;
  };
  if (node.type == ElementType::kBool && (node.op == ExprOp::kAnd || node.op == ExprOp::kOr)) {
    // What the other side's value is for.
    const bool neutral = node.op == ExprOp::kAnd;
    for (const size_t k : {size_t{0}, size_t{1}}) {
      const std::optional<bool> number = constant(k);
      if (number) return *number == neutral ? node.operands[1 - k] : node.operands[k];
    }
  }
  return pool.Add(std::move(node));
}

class FormMaker {
 public:
  FormMaker(const device::Facts& facts, engine::LoopSet loops) : facts_(facts), loops_(loops) {}

  // With `truths` in the place of `conditions`.
  ScoreForm Make(std::span<const ExprId> conditions, unsigned truths) const {
    ExprPool pool;
    std::unordered_map<ExprId, ExprId> copies;
    const ExprId score = facts_.step.As<program::Attention>()->score;
    for (const ExprId id : program::Reachable(facts_.program.exprs, std::span(&score, 1))) {
      const auto at = std::find(conditions.begin(), conditions.end(), id);
      if (at != conditions.end()) {
        const uint64_t truth = truths >> (at - conditions.begin()) & 1;
        copies[id] = program::ScalarConstant(pool, ElementType::kBool, {.u = truth}).id();
        continue;
      }
      ExprNode node = facts_.program.exprs[id];
      for (ExprId& operand : node.operands) operand = copies.at(operand);
      copies[id] = AddSimplified(pool, std::move(node));
    }
    const ExprId root = copies.at(score);
    ScoreForm form;
    if (!conditions.empty()) form.masked = FindMasked(pool, root);
    if (form.masked) return form;
    form.simple = FindSimple(pool, root);
    const std::vector<ExprId> accumulators = AccumulatorsBelow(pool, {&root, 1});
    form.code = engine::Code::Compile(pool, {&root, 1}, loops_, accumulators);
    return form;
  }

 private:
  static std::optional<float> FindConstant(const ExprPool& pool, ExprId id) {
    const ExprNode& node = pool[id];
    if (node.op != ExprOp::kConstant || node.type != ElementType::kFloat32) return std::nullopt;
    return static_cast<float>(std::bit_cast<tensor::Scalar>(node.payload).f);
  }

  std::optional<MaskedScore> FindMasked(const ExprPool& pool, ExprId id) const {
    if (const std::optional<float> score = FindConstant(pool, id)) {
      if (*score <= kMaskedBelow) return MaskedScore{*score, /*replaces_sum=*/true};
      return std::nullopt;
    }
    const ExprNode& node = pool[id];
    if (node.op != ExprOp::kAdd) return std::nullopt;
    for (const size_t side : {size_t{0}, size_t{1}}) {
      const std::optional<SimpleScore> scaled = FindScaled(pool, node.operands[side]);
      // A number of a read may be an infinity.
      if (FindConstant(pool, node.operands[1 - side]) == -kInfinity && scaled &&
          scaled->number_read < 0) {
        return MaskedScore{-kInfinity, /*replaces_sum=*/false, *scaled};
      }
    }
    return std::nullopt;
  }

  // A float32 read as it lies in memory.
  bool IsPlainLoad(const ExprNode& node) const {
    return node.op == ExprOp::kLoad && node.operands.empty() &&
           node.type == ElementType::kFloat32 && facts_.step.reads[node.payload].guards.empty();
  }
  bool IsOneElement(const ExprNode& node) const {
    const program::Dims& strides = facts_.step.reads[node.payload].strides;
    return IsPlainLoad(node) && std::all_of(strides.begin(), strides.end(), [](const auto& stride) {
             return stride == program::Dim(0);
           });
  }

  std::optional<SimpleScore> FindScaled(const ExprPool& pool, ExprId id) const {
    const ExprNode& node = pool[id];
    if (node.op == ExprOp::kAccumulator) return SimpleScore{};
    if (node.op != ExprOp::kMul && node.op != ExprOp::kDiv) return std::nullopt;
    for (const size_t side : {size_t{0}, size_t{1}}) {
      if (side == 1 && node.op == ExprOp::kDiv) break;
      if (pool[node.operands[side]].op != ExprOp::kAccumulator) continue;
      const ExprNode& other = pool[node.operands[1 - side]];
      SimpleScore scaled{.divides = node.op == ExprOp::kDiv};
      if (const std::optional<float> number = FindConstant(pool, node.operands[1 - side])) {
        scaled.number = *number;
        return scaled;
      }
      if (other.op == ExprOp::kLoad && IsOneElement(other)) {
        scaled.number_read = static_cast<int>(other.payload);
        return scaled;
      }
    }
    return std::nullopt;
  }

  std::optional<SimpleScore> FindSimple(const ExprPool& pool, ExprId id) const {
    const ExprNode& node = pool[id];
    if (node.op != ExprOp::kAdd) return FindScaled(pool, id);
    for (const size_t side : {size_t{0}, size_t{1}}) {
      const ExprNode& other = pool[node.operands[1 - side]];
      // A mask that masks nothing here.
      if (FindConstant(pool, node.operands[1 - side]) == 0.0F) {
        return FindSimple(pool, node.operands[side]);
      }
      std::optional<SimpleScore> scaled = FindScaled(pool, node.operands[side]);
      if (!scaled || !IsPlainLoad(other)) continue;
      scaled->addend_read = static_cast<int>(other.payload);
      return scaled;
    }
    return std::nullopt;
  }

  const device::Facts& facts_;
  const engine::LoopSet loops_;
};

}  // namespace

ScoreCode ScoreCode::Compile(const device::Facts& facts, engine::LoopSet loops) {
  const ExprPool& pool = facts.program.exprs;
  const ExprId score = facts.step.As<program::Attention>()->score;
  const FormMaker maker(facts, loops);
  ScoreCode code;
  code.forms_.push_back(maker.Make({}, 0));
  const std::vector<ExprId> conditions = FindConditions(pool, score);
  if (conditions.empty() || conditions.size() > kMaxConditions) return code;
  for (const ExprId condition : conditions) code.conditions_.emplace_back(pool, condition);
  for (unsigned truths = 0; truths < 1U << conditions.size(); ++truths) {
    code.forms_.push_back(maker.Make(conditions, truths));
  }
  return code;
}

}  // namespace onnxifi::attention
