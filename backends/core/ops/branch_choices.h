// SPDX-License-Identifier: Apache-2.0
//
// BranchChoices: which branch stands for an If whose branches give different ranks, where extents
// tell the condition. Exporters write such an If for a squeeze of an axis that is a symbol. What
// reads the result needs one rank, so the graph is lowered for one branch, and needs another
// lowering for a run of extents that take the other. A lowering that fails names the If whose rank
// it missed, and the next one has a branch for it: that of the run, where one is given, else the
// one that is found to fit by trying.

#ifndef ONNXIFI_BACKENDS_CORE_OPS_BRANCH_CHOICES_H_
#define ONNXIFI_BACKENDS_CORE_OPS_BRANCH_CHOICES_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "backends/core/graph/graph.h"

namespace onnxifi::ops {

enum class Branch : uint8_t { kThen, kElse };

// Of the lowerings of one graph, whose nodes stay where they are meanwhile.
class BranchChoices {
 public:
  // The branch that is chosen for an If, if one is.
  std::optional<Branch> Find(const graph::Node& node) const;
  // To be called where the lowering misses the rank of what an If gives. `first` is tried first,
  // and with `is_only` nothing else.
  void Ask(const graph::Node& node, Branch first, bool is_only);
  // To be called where the lowering misses the rank of an If that no branch can stand in for, as
  // data tell its condition: its readers can stand in the branches instead.
  void AskToSink(const graph::Node& node);
  // The first such If; null if no lowering has missed one.
  const graph::Node* unsunk() const { return unsunk_; }
  // To be called when a lowering has failed: whether to lower again, with other choices. False when
  // all were tried, or more than any model should need.
  bool Next();
  // Whether an If has a branch.
  bool any() const { return !choices_.empty(); }

 private:
  struct Choice {
    const graph::Node* node = nullptr;
    Branch branch = Branch::kThen;
    bool is_second = false;
  };

  std::vector<Choice> choices_;
  const graph::Node* unsunk_ = nullptr;
  std::optional<Choice> asked_;  // by the lowering at hand: the first If without a choice
  int attempts_ = 0;
};

}  // namespace onnxifi::ops

#endif  // ONNXIFI_BACKENDS_CORE_OPS_BRANCH_CHOICES_H_
