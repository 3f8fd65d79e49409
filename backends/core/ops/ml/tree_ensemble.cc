// SPDX-License-Identifier: Apache-2.0
//
// ai.onnx.ml TreeEnsemble (opset 5): its arrays checked and made into trees.

#include <cmath>
#include <utility>

#include "backends/core/ops/ml/lower_trees.h"
#include "backends/core/ops/ml/rows.h"
#include "backends/core/ops/ml/scores.h"
#include "backends/core/ops/registry.h"

namespace onnxifi::ops {
namespace {

using tensor::Tensor;
using Numbers = std::vector<int64_t>;

Result<int64_t> Choice(const Lowering& lowering, const std::string& name, int64_t fallback,
                       int64_t last) {
  const int64_t choice = lowering.Int(name, fallback);
  if (choice >= 0 && choice <= last) return choice;
  return lowering.InvalidModel("Attribute " + name + " is " + std::to_string(choice) +
                               ", outside [0, " + std::to_string(last) + "].");
}

class TreeReader {
 public:
  explicit TreeReader(const Lowering& lowering) : lowering_(lowering) {}

  Result<Trees> Read() {
    ONNXIFI_RETURN_IF_ERROR(ReadLeaves());
    ONNXIFI_RETURN_IF_ERROR(ReadNodes());
    ONNXIFI_RETURN_IF_ERROR(ReadMembers());
    ONNXIFI_ASSIGN_OR_RETURN(const Numbers roots, Needed("tree_roots"));
    for (const int64_t root : roots) {
      ONNXIFI_RETURN_IF_ERROR(CheckRange("tree_roots", root, trees_.nodes.size()));
      trees_.roots.push_back({root, /*is_leaf=*/false});
    }
    ONNXIFI_ASSIGN_OR_RETURN(const int64_t aggregate,
                             Choice(lowering_, "aggregate_function", 1, 3));
    trees_.aggregate = static_cast<Trees::Aggregate>(aggregate);
    return std::move(trees_);
  }

 private:
  Result<Numbers> Needed(const std::string& name) const {
    const Numbers* numbers = lowering_.Ints(name);
    if (numbers == nullptr) return lowering_.InvalidModel("The attribute " + name + " is missing.");
    return *numbers;
  }

  Result<Numbers> Needed(const std::string& name, size_t count) const {
    ONNXIFI_ASSIGN_OR_RETURN(Numbers numbers, Needed(name));
    ONNXIFI_RETURN_IF_ERROR(CheckCount(name, numbers.size(), count));
    return numbers;
  }

  Result<const Tensor*> NeededTensor(const std::string& name) const {
    const Tensor* tensor = lowering_.node().FindAttribute<Tensor>(name);
    if (tensor == nullptr || tensor->rank() != 1 || tensor->type() == ElementType::kString ||
        tensor::IsComplex(tensor->type())) {
      return lowering_.InvalidModel("The attribute " + name + " is no list of numbers.");
    }
    return tensor;
  }

  Status CheckCount(const std::string& name, size_t given, size_t required) const {
    if (given == required) return base::Ok();
    return lowering_.InvalidModel("Attribute " + name + " has " + std::to_string(given) +
                                  " entries where " + std::to_string(required) + " are required.");
  }

  Status CheckRange(const std::string& name, int64_t index, size_t end) const {
    if (index >= 0 && static_cast<uint64_t>(index) < end) return base::Ok();
    return lowering_.InvalidModel("Attribute " + name + " has " + std::to_string(index) +
                                  ", outside [0, " + std::to_string(end) + ").");
  }

  Status ReadLeaves() {
    ONNXIFI_ASSIGN_OR_RETURN(const Numbers targets, Needed("leaf_targetids"));
    ONNXIFI_ASSIGN_OR_RETURN(const Tensor* weights, NeededTensor("leaf_weights"));
    ONNXIFI_RETURN_IF_ERROR(
        CheckCount("leaf_weights", static_cast<size_t>(weights->element_count()), targets.size()));
    trees_.target_count = lowering_.Int("n_targets", 0);
    constexpr int64_t kMaxTargets = int64_t{1} << 24;
    if (trees_.target_count < 1 || trees_.target_count > kMaxTargets) {
      return lowering_.InvalidModel("Attribute n_targets is " +
                                    std::to_string(trees_.target_count) + ", outside [1, " +
                                    std::to_string(kMaxTargets) + "].");
    }
    for (size_t k = 0; k < targets.size(); ++k) {
      ONNXIFI_RETURN_IF_ERROR(
          CheckRange("leaf_targetids", targets[k], static_cast<size_t>(trees_.target_count)));
      const auto leaf = static_cast<int64_t>(k);
      trees_.weights.push_back({leaf, targets[k], weights->AsDouble(leaf)});
    }
    trees_.leaf_count = static_cast<int64_t>(targets.size());
    return base::Ok();
  }

  Status ReadNodes() {
    ONNXIFI_ASSIGN_OR_RETURN(const Numbers features, Needed("nodes_featureids"));
    const size_t count = features.size();
    ONNXIFI_ASSIGN_OR_RETURN(const Tensor* splits, NeededTensor("nodes_splits"));
    ONNXIFI_RETURN_IF_ERROR(
        CheckCount("nodes_splits", static_cast<size_t>(splits->element_count()), count));
    ONNXIFI_ASSIGN_OR_RETURN(const Tensor* modes, NeededTensor("nodes_modes"));
    ONNXIFI_RETURN_IF_ERROR(
        CheckCount("nodes_modes", static_cast<size_t>(modes->element_count()), count));
    ONNXIFI_ASSIGN_OR_RETURN(const Numbers on_true, Needed("nodes_truenodeids", count));
    ONNXIFI_ASSIGN_OR_RETURN(const Numbers on_false, Needed("nodes_falsenodeids", count));
    ONNXIFI_ASSIGN_OR_RETURN(const Numbers true_leafs, Needed("nodes_trueleafs", count));
    ONNXIFI_ASSIGN_OR_RETURN(const Numbers false_leafs, Needed("nodes_falseleafs", count));
    const Numbers* missing = lowering_.Ints("nodes_missing_value_tracks_true");
    if (missing != nullptr && !missing->empty()) {
      ONNXIFI_RETURN_IF_ERROR(
          CheckCount("nodes_missing_value_tracks_true", missing->size(), count));
    }
    const auto branch = [&](const std::string& name, int64_t index,
                            bool is_leaf) -> Result<Trees::Branch> {
      ONNXIFI_RETURN_IF_ERROR(
          CheckRange(name, index, is_leaf ? static_cast<size_t>(trees_.leaf_count) : count));
      return Trees::Branch{index, is_leaf};
    };
    constexpr int64_t kMaxFeatures = int64_t{1} << 31;
    for (size_t k = 0; k < count; ++k) {
      Trees::Node& node = trees_.nodes.emplace_back();
      const int64_t mode = modes->AsInt(static_cast<int64_t>(k));
      ONNXIFI_RETURN_IF_ERROR(CheckRange("nodes_modes", mode, 7));
      ONNXIFI_RETURN_IF_ERROR(CheckRange("nodes_featureids", features[k], kMaxFeatures));
      node.mode = static_cast<Trees::Mode>(mode);
      node.feature = features[k];
      node.split = splits->AsDouble(static_cast<int64_t>(k));
      node.missing_is_true = missing != nullptr && !missing->empty() && (*missing)[k] != 0;
      ONNXIFI_ASSIGN_OR_RETURN(node.on_true,
                               branch("nodes_truenodeids", on_true[k], true_leafs[k] != 0));
      ONNXIFI_ASSIGN_OR_RETURN(node.on_false,
                               branch("nodes_falsenodeids", on_false[k], false_leafs[k] != 0));
    }
    return base::Ok();
  }

  // The members of each node that tests membership, in the nodes' order, each list ended by a NaN.
  Status ReadMembers() {
    const Tensor* members = lowering_.node().FindAttribute<Tensor>("membership_values");
    if (members != nullptr) {
      ONNXIFI_ASSIGN_OR_RETURN(members, NeededTensor("membership_values"));
    }
    int64_t at = 0;
    for (Trees::Node& node : trees_.nodes) {
      if (node.mode != Trees::Mode::kMember) continue;
      while (members != nullptr && at < members->element_count() &&
             !std::isnan(members->AsDouble(at))) {
        node.members.push_back(members->AsDouble(at++));
      }
      if (members == nullptr || at == members->element_count()) {
        return lowering_.InvalidModel(
            "Attribute membership_values has fewer lists than nodes test membership.");
      }
      ++at;
    }
    return base::Ok();
  }

  const Lowering& lowering_;
  Trees trees_;
};

Status LowerTreeEnsemble(Lowering& lowering) {
  ONNXIFI_RETURN_IF_ERROR(lowering.NeedInputs(1));
  const Operand& x = lowering.In(0);
  const bool is_known = x.type() == ElementType::kFloat16 || x.type() == ElementType::kFloat32 ||
                        x.type() == ElementType::kFloat64;
  if (!is_known) return lowering.UnsupportedType(0);
  if (x.rank() != 2) {
    return lowering.InvalidModel("Input 0 has " + std::to_string(x.rank()) +
                                 " axes; 2 are required.");
  }
  ONNXIFI_ASSIGN_OR_RETURN(const Trees trees, TreeReader(lowering).Read());
  ONNXIFI_ASSIGN_OR_RETURN(const int64_t transform, Choice(lowering, "post_transform", 0, 4));
  const Operand rows = lowering.CastTo(
      x, x.type() == ElementType::kFloat64 ? ElementType::kFloat64 : ElementType::kFloat32);
  ONNXIFI_ASSIGN_OR_RETURN(const Operand sums, LowerTrees(lowering, rows, trees, x.type()));
  lowering.Set(0, Transformed(lowering, sums, static_cast<PostTransform>(transform), x.type()));
  return base::Ok();
}

constexpr Operator kOperators[] = {
    {"TreeEnsemble", 5, LowerTreeEnsemble, "ai.onnx.ml"},
};

}  // namespace

std::span<const Operator> TreeEnsembleOperators() { return kOperators; }

}  // namespace onnxifi::ops
