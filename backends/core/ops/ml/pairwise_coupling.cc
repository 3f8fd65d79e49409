// SPDX-License-Identifier: Apache-2.0
//
// Pairwise coupling as a loop over rounds, in each of which every class in turn gets the share that
// is best, given the others. A row whose gradients are equal keeps its shares. Of few classes some
// rounds are one Map over rows; of more a round is a loop over classes. The tolerance and the
// number of rounds are those of ONNX's reference.

#include "backends/core/ops/ml/pairwise_coupling.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "backends/core/ops/control/bodies.h"
#include "backends/core/ops/reduce/reduction.h"
#include "backends/core/ops/reduce/reduction_geometry.h"

namespace onnxifi::ops {
namespace {

using Exprs = std::vector<Expr>;

Operand Column(const Operand& operand, int64_t column) {
  const int last = operand.rank() - 1;
  return program::RemoveAxis(program::Slice(operand, last, column, 1, 1), last);
}

// The turn of one class: its share rises by `change`; then all are multiplied by `scale`, so that
// their sum is 1 again.
struct Turn {
  Expr change, scale;
  Expr value;  // of the form, afterwards

  // Of a class with the gradient and the diagonal element `own`.
  Turn(Expr is_open, Expr value_before, Expr gradient, Expr own)
      : change(Select(is_open, (value_before - gradient) / own, Like(own, 0))),
        scale(Like(own, 1) / (change + Like(own, 1))),
        value((value_before + change * (change * own + Like(own, 2) * gradient)) * scale * scale) {}
};

// Whether a row is not done: of the largest difference of a gradient and the value. NaN is not
// done.
Expr IsOpen(Expr largest, int64_t classes) {
  return !(largest < Like(largest, 0.005 / static_cast<double>(classes)));
}

// A scalar: whether one of `is_open` [N] is true.
Operand IsAnyOpen(Lowering& lowering, const Operand& is_open) {
  const ReductionGeometry reduced = ReduceAllAxes(is_open);
  StepBuilder reduce(lowering, reduced.data.shape);
  program::Reduction reduction;
  const Expr any = AddMaximum(reduction, reduce.Read(reduced.data));
  return WriteReduction(lowering, reduce, reduced, std::move(reduction),
                        {{any, ElementType::kBool}})[0];
}

// How many rounds are one Map, whose expressions grow with the square of the classes; 0: none.
int64_t RoundsPerMap(int64_t classes) {
  constexpr int64_t kMaxUpdates = 128;
  // Most rows are done after four rounds, which the fifth tells. All divide the number of rounds.
  for (const int64_t rounds : {5, 2, 1}) {
    if (rounds * classes * classes <= kMaxUpdates) return rounds;
  }
  return 0;
}

// (number, condition, shares [N, classes], wins) -> whether a row is not done, the shares after
// `rounds` rounds.
Status WriteRounds(Lowering& lowering, int64_t classes, int64_t rounds) {
  const Operand& shares_before = lowering.In(2);
  const Operand& wins = lowering.In(3);
  StepBuilder map(lowering, {shares_before.shape[0]});
  const auto win = [&](int64_t i, int64_t j) { return map.Read(Column(Column(wins, j), i)); };
  Exprs shares;
  std::vector<Exprs> rows(static_cast<size_t>(classes));  // of the form
  for (int64_t i = 0; i < classes; ++i) {
    shares.push_back(map.Read(Column(shares_before, i)));
    std::optional<Expr> diagonal;
    for (int64_t j = 0; j < classes; ++j) {
      if (j == i) continue;
      const Expr square = win(j, i) * win(j, i);
      diagonal = diagonal ? *diagonal + square : square;
    }
    for (int64_t j = 0; j < i; ++j) {
      const Expr both = Like(*diagonal, 0) - win(j, i) * win(i, j);
      rows[static_cast<size_t>(i)].push_back(both);
      rows[static_cast<size_t>(j)].push_back(both);
    }
    rows[static_cast<size_t>(i)].push_back(*diagonal);
  }
  const auto product = [](const Exprs& a, const Exprs& b) {
    Expr sum = a[0] * b[0];
    for (size_t k = 1; k < a.size(); ++k) sum = sum + a[k] * b[k];
    return sum;
  };
  std::optional<Expr> is_open;
  for (int64_t round = 0; round < rounds; ++round) {
    Exprs gradients;
    for (const Exprs& row : rows) gradients.push_back(product(row, shares));
    Expr value = product(shares, gradients);
    Expr largest = Unary(ExprOp::kAbs, gradients[0] - value);
    for (const Expr& gradient : gradients) {
      largest = Maximum(largest, Unary(ExprOp::kAbs, gradient - value));
    }
    is_open = IsOpen(largest, classes);
    // As Turn says it, but for the division of everything by the sum, which waits until the end.
    Expr sum = Like(value, 1);
    for (size_t i = 0; i < rows.size(); ++i) {
      const Expr best = (value / sum - gradients[i]) / rows[i][i];
      const Expr change = Select(*is_open, best, Like(best, 0));
      value = value + change * (change * rows[i][i] + Like(value, 2) * gradients[i]);
      for (size_t j = 0; j < rows.size(); ++j) {
        gradients[j] = gradients[j] + change * rows[j][i];
      }
      shares[i] = shares[i] + change;
      sum = sum + change;
    }
    const Expr scale = Like(sum, 1) / sum;
    for (Expr& share : shares) share = share * scale;
  }
  const Operand result = lowering.Temporary(shares_before.type(), shares_before.shape);
  const Operand open = lowering.Temporary(ElementType::kBool, map.domain());
  std::vector<Operand> targets;
  for (int64_t i = 0; i < classes; ++i) targets.push_back(Column(result, i));
  targets.push_back(open);
  shares.push_back(*is_open);
  map.WriteMapTo(targets, shares);
  lowering.Set(0, IsAnyOpen(lowering, open));
  lowering.Set(1, result);
  return base::Ok();
}

// (class, condition, shares, gradients, value [N], form, which rows are not done [N]) -> the
// condition, and shares, gradients and value after the turn of the class.
Status WriteTurn(Lowering& lowering) {
  const Operand& turn_number = lowering.In(0);
  const Operand& form = lowering.In(5);
  const auto turn_in = [&](StepBuilder& map) {
    const Expr n = map.Coordinate(0);
    const Expr turn = map.Read(turn_number);
    return Turn(map.ReadAtUnchecked(lowering.In(6), {n}), map.ReadAtUnchecked(lowering.In(4), {n}),
                map.ReadAtUnchecked(lowering.In(3), {n, turn}),
                map.ReadAtUnchecked(form, {n, turn, turn}));
  };
  StepBuilder all(lowering, lowering.In(2).shape);
  const Turn turn = turn_in(all);
  const Expr number = all.Read(turn_number);
  const Expr share = all.Read(lowering.In(2));
  const Expr is_own = all.Coordinate(1) == number;
  const Expr column = all.ReadAtUnchecked(form, {all.Coordinate(0), all.Coordinate(1), number});
  const Operand shares = lowering.Temporary(share.type(), all.domain());
  const Operand gradients = lowering.Temporary(share.type(), all.domain());
  all.WriteMapTo({shares, gradients},
                 {Select(is_own, share + turn.change, share) * turn.scale,
                  (all.Read(lowering.In(3)) + turn.change * column) * turn.scale});
  StepBuilder rows(lowering, lowering.In(4).shape);
  lowering.Set(0, lowering.In(1));
  lowering.Set(1, shares);
  lowering.Set(2, gradients);
  lowering.Set(3, rows.WriteMap(turn_in(rows).value, share.type()));
  return base::Ok();
}

Operand ConstantCount(Lowering& lowering, int64_t count) {
  return lowering.ConstantTensor(
      tensor::Tensor::FromValues<int64_t>(ElementType::kInt64, {}, std::span(&count, 1)));
}

// (number, condition, shares, form) -> as WriteRounds, after one round.
Status WriteRound(Lowering& lowering, int64_t classes) {
  const Operand& shares = lowering.In(2);
  const Operand& form = lowering.In(3);
  const ElementType type = shares.type();
  const ReductionGeometry columns = ReduceAxes(form, std::vector<int>{2}, /*keepdims=*/false);
  StepBuilder products(lowering, form.shape);
  program::Reduction sum;
  const Expr gradient =
      AddSum(sum, products.Read(form) * products.Read(program::InsertAxis(shares, 1)));
  const Operand gradients =
      WriteReduction(lowering, products, columns, std::move(sum), {{gradient, type}})[0];

  const ReductionGeometry all = ReduceAxes(shares, std::vector<int>{1}, /*keepdims=*/false);
  StepBuilder values(lowering, shares.shape);
  program::Reduction value_sum;
  const Expr form_value = AddSum(value_sum, values.Read(shares) * values.Read(gradients));
  const Operand value =
      WriteReduction(lowering, values, all, std::move(value_sum), {{form_value, type}})[0];

  StepBuilder differences(lowering, shares.shape);
  program::Reduction maximum;
  const Expr largest =
      AddMaximum(maximum, Unary(ExprOp::kAbs, differences.Read(gradients) -
                                                  differences.Read(program::InsertAxis(value, 1))));
  const Operand is_open = WriteReduction(lowering, differences, all, std::move(maximum),
                                         {{IsOpen(largest, classes), ElementType::kBool}})[0];
  ONNXIFI_ASSIGN_OR_RETURN(const std::vector<Operand> results,
                           MakeLoop(lowering, ConstantCount(lowering, classes),
                                    {shares, gradients, value}, {form, is_open}, WriteTurn));
  lowering.Set(0, IsAnyOpen(lowering, is_open));
  lowering.Set(1, results[0]);
  return base::Ok();
}

// The quadratic form that is minimised, from `wins`: [N, classes, classes].
Operand MakeForm(Lowering& lowering, const Operand& wins) {
  const ReductionGeometry reduced = ReduceAxes(wins, std::vector<int>{2}, /*keepdims=*/false);
  StepBuilder sum(lowering, wins.shape);
  // How probable the others are against the class.
  const Expr loss =
      sum.ReadAtUnchecked(wins, {sum.Coordinate(0), sum.Coordinate(2), sum.Coordinate(1)});
  const Expr others = Select(sum.Coordinate(1) == sum.Coordinate(2), Like(loss, 0), loss);
  program::Reduction reduction;
  const Expr squares = AddSum(reduction, others * others);
  const Operand own =
      WriteReduction(lowering, sum, reduced, std::move(reduction), {{squares, wins.type()}})[0];
  StepBuilder map(lowering, wins.shape);
  const Expr win = map.Read(wins);
  const Expr other =
      map.ReadAtUnchecked(wins, {map.Coordinate(0), map.Coordinate(2), map.Coordinate(1)});
  const Expr diagonal = map.Read(program::InsertAxis(own, 2));
  const Expr form =
      Select(map.Coordinate(1) == map.Coordinate(2), diagonal, Like(win, 0) - other * win);
  return map.WriteMap(form, wins.type());
}

Operand Filled(Lowering& lowering, const Shape& shape, ElementType type, double number) {
  StepBuilder map(lowering, shape);
  return map.WriteMap(Constant(map.exprs(), type, number), type);
}

}  // namespace

Result<Operand> CouplePairs(Lowering& lowering, const Operand& wins, int64_t classes) {
  const Operand shares = Filled(lowering, {wins.shape[0], Dim(classes)}, wins.type(),
                                1.0 / static_cast<double>(classes));
  const int64_t rounds = std::max<int64_t>(100, classes);
  const int64_t per_map = RoundsPerMap(classes);
  const Operand captured = per_map > 0 ? wins : MakeForm(lowering, wins);
  ONNXIFI_ASSIGN_OR_RETURN(
      const std::vector<Operand> results,
      MakeLoop(lowering, ConstantCount(lowering, per_map > 0 ? rounds / per_map : rounds), {shares},
               {captured}, [&](Lowering& body) {
                 return per_map > 0 ? WriteRounds(body, classes, per_map)
                                    : WriteRound(body, classes);
               }));
  return results[0];
}

}  // namespace onnxifi::ops
