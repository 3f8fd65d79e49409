// SPDX-License-Identifier: Apache-2.0
//
// Adagrad, Adam and Momentum of ai.onnx.preview.training: one map per optimized tensor. Inputs are
// the learning rate R, the update count T, then all X, all gradients and all states of each kind;
// outputs all X and all states.

#include <array>
#include <string>
#include <vector>

#include "backends/core/ops/elementwise/broadcast.h"
#include "backends/core/ops/registry.h"

namespace onnxifi::ops {
namespace {

// What one tensor's update reads, all of the type of its arithmetic.
struct Update {
  const Lowering& lowering;
  Expr rate;   // R
  Expr count;  // T
  Expr x;
  Expr gradient;  // with what norm_coefficient adds
  std::array<Expr, 2> states;

  Expr Number(std::string_view attribute, float fallback) const {
    return Like(x, lowering.Float(attribute, fallback));
  }
};

// X, then the states.
using Updated = std::vector<Expr>;

// H' = H + G * G; X' = X - R / (1 + T * decay_factor) * G / (sqrt(H') + epsilon)
Updated Adagrad(const Update& u) {
  const Expr rate = u.rate / (Like(u.x, 1) + u.count * u.Number("decay_factor", 0));
  const Expr squares = u.states[0] + u.gradient * u.gradient;
  const Expr root = Unary(ExprOp::kSqrt, squares) + u.Number("epsilon", 1e-6f);
  return {u.x - rate * u.gradient / root, squares};
}

// V' = alpha * V + (1 - alpha) * G; H' = beta * H + (1 - beta) * G * G
// X' = (1 - norm_coefficient_post) * (X - R' * V' / (sqrt(H') + epsilon))
Updated Adam(const Update& u) {
  const Expr one = Like(u.x, 1);
  const Expr alpha = u.Number("alpha", 0.9f);
  const Expr beta = u.Number("beta", 0.999f);
  const Expr momentum = alpha * u.states[0] + (one - alpha) * u.gradient;
  const Expr squares = beta * u.states[1] + (one - beta) * (u.gradient * u.gradient);
  const Expr root = Unary(ExprOp::kSqrt, squares) + u.Number("epsilon", 1e-6f);
  const auto rest = [&](Expr factor) { return one - Binary(ExprOp::kPow, factor, u.count); };
  const Expr corrected = u.rate * Unary(ExprOp::kSqrt, rest(beta)) / rest(alpha);
  const Expr rate = Select(Like(u.x, 0) < u.count, corrected, u.rate);
  const Expr x = u.x - rate * (momentum / root);
  return {(one - u.Number("norm_coefficient_post", 0)) * x, momentum, squares};
}

// V' = alpha * V + (T > 0 ? beta : 1) * G; X' = X - R * V', or where it is Nesterov's
// X - R * (G + alpha * V')
Updated Momentum(const Update& u) {
  const Expr alpha = u.Number("alpha", 0);
  const Expr beta = Select(Like(u.x, 0) < u.count, u.Number("beta", 0), Like(u.x, 1));
  const Expr momentum = alpha * u.states[0] + beta * u.gradient;
  const bool is_nesterov = u.lowering.String("mode", "") == "nesterov";
  return {u.x - u.rate * (is_nesterov ? u.gradient + alpha * momentum : momentum), momentum};
}

template <Updated (*update)(const Update&), int state_count>
Status LowerOptimizer(Lowering& lowering) {
  ONNXIFI_RETURN_IF_ERROR(lowering.NeedInputs(lowering.input_count()));
  constexpr int kKinds = 2 + state_count;
  const int count = (lowering.input_count() - 2) / kKinds;
  if (count < 1 || lowering.input_count() != 2 + count * kKinds) {
    return lowering.InvalidModel("It has " + std::to_string(lowering.input_count()) +
                                 " inputs, which are not R, T and " + std::to_string(kKinds) +
                                 " for each tensor.");
  }
  if (lowering.node().op_type == "Momentum") {
    const std::string mode = lowering.String("mode", "");
    if (mode != "standard" && mode != "nesterov") {
      return lowering.InvalidModel("Attribute mode is '" + mode + "', not standard or nesterov.");
    }
  }
  ONNXIFI_ASSIGN_OR_RETURN(const Operand rate, ScalarInput(lowering, 0));
  ONNXIFI_ASSIGN_OR_RETURN(const Operand updates, ScalarInput(lowering, 1));
  if (!tensor::IsFloat(rate.type())) return lowering.UnsupportedType(0);
  if (!tensor::IsInteger(updates.type())) return lowering.UnsupportedType(1);
  for (int tensor = 0; tensor < count; ++tensor) {
    const auto input = [&](int kind) { return 2 + kind * count + tensor; };
    const Operand& x = lowering.In(input(0));
    if (!tensor::IsFloat(x.type())) return lowering.UnsupportedType(input(0));
    for (int kind = 1; kind < kKinds; ++kind) {
      ONNXIFI_RETURN_IF_ERROR(CheckSameType(lowering, input(0), input(kind)));
      ONNXIFI_RETURN_IF_ERROR(CheckSameShape(lowering, input(0), input(kind)));
    }
    StepBuilder map(lowering, x.shape);
    const ElementType compute = tensor::ArithmeticType(x.type());
    Update u{lowering,
             Cast(map.Read(rate), compute),
             Cast(map.Read(updates), compute),
             map.ReadArithmetic(x),
             map.ReadArithmetic(lowering.In(input(1))),
             {}};
    u.gradient = u.Number("norm_coefficient", 0) * u.x + u.gradient;
    for (int state = 0; state < state_count; ++state) {
      u.states[static_cast<size_t>(state)] = map.ReadArithmetic(lowering.In(input(2 + state)));
    }
    const Updated values = update(u);
    std::vector<Operand> targets;
    std::vector<Expr> stored;
    for (size_t k = 0; k < values.size(); ++k) {
      targets.push_back(lowering.Temporary(x.type(), x.shape));
      stored.push_back(Cast(values[k], x.type()));
    }
    map.WriteMapTo(targets, stored);
    for (size_t k = 0; k < targets.size(); ++k) {
      lowering.Set(static_cast<int>(k) * count + tensor, targets[k]);
    }
  }
  return base::Ok();
}

constexpr std::string_view kDomain = "ai.onnx.preview.training";
constexpr Operator kOperators[] = {
    {"Adagrad", 1, LowerOptimizer<Adagrad, 1>, kDomain},
    {"Adam", 1, LowerOptimizer<Adam, 2>, kDomain},
    {"Momentum", 1, LowerOptimizer<Momentum, 1>, kDomain},
};

}  // namespace

std::span<const Operator> OptimizerOperators() { return kOperators; }

}  // namespace onnxifi::ops
