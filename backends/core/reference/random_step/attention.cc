// SPDX-License-Identifier: Apache-2.0
//
// MakeAttention: scores scaled, capped and masked in every way, of odd extents around the blocks
// that kernels take at a time.

#include <limits>
#include <utility>

#include "backends/core/reference/random_step/epilogue.h"
#include "backends/core/reference/random_step/family.h"

namespace onnxifi::reference {

using program::Attention;
using program::Expr;
using program::ExprOp;
using tensor::ElementType;
using tensor::Extents;

namespace {

// An operand of its own, or with another read over its own axes beside it.
program::ExprId MakePrologue(StepMaker& make, int read, const Extents& extents) {
  const ElementType type = make.step.reads[static_cast<size_t>(read)].type;
  Expr element = Cast(Load(make.pool(), type, read), kFloat32);
  if (make.Chance(10)) {
    element =
        element + Load(make.pool(), kFloat32, make.AddRead(kFloat32, extents, Data::kModerate));
  }
  return element.id();
}

Expr MakeScore(StepMaker& make, const Extents& scores) {
  program::ExprPool& pool = make.pool();
  Expr score = Accumulator(pool, kFloat32);
  if (make.Chance(80)) score = score * Like(score, 0.25);
  if (make.Chance(20)) {
    score = Unary(ExprOp::kTanh, score * Like(score, 0.25)) * Like(score, 4);
  }
  if (make.Chance(25)) {
    const ElementType type = make.Pick({kFloat32, ElementType::kFloat16, ElementType::kBfloat16});
    score = score + Cast(Load(pool, type, make.AddRead(type, scores, Data::kSmall)), kFloat32);
  }
  const double masked =
      make.Chance(50) ? -std::numeric_limits<double>::infinity() : static_cast<double>(-1e30F);
  if (make.Chance(20)) {
    const Expr is_seen = Load(pool, kBool, make.AddRead(kBool, scores, Data::kSmall));
    score = Select(is_seen, score, Like(score, masked));
  }
  if (make.Chance(30)) {
    const auto axis = static_cast<int>(scores.size()) - 1;
    const Expr past = DimExpr(pool, make.MakeDim(make.Roll(1, 20)));
    const Expr is_seen = Coordinate(pool, axis) < Coordinate(pool, axis - 1) + past;
    score = Select(is_seen, score, Like(score, masked));
  }
  return score;
}

}  // namespace

void MakeAttention(StepMaker& make) {
  Attention attention;
  Extents batch(static_cast<size_t>(make.Chance(25) ? 2 : make.Roll(0, 1)));
  int64_t queries = 0, keys = 0, width = 0, values = 0;
  {
    const StepMaker::Numbers numbers(make);
    for (int64_t& extent : batch) extent = make.Roll(make.Chance(2) ? 0 : 1, 3);
    queries = make.Chance(30) ? make.Roll(1, 3) : make.Roll(1, 70);
    keys = make.Chance(2)    ? 0
           : make.Chance(20) ? make.Roll(1, 3)
           : make.Chance(10) ? make.Roll(129, 400)
                             : make.Roll(1, 100);
    width = make.Chance(2) ? 0 : make.Roll(1, 40);
    values = make.Chance(20) ? make.Roll(60, 140) : make.Roll(1, 40);
  }
  attention.keys = make.MakeZeroOr(keys);
  attention.width = make.MakeZeroOr(width);
  const auto over = [&batch](int64_t rows, int64_t columns) {
    Extents extents = batch;
    extents.push_back(rows);
    extents.push_back(columns);
    return extents;
  };
  const Extents domain = over(queries, values);
  make.step.domain = make.MakeShape(domain);
  const Extents operands[] = {over(queries, width), over(width, keys), over(keys, values)};
  for (const Extents& extents : operands) {
    const ElementType type =
        make.Chance(70)
            ? kFloat32
            : make.Pick({ElementType::kFloat16, ElementType::kBfloat16, ElementType::kInt8});
    make.AddRead(type, extents, tensor::IsFloat(type) ? Data::kModerate : Data::kSmall);
  }
  attention.query_prologue = MakePrologue(make, 0, operands[0]);
  attention.key_prologue = MakePrologue(make, 1, operands[1]);
  attention.value_prologue = MakePrologue(make, 2, operands[2]);
  attention.score = MakeScore(make, over(queries, keys)).id();
  MakeEpilogue(make, kFloat32, domain, /*may_write_two=*/true, attention.roots);
  // Scores of up to 6 * 6 * width are off by some roundings of that; a mean of values of up to 6 by
  // as much of a value, and by its own roundings.
  make.tolerance =
      0x1p-24 * 6 * 4 * (36 * static_cast<double>(width) + static_cast<double>(keys) + 64);
  make.step.body = std::move(attention);
}

}  // namespace onnxifi::reference
