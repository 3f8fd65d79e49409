// SPDX-License-Identifier: Apache-2.0
//
// NonMaxSuppression: the scores of candidates sorted by a top-k, boxes gathered in that order, one
// greedy suppression per batch and class, and the positions of what it keeps.

#include <limits>
#include <optional>

#include "backends/core/ops/index/non_zero.h"
#include "backends/core/ops/index/positions.h"
#include "backends/core/ops/registry.h"

namespace onnxifi::ops {
namespace {

constexpr ElementType kReal = ElementType::kFloat32;

// A number given by an input of one element, as `type`; without the input `otherwise`.
Result<Operand> Number(Lowering& lowering, int input, ElementType type, double otherwise) {
  if (!lowering.Has(input)) {
    StepBuilder map(lowering, {});
    return map.WriteMap(Constant(map.exprs(), type, otherwise), type);
  }
  ONNXIFI_RETURN_IF_ERROR(
      lowering.Require(Equal(Product(lowering.In(input).shape), 1), Code::kInvalidModel,
                       "Input " + std::to_string(input) + " of shape " +
                           tensor::ToString(lowering.In(input).shape) + " is not one element."));
  return lowering.CastTo(lowering.Reshaped(lowering.In(input), {}), type);
}

// Positions and scores of the boxes, best first: int64 and the scores' type, both [batch, class,
// box].
struct Ranking {
  Operand positions;
  Operand scores;
};

// The most candidates that any class of any batch has, rounded up to a power of two: every number
// is a binding of what follows.
Dim CountCandidates(Lowering& lowering, const Operand& candidates) {
  constexpr ElementType kInt = ElementType::kInt64;
  Shape rows = candidates.shape;
  rows.pop_back();
  StepBuilder sum(lowering, candidates.shape);
  const Expr counted = State(sum.exprs(), kInt, 0) + Cast(sum.ReadView(candidates.view), kInt);
  program::Reduce add;
  add.axes = 1;
  add.reduction.states = {{kInt, sum.Extent(0).id(), counted.id(),
                           (State(sum.exprs(), kInt, 0) + Other(sum.exprs(), kInt, 0)).id()}};
  add.roots = {State(sum.exprs(), kInt, 0).id()};
  const Operand counts = lowering.Temporary(kInt, rows);
  sum.Finish(std::move(add), {counts.view});

  StepBuilder largest(lowering, rows);
  const Expr most = State(largest.exprs(), kInt, 0);
  program::Reduce find;
  find.axes = static_cast<int>(rows.size());
  find.reduction.states = {{kInt, largest.Extent(0).id(),
                            Maximum(most, largest.ReadView(counts.view)).id(),
                            Maximum(most, Other(largest.exprs(), kInt, 0)).id()}};
  Expr rounded = largest.Extent(16);
  for (int64_t power = 16; power < int64_t{1} << 31; power *= 2) {
    rounded = Select(most > largest.Extent(power), largest.Extent(2 * power), rounded);
  }
  find.roots = {Minimum(rounded, largest.Extent(candidates.shape.back())).id()};
  const Operand number = lowering.Temporary(kInt, {});
  largest.Finish(std::move(find), {number.view});
  return lowering.ReadAtRunTime(lowering.Reshaped(number, {Dim(1)}), 1, /*lower=*/0).front();
}

// Scores that are no candidates become the lowest of all, and so many ranks are told as there are
// candidates; all of them without `lowest`.
Ranking RankByScore(Lowering& lowering, Operand scores, const std::optional<Operand>& lowest) {
  Dim count = scores.shape.back();
  if (lowest) {
    StepBuilder map(lowering, scores.shape);
    const Expr score = map.ReadView(scores.view);
    const Expr is_candidate = Cast(score, kReal) > map.Read(*lowest);
    const Operand candidates = lowering.Temporary(ElementType::kBool, scores.shape);
    const Operand masked = lowering.Temporary(scores.type(), scores.shape);
    const Expr none = Like(score, -std::numeric_limits<double>::infinity());
    map.WriteMapTo({candidates, masked}, {is_candidate, Select(is_candidate, score, none)});
    count = CountCandidates(lowering, candidates);
    scores = masked;
  }
  Shape shape = scores.shape;
  shape.back() = count;
  Ranking ranking{lowering.Temporary(ElementType::kInt64, shape),
                  lowering.Temporary(scores.type(), shape)};
  program::Index sort;
  sort.kind = program::Index::Kind::kTopK;
  sort.k = count;
  StepBuilder step(lowering, scores.shape);
  step.AddRead(scores.view);
  step.Finish(std::move(sort), {ranking.scores.view, ranking.positions.view});
  return ranking;
}

// The edges y1 <= y2 and x1 <= x2 of the ranked boxes, in the order y1, x1, y2, x2. Given are
// opposite corners, or centre, width and height.
std::vector<Operand> RankedEdges(Lowering& lowering, const Operand& boxes, const Operand& positions,
                                 bool is_centred) {
  StepBuilder map(lowering, positions.shape);
  const Expr position = map.ReadView(positions.view);
  const GuardedSource source(map, boxes, {1});
  auto element = [&](int64_t column) {
    return Cast(source.At({map.Coordinate(0), position, map.Extent(column)}), kReal);
  };
  std::vector<Expr> edges;
  if (is_centred) {
    const Expr half = Constant(map.exprs(), kReal, 0.5);
    const Expr half_width = element(2) * half;
    const Expr half_height = element(3) * half;
    edges = {element(1) - half_height, element(0) - half_width, element(1) + half_height,
             element(0) + half_width};
  } else {
    edges = {Minimum(element(0), element(2)), Minimum(element(1), element(3)),
             Maximum(element(0), element(2)), Maximum(element(1), element(3))};
  }
  std::vector<Operand> targets;
  for (size_t k = 0; k < edges.size(); ++k) {
    targets.push_back(lowering.Temporary(kReal, positions.shape));
  }
  map.WriteMapTo(targets, edges);
  return targets;
}

// boxes[B, S, 4], scores[B, C, S] -> [count, 3]: batch, class and box of what is kept.
Status LowerNonMaxSuppression(Lowering& lowering) {
  ONNXIFI_RETURN_IF_ERROR(lowering.NeedInputs(2));
  const Operand& boxes = lowering.In(0);
  const Operand& scores = lowering.In(1);
  for (int input : {0, 1}) {
    if (!tensor::IsFloat(lowering.In(input).type())) return lowering.UnsupportedType(input);
    if (lowering.In(input).rank() != 3) {
      return lowering.InvalidModel("Input " + std::to_string(input) + " has " +
                                   std::to_string(lowering.In(input).rank()) +
                                   " axes instead of 3.");
    }
  }
  ONNXIFI_RETURN_IF_ERROR(
      lowering.RequireEqual(boxes.shape[0], scores.shape[0], "The batches of boxes and scores"));
  ONNXIFI_RETURN_IF_ERROR(
      lowering.RequireEqual(boxes.shape[1], scores.shape[2], "The numbers of boxes and scores"));
  ONNXIFI_RETURN_IF_ERROR(lowering.RequireEqual(boxes.shape[2], 4, "The columns of boxes and 4"));
  const int64_t format = lowering.Int("center_point_box", 0);
  if (format != 0 && format != 1) {
    return lowering.UnsupportedAttribute("center_point_box (" + std::to_string(format) +
                                         ") is neither 0 nor 1.");
  }
  ONNXIFI_ASSIGN_OR_RETURN(const Operand limit, Number(lowering, 2, ElementType::kInt64, 0));
  ONNXIFI_ASSIGN_OR_RETURN(const Operand threshold, Number(lowering, 3, kReal, 0));
  std::optional<Operand> lowest;
  if (lowering.Has(4)) {
    ONNXIFI_ASSIGN_OR_RETURN(lowest, Number(lowering, 4, kReal, 0));
  }
  const Ranking ranking = RankByScore(lowering, scores, lowest);
  const Shape& ranked = ranking.scores.shape;
  const std::vector<Operand> edges =
      RankedEdges(lowering, boxes, ranking.positions, /*is_centred=*/format == 1);

  StepBuilder compare(lowering, ranked);
  const Expr score = Cast(compare.ReadView(ranking.scores.view), kReal);
  Expr is_candidate = compare.Extent(0) == compare.Extent(0);
  if (lowest) is_candidate = score > compare.Read(*lowest);
  const Operand candidates = compare.WriteMap(is_candidate, ElementType::kBool);
  program::Index suppress;
  suppress.kind = program::Index::Kind::kSuppress;
  StepBuilder step(lowering, ranked);
  step.AddRead(candidates.view);
  for (const Operand& edge : edges) step.AddRead(edge.view);
  step.AddRead(program::BroadcastTo(threshold, ranked));
  step.AddRead(program::BroadcastTo(limit, ranked));
  const Operand kept = lowering.Temporary(ElementType::kBool, ranked);
  step.Finish(std::move(suppress), {kept.view});

  const Operand found = NonZeroPositions(lowering, kept);  // [3, count]: batch, class, rank
  StepBuilder map(lowering, {found.shape[1], Dim(3)});
  std::vector<Expr> at;
  for (int axis = 0; axis < 3; ++axis) {
    const Operand row = program::RemoveAxis(program::Slice(found, 0, axis, 1, 1), 0);
    at.push_back(map.Read(program::InsertAxis(row, 1)));
  }
  const Expr box = map.ReadAt(ranking.positions, at);
  const Expr column = map.Coordinate(1);
  const Expr value =
      Select(column == map.Extent(0), at[0], Select(column == map.Extent(1), at[1], box));
  lowering.Set(0, map.WriteMap(value, ElementType::kInt64));
  return base::Ok();
}

constexpr Operator kOperators[] = {
    {"NonMaxSuppression", 11, LowerNonMaxSuppression},
};

}  // namespace

std::span<const Operator> NonMaxSuppressionOperators() { return kOperators; }

}  // namespace onnxifi::ops
