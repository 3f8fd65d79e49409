// SPDX-License-Identifier: Apache-2.0
//
// AutoPlanner: one question per device for all nodes; a plain ONNXIFI 1.0 plugin, which answers for
// whole models only, is asked about models of one node.

#include "onnxifi/dispatch/auto_planner.h"

#include <time.h>

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

// Of this thread, so that what others do to the machine does not count.
std::chrono::nanoseconds ProcessorTime() {
  timespec now = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
}

std::span<const std::byte> BytesOf(const std::string& text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

}  // namespace

base::Result<std::unique_ptr<AutoPlanner>> AutoPlanner::Ask(
    std::span<const ForwardedBackendId* const> devices, std::span<const std::byte> model,
    std::vector<split::GivenWeight> weights) {
  const std::chrono::nanoseconds start = ProcessorTime();
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
  const std::chrono::nanoseconds has_read = ProcessorTime();
  std::vector<split::Digest> alone;
  std::vector<split::Digest> in_model;
  for (const split::NodeSignature& signature : whole.Signatures()) {
    alone.push_back(signature.alone);
    in_model.push_back(signature.in_model);
  }
  for (const ForwardedBackendId* device : devices) {
    Answers answers = device->explains_nodes() ? planner->AskDevice(*device, in_model)
                                               : planner->AskPlainDevice(*device, alone);
    std::vector<bool>& claims = planner->claims_.emplace_back();
    for (const auto& reasons : answers) claims.push_back(reasons->empty());
    planner->reasons_.push_back(std::move(answers));
  }
  planner->KeepPlacements();
  planner->times_ = {has_read - start, ProcessorTime() - has_read};
  return planner;
}

void AutoPlanner::KeepPlacements() {
  for (size_t node = 0; node < whole_->nodes().size(); ++node) {
    const std::string& placement = whole_->nodes()[node].placement;
    if (placement.empty()) continue;
    for (size_t device = 0; device < devices_.size(); ++device) {
      if (devices_[device]->key() == placement) continue;
      claims_[device][node] = false;
      const Status reason(Code::kUnsupportedOperator,
                          "The model places the node on device '" + placement + "'.");
      reasons_[device][node] = std::make_shared<const NodeReasons>(1, NodeReason::Make(reason, {}));
    }
  }
}

AutoPlanner::Answers AutoPlanner::AskDevice(const ForwardedBackendId& device,
                                            std::span<const split::Digest> questions) {
  if (auto known = device.claim_memory().FindAll(questions)) return *std::move(known);
  ++asked_count_;
  auto explanation = device.Explain(BytesOf(whole_->claim_model()));
  std::map<uint32_t, std::vector<Status>> by_node;
  Status unasked(Code::kBackendUnavailable, "It says nothing of the node.");
  if (!explanation.ok()) {
    // A device that is gone claims nothing; the others still may.
    unasked = std::move(explanation).status();
  } else {
    if (explanation->nodes.empty() && !explanation->verdict.ok()) unasked = explanation->verdict;
    for (const abi::NodeVerdict& verdict : explanation->nodes) {
      std::vector<Status>& reasons = by_node[verdict.node_index];
      if (verdict.code != Code::kOk) reasons.emplace_back(verdict.code, verdict.sentence);
    }
  }
  const auto nothing =
      std::make_shared<const NodeReasons>(1, NodeReason{unasked.code(), unasked.Text()});
  Answers answers;
  for (size_t node = 0; node < whole_->nodes().size(); ++node) {
    const auto told = by_node.find(static_cast<uint32_t>(whole_->nodes()[node].model_index));
    if (told == by_node.end()) {
      answers.push_back(nothing);
      continue;
    }
    NodeReasons reasons;
    if (!told->second.empty()) {
      const std::vector<std::string> names = whole_->NamesOf(static_cast<int32_t>(node));
      for (const Status& reason : told->second) {
        reasons.push_back(NodeReason::Make(reason, names));
      }
    }
    answers.push_back(std::make_shared<const NodeReasons>(std::move(reasons)));
    device.claim_memory().Add(questions[node], answers.back());
  }
  return answers;
}

AutoPlanner::Answers AutoPlanner::AskPlainDevice(const ForwardedBackendId& device,
                                                 std::span<const split::Digest> questions) {
  Answers answers;
  bool was_asked = false;
  for (size_t node = 0; node < whole_->nodes().size(); ++node) {
    if (auto known = device.claim_memory().Find(questions[node])) {
      answers.push_back(std::move(known));
      continue;
    }
    const auto position = static_cast<int32_t>(node);
    const split::IslandModel island = whole_->Extract({&position, 1});
    const std::vector<std::string> names = whole_->NamesOf(position);
    NodeReasons reasons;
    for (const int32_t output : island.outputs) {
      // It has no way to tell what shape something has.
      if (whole_->values()[output].has_fixed_shape()) continue;
      reasons.push_back(NodeReason::Make(
          Status(Code::kUnsupportedShape,
                 "The shape of '" + whole_->values()[output].name +
                     "' is known only after a run, and a plain ONNXIFI 1.0 plugin cannot tell it."),
          names));
    }
    if (reasons.empty() && !island.outputs.empty()) {
      was_asked = true;
      const Status answer = device.CheckCompatibility(BytesOf(island.bytes));
      if (!answer.ok() && answer.code() != Code::kFallback) {
        reasons.push_back(NodeReason::Make(answer, names));
      }
    }
    answers.push_back(std::make_shared<const NodeReasons>(std::move(reasons)));
    device.claim_memory().Add(questions[node], answers.back());
  }
  asked_count_ += was_asked ? 1 : 0;
  return answers;
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
      const Status reason = ReasonsOf(static_cast<partition::DeviceIndex>(device), node).front();
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

std::vector<Status> AutoPlanner::ReasonsOf(partition::DeviceIndex device,
                                           partition::NodeIndex node) const {
  std::vector<Status> reasons;
  const std::vector<std::string> names = whole_->NamesOf(node);
  for (const NodeReason& reason : *reasons_[device][node])
    reasons.push_back(reason.ToStatus(names));
  return reasons;
}

void AutoPlanner::Withdraw(partition::DeviceIndex device,
                           std::span<const partition::NodeIndex> nodes, const Status& reason) {
  for (const partition::NodeIndex node : nodes) {
    claims_[device][node] = false;
    reasons_[device][node] = std::make_shared<const NodeReasons>(1, NodeReason::Make(reason, {}));
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
  for (const ForwardedBackendId* device : devices_) {
    if (!device->explains_nodes()) continue;
    const auto explanation = device->Explain(BytesOf(whole_->claim_model()));
    if (!explanation.ok()) continue;
    for (const abi::NodeVerdict& verdict : explanation->nodes) {
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
