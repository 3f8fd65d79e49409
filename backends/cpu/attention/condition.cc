// SPDX-License-Identifier: Apache-2.0
//
// Condition: interval arithmetic. An interval that leaves the numbers of its type is no longer
// known, since integers wrap.

#include "backends/cpu/attention/condition.h"

#include <algorithm>
#include <limits>
#include <unordered_map>

namespace onnxifi::attention {
namespace {

using program::ExprId;
using program::ExprNode;
using program::ExprOp;
using tensor::ElementType;

constexpr size_t kMaxNodes = 32;

// Numbers from `low` to `high`; of bools, 0 and 1.
struct Interval {
  bool is_known = false;
  int64_t low = 0;
  int64_t high = 0;
};

bool IsCounted(ElementType type) {
  return type == ElementType::kInt64 || type == ElementType::kInt32 || type == ElementType::kBool;
}

Interval Known(ElementType type, __int128 low, __int128 high) {
  const bool is_short = type == ElementType::kInt32;
  const int64_t lowest =
      is_short ? std::numeric_limits<int32_t>::min() : std::numeric_limits<int64_t>::min();
  const int64_t highest =
      is_short ? std::numeric_limits<int32_t>::max() : std::numeric_limits<int64_t>::max();
  if (low < lowest || high > highest) return {};
  return {true, static_cast<int64_t>(low), static_cast<int64_t>(high)};
}

// Of what is true wherever `always` is, and nowhere where `never` is.
Interval Decide(bool always, bool never) { return {true, always ? 1 : 0, never ? 0 : 1}; }

Interval Combine(ExprOp op, ElementType type, const Interval& a, const Interval& b) {
  using Wide = __int128;
  const auto wide = [](int64_t number) { return static_cast<Wide>(number); };
  if (type == ElementType::kBool) {
    // One side may be enough.
    const bool a_never = a.is_known && a.high == 0;
    const bool b_never = b.is_known && b.high == 0;
    const bool a_always = a.is_known && a.low == 1;
    const bool b_always = b.is_known && b.low == 1;
    if (op == ExprOp::kAnd) return Decide(a_always && b_always, a_never || b_never);
    if (op == ExprOp::kOr) return Decide(a_always || b_always, a_never && b_never);
    if (!a.is_known || !b.is_known) return Decide(false, false);
    if (op == ExprOp::kLess) return Decide(a.high < b.low, a.low >= b.high);
    if (op == ExprOp::kLessEqual) return Decide(a.high <= b.low, a.low > b.high);
    return Decide(a.low == a.high && b.low == b.high && a.low == b.low,
                  a.high < b.low || b.high < a.low);
  }
  if (!a.is_known || !b.is_known) return {};
  switch (op) {
    case ExprOp::kAdd:
      return Known(type, wide(a.low) + b.low, wide(a.high) + b.high);
    case ExprOp::kSub:
      return Known(type, wide(a.low) - b.high, wide(a.high) - b.low);
    case ExprOp::kMul: {
      const Wide corners[] = {wide(a.low) * b.low, wide(a.low) * b.high, wide(a.high) * b.low,
                              wide(a.high) * b.high};
      return Known(type, *std::min_element(std::begin(corners), std::end(corners)),
                   *std::max_element(std::begin(corners), std::end(corners)));
    }
    case ExprOp::kMin:
      return {true, std::min(a.low, b.low), std::min(a.high, b.high)};
    default:
      return {true, std::max(a.low, b.low), std::max(a.high, b.high)};
  }
}

bool IsKnownHere(const program::ExprPool& pool, const ExprNode& node) {
  if (!IsCounted(node.type)) return false;
  switch (node.op) {
    case ExprOp::kConstant:
    case ExprOp::kDim:
    case ExprOp::kIndex:
    case ExprOp::kNeg:
    case ExprOp::kNot:
    case ExprOp::kEqual:
    case ExprOp::kLess:
    case ExprOp::kLessEqual:
      return true;
    case ExprOp::kSelect:
    case ExprOp::kAnd:
    case ExprOp::kOr:
      return node.type == ElementType::kBool;
    case ExprOp::kAdd:
    case ExprOp::kSub:
    case ExprOp::kMul:
    case ExprOp::kMin:
    case ExprOp::kMax:
      return node.type != ElementType::kBool;
    case ExprOp::kCast:
      return node.type != ElementType::kBool && pool[node.operands[0]].type != ElementType::kBool;
    default:
      return false;
  }
}

}  // namespace

bool Condition::IsOne(const program::ExprPool& pool, ExprId id) {
  if (pool[id].type != ElementType::kBool) return false;
  const std::vector<ExprId> nodes = program::Reachable(pool, std::span(&id, 1));
  return nodes.size() <= kMaxNodes && std::all_of(nodes.begin(), nodes.end(), [&](ExprId node) {
           return IsKnownHere(pool, pool[node]);
         });
}

Condition::Condition(const program::ExprPool& pool, ExprId id) {
  std::unordered_map<ExprId, int> place;
  for (const ExprId reached : program::Reachable(pool, std::span(&id, 1))) {
    const ExprNode& node = pool[reached];
    Node copy{.op = node.op, .type = node.type, .dim = node.dim};
    copy.number = node.type == ElementType::kBool ? static_cast<int64_t>(node.payload != 0)
                                                  : static_cast<int64_t>(node.payload);
    for (size_t k = 0; k < node.operands.size(); ++k) copy.operands[k] = place.at(node.operands[k]);
    place[reached] = static_cast<int>(nodes_.size());
    nodes_.push_back(std::move(copy));
  }
}

void Condition::Bind(const device::BoundStep& step) {
  for (Node& node : nodes_) {
    if (node.op == ExprOp::kDim) node.number = step.Number(node.dim);
  }
}

Truth Condition::Over(const CoordinateRange& range) const {
  std::array<Interval, kMaxNodes> found;
  for (size_t k = 0; k < nodes_.size(); ++k) {
    const Node& node = nodes_[k];
    const auto operand = [&](size_t n) -> const Interval& {
      return found[static_cast<size_t>(node.operands[n])];
    };
    switch (node.op) {
      case ExprOp::kConstant:
      case ExprOp::kDim:
        found[k] = {true, node.number, node.number};
        break;
      case ExprOp::kIndex: {
        const auto axis = static_cast<size_t>(node.number);
        found[k] = {true, range.first[axis], range.last[axis]};
        break;
      }
      case ExprOp::kNeg:
        if (operand(0).is_known) {
          found[k] = Known(node.type, -static_cast<__int128>(operand(0).high),
                           -static_cast<__int128>(operand(0).low));
        }
        break;
      case ExprOp::kNot:
        found[k] = Decide(operand(0).high == 0, operand(0).low == 1);
        break;
      case ExprOp::kCast:
        if (operand(0).is_known) found[k] = Known(node.type, operand(0).low, operand(0).high);
        break;
      case ExprOp::kSelect:
        if (operand(0).low == operand(0).high) {
          found[k] = operand(operand(0).low == 1 ? 1 : 2);
        } else {
          found[k] = Decide(operand(1).low == 1 && operand(2).low == 1,
                            operand(1).high == 0 && operand(2).high == 0);
        }
        break;
      default:
        found[k] = Combine(node.op, node.type, operand(0), operand(1));
        break;
    }
  }
  const Interval& whole = found[nodes_.size() - 1];
  if (whole.low == 1) return Truth::kAlways;
  return whole.high == 0 ? Truth::kNever : Truth::kUnknown;
}

}  // namespace onnxifi::attention
