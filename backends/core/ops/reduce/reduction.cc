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

}  // namespace onnxifi::ops
