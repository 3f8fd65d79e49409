// SPDX-License-Identifier: Apache-2.0
//
// MakeReduction: a list of pairs of update and merge that agree.

#include "backends/core/reference/random_step/reduction.h"

namespace onnxifi::reference {
namespace {

using program::Expr;
using program::ExprOp;
using tensor::ElementType;
using tensor::Extents;
using tensor::Scalar;

void AddState(MadeReduction& made, ElementType type, Expr init, Expr update, Expr merge) {
  made.reduction.states.push_back({type, init.id(), update.id(), merge.id()});
}

Scalar Extreme(ElementType type, bool is_largest) {
  const int bits = tensor::BitWidth(type);
  if (tensor::IsSigned(type)) {
    const int64_t largest = static_cast<int64_t>((uint64_t{1} << (bits - 1)) - 1);
    return Scalar{.i = is_largest ? largest : -largest - 1};
  }
  return Scalar{.u = is_largest ? ~uint64_t{0} >> (64 - bits) : 0};
}

}  // namespace

MadeReduction MakeReduction(StepMaker& make, const std::function<Expr(ElementType)>& make_element,
                            const Extents& reduced, int first_axis) {
  MadeReduction made;
  const ElementType float_type = make.Chance(60) ? kFloat32 : kFloat64;
  const ElementType int_type = make.Pick(std::span<const ElementType>(kIntegers));
  auto state = [&](ElementType type, int k) { return State(make.pool(), type, k); };
  auto other = [&](ElementType type, int k) { return Other(make.pool(), type, k); };
  switch (make.Roll(0, 8)) {
    case 0: {
      const ElementType type = make.Chance(60) ? float_type : int_type;
      AddState(made, type, IntConstant(make.pool(), type, 0), state(type, 0) + make_element(type),
               state(type, 0) + other(type, 0));
      made.finals = {state(type, 0)};
      break;
    }
    case 1: {
      const ElementType type = make.Chance(60) ? float_type : int_type;
      Expr factor = make_element(type);
      // Where a 0 follows an overflow, the order of the factors would decide between 0 and NaN.
      if (tensor::IsFloat(type)) {
        factor = Maximum(Minimum(factor, Like(factor, 1)), Like(factor, -1));
      }
      AddState(made, type, IntConstant(make.pool(), type, 1), state(type, 0) * factor,
               state(type, 0) * other(type, 0));
      made.finals = {state(type, 0)};
      break;
    }
    case 2:
    case 3: {
      const ElementType type = make.Chance(60) ? float_type : int_type;
      const ExprOp op = make.Chance(50) ? ExprOp::kMax : ExprOp::kMin;
      const double extreme =
          op == ExprOp::kMax ? tensor::Lowest(type) : tensor::LargestFinite(type);
      const Expr init = tensor::IsFloat(type)
                            ? Constant(make.pool(), type, extreme)
                            : ScalarConstant(make.pool(), type, Extreme(type, op == ExprOp::kMin));
      AddState(made, type, init, Binary(op, state(type, 0), make_element(type)),
               Binary(op, state(type, 0), other(type, 0)));
      made.finals = {state(type, 0)};
      break;
    }
    case 4: {
      // Position of the first maximum; the position starts beyond all.
      const ElementType type = make.Chance(50) ? kFloat32 : int_type;
      Expr value = make_element(type);
      // Which NaN comes first would depend on the order.
      if (tensor::IsFloat(type)) {
        value = Select(Unary(ExprOp::kIsNan, value), Constant(make.pool(), type, 0), value);
      }
      Expr position = IntConstant(make.pool(), kInt64, 0);
      for (size_t k = 0; k < reduced.size(); ++k) {
        position = position * IntConstant(make.pool(), kInt64, reduced[k]) +
                   Coordinate(make.pool(), first_axis + static_cast<int>(k));
      }
      const Expr none = IntConstant(make.pool(), kInt64, -1);
      auto wins = [&](Expr v, Expr p) {
        const Expr best = state(type, 0);
        const Expr at = state(kInt64, 1);
        return (p >= Like(p, 0)) && ((at == none) || (best < v) || ((best == v) && (p < at)));
      };
      AddState(made, type, IntConstant(make.pool(), type, 0),
               Select(wins(value, position), value, state(type, 0)),
               Select(wins(other(type, 0), other(kInt64, 1)), other(type, 0), state(type, 0)));
      AddState(made, kInt64, none, Select(wins(value, position), position, state(kInt64, 1)),
               Select(wins(other(type, 0), other(kInt64, 1)), other(kInt64, 1), state(kInt64, 1)));
      made.finals = {state(type, 0), state(kInt64, 1)};
      break;
    }
    case 5: {
      const bool is_or = make.Chance(50);
      auto join = [&](Expr a, Expr b) { return is_or ? a || b : a && b; };
      AddState(made, kBool, IntConstant(make.pool(), kBool, is_or ? 0 : 1),
               join(state(kBool, 0), make_element(kBool)), join(state(kBool, 0), other(kBool, 0)));
      made.finals = {state(kBool, 0)};
      break;
    }
    case 6: {
      // Welford's mean and sum of squared deviations.
      const ElementType type = float_type;
      const Expr x = make_element(type);
      const Expr count = state(type, 0), mean = state(type, 1), m2 = state(type, 2);
      const Expr one = Constant(make.pool(), type, 1);
      const Expr zero = Constant(make.pool(), type, 0);
      const Expr delta = x - mean;
      const Expr new_mean = mean + delta / (count + one);
      const Expr apart = other(type, 1) - mean;
      const Expr total = count + other(type, 0);
      AddState(made, type, zero, count + one, total);
      AddState(made, type, zero, new_mean, mean + apart * other(type, 0) / total);
      AddState(made, type, zero, m2 + delta * (x - new_mean),
               m2 + other(type, 2) + apart * apart * count * other(type, 0) / total);
      made.finals = {mean, m2 / (count + one)};
      break;
    }
    case 7: {
      const ElementType type = float_type;
      const Expr x = make_element(type);
      AddState(made, type, Constant(make.pool(), type, 0), state(type, 0) + x * x,
               state(type, 0) + other(type, 0));
      AddState(made, type, Constant(make.pool(), type, 0), state(type, 1) + Unary(ExprOp::kAbs, x),
               state(type, 1) + other(type, 1));
      made.finals = {Unary(ExprOp::kSqrt, state(type, 0)), state(type, 1)};
      break;
    }
    default: {
      // The running logarithm of a sum of exponentials.
      const ElementType type = float_type;
      const Expr x = make_element(type);
      const Expr highest = state(type, 0), sum = state(type, 1);
      auto exp = [&](Expr e) { return Unary(ExprOp::kExp, e); };
      const Expr up = Maximum(highest, x);
      const Expr joined = Maximum(highest, other(type, 0));
      AddState(made, type, Constant(make.pool(), type, -1e4), up, joined);
      AddState(made, type, Constant(make.pool(), type, 0), sum * exp(highest - up) + exp(x - up),
               sum * exp(highest - joined) + other(type, 1) * exp(other(type, 0) - joined));
      made.finals = {highest, sum};
      break;
    }
  }
  for (size_t k = 0; k < made.reduction.states.size(); ++k) {
    made.states.push_back(state(made.reduction.states[k].type, static_cast<int>(k)));
  }
  return made;
}

}  // namespace onnxifi::reference
