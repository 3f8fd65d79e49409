// SPDX-License-Identifier: Apache-2.0
//
// AutoPlanner: one question per device for all nodes; a plain ONNXIFI 1.0 plugin, which answers for
// whole models only, is asked about models of one node.

#include "onnxifi/planner/auto_planner.h"

#include <time.h>

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "onnxifi/cost/measured_nodes.h"
#include "onnxifi/partition/plan_choice.h"
#include "onnxifi/partition/units.h"
#include "onnxifi/planner/device_keys.h"
#include "onnxifi/planner/model_explanation.h"
#include "onnxifi/planner/node_questions.h"
#include "onnxifi/planner/twins.h"

namespace onnxifi::planner {

using base::Code;
using base::Status;
using plugins::ForwardedBackendId;
using plugins::NodeReason;
using plugins::NodeReasons;

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

bool ClaimsAll(const partition::Problem& problem, partition::DeviceIndex device,
               std::span<const partition::NodeIndex> nodes) {
  return std::ranges::all_of(
      nodes, [&](partition::NodeIndex node) { return problem.Claims(device, node); });
}

bool ClaimsAll(const partition::Problem& problem, partition::DeviceIndex device) {
  for (partition::NodeIndex node = 0; node < problem.node_count; ++node) {
    if (!problem.Claims(device, node)) return false;
  }
  return true;
}

// Whether a device claims all of the nodes.
bool IsClaimed(const partition::Problem& problem, std::span<const partition::NodeIndex> nodes) {
  for (partition::DeviceIndex device = 0; device < problem.device_count(); ++device) {
    if (ClaimsAll(problem, device, nodes)) return true;
  }
  return false;
}

// Leaves none of the nodes to the device.
void Refuse(partition::Problem& problem, partition::DeviceIndex device,
            std::span<const partition::NodeIndex> nodes) {
  for (const partition::NodeIndex node : nodes) {
    problem
        .node_ns[static_cast<size_t>(node) * problem.devices.size() + static_cast<size_t>(device)] =
        partition::kRefused;
  }
}

bool IsSamePlan(const partition::Plan& a, const partition::Plan& b) {
  return a.island_of == b.island_of &&
         std::ranges::equal(a.islands, b.islands, {}, &partition::Island::device,
                            &partition::Island::device);
}

}  // namespace

base::Result<std::unique_ptr<AutoPlanner>> AutoPlanner::Ask(
    std::span<const ForwardedBackendId* const> devices, std::span<const std::byte> model,
    std::vector<split::GivenWeight> weights, const PlacementRequest& placement) {
  const std::chrono::nanoseconds start = ProcessorTime();
  std::unique_ptr<AutoPlanner> planner(new AutoPlanner(devices));
  planner->twins_ = FindTwins(devices);
  planner->weights_ = std::move(weights);
  ONNXIFI_ASSIGN_OR_RETURN(planner->whole_, split::WholeModel::Read(model, planner->weights_));
  const split::WholeModel& whole = *planner->whole_;
  for (const int32_t input : whole.inputs()) {
    const split::FlowingValue& value = whole.values()[input];
    if (value.is_carried()) continue;
    return Status(Code::kUnsupportedShape,
                  "Input '" + value.name + "' is nothing that can be handed to several devices.");
  }
  ONNXIFI_ASSIGN_OR_RETURN(const std::vector<std::string> places, planner->FindPlaces(placement));
  const std::set<std::string> named(places.begin(), places.end());
  const std::chrono::nanoseconds has_read = ProcessorTime();
  std::vector<split::Digest>& alone = planner->signatures_;
  std::vector<split::Digest> in_model;
  for (const split::NodeSignature& signature : whole.Signatures()) {
    alone.push_back(signature.alone);
    in_model.push_back(signature.in_model);
  }
  const auto nothing = std::make_shared<const NodeReasons>(
      1, NodeReason{Code::kUnsupportedOperator, "The caller wants none of the graph there."});
  for (const ForwardedBackendId* device : devices) {
    const bool is_wanted =
        placement.kind != PlacementRequest::Kind::kStrict ||
        std::ranges::find(placement.devices, device->key()) != placement.devices.end() ||
        named.contains(device->key());
    Answers answers = !is_wanted                 ? Answers(whole.nodes().size(), nothing)
                      : device->explains_nodes() ? planner->AskDevice(*device, in_model)
                                                 : planner->AskPlainDevice(*device, alone);
    std::vector<bool>& claims = planner->claims_.emplace_back();
    std::vector<bool>& is_emulated = planner->is_emulated_.emplace_back();
    for (const auto& reasons : answers) {
      claims.push_back(IsClaimed(*reasons));
      is_emulated.push_back(IsEmulated(*reasons));
    }
    planner->reasons_.push_back(std::move(answers));
  }
  planner->KeepPlacement(placement, places);
  if (placement.kind == PlacementRequest::Kind::kPlan) {
    ONNXIFI_RETURN_IF_ERROR(planner->KeepPlan(placement));
  }
  planner->times_ = {has_read - start, ProcessorTime() - has_read};
  return planner;
}

std::map<uint32_t, partition::NodeIndex> AutoPlanner::NodesByPosition() const {
  std::map<uint32_t, partition::NodeIndex> nodes;
  for (size_t node = 0; node < whole_->nodes().size(); ++node) {
    nodes.emplace(static_cast<uint32_t>(whole_->nodes()[node].model_index),
                  static_cast<partition::NodeIndex>(node));
  }
  return nodes;
}

base::Result<partition::DeviceIndex> AutoPlanner::FindDevice(const std::string& key) const {
  for (size_t device = 0; device < devices_.size(); ++device) {
    if (devices_[device]->key() == key) return static_cast<partition::DeviceIndex>(device);
  }
  return NoSuchDevice(key, devices_);
}

base::Result<std::vector<std::string>> AutoPlanner::FindPlaces(
    const PlacementRequest& placement) const {
  using Kind = PlacementRequest::Kind;
  for (const std::string& key : placement.devices) {
    ONNXIFI_RETURN_IF_ERROR(FindDevice(key).status());
  }
  std::vector<std::string> places;
  for (const split::ModelNode& node : whole_->nodes()) places.push_back(node.placement);
  // Islands are more than places.
  if (placement.kind == Kind::kPlan) return places;
  const std::map<uint32_t, partition::NodeIndex> nodes = NodesByPosition();
  for (const PlacementRequest::Group& group : placement.groups) {
    for (const uint32_t position : group.nodes) {
      const auto found = nodes.find(position);
      if (found == nodes.end()) {
        return Status(Code::kInvalidProperty,
                      "Node " + std::to_string(position) + " is placed on device '" + group.device +
                          "', and is none that a device runs: the model has no such node, or it is"
                          " a constant or read by nobody.");
      }
      const std::string node = DescribeNode(found->second);
      if (auto device = FindDevice(group.device); !device.ok()) {
        return std::move(device).status().Context("while placing " + node);
      }
      std::string& place = places[static_cast<size_t>(found->second)];
      if (!place.empty() && place != group.device) {
        return Status(Code::kInvalidProperty, "The caller places " + node + " on device '" +
                                                  group.device + "', and it is placed on device '" +
                                                  place + "' already.");
      }
      place = group.device;
    }
  }
  return places;
}

void AutoPlanner::Forbid(size_t device, size_t node, std::string reason) {
  claims_[device][node] = false;
  reasons_[device][node] = std::make_shared<const NodeReasons>(
      1, NodeReason{Code::kUnsupportedOperator, std::move(reason)});
}

void AutoPlanner::KeepPlacement(const PlacementRequest& placement,
                                const std::vector<std::string>& places) {
  using Kind = PlacementRequest::Kind;
  const auto is_listed = [&](const ForwardedBackendId& device) {
    return std::ranges::find(placement.devices, device.key()) != placement.devices.end();
  };
  goes_by_order_ = placement.kind == Kind::kAuto;
  if (std::ranges::any_of(places, [](const std::string& place) { return !place.empty(); })) {
    for (const std::string& place : places) is_placed_.push_back(!place.empty());
    free_claims_ = claims_;
    for (size_t device = 0; device < devices_.size(); ++device) {
      if (placement.kind != Kind::kStrict || is_listed(*devices_[device])) continue;
      free_claims_[device].assign(places.size(), false);
    }
  }
  for (size_t node = 0; node < places.size(); ++node) {
    const std::string& place = places[node];
    const std::string who = whole_->nodes()[node].placement.empty() ? "The caller" : "The model";
    for (size_t device = 0; device < devices_.size(); ++device) {
      if (!place.empty() && devices_[device]->key() != place) {
        Forbid(device, node, who + " places the node on device '" + place + "'.");
      }
      if (place.empty() && placement.kind == Kind::kStrict && !is_listed(*devices_[device])) {
        Forbid(device, node, "The caller wants no node there that is not placed.");
      }
    }
  }
  if (placement.kind != Kind::kPrefer) return;
  for (const std::string& key : placement.devices) preferred_.push_back(*FindDevice(key));
}

Status AutoPlanner::KeepPlan(const PlacementRequest& placement) {
  const std::map<uint32_t, partition::NodeIndex> nodes = NodesByPosition();
  std::vector<partition::DeviceIndex> devices;
  std::vector<int32_t> island_of(whole_->nodes().size(), -1);
  for (size_t index = 0; index < placement.groups.size(); ++index) {
    const PlacementRequest::Group& group = placement.groups[index];
    const std::string island = "island " + std::to_string(index) + " of the plan";
    std::vector<uint32_t> members = group.nodes;
    if (members.empty()) {
      for (const auto& [position, node] : nodes) members.push_back(position);
    }
    for (const uint32_t position : members) {
      const auto found = nodes.find(position);
      if (found == nodes.end()) {
        return {Code::kInvalidProperty, "Node " + std::to_string(position) + " is in " + island +
                                            " on device '" + group.device +
                                            "', and no plan of the model has such a node."};
      }
      int32_t& place = island_of[static_cast<size_t>(found->second)];
      if (place >= 0) {
        return {Code::kInvalidProperty, "The plan has " + DescribeNode(found->second) +
                                            " twice, in island " + std::to_string(place) + " and " +
                                            island + " on device '" + group.device + "'."};
      }
      place = static_cast<int32_t>(index);
    }
    auto device = FindDevice(group.device);
    if (!device.ok()) {
      return std::move(device).status().Context(
          "in " + island +
          (members.empty() ? "" : ", with " + DescribeNode(nodes.at(members.front()))));
    }
    devices.push_back(*device);
  }
  for (size_t node = 0; node < island_of.size(); ++node) {
    if (island_of[node] >= 0) continue;
    return {Code::kInvalidProperty, "The plan gives " +
                                        DescribeNode(static_cast<partition::NodeIndex>(node)) +
                                        " to no device."};
  }
  if (island_of.empty()) {
    return {Code::kUnsupportedOperator, "The model has no nodes to hand out."};
  }
  partition::PlanOrFault made = partition::MakeGivenPlan(MakeProblem(claims_), devices, island_of);
  if (made.fault) return FaultOf(*made.fault, placement, island_of);
  pinned_ = std::move(made.plan);
  has_given_plan_ = true;
  return base::Ok();
}

Status AutoPlanner::FaultOf(const partition::PlanFault& fault, const PlacementRequest& placement,
                            const std::vector<int32_t>& island_of) const {
  using Kind = partition::PlanFault::Kind;
  const auto describe = [&](partition::NodeIndex node) {
    const auto island = static_cast<size_t>(island_of[static_cast<size_t>(node)]);
    return DescribeNode(node) + " in island " + std::to_string(island) + " on device '" +
           placement.groups[island].device + "'";
  };
  const std::string& value = whole_->values()[static_cast<size_t>(fault.value)].name;
  switch (fault.kind) {
    case Kind::kTorn:
      return {Code::kInvalidProperty, "The plan has " + describe(fault.node) + " and " +
                                          describe(fault.other) + ", and nothing carries '" +
                                          value + "' from one to the other."};
    case Kind::kCircle:
      return {Code::kInvalidProperty, "The plan goes in a circle: " + describe(fault.other) +
                                          " reads '" + value + "' of " + describe(fault.node) +
                                          ", whose island needs the other's in turn."};
    case Kind::kRefused:
      break;
  }
  const auto island = static_cast<size_t>(island_of[static_cast<size_t>(fault.node)]);
  const auto device = *FindDevice(placement.groups[island].device);
  const std::vector<Status> reasons = ReasonsOf(device, fault.node);
  Status refusal(reasons.front().code(),
                 "The plan has " + describe(fault.node) + ", which refuses it.");
  for (const Status& reason : reasons) refusal.Context(reason.Text());
  return refusal;
}

AutoPlanner::Answers AutoPlanner::AskDevice(const ForwardedBackendId& device,
                                            std::span<const split::Digest> questions) {
  NodeQuestions asked(*whole_, signatures_, {questions.begin(), questions.end()});
  Answers answers = asked.Ask(device);
  asked_count_ += asked.asked_count();
  return answers;
}

AutoPlanner::Answers AutoPlanner::AskPlainDevice(const ForwardedBackendId& device,
                                                 std::span<const split::Digest> questions) {
  NodeQuestions asked(*whole_, {questions.begin(), questions.end()}, /*in_model=*/{});
  Answers answers = asked.Ask(device);
  asked_count_ += asked.asked_count();
  return answers;
}

partition::Problem AutoPlanner::MakeProblem(const split::Claims& claims) const {
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
  partition::Problem problem = split::MakeProblem(*whole_, rates, claims);
  if (!costs_.empty()) ReplaceMeasured(problem);
  return problem;
}

partition::Problem AutoPlanner::MakeRankedProblem(const split::Claims& claims) const {
  partition::Problem problem = MakeProblem(claims);
  if (!preferred_.empty()) ApplyPreference(problem);
  DropEmulation(problem);
  return problem;
}

void AutoPlanner::ApplyPreference(partition::Problem& problem) const {
  // What runs together anyhow goes together, or some of it would be left without a device.
  for (const std::vector<partition::NodeIndex>& unit : partition::MakeUnits(problem).nodes) {
    const auto first = std::ranges::find_if(preferred_, [&](partition::DeviceIndex device) {
      return ClaimsAll(problem, device, unit);
    });
    if (first == preferred_.end()) continue;
    for (partition::DeviceIndex device = 0; device < problem.device_count(); ++device) {
      if (device != *first) Refuse(problem, device, unit);
    }
  }
}

void AutoPlanner::DropEmulation(partition::Problem& problem) const {
  const bool has_any = std::ranges::any_of(is_emulated_, [](const std::vector<bool>& nodes) {
    return std::ranges::find(nodes, true) != nodes.end();
  });
  if (!has_any) return;
  for (const std::vector<partition::NodeIndex>& unit : partition::MakeUnits(problem).nodes) {
    std::vector<partition::DeviceIndex> emulating;
    bool has_kernels = false;
    for (partition::DeviceIndex device = 0; device < problem.device_count(); ++device) {
      if (!ClaimsAll(problem, device, unit)) continue;
      const bool emulates = std::ranges::any_of(
          unit, [&](partition::NodeIndex node) { return Emulates(device, node); });
      if (emulates) emulating.push_back(device);
      has_kernels = has_kernels || !emulates;
    }
    if (!has_kernels) continue;
    for (const partition::DeviceIndex device : emulating) Refuse(problem, device, unit);
  }
}

void AutoPlanner::ReplaceMeasured(partition::Problem& problem) const {
  std::vector<const cost::DeviceTable*> tables;
  for (const KnownCosts& costs : costs_) tables.push_back(costs.table.get());
  std::vector<std::string_view> operator_types;
  for (const split::ModelNode& node : whole_->nodes()) operator_types.push_back(node.operator_type);
  cost::ReplaceMeasured(tables, signatures_, operator_types, problem);
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

bool AutoPlanner::HasMeasuredCosts() const {
  return std::ranges::any_of(costs_, [](const KnownCosts& known) { return !known.table->empty(); });
}

base::Result<std::vector<partition::Plan>> AutoPlanner::Candidates() const {
  if (is_placed_.empty()) return FreeCandidates(MakeRankedProblem(claims_));
  ONNXIFI_ASSIGN_OR_RETURN(partition::Plan plan, MakePlacedPlan());
  std::vector<partition::Plan> plans;
  plans.push_back(std::move(plan));
  return plans;
}

bool AutoPlanner::IsPlaced(std::span<const partition::NodeIndex> unit) const {
  return std::ranges::any_of(
      unit, [&](partition::NodeIndex node) { return is_placed_[static_cast<size_t>(node)]; });
}

base::Result<std::vector<partition::DeviceIndex>> AutoPlanner::FindFreeDevices(
    const std::vector<std::vector<partition::NodeIndex>>& units) const {
  // What no device has but the one where it is placed is there, too.
  split::Claims claims = free_claims_;
  const partition::Problem as_answered = MakeProblem(free_claims_);
  for (const std::vector<partition::NodeIndex>& unit : units) {
    if (!IsPlaced(unit) || IsClaimed(as_answered, unit)) continue;
    for (const partition::NodeIndex node : unit) {
      for (size_t device = 0; device < devices_.size(); ++device) {
        claims[device][static_cast<size_t>(node)] = claims_[device][static_cast<size_t>(node)];
      }
    }
  }
  const partition::Problem problem = MakeRankedProblem(claims);
  const auto node_count = static_cast<size_t>(problem.node_count);
  if (goes_by_order_ && !HasMeasuredCosts()) {
    for (partition::DeviceIndex device = 0; device < problem.device_count(); ++device) {
      if (!ClaimsAll(problem, device)) continue;
      return std::vector<partition::DeviceIndex>(node_count, device);
    }
  }
  ONNXIFI_ASSIGN_OR_RETURN(std::vector<partition::Plan> plans, FreeCandidates(problem));
  const partition::Plan plan = Choose(std::move(plans));
  std::vector<partition::DeviceIndex> devices;
  for (size_t node = 0; node < node_count; ++node) {
    devices.push_back(plan.islands[static_cast<size_t>(plan.island_of[node])].device);
  }
  return devices;
}

base::Result<partition::Plan> AutoPlanner::MakePlacedPlan() const {
  partition::Problem problem = MakeRankedProblem(claims_);
  const std::vector<std::vector<partition::NodeIndex>> units = partition::MakeUnits(problem).nodes;
  std::vector<std::vector<partition::NodeIndex>> gaps;
  for (const std::vector<partition::NodeIndex>& unit : units) {
    if (!IsClaimed(problem, unit)) gaps.push_back(unit);
  }
  if (!gaps.empty()) return RefusalOf(gaps);
  // Costs would draw neighbours to the device of a placed node, to save the copies.
  ONNXIFI_ASSIGN_OR_RETURN(const std::vector<partition::DeviceIndex> devices,
                           FindFreeDevices(units));
  for (const std::vector<partition::NodeIndex>& unit : units) {
    if (IsPlaced(unit)) continue;
    for (partition::DeviceIndex device = 0; device < problem.device_count(); ++device) {
      if (device != devices[static_cast<size_t>(unit.front())]) Refuse(problem, device, unit);
    }
  }
  partition::PlanOrGaps made = partition::MakePlan(problem);
  if (!made.gaps.empty()) return RefusalOf(made.gaps);
  return std::move(made.plan);
}

base::Result<std::vector<partition::Plan>> AutoPlanner::FreeCandidates(
    const partition::Problem& problem) const {
  partition::PlanOrGaps made = partition::MakePlan(problem);
  if (!made.gaps.empty()) return RefusalOf(made.gaps);
  if (made.plan.islands.empty()) {
    return Status(Code::kUnsupportedOperator, "The model has no nodes to hand out.");
  }
  // Between twins the problem tells of no gain: only runs do.
  std::optional<partition::Plan> between_twins;
  if (partition::CutsBetweenTwins(made.plan, twins_)) {
    partition::Plan without = partition::MakePlanWithoutTwins(problem, twins_);
    if (!IsSamePlan(without, made.plan)) {
      between_twins = std::exchange(made.plan, std::move(without));
    }
  }
  std::vector<partition::Plan> candidates;
  const auto node_count = static_cast<size_t>(problem.node_count);
  for (partition::DeviceIndex device = 0; device < problem.device_count(); ++device) {
    if (!ClaimsAll(problem, device)) continue;
    // Already among them.
    if (made.plan.islands.size() == 1 && made.plan.islands[0].device == device) continue;
    candidates.push_back(
        partition::DescribePlan(problem, std::vector<partition::DeviceIndex>(node_count, device),
                                std::vector<int32_t>(node_count, 0)));
  }
  if (between_twins) candidates.push_back(*std::move(between_twins));
  if (!preferred_.empty()) candidates.clear();
  candidates.insert(candidates.begin(), std::move(made.plan));
  return candidates;
}

base::Result<partition::Plan> AutoPlanner::Plan() const {
  if (pinned_) return *pinned_;
  ONNXIFI_ASSIGN_OR_RETURN(std::vector<partition::Plan> plans, Candidates());
  return Choose(std::move(plans));
}

partition::Plan AutoPlanner::Choose(std::vector<partition::Plan> plans) const {
  std::vector<partition::Candidate> candidates;
  for (partition::Plan& plan : plans) {
    const std::optional<int64_t> measured_ns = MeasuredNs(plan);
    // What the first has of such cuts nobody else runs.
    const bool needs_gain = !candidates.empty() && partition::CutsBetweenTwins(plan, twins_);
    candidates.push_back({std::move(plan), measured_ns, needs_gain});
  }
  return partition::ChoosePlan(std::move(candidates));
}

std::string AutoPlanner::DescribeNode(partition::NodeIndex node) const {
  const split::ModelNode& told = whole_->nodes()[static_cast<size_t>(node)];
  return "node " + std::to_string(told.model_index) +
         (told.name.empty() ? "" : " '" + told.name + "'") + " (" + told.operator_type + ")";
}

Status AutoPlanner::RefusalOf(const std::vector<std::vector<partition::NodeIndex>>& gaps) const {
  Status refusal;
  for (const std::vector<partition::NodeIndex>& gap : gaps) {
    // Reasons against a node, each with the devices that give it, in their order.
    std::vector<std::pair<std::string, std::vector<std::string>>> told;
    for (size_t device = 0; device < devices_.size(); ++device) {
      for (const partition::NodeIndex node : gap) {
        if (claims_[device][node]) continue;
        const auto position = static_cast<partition::DeviceIndex>(device);
        const std::vector<Status> reasons = ReasonsOf(position, node);
        if (refusal.ok()) {
          refusal = Status(reasons.front().code(),
                           gap.size() == 1 ? "No device runs " + DescribeNode(node) + "."
                                           : "No device runs the " + std::to_string(gap.size()) +
                                                 " nodes that have to stay together around " +
                                                 DescribeNode(gap[0]) + ".");
        }
        for (const Status& reason : reasons) {
          std::string text = DescribeNode(node) + ": " + reason.Text();
          const auto same = std::ranges::find(
              told, text, [](const auto& line) -> const auto& { return line.first; });
          std::vector<std::string>& keys =
              same != told.end()
                  ? same->second
                  : told.emplace_back(std::move(text), std::vector<std::string>()).second;
          keys.push_back(devices_[device]->key());
        }
        break;
      }
    }
    for (const auto& [text, keys] : told) refusal.Context(ListKeys(keys) + ", " + text);
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
    if (!free_claims_.empty()) free_claims_[device][node] = false;
    reasons_[device][node] = std::make_shared<const NodeReasons>(1, NodeReason::Make(reason, {}));
  }
}

bool AutoPlanner::Emulates(const partition::Plan& plan) const {
  return std::ranges::any_of(plan.islands, [&](const partition::Island& island) {
    return std::ranges::any_of(
        island.nodes, [&](partition::NodeIndex node) { return Emulates(island.device, node); });
  });
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
  return planner::AcceptingVerdicts(*whole_);
}

}  // namespace onnxifi::planner
