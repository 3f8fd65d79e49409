// SPDX-License-Identifier: Apache-2.0
//
// Generator: one counter per element of the domain, one stream of the device's generator per draw.

#include "backends/core/ops/random/generator.h"

#include <bit>
#include <numbers>

#include "backends/core/program/random_bits.h"

namespace onnxifi::ops {
namespace {

// Row-major number of the domain's element.
Expr Counter(StepBuilder& step) {
  Expr counter = IntConstant(step.exprs(), ElementType::kInt64, 0);
  for (size_t axis = 0; axis < step.domain().size(); ++axis) {
    counter = counter * step.Extent(step.domain()[axis]) + step.Coordinate(static_cast<int>(axis));
  }
  return counter;
}

}  // namespace

Generator::Generator(const Lowering& lowering)
    : seed_(lowering.HasAttribute("seed")
                ? program::MixBits(std::bit_cast<uint32_t>(lowering.Float("seed", 0)))
                : program::MixBits(~static_cast<uint64_t>(lowering.node().index))) {}

Expr Generator::Draw(StepBuilder& step) {
  return Random(Counter(step), program::MixBits(seed_ + draws_++));
}

Expr Generator::Uniform(StepBuilder& step, ElementType type) {
  // Rounding to float32 may reach 1, which is outside.
  const double below_one = type == ElementType::kFloat64 ? 1 - 0x1p-53 : 1 - 0x1p-24;
  Expr uniform = Cast(Draw(step), type);
  return Minimum(uniform, Like(uniform, below_one));
}

// Box and Muller: sqrt(-2 log(u)) cos(2 pi v), with u in (0, 1].
Expr Generator::Normal(StepBuilder& step, ElementType type) {
  Expr draw = Draw(step);
  Expr u = Cast(Like(draw, 1) - draw, type);
  Expr v = Cast(Draw(step), type);
  Expr radius = Unary(ExprOp::kSqrt, Like(u, -2) * Unary(ExprOp::kLog, u));
  return radius * Unary(ExprOp::kCos, Like(v, 2 * std::numbers::pi) * v);
}

Expr Generator::Gumbel(StepBuilder& step, ElementType type) {
  Expr draw = Draw(step);
  // u = 1 - draw is in (0, 1]; the smallest number keeps the outer logarithm finite at u = 1.
  Expr exponential = -Unary(ExprOp::kLog, Cast(Like(draw, 1) - draw, type));
  return -Unary(ExprOp::kLog, Maximum(exponential, Like(exponential, 0x1p-60)));
}

}  // namespace onnxifi::ops
