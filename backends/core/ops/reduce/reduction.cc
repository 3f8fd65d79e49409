// SPDX-License-Identifier: Apache-2.0
//
// Reductions: initial value, update by an element, merge of two partial states.

#include "backends/core/ops/reduce/reduction.h"

#include <limits>

namespace onnxifi::ops {
namespace {

using program::Expr;
using program::ExprOp;
using program::ExprPool;
using program::Reduction;
using tensor::ElementType;
using tensor::Scalar;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// A state whose update and merge are the same associative operation.
Expr AddBinary(Reduction& reduction, ExprOp op, Expr init, Expr element) {
  ExprPool& pool = *element.pool();
  const int k = static_cast<int>(reduction.states.size());
  Expr state = State(pool, element.type(), k);
  Expr other = Other(pool, element.type(), k);
  reduction.states.push_back(
      {element.type(), init.id(), Binary(op, state, element).id(), Binary(op, state, other).id()});
  return state;
}

Expr LowestOf(ExprPool& pool, ElementType type) {
  if (tensor::IsFloat(type)) return Constant(pool, type, -kInfinity);
  if (!tensor::IsSigned(type)) return IntConstant(pool, type, 0);
  return IntConstant(pool, type,
                     std::numeric_limits<int64_t>::min() >> (64 - tensor::BitWidth(type)));
}

Expr HighestOf(ExprPool& pool, ElementType type) {
  if (tensor::IsFloat(type)) return Constant(pool, type, kInfinity);
  if (tensor::IsBool(type)) return IntConstant(pool, type, 1);
  if (tensor::IsSigned(type)) {
    return IntConstant(pool, type,
                       std::numeric_limits<int64_t>::max() >> (64 - tensor::BitWidth(type)));
  }
  const uint64_t highest = std::numeric_limits<uint64_t>::max() >> (64 - tensor::BitWidth(type));
  return ScalarConstant(pool, type, Scalar{.u = highest});
}

}  // namespace

Expr AddSum(Reduction& reduction, Expr element) {
  return AddBinary(reduction, ExprOp::kAdd, Like(element, 0), element);
}

Expr AddProduct(Reduction& reduction, Expr element) {
  return AddBinary(reduction, ExprOp::kMul, Like(element, 1), element);
}

Expr AddMaximum(Reduction& reduction, Expr element) {
  const ExprOp op = tensor::IsBool(element.type()) ? ExprOp::kOr : ExprOp::kMax;
  return AddBinary(reduction, op, LowestOf(*element.pool(), element.type()), element);
}

Expr AddMinimum(Reduction& reduction, Expr element) {
  const ExprOp op = tensor::IsBool(element.type()) ? ExprOp::kAnd : ExprOp::kMin;
  return AddBinary(reduction, op, HighestOf(*element.pool(), element.type()), element);
}

// State: the largest element m and s = sum(exp(element - m)), so the result is m + log(s).
Expr AddLogSumExp(Reduction& reduction, Expr element) {
  ExprPool& pool = *element.pool();
  const ElementType type = element.type();
  const int k = static_cast<int>(reduction.states.size());
  Expr max = State(pool, type, k), sum = State(pool, type, k + 1);
  Expr other_max = Other(pool, type, k), other_sum = Other(pool, type, k + 1);
  // exp(a - b) for a <= b, which is 1 where both are the same infinity.
  auto exp_of_difference = [](Expr a, Expr b) {
    return Select(a == b, Like(a, 1), Unary(ExprOp::kExp, a - b));
  };
  Expr new_max = Maximum(max, element);
  Expr merged_max = Maximum(max, other_max);
  Expr new_sum = sum * exp_of_difference(max, new_max) + exp_of_difference(element, new_max);
  Expr merged_sum = sum * exp_of_difference(max, merged_max) +
                    other_sum * exp_of_difference(other_max, merged_max);
  reduction.states.push_back(
      {type, Constant(pool, type, -kInfinity).id(), new_max.id(), merged_max.id()});
  reduction.states.push_back({type, Like(element, 0).id(), new_sum.id(), merged_sum.id()});
  return max + Unary(ExprOp::kLog, sum);
}

}  // namespace onnxifi::ops
