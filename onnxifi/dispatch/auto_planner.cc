// SPDX-License-Identifier: Apache-2.0
//
// AutoPlanner: one question per device for all nodes; a plain ONNXIFI 1.0 plugin, which answers for
// whole models only, is asked about models of one node.

#include "onnxifi/dispatch/auto_planner.h"

#include <time.h>

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

namespace onnxifi::dispatch {

using base::Code;
using base::Status;

namespace {

// What is assumed of a device of which nothing is known; the order of devices decides between those
// that claim the same.
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
  std::vector<split::Digest>& alone = planner->signatures_;
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

partition::Problem AutoPlanner::MakeProblem() const {
  std::vector<split::DeviceRates> rates;
  for (size_t device = 0; device < devices_.size(); ++device) {
    split::DeviceRates& told = rates.emplace_back(kAssumedRates);
    if (const auto bandwidth = devices_[device]->memory_bandwidth(); bandwidth > 0) {
      constexpr uint64_t kPicosecondsPerSecond = 1'000'000'000'000;
      told.picoseconds_per_byte =
          static_cast<int64_t>(std::max<uint64_t>(kPicosecondsPerSecond / bandwidth, 1));
    }
    if (!costs_.empty() && costs_[device].table->edges) told.cost = *costs_[device].table->edges;
  }
  partition::Problem problem = split::MakeProblem(*whole_, rates, claims_);
  if (!costs_.empty()) ReplaceMeasured(problem);
  return problem;
}

void AutoPlanner::ReplaceMeasured(partition::Problem& problem) const {
  // How many times as long as assumed.
  struct Ratio {
    int64_t measured_ns = 0;
    int64_t assumed_ns = 0;

    void Add(int64_t measured, int64_t assumed) {
      measured_ns += measured;
      assumed_ns += assumed;
    }
    int64_t Of(int64_t assumed) const {
      return static_cast<int64_t>(static_cast<double>(assumed) * static_cast<double>(measured_ns) /
                                  static_cast<double>(assumed_ns));
    }
  };
  const size_t device_count = devices_.size();
  Ratio of_all;
  std::vector<Ratio> of_device(device_count);
  std::vector<std::map<std::string_view, Ratio>> of_operator(device_count);
  std::vector<bool> is_measured(problem.node_ns.size(), false);
  for (size_t node = 0; node < signatures_.size(); ++node) {
    for (size_t device = 0; device < device_count; ++device) {
      int64_t& time = problem.node_ns[node * device_count + device];
      const auto& measured = costs_[device].table->node_ns;
      const auto found = measured.find(signatures_[node]);
      if (time == partition::kRefused || found == measured.end()) continue;
      of_all.Add(found->second, time);
      of_device[device].Add(found->second, time);
      of_operator[device][whole_->nodes()[node].operator_type].Add(found->second, time);
      time = found->second;
      is_measured[node * device_count + device] = true;
    }
  }
  // What was not measured is as much slower than assumed as its like.
  for (size_t node = 0; node < signatures_.size(); ++node) {
    for (size_t device = 0; device < device_count; ++device) {
      int64_t& time = problem.node_ns[node * device_count + device];
      if (time == partition::kRefused || is_measured[node * device_count + device]) continue;
      const auto like = of_operator[device].find(whole_->nodes()[node].operator_type);
      const Ratio& ratio = like != of_operator[device].end()  ? like->second
                           : of_device[device].assumed_ns > 0 ? of_device[device]
                                                              : of_all;
      if (ratio.assumed_ns > 0) time = ratio.Of(time);
    }
  }
}

split::Digest AutoPlanner::DigestOf(const partition::Plan& plan) const {
  split::Digester digester;
  for (const split::Digest& signature : signatures_) digester.Add(signature);
  for (const split::FlowingValue& value : whole_->values()) {
    digester.Add(static_cast<uint64_t>(value.producer)).Add(uint64_t{value.is_output});
    for (const int32_t reader : value.readers) digester.Add(static_cast<uint64_t>(reader));
  }
  for (const partition::Island& island : plan.islands) {
    digester.Add(costs_[static_cast<size_t>(island.device)].identity);
    for (const partition::NodeIndex node : island.nodes) {
      digester.Add(static_cast<uint64_t>(node));
    }
  }
  return digester.Get();
}

std::optional<int64_t> AutoPlanner::MeasuredNs(const partition::Plan& plan) const {
  if (costs_.empty()) return std::nullopt;
  const auto first = static_cast<size_t>(plan.islands.front().device);
  const std::map<split::Digest, int64_t>& known = costs_[first].table->run_ns;
  if (known.empty()) return std::nullopt;
  const auto found = known.find(DigestOf(plan));
  if (found == known.end()) return std::nullopt;
  return found->second;
}

base::Result<std::vector<partition::Plan>> AutoPlanner::Candidates() const {
  const partition::Problem problem = MakeProblem();
  partition::PlanOrGaps made = partition::MakePlan(problem);
  if (!made.gaps.empty()) return RefusalOf(made.gaps.front());
  if (made.plan.islands.empty()) {
    return Status(Code::kUnsupportedOperator, "The model has no nodes to hand out.");
  }
  std::vector<partition::Plan> candidates;
  const auto node_count = static_cast<size_t>(problem.node_count);
  for (partition::DeviceIndex device = 0; device < problem.device_count(); ++device) {
    const std::vector<bool>& claims = claims_[static_cast<size_t>(device)];
    if (std::find(claims.begin(), claims.end(), false) != claims.end()) continue;
    // Already among them.
    if (made.plan.islands.size() == 1 && made.plan.islands[0].device == device) continue;
    candidates.push_back(
        partition::DescribePlan(problem, std::vector<partition::DeviceIndex>(node_count, device),
                                std::vector<int32_t>(node_count, 0)));
  }
  candidates.insert(candidates.begin(), std::move(made.plan));
  return candidates;
}

base::Result<partition::Plan> AutoPlanner::Plan() const {
  if (pinned_) return *pinned_;
  ONNXIFI_ASSIGN_OR_RETURN(std::vector<partition::Plan> candidates, Candidates());
  // Parts that run together are faster than one by one, so that a plan which never ran is compared
  // with those that did by how much these were off.
  std::optional<double> least_ns;
  double correction = 1;
  size_t best = 0;
  for (size_t index = 0; index < candidates.size(); ++index) {
    const std::optional<int64_t> measured = MeasuredNs(candidates[index]);
    if (!measured || (least_ns && static_cast<double>(*measured) >= *least_ns)) continue;
    least_ns = static_cast<double>(*measured);
    best = index;
    correction =
        *least_ns / static_cast<double>(std::max<int64_t>(candidates[index].duration_ns, 1));
  }
  if (!least_ns) return std::move(candidates.front());
  if (!MeasuredNs(candidates.front()) &&
      correction * static_cast<double>(candidates.front().duration_ns) < *least_ns) {
    best = 0;
  }
  partition::Plan& plan = candidates[best];
  const auto correct = [&](int64_t& time) {
    time = static_cast<int64_t>(static_cast<double>(time) * correction);
  };
  correct(plan.duration_ns);
  for (partition::Island& island : plan.islands) {
    correct(island.start_ns);
    correct(island.duration_ns);
  }
  return std::move(plan);
}

Status AutoPlanner::RefusalOf(const std::vector<partition::NodeIndex>& gap) const {
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
  pinned_.reset();
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
