// SPDX-License-Identifier: Apache-2.0
//
// ai.onnx.ml TreeEnsembleRegressor, TreeEnsembleClassifier (opsets 1 and 3): trees whose nodes have
// numbers. Where ONNX's reference and runtimes differ in classifiers of two classes whose weights
// are all for the first one: they are a score of the second class. If one of them is negative, the
// other class has -score, and else 1 - score where no transform asks for -score.

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "backends/core/ops/ml/lower_trees.h"
#include "backends/core/ops/ml/rows.h"
#include "backends/core/ops/ml/scores.h"
#include "backends/core/ops/registry.h"

namespace onnxifi::ops {
namespace {

using tensor::Tensor;
using Numbers = std::vector<int64_t>;

constexpr int64_t kMaxTargets = int64_t{1} << 24;

// What gives targets their weights: target_... of regressors, class_... of classifiers.
struct WeightNames {
  std::string tree_ids, node_ids, target_ids, weights;
};
const WeightNames kRegressorNames = {"target_treeids", "target_nodeids", "target_ids",
                                     "target_weights"};
const WeightNames kClassifierNames = {"class_treeids", "class_nodeids", "class_ids",
                                      "class_weights"};

// A list of floats, or since opset 3 a tensor; empty if neither is given.
Result<std::vector<double>> ReadNumbers(const Lowering& lowering, const std::string& name) {
  std::vector<double> numbers;
  if (const Tensor* tensor = lowering.node().FindAttribute<Tensor>(name + "_as_tensor")) {
    if (!tensor::IsFloat(tensor->type())) {
      return lowering.InvalidModel("The attribute " + name + "_as_tensor is of " +
                                   std::string(Name(tensor->type())) + ".");
    }
    for (int64_t k = 0; k < tensor->element_count(); ++k) numbers.push_back(tensor->AsDouble(k));
    if (!numbers.empty()) return numbers;
  }
  const std::vector<float> floats = FloatList(lowering, name);
  return std::vector<double>(floats.begin(), floats.end());
}

Result<Trees::Mode> ReadMode(const Lowering& lowering, const std::string& name) {
  constexpr std::pair<std::string_view, Trees::Mode> kModes[] = {
      {"BRANCH_LEQ", Trees::Mode::kLessEqual},    {"BRANCH_LT", Trees::Mode::kLess},
      {"BRANCH_GTE", Trees::Mode::kGreaterEqual}, {"BRANCH_GT", Trees::Mode::kGreater},
      {"BRANCH_EQ", Trees::Mode::kEqual},         {"BRANCH_NEQ", Trees::Mode::kNotEqual}};
  for (const auto& [known, mode] : kModes) {
    if (name == known) return mode;
  }
  return lowering.InvalidModel("Attribute nodes_modes has '" + name + "', which is no mode.");
}

class TreeModelReader {
 public:
  TreeModelReader(const Lowering& lowering, const WeightNames& names)
      : lowering_(lowering), names_(names) {}

  // All but the number of targets, which must be more than any id.
  Result<Trees> Read() {
    ONNXIFI_RETURN_IF_ERROR(ReadIds());
    ONNXIFI_RETURN_IF_ERROR(ReadNodes());
    ONNXIFI_RETURN_IF_ERROR(ReadWeights());
    return std::move(trees_);
  }

 private:
  using Id = std::pair<int64_t, int64_t>;  // of a tree, of a node in it
  struct Entry {
    Id id;
    Trees::Branch branch;
  };

  Status CheckCount(const std::string& name, size_t given, size_t required) const {
    if (given == required) return base::Ok();
    return lowering_.InvalidModel("Attribute " + name + " has " + std::to_string(given) +
                                  " entries where " + std::to_string(required) + " are required.");
  }

  // Those of the node's attribute.
  Result<std::span<const int64_t>> Needed(const std::string& name, size_t count) const {
    const Numbers* numbers = lowering_.Ints(name);
    ONNXIFI_RETURN_IF_ERROR(CheckCount(name, numbers == nullptr ? 0 : numbers->size(), count));
    return numbers == nullptr ? std::span<const int64_t>() : *numbers;
  }

  // The branch that each id means: leaves and other nodes are counted apart.
  Status ReadIds() {
    const auto* modes = lowering_.node().FindAttribute<std::vector<std::string>>("nodes_modes");
    if (modes != nullptr) modes_ = *modes;
    ONNXIFI_ASSIGN_OR_RETURN(tree_ids_, Needed("nodes_treeids", modes_.size()));
    ONNXIFI_ASSIGN_OR_RETURN(node_ids_, Needed("nodes_nodeids", modes_.size()));
    int64_t nodes = 0;
    std::unordered_set<int64_t> trees;
    entries_.reserve(modes_.size());
    for (size_t k = 0; k < modes_.size(); ++k) {
      const bool is_leaf = modes_[k] == "LEAF";
      const Trees::Branch branch = {is_leaf ? trees_.leaf_count++ : nodes++, is_leaf};
      entries_.push_back({Id(tree_ids_[k], node_ids_[k]), branch});
      // The first node of a tree is its root.
      const bool is_of_last_tree = k > 0 && tree_ids_[k] == tree_ids_[k - 1];
      if (!is_of_last_tree && trees.insert(tree_ids_[k]).second) trees_.roots.push_back(branch);
    }
    // As they come, as a rule.
    if (!std::ranges::is_sorted(entries_, {}, &Entry::id)) {
      std::ranges::sort(entries_, {}, &Entry::id);
    }
    const auto twice = std::ranges::adjacent_find(entries_, {}, &Entry::id);
    if (twice == entries_.end()) return base::Ok();
    return lowering_.InvalidModel("Tree " + std::to_string(twice->id.first) + " has node " +
                                  std::to_string(twice->id.second) + " twice.");
  }

  // `near` is the place of a node of that tree, from which the others are as far as by their
  // numbers, as a rule.
  Result<Trees::Branch> Find(const std::string& name, int64_t tree, int64_t node,
                             size_t near = 0) const {
    const Id id(tree, node);
    if (near < entries_.size()) {
      const auto guess = static_cast<uint64_t>(near) + static_cast<uint64_t>(node) -
                         static_cast<uint64_t>(entries_[near].id.second);
      if (guess < entries_.size() && entries_[guess].id == id) return entries_[guess].branch;
    }
    const auto found = std::ranges::lower_bound(entries_, id, {}, &Entry::id);
    if (found != entries_.end() && found->id == id) return found->branch;
    return lowering_.InvalidModel("Attribute " + name + " names node " + std::to_string(node) +
                                  " of tree " + std::to_string(tree) + ", which is not there.");
  }

  Status ReadNodes() {
    const size_t count = modes_.size();
    ONNXIFI_ASSIGN_OR_RETURN(const auto features, Needed("nodes_featureids", count));
    ONNXIFI_ASSIGN_OR_RETURN(const auto on_true, Needed("nodes_truenodeids", count));
    ONNXIFI_ASSIGN_OR_RETURN(const auto on_false, Needed("nodes_falsenodeids", count));
    ONNXIFI_ASSIGN_OR_RETURN(const std::vector<double> splits,
                             ReadNumbers(lowering_, "nodes_values"));
    ONNXIFI_RETURN_IF_ERROR(CheckCount("nodes_values", splits.size(), count));
    const Numbers* missing = lowering_.Ints("nodes_missing_value_tracks_true");
    const bool has_missing = missing != nullptr && !missing->empty();
    if (has_missing) {
      ONNXIFI_RETURN_IF_ERROR(
          CheckCount("nodes_missing_value_tracks_true", missing->size(), count));
    }
    constexpr int64_t kMaxFeatures = int64_t{1} << 31;
    trees_.nodes.reserve(count - static_cast<size_t>(trees_.leaf_count));
    for (size_t k = 0; k < count; ++k) {
      if (modes_[k] == "LEAF") continue;
      Trees::Node& node = trees_.nodes.emplace_back();
      ONNXIFI_ASSIGN_OR_RETURN(node.mode, ReadMode(lowering_, modes_[k]));
      if (features[k] < 0 || features[k] >= kMaxFeatures) {
        return lowering_.InvalidModel("Attribute nodes_featureids has " +
                                      std::to_string(features[k]) + ".");
      }
      node.feature = features[k];
      node.split = splits[k];
      node.missing_is_true = has_missing && (*missing)[k] != 0;
      ONNXIFI_ASSIGN_OR_RETURN(node.on_true,
                               Find("nodes_truenodeids", tree_ids_[k], on_true[k], k));
      ONNXIFI_ASSIGN_OR_RETURN(node.on_false,
                               Find("nodes_falsenodeids", tree_ids_[k], on_false[k], k));
    }
    return base::Ok();
  }

  // Those of nodes that are no leaves mean nothing.
  Status ReadWeights() {
    ONNXIFI_ASSIGN_OR_RETURN(const std::vector<double> weights,
                             ReadNumbers(lowering_, names_.weights));
    const size_t count = weights.size();
    ONNXIFI_ASSIGN_OR_RETURN(const auto trees, Needed(names_.tree_ids, count));
    ONNXIFI_ASSIGN_OR_RETURN(const auto nodes, Needed(names_.node_ids, count));
    ONNXIFI_ASSIGN_OR_RETURN(const auto targets, Needed(names_.target_ids, count));
    trees_.weights.reserve(count);
    for (size_t k = 0; k < count; ++k) {
      if (targets[k] < 0 || targets[k] >= kMaxTargets) {
        return lowering_.InvalidModel("Attribute " + names_.target_ids + " has " +
                                      std::to_string(targets[k]) + ".");
      }
      ONNXIFI_ASSIGN_OR_RETURN(const Trees::Branch leaf, Find(names_.node_ids, trees[k], nodes[k]));
      trees_.target_count = std::max(trees_.target_count, targets[k] + 1);
      if (leaf.is_leaf) trees_.weights.push_back({leaf.index, targets[k], weights[k]});
    }
    return base::Ok();
  }

  const Lowering& lowering_;
  const WeightNames& names_;
  Trees trees_;
  std::span<const std::string> modes_;
  std::span<const int64_t> tree_ids_, node_ids_;
  std::vector<Entry> entries_;  // by their ids
};

// Input 0 as [N, C] of a type in which its numbers compare as they are: float64 for integers.
Result<Operand> ReadComparableRows(Lowering& lowering) {
  ONNXIFI_ASSIGN_OR_RETURN(const Operand rows, ReadRows(lowering));
  const bool is_wide = tensor::IsInteger(rows.type()) || rows.type() == ElementType::kFloat64;
  return lowering.CastTo(rows, is_wide ? ElementType::kFloat64 : ElementType::kFloat32);
}

// Sums [N, K] plus the attribute base_values: one for all targets, or one for each.
Result<Operand> AddBaseValues(Lowering& lowering, const Operand& sums) {
  ONNXIFI_ASSIGN_OR_RETURN(const std::vector<double> base, ReadNumbers(lowering, "base_values"));
  if (base.empty()) return sums;
  const auto count = static_cast<int64_t>(base.size());
  ONNXIFI_RETURN_IF_ERROR(CheckAlongLastAxis(lowering, count, sums.shape, "base_values"));
  const Operand list = ConstantNumbers(lowering, sums.type(), {count}, base);
  StepBuilder map(lowering, sums.shape);
  const Expr sum = map.Read(sums);
  return map.WriteMap(sum + map.Read(list), sums.type());
}

Result<Trees::Aggregate> ReadAggregate(const Lowering& lowering) {
  constexpr std::pair<std::string_view, Trees::Aggregate> kAggregates[] = {
      {"AVERAGE", Trees::Aggregate::kAverage},
      {"SUM", Trees::Aggregate::kSum},
      {"MIN", Trees::Aggregate::kMin},
      {"MAX", Trees::Aggregate::kMax}};
  const std::string name = lowering.String("aggregate_function", "SUM");
  for (const auto& [known, aggregate] : kAggregates) {
    if (name == known) return aggregate;
  }
  return lowering.InvalidModel("Attribute aggregate_function is '" + name +
                               "', which is no aggregate.");
}

Status LowerTreeEnsembleRegressor(Lowering& lowering) {
  ONNXIFI_ASSIGN_OR_RETURN(const Operand rows, ReadComparableRows(lowering));
  ONNXIFI_ASSIGN_OR_RETURN(const PostTransform transform, ReadPostTransform(lowering));
  ONNXIFI_ASSIGN_OR_RETURN(Trees trees, TreeModelReader(lowering, kRegressorNames).Read());
  ONNXIFI_ASSIGN_OR_RETURN(trees.aggregate, ReadAggregate(lowering));
  const int64_t targets = lowering.Int("n_targets", 0);
  if (targets < 1 || targets > kMaxTargets || targets < trees.target_count) {
    return lowering.InvalidModel("Attribute n_targets is " + std::to_string(targets) + ", and " +
                                 std::to_string(trees.target_count) + " targets have weights.");
  }
  trees.target_count = targets;
  ONNXIFI_ASSIGN_OR_RETURN(Operand sums, LowerTrees(lowering, rows, trees, ElementType::kFloat32));
  ONNXIFI_ASSIGN_OR_RETURN(sums, AddBaseValues(lowering, sums));
  lowering.Set(0, Transformed(lowering, sums, transform));
  return base::Ok();
}

// One score per row decides between two classes.
Status LowerBinaryClassifier(Lowering& lowering, const Operand& rows, const Trees& trees,
                             const Classes& classes, PostTransform transform) {
  ONNXIFI_ASSIGN_OR_RETURN(Operand score, LowerTrees(lowering, rows, trees, ElementType::kFloat32));
  ONNXIFI_ASSIGN_OR_RETURN(std::vector<double> base, ReadNumbers(lowering, "base_values"));
  if (!base.empty()) {
    StepBuilder map(lowering, score.shape);
    const Expr sum = map.Read(score);
    score = map.WriteMap(sum + Like(sum, base[0]), score.type());
  }
  const bool has_negative = std::any_of(trees.weights.begin(), trees.weights.end(),
                                        [](const Trees::Weight& each) { return each.weight < 0; });
  const bool is_share =
      !has_negative && (transform == PostTransform::kNone || transform == PostTransform::kProbit);
  lowering.Set(0, classes.LabelsOfPositive(lowering, score, is_share ? 0.5 : 0));
  lowering.Set(1,
               Transformed(lowering, AsScoresOfTwo(lowering, score, is_share ? 1 : 0), transform));
  return base::Ok();
}

Status LowerTreeEnsembleClassifier(Lowering& lowering) {
  ONNXIFI_ASSIGN_OR_RETURN(const Operand rows, ReadComparableRows(lowering));
  ONNXIFI_ASSIGN_OR_RETURN(const PostTransform transform, ReadPostTransform(lowering));
  ONNXIFI_ASSIGN_OR_RETURN(Trees trees, TreeModelReader(lowering, kClassifierNames).Read());
  const Classes classes = Classes::Read(lowering, "classlabels_int64s", "classlabels_strings");
  if (classes.count() == 0 || trees.target_count > classes.count()) {
    return lowering.InvalidModel("There are " + std::to_string(classes.count()) + " labels for " +
                                 std::to_string(trees.target_count) + " classes with weights.");
  }
  if (classes.count() <= 2 && trees.target_count == 1) {
    return LowerBinaryClassifier(lowering, rows, trees, classes, transform);
  }
  trees.target_count = classes.count();
  ONNXIFI_ASSIGN_OR_RETURN(Operand scores,
                           LowerTrees(lowering, rows, trees, ElementType::kFloat32));
  ONNXIFI_ASSIGN_OR_RETURN(scores, AddBaseValues(lowering, scores));
  lowering.Set(0, classes.LabelsOfLargest(lowering, scores));
  lowering.Set(1, Transformed(lowering, scores, transform));
  return base::Ok();
}

constexpr std::string_view kDomain = "ai.onnx.ml";
constexpr Operator kOperators[] = {
    {"TreeEnsembleClassifier", 3, LowerTreeEnsembleClassifier, kDomain},
    {"TreeEnsembleRegressor", 3, LowerTreeEnsembleRegressor, kDomain},
};

}  // namespace

std::span<const Operator> TreeModelOperators() { return kOperators; }

}  // namespace onnxifi::ops
