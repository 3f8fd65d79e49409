// SPDX-License-Identifier: Apache-2.0
//
// LowerTrees: the way down as reads of the tables at positions that the reads before gave.

#include "backends/core/ops/ml/lower_trees.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <string>
#include <utility>

#include "backends/core/ops/ml/rows.h"
#include "backends/core/ops/ml/tree_tables.h"
#include "backends/core/ops/reduce/reduction.h"
#include "backends/core/ops/reduce/reduction_geometry.h"

namespace onnxifi::ops {
namespace {

using tensor::Tensor;
using Aggregate = Trees::Aggregate;

// How many comparisons one step makes of a way; more make its source longer and nothing faster. But
// a kernel may have a copy of the tables: deep trees, which have many nodes, get longer steps.
int64_t LevelsPerStep(int64_t depth) {
  constexpr int64_t kFew = 8, kMany = 256, kSteps = 16;
  return std::clamp(depth / kSteps, kFew, kMany);
}

template <typename T>
Operand ConstantTable(Lowering& lowering, ElementType type, tensor::Extents extents,
                      const std::vector<T>& values) {
  return lowering.ConstantTensor(Tensor::FromValues<T>(type, std::move(extents), values));
}

// The tables as constants; the ways of steps of any domain go down them.
class WayDown {
 public:
  WayDown(Lowering& lowering, const Operand& rows, const TreeTables& tables)
      : rows_(rows), is_strict_(tables.is_strict) {
    const auto count = static_cast<int64_t>(tables.features.size());
    features_ = ConstantTable<int32_t>(lowering, ElementType::kInt32, {count}, tables.features);
    splits_ = ConstantNumbers(lowering, rows.type(), {count}, tables.splits);
    children_ = ConstantTable<int32_t>(lowering, ElementType::kInt32, {count, 2}, tables.children);
    if (std::find(tables.nan_is_first.begin(), tables.nan_is_first.end(), 1) !=
        tables.nan_is_first.end()) {
      nan_is_first_ =
          ConstantTable<uint8_t>(lowering, ElementType::kBool, {count}, tables.nan_is_first);
    }
  }

  // The entry, int64, that row `row` reaches from `entry` by so many comparisons.
  Expr Go(StepBuilder& step, Expr row, Expr entry, int64_t levels) const {
    if (levels == 0) return entry;
    const int rows = step.AddRead(rows_.view);
    const int features = step.AddRead(features_.view);
    const int splits = step.AddRead(splits_.view);
    const int children = step.AddRead(children_.view);
    const int nan_is_first = nan_is_first_ ? step.AddRead(nan_is_first_->view) : -1;
    program::ExprPool& exprs = step.exprs();
    const auto read = [&](int number, ElementType type, std::initializer_list<Expr> at) {
      return program::LoadAt(exprs, type, number, std::span(at.begin(), at.size()));
    };
    const auto position = [&](int number, std::initializer_list<Expr> at) {
      return Cast(read(number, ElementType::kInt32, at), ElementType::kInt64);
    };
    for (int64_t level = 0; level < levels; ++level) {
      const Expr feature = read(rows, rows_.type(), {row, position(features, {entry})});
      const Expr split = read(splits, rows_.type(), {entry});
      Expr is_first = is_strict_ ? feature < split : feature <= split;
      if (nan_is_first_) {
        is_first = is_first || (Unary(ExprOp::kIsNan, feature) &&
                                read(nan_is_first, ElementType::kBool, {entry}));
      }
      const Expr child = Cast(is_first, ElementType::kInt64);
      entry = position(children, {entry, child});
    }
    return entry;
  }

 private:
  const Operand& rows_;
  const bool is_strict_;
  Operand features_, splits_, children_;
  std::optional<Operand> nan_is_first_;
};

// The same rows, with the least normal number of their sign in place of subnormal ones; told apart
// by their bits, as devices may take them for zeros.
Operand WithoutSubnormals(Lowering& lowering, const Operand& rows) {
  const bool is_wide = rows.type() == ElementType::kFloat64;
  const ElementType type = is_wide ? ElementType::kInt64 : ElementType::kInt32;
  const int64_t sign =
      is_wide ? std::numeric_limits<int64_t>::min() : int64_t{std::numeric_limits<int32_t>::min()};
  const int64_t magnitudes =
      is_wide ? std::numeric_limits<int64_t>::max() : int64_t{std::numeric_limits<int32_t>::max()};
  const int64_t least = is_wide ? std::bit_cast<int64_t>(std::numeric_limits<double>::min())
                                : std::bit_cast<int32_t>(std::numeric_limits<float>::min());
  StepBuilder map(lowering, rows.shape);
  const auto number = [&](int64_t value) { return IntConstant(map.exprs(), type, value); };
  const Expr bits = Bitcast(map.Read(rows), type);
  const Expr magnitude = bits && number(magnitudes);
  const Expr is_subnormal = number(0) < magnitude && magnitude < number(least);
  const Expr normal = Select(is_subnormal, (bits && number(sign)) || number(least), bits);
  return map.WriteMap(Bitcast(normal, rows.type()), rows.type());
}

// The entries [N, ...] that rows reach from `roots`, whose extents follow N, but for the last
// levels, of which `levels` says how many are left: at most one step's.
Operand TakeFirstLevels(Lowering& lowering, const WayDown& way, Operand roots, Dim row_count,
                        int64_t& levels, int64_t left) {
  roots = program::InsertAxis(roots, 0);
  Shape shape = roots.shape;
  shape[0] = row_count;
  const int64_t levels_per_step = LevelsPerStep(levels);
  Operand entries{program::BroadcastTo(roots, shape), shape};
  while (levels > left) {
    const int64_t now = std::min(levels - left, levels_per_step);
    StepBuilder map(lowering, shape);
    const Expr entry = Cast(map.ReadView(entries.view), ElementType::kInt64);
    entries = map.WriteMap(way.Go(map, map.Coordinate(0), entry, now), ElementType::kInt32);
    levels -= now;
  }
  return entries;
}

// What a leaf has that gives a target nothing, and a target that no tree gives anything.
double Neutral(Aggregate aggregate, ElementType type) {
  if (aggregate == Aggregate::kMin) return tensor::LargestFinite(type);
  if (aggregate == Aggregate::kMax) return tensor::Lowest(type);
  return 0;
}

void Combine(Aggregate aggregate, double weight, double& sum) {
  if (aggregate == Aggregate::kMin) {
    sum = std::min(sum, weight);
  } else if (aggregate == Aggregate::kMax) {
    sum = std::max(sum, weight);
  } else {
    sum += weight;
  }
}

// The weights of trees, over the last axis of `reduce`, put together: [N, targets].
Operand CombineTrees(Lowering& lowering, StepBuilder& reduce, const Trees& trees, Expr weight,
                     ElementType type, ElementType limits) {
  const Shape& domain = reduce.domain();
  ReductionGeometry reduced;
  reduced.data.shape = domain;
  reduced.axes = 1;
  reduced.shape = {domain[0], domain[1]};
  program::Reduction reduction;
  Expr result;
  if (trees.aggregate == Aggregate::kMin) {
    result = AddMinimum(reduction, weight);
    result = Minimum(result, Like(result, tensor::LargestFinite(limits)));
  } else if (trees.aggregate == Aggregate::kMax) {
    result = AddMaximum(reduction, weight);
    result = Maximum(result, Like(result, tensor::Lowest(limits)));
  } else {
    result = AddSum(reduction, weight);
  }
  if (trees.aggregate == Aggregate::kAverage && !trees.roots.empty()) {
    result = result / Like(result, static_cast<double>(trees.roots.size()));
  }
  return WriteReduction(lowering, reduce, reduced, std::move(reduction), {{result, type}})[0];
}

// The roots of the trees of each target, [targets, most trees of one]; a target with fewer trees
// has some that are one leaf without weights. Empty where that would be more than twice as many.
std::vector<int32_t> RootsByTarget(const TreeTables& tables, const Trees& trees,
                                   const std::vector<int64_t>& own_targets, int32_t no_leaf) {
  std::vector<std::vector<int32_t>> roots(static_cast<size_t>(trees.target_count));
  size_t most = 0;
  for (size_t k = 0; k < own_targets.size(); ++k) {
    if (own_targets[k] < 0) continue;
    std::vector<int32_t>& own = roots[static_cast<size_t>(own_targets[k])];
    own.push_back(tables.roots[k]);
    most = std::max(most, own.size());
  }
  const size_t count = most * roots.size();
  if (count == 0 || count > 2 * own_targets.size() + 64) return {};
  std::vector<int32_t> all;
  for (std::vector<int32_t>& own : roots) {
    own.resize(most, no_leaf);
    all.insert(all.end(), own.begin(), own.end());
  }
  return all;
}

// Trees that each have one target: a Reduce over the trees of each target goes down the last
// levels itself.
Operand LowerByTarget(Lowering& lowering, const Operand& rows, const Trees& trees,
                      const TreeTables& tables, const std::vector<int32_t>& roots,
                      ElementType limits) {
  const auto trees_per_target = static_cast<int64_t>(roots.size()) / trees.target_count;
  std::vector<double> weights(static_cast<size_t>(trees.leaf_count),
                              Neutral(trees.aggregate, limits));
  for (const Trees::Weight& weight : trees.weights) {
    Combine(trees.aggregate, weight.weight, weights[static_cast<size_t>(weight.leaf)]);
  }
  const WayDown way(lowering, rows, tables);
  int64_t levels = tables.depth;
  const Operand entries =
      TakeFirstLevels(lowering, way,
                      ConstantTable<int32_t>(lowering, ElementType::kInt32,
                                             {trees.target_count, trees_per_target}, roots),
                      rows.shape[0], levels, std::min(levels, LevelsPerStep(levels)));
  StepBuilder reduce(lowering, entries.shape);
  const Expr entry = Cast(reduce.ReadView(entries.view), ElementType::kInt64);
  const Expr leaf = way.Go(reduce, reduce.Coordinate(0), entry, levels);
  const Expr weight = reduce.ReadAtUnchecked(
      ConstantNumbers(lowering, rows.type(), {trees.leaf_count}, weights), {leaf});
  return CombineTrees(lowering, reduce, trees, weight, rows.type(), limits);
}

// Any trees: the leaves first, then for each target the sum over a table of all leaves.
Operand LowerByLeaf(Lowering& lowering, const Operand& rows, const Trees& trees,
                    const TreeTables& tables, ElementType limits) {
  std::vector<double> weights(static_cast<size_t>(trees.leaf_count * trees.target_count),
                              Neutral(trees.aggregate, limits));
  for (const Trees::Weight& weight : trees.weights) {
    Combine(trees.aggregate, weight.weight,
            weights[static_cast<size_t>(weight.leaf * trees.target_count + weight.target)]);
  }
  const WayDown way(lowering, rows, tables);
  int64_t levels = tables.depth;
  const auto tree_count = static_cast<int64_t>(tables.roots.size());
  const Operand leaves = program::InsertAxis(
      TakeFirstLevels(
          lowering, way,
          ConstantTable<int32_t>(lowering, ElementType::kInt32, {tree_count}, tables.roots),
          rows.shape[0], levels, 0),
      1);
  StepBuilder reduce(lowering, {rows.shape[0], trees.target_count, tree_count});
  const Expr leaf = Cast(reduce.Read(leaves), ElementType::kInt64);
  const Expr weight = reduce.ReadAtUnchecked(
      ConstantNumbers(lowering, rows.type(), {trees.leaf_count, trees.target_count}, weights),
      {leaf, reduce.Coordinate(1)});
  return CombineTrees(lowering, reduce, trees, weight, rows.type(), limits);
}

}  // namespace

Result<Operand> LowerTrees(Lowering& lowering, const Operand& given_rows, const Trees& given,
                           ElementType type) {
  // A leaf without weights, for trees that others have more of.
  Trees trees = given;
  const auto no_leaf = static_cast<int32_t>(trees.leaf_count++);
  ONNXIFI_ASSIGN_OR_RETURN(const TreeTables tables,
                           MakeTreeTables(lowering, trees, given_rows.type()));
  ONNXIFI_RETURN_IF_ERROR(lowering.Require(
      Less(Dim(tables.feature_count), given_rows.shape[1] + Dim(1)), Code::kMismatchingShape,
      "The trees ask for " + std::to_string(tables.feature_count) + " features; input 0 has fewer:",
      {given_rows.shape[1]}));
  // Integers and float16 are normal numbers, or zeros, of the rows' type.
  const bool may_be_subnormal = lowering.In(0).type() == given_rows.type();
  const Operand rows = tables.needs_normal_features && may_be_subnormal
                           ? WithoutSubnormals(lowering, given_rows)
                           : given_rows;
  const std::vector<int32_t> roots =
      RootsByTarget(tables, trees, FindOwnTargets(tables, trees), no_leaf);
  if (!roots.empty()) return LowerByTarget(lowering, rows, trees, tables, roots, type);

  // A larger table is for models that say as much, with weights of each leaf for most targets.
  const int64_t most = std::max(int64_t{1} << 26, 4 * static_cast<int64_t>(trees.weights.size()));
  int64_t size = 0;
  if (__builtin_mul_overflow(trees.leaf_count, trees.target_count, &size) || size > most) {
    return lowering.UnsupportedAttribute("A table of " + std::to_string(trees.leaf_count) +
                                         " leaves and " + std::to_string(trees.target_count) +
                                         " targets has more than " + std::to_string(most) +
                                         " entries.");
  }
  return LowerByLeaf(lowering, rows, trees, tables, type);
}

}  // namespace onnxifi::ops
