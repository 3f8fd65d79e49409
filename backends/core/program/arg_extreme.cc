// SPDX-License-Identifier: Apache-2.0
//
// ArgExtreme: a reduction is one if writing it again, for what its states select, gives the same.

#include "backends/core/program/arg_extreme.h"

#include <algorithm>
#include <utility>

namespace onnxifi::program {
namespace {

using tensor::ElementType;

// What stands for the element and its index in a reduction that is written to compare with.
constexpr int kElement = 0, kIndex = 1;

// Whether `a` in one pool is what `b` is in another, in which loads stand for two nodes of the
// first.
bool IsSame(const ExprPool& pool, ExprId a, const ExprPool& other, ExprId b,
            const ArgExtreme& found) {
  std::vector<std::pair<ExprId, ExprId>> pending = {{a, b}};
  while (!pending.empty()) {
    const auto [own, written] = pending.back();
    pending.pop_back();
    const ExprNode& node = pool[own];
    const ExprNode& expected = other[written];
    if (expected.op == ExprOp::kLoad) {
      if (own != (expected.payload == kElement ? found.element : found.index)) return false;
      continue;
    }
    if (node.op != expected.op || node.type != expected.type || node.payload != expected.payload ||
        !(node.dim == expected.dim) || node.operands.size() != expected.operands.size()) {
      return false;
    }
    for (size_t k = 0; k < node.operands.size(); ++k) {
      pending.emplace_back(node.operands[k], expected.operands[k]);
    }
  }
  return true;
}

// What an update selects beside the state.
ExprId SelectedBy(const ExprPool& pool, ExprId update) {
  const ExprNode& node = pool[update];
  return node.op == ExprOp::kSelect ? node.operands[1] : kNoExpr;
}

}  // namespace

Expr AddArgExtreme(Reduction& reduction, Expr element, Expr index, Extreme extreme) {
  ExprPool& pool = *element.pool();
  const ElementType type = element.type();
  const int k = static_cast<int>(reduction.states.size());
  Expr value = State(pool, type, k), position = State(pool, ElementType::kInt64, k + 1);
  Expr zero = IntConstant(pool, ElementType::kInt64, 0);
  auto is_taken = [&](Expr candidate, Expr candidate_position) {
    Expr is_better = extreme.is_largest ? candidate > value : candidate < value;
    Expr is_equal = candidate == value;
    if (tensor::IsFloat(type)) {
      Expr candidate_nan = Unary(ExprOp::kIsNan, candidate);
      Expr value_nan = Unary(ExprOp::kIsNan, value);
      is_better = is_better || (candidate_nan && !value_nan);
      is_equal = is_equal || (candidate_nan && value_nan);
    }
    Expr is_preferred =
        extreme.takes_last ? candidate_position > position : candidate_position < position;
    return position < zero ||
           (candidate_position >= zero && (is_better || (is_equal && is_preferred)));
  };
  Expr other = Other(pool, type, k), other_position = Other(pool, ElementType::kInt64, k + 1);
  Expr takes_element = is_taken(element, index);
  Expr takes_other = is_taken(other, other_position);
  reduction.states.push_back({type, Like(element, 0).id(),
                              Select(takes_element, element, value).id(),
                              Select(takes_other, other, value).id()});
  reduction.states.push_back({ElementType::kInt64, IntConstant(pool, ElementType::kInt64, -1).id(),
                              Select(takes_element, index, position).id(),
                              Select(takes_other, other_position, position).id()});
  return position;
}

std::optional<ArgExtreme> FindArgExtreme(const ExprPool& pool, const Reduction& reduction) {
  if (reduction.states.size() != 2) return std::nullopt;
  ArgExtreme found = {SelectedBy(pool, reduction.states[0].update),
                      SelectedBy(pool, reduction.states[1].update),
                      {}};
  if (found.element == kNoExpr || found.index == kNoExpr ||
      pool[found.index].type != ElementType::kInt64) {
    return std::nullopt;
  }
  for (const bool is_largest : {true, false}) {
    for (const bool takes_last : {false, true}) {
      found.extreme = {is_largest, takes_last};
      ExprPool written;
      Reduction same;
      AddArgExtreme(same, Load(written, pool[found.element].type, kElement),
                    Load(written, ElementType::kInt64, kIndex), found.extreme);
      const auto is_same = [&](size_t k) {
        const Reduction::State& own = reduction.states[k];
        const Reduction::State& other = same.states[k];
        return own.type == other.type && IsSame(pool, own.init, written, other.init, found) &&
               IsSame(pool, own.update, written, other.update, found) &&
               IsSame(pool, own.merge, written, other.merge, found);
      };
      if (is_same(0) && is_same(1)) return found;
    }
  }
  return std::nullopt;
}

}  // namespace onnxifi::program
