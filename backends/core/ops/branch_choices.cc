// SPDX-License-Identifier: Apache-2.0
//
// BranchChoices: a depth-first search, of which the choices are the path.

#include "backends/core/ops/branch_choices.h"

#include <algorithm>

namespace onnxifi::ops {
namespace {

constexpr int kMaxAttempts = 32;

}  // namespace

std::optional<Branch> BranchChoices::Find(const graph::Node& node) const {
  const auto found = std::ranges::find(choices_, &node, &Choice::node);
  return found == choices_.end() ? std::nullopt : std::optional(found->branch);
}

void BranchChoices::Ask(const graph::Node& node, Branch first, bool is_only) {
  if (!asked_ && !Find(node)) asked_ = {&node, first, /*is_second=*/is_only};
}

void BranchChoices::AskToSink(const graph::Node& node) {
  if (unsunk_ == nullptr) unsunk_ = &node;
}

bool BranchChoices::Next() {
  if (++attempts_ == kMaxAttempts) return false;
  if (asked_) {
    choices_.push_back(*asked_);
    asked_.reset();
    return true;
  }
  while (!choices_.empty() && choices_.back().is_second) choices_.pop_back();
  if (choices_.empty()) return false;
  Choice& last = choices_.back();
  last.branch = last.branch == Branch::kThen ? Branch::kElse : Branch::kThen;
  last.is_second = true;
  return true;
}

}  // namespace onnxifi::ops
