// SPDX-License-Identifier: Apache-2.0
//
// AutoPlanner: one question per device for all nodes; a plain ONNXIFI 1.0 plugin, which answers for
// whole models only, is asked about models of one node.

#include "onnxifi/dispatch/auto_planner.h"

#include <algorithm>
#include <map>
#include <utility>

namespace onnxifi::dispatch {

using base::Code;
using base::Status;

namespace {

// What is assumed of every device: their order decides between those that claim the same.
constexpr split::DeviceRates kAssumedRates = {
    .cost = {.launch_ns = 20'000, .enter = {2'000, 100}, .leave = {2'000, 100}},
    .node_ns = 2'000,
    .picoseconds_per_byte = 100,
};

std::span<const std::byte> BytesOf(const std::string& text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

}  // namespace

base::Result<std::unique_ptr<AutoPlanner>> AutoPlanner::Ask(
    std::span<const ForwardedBackendId* const> devices, std::span<const std::byte> model,
    std::vector<split::GivenWeight> weights) {
  std::unique_ptr<AutoPlanner> planner(new AutoPlanner(devices));
  planner->weights_ = std::move(weights);
  ONNXIFI_ASSIGN_OR_RETURN(planner->whole_, split::WholeModel::Read(model, planner->weights_));
  const split::WholeModel& whole = *planner->whole_;
  for (const int32_t input : whole.inputs()) {
    const split::FlowingValue& value = whole.values()[input];
    if (value.is_carried()) continue;
    return Status(Code::kUnsupportedShape,
                  "Input '" + value.name + "' is nothing that can be handed to several devices.");
  }
  planner->claims_.assign(devices.size(), std::vector<bool>(whole.nodes().size(), false));
  planner->reasons_.assign(devices.size(), std::vector<Status>(whole.nodes().size()));
  planner->verdicts_.resize(devices.size());
  for (size_t device = 0; device < devices.size(); ++device) {
    ONNXIFI_RETURN_IF_ERROR(planner->AskDevice(device));
  }
  return planner;
}

Status AutoPlanner::AskDevice(size_t device) {
  if (!devices_[device]->explains_nodes()) {
    AskPlainDevice(device);
    return base::Ok();
  }
  auto explanation = devices_[device]->Explain(BytesOf(whole_->claim_model()));
  std::map<uint32_t, Status> by_node;
  Status unasked(Code::kBackendUnavailable, "It says nothing of the node.");
  if (!explanation.ok()) {
    // A device that is gone claims nothing; the others still may.
    unasked = std::move(explanation).status();
  } else {
    if (explanation->nodes.empty() && !explanation->verdict.ok()) unasked = explanation->verdict;
    for (const abi::NodeVerdict& verdict : explanation->nodes) {
      Status& known = by_node[verdict.node_index];
      if (verdict.code != Code::kOk && known.ok()) known = Status(verdict.code, verdict.sentence);
    }
    verdicts_[device] = std::move(explanation->nodes);
  }
  for (size_t node = 0; node < whole_->nodes().size(); ++node) {
    const auto told = by_node.find(static_cast<uint32_t>(whole_->nodes()[node].model_index));
    const Status& reason = told == by_node.end() ? unasked : told->second;
    claims_[device][node] = reason.ok();
    reasons_[device][node] = reason;
  }
  return base::Ok();
}

void AutoPlanner::AskPlainDevice(size_t device) {
  // The same question is asked once.
  std::map<std::string, Status> answers;
  for (size_t node = 0; node < whole_->nodes().size(); ++node) {
    const auto position = static_cast<int32_t>(node);
    const split::IslandModel island = whole_->Extract({&position, 1});
    Status& reason = reasons_[device][node];
    for (const int32_t output : island.outputs) {
      // It has no way to tell what shape something has.
      if (whole_->values()[output].has_fixed_shape()) continue;
      reason = Status(Code::kUnsupportedShape,
                      "The shape of '" + whole_->values()[output].name +
                          "' is known only after a run, and a plain ONNXIFI 1.0 plugin cannot tell "
                          "it.");
    }
    if (reason.ok() && !island.outputs.empty()) {
      auto [answer, is_new] = answers.try_emplace(island.bytes);
      if (is_new) answer->second = devices_[device]->CheckCompatibility(BytesOf(island.bytes));
      reason = answer->second;
    }
    claims_[device][node] = reason.ok() || reason.code() == Code::kFallback;
  }
}

base::Result<partition::Plan> AutoPlanner::Plan() const {
  const std::vector<split::DeviceRates> rates(devices_.size(), kAssumedRates);
  partition::PlanOrGaps made = partition::MakePlan(split::MakeProblem(*whole_, rates, claims_));
  if (made.gaps.empty()) {
    if (made.plan.islands.empty()) {
      return Status(Code::kUnsupportedOperator, "The model has no nodes to hand out.");
    }
    return std::move(made.plan);
  }
  const std::vector<partition::NodeIndex>& gap = made.gaps.front();
  const auto describe = [&](partition::NodeIndex node) {
    const split::ModelNode& told = whole_->nodes()[node];
    return "node " + std::to_string(told.model_index) +
           (told.name.empty() ? "" : " '" + told.name + "'") + " (" + told.operator_type + ")";
  };
  Status refusal;
  for (size_t device = 0; device < devices_.size(); ++device) {
    for (const partition::NodeIndex node : gap) {
      if (claims_[device][node]) continue;
      const Status& reason = reasons_[device][node];
      if (refusal.ok()) {
        refusal = Status(reason.code(), gap.size() == 1
                                            ? "No device runs " + describe(node) + "."
                                            : "No device runs the " + std::to_string(gap.size()) +
                                                  " nodes that have to stay together around " +
                                                  describe(gap[0]) + ".");
      }
      refusal.Context(devices_[device]->key() + ", " + describe(node) + ": " + reason.Text());
      break;
    }
  }
  return refusal;
}

void AutoPlanner::Withdraw(partition::DeviceIndex device,
                           std::span<const partition::NodeIndex> nodes, const Status& reason) {
  for (const partition::NodeIndex node : nodes) {
    claims_[device][node] = false;
    reasons_[device][node] = reason;
  }
}

bool AutoPlanner::IsClaimedElsewhere(partition::DeviceIndex device,
                                     std::span<const partition::NodeIndex> nodes) const {
  return std::ranges::all_of(nodes, [&](partition::NodeIndex node) {
    for (size_t other = 0; other < claims_.size(); ++other) {
      if (other != static_cast<size_t>(device) && claims_[other][node]) return true;
    }
    return false;
  });
}

std::vector<abi::NodeVerdict> AutoPlanner::AcceptingVerdicts() const {
  std::vector<abi::NodeVerdict> accepting;
  for (const std::vector<abi::NodeVerdict>& verdicts : verdicts_) {
    for (const abi::NodeVerdict& verdict : verdicts) {
      // A node with several reasons is listed as often.
      if (!accepting.empty() && accepting.back().node_index == verdict.node_index) continue;
      abi::NodeVerdict& told = accepting.emplace_back();
      told.node_index = verdict.node_index;
      told.node_name = verdict.node_name;
      told.domain = verdict.domain;
      told.operator_type = verdict.operator_type;
      told.opset_version = verdict.opset_version;
    }
    if (!accepting.empty()) break;
  }
  return accepting;
}

}  // namespace onnxifi::dispatch
