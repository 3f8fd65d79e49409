// SPDX-License-Identifier: Apache-2.0
//
// ai.onnx.ml TreeEnsemble (opset 5): its arrays checked and made into nodes and leaves.

#include <cmath>
#include <utility>

#include "backends/core/ops/host_step.h"
#include "backends/core/ops/registry.h"

namespace onnxifi::ops {
namespace {

using program::RunTrees;
using tensor::Tensor;
using Numbers = std::vector<int64_t>;

class TreeReader {
 public:
  explicit TreeReader(const Lowering& lowering) : lowering_(lowering) {}

  Result<RunTrees> Read() {
    ONNXIFI_RETURN_IF_ERROR(ReadLeaves());
    ONNXIFI_RETURN_IF_ERROR(ReadNodes());
    ONNXIFI_RETURN_IF_ERROR(ReadMembers());
    ONNXIFI_ASSIGN_OR_RETURN(trees_.roots, Needed("tree_roots"));
    for (const int64_t root : trees_.roots) {
      ONNXIFI_RETURN_IF_ERROR(CheckRange("tree_roots", root, trees_.nodes.size()));
    }
    ONNXIFI_RETURN_IF_ERROR(CheckEnds());
    ONNXIFI_ASSIGN_OR_RETURN(const int64_t aggregate, Choice("aggregate_function", 1, 3));
    trees_.aggregate = static_cast<RunTrees::Aggregate>(aggregate);
    ONNXIFI_ASSIGN_OR_RETURN(const int64_t transform, Choice("post_transform", 0, 4));
    trees_.transform = static_cast<RunTrees::Transform>(transform);
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

  Result<int64_t> Choice(const std::string& name, int64_t fallback, int64_t last) const {
    const int64_t choice = lowering_.Int(name, fallback);
    if (choice >= 0 && choice <= last) return choice;
    return lowering_.InvalidModel("Attribute " + name + " is " + std::to_string(choice) +
                                  ", outside [0, " + std::to_string(last) + "].");
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
      trees_.leaves.push_back({targets[k], weights->AsDouble(static_cast<int64_t>(k))});
    }
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
                            bool is_leaf) -> Result<RunTrees::Branch> {
      ONNXIFI_RETURN_IF_ERROR(CheckRange(name, index, is_leaf ? trees_.leaves.size() : count));
      return RunTrees::Branch{index, is_leaf};
    };
    constexpr int64_t kMaxFeatures = int64_t{1} << 31;
    for (size_t k = 0; k < count; ++k) {
      RunTrees::Node& node = trees_.nodes.emplace_back();
      const int64_t mode = modes->AsInt(static_cast<int64_t>(k));
      ONNXIFI_RETURN_IF_ERROR(CheckRange("nodes_modes", mode, 7));
      ONNXIFI_RETURN_IF_ERROR(CheckRange("nodes_featureids", features[k], kMaxFeatures));
      node.mode = static_cast<RunTrees::Mode>(mode);
      node.feature = features[k];
      trees_.feature_count = std::max(trees_.feature_count, features[k] + 1);
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
    for (RunTrees::Node& node : trees_.nodes) {
      if (node.mode != RunTrees::Mode::kMember) continue;
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

  // No way through the nodes comes back to where it was.
  Status CheckEnds() const {
    enum class Mark : uint8_t { kNew, kOnTheWay, kDone };
    std::vector<Mark> marks(trees_.nodes.size(), Mark::kNew);
    std::vector<std::pair<int64_t, int>> way;  // nodes, and how many of their branches are done
    for (const int64_t root : trees_.roots) {
      if (marks[static_cast<size_t>(root)] == Mark::kDone) continue;
      way.emplace_back(root, 0);
      marks[static_cast<size_t>(root)] = Mark::kOnTheWay;
      while (!way.empty()) {
        auto& [index, done] = way.back();
        if (done == 2) {
          marks[static_cast<size_t>(index)] = Mark::kDone;
          way.pop_back();
          continue;
        }
        const RunTrees::Node& node = trees_.nodes[static_cast<size_t>(index)];
        const RunTrees::Branch next = done++ == 0 ? node.on_true : node.on_false;
        if (next.is_leaf) continue;
        Mark& mark = marks[static_cast<size_t>(next.index)];
        if (mark == Mark::kOnTheWay) {
          return lowering_.InvalidModel("Node " + std::to_string(next.index) +
                                        " of a tree is below itself.");
        }
        if (mark == Mark::kDone) continue;
        mark = Mark::kOnTheWay;
        way.emplace_back(next.index, 0);
      }
    }
    return base::Ok();
  }

  const Lowering& lowering_;
  RunTrees trees_;
};

Status LowerTreeEnsemble(Lowering& lowering) {
  ONNXIFI_RETURN_IF_ERROR(lowering.NeedInputs(1));
  const Operand& x = lowering.In(0);
  if (!tensor::IsFloat(x.type())) return lowering.UnsupportedType(0);
  if (x.rank() != 2) {
    return lowering.InvalidModel("Input 0 has " + std::to_string(x.rank()) +
                                 " axes; 2 are required.");
  }
  ONNXIFI_ASSIGN_OR_RETURN(RunTrees trees, TreeReader(lowering).Read());
  const Dim targets = trees.target_count;
  HostStep step(lowering, std::move(trees));
  step.Read(x);
  lowering.Set(0, step.WriteTensor(x.type(), {x.shape[0], targets}));
  step.Emit();
  return base::Ok();
}

constexpr Operator kOperators[] = {
    {"TreeEnsemble", 5, LowerTreeEnsemble, "ai.onnx.ml"},
};

}  // namespace

std::span<const Operator> TreeEnsembleOperators() { return kOperators; }

}  // namespace onnxifi::ops
