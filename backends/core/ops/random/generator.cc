// SPDX-License-Identifier: Apache-2.0
//
// Generator: one counter per element of the domain and run, one stream of numbers per call.

#include "backends/core/ops/random/generator.h"

#include <bit>
#include <numbers>
#include <optional>
#include <random>

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

// The buffer of the program that tells runs apart, made for the first node that needs it.
program::BufferId DrawNumbers(program::Program& program) {
  const program::BufferId found = program::FindDraws(program);
  if (found != program::kNoBuffer) return found;
  return program.AddBuffer({program::Buffer::Kind::kDraws, ElementType::kInt64, {Dim(2)}});
}

}  // namespace

Generator::Generator(Lowering& lowering)
    : seed_(lowering.HasAttribute("seed")
                ? program::MixBits(std::bit_cast<uint32_t>(lowering.Float("seed", 0)))
                : program::MixBits(~lowering.program().draws->unseeded_nodes++)),
      draw_{program::DenseView(DrawNumbers(lowering.program()), ElementType::kInt64, {}), {}} {
  if (lowering.HasAttribute("seed")) return;
  std::optional<int64_t>& start = lowering.program().draws->start;
  if (!start) {
    std::random_device system;
    start = static_cast<int64_t>(uint64_t{system()} << 32 | system());
  }
  draw_.view.offset = Dim(1);
}

Expr Generator::Draw(StepBuilder& step) {
  // Odd, so that the counters of different draws lie far apart.
  constexpr auto kDrawDistance = static_cast<int64_t>(0xd1342543de82ef95ULL);
  Expr draw = step.ReadView(program::BroadcastTo(draw_, step.domain()));
  Expr counter =
      Counter(step) + draw * IntConstant(step.exprs(), ElementType::kInt64, kDrawDistance);
  return Random(counter, program::MixBits(seed_ + draws_++));
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
