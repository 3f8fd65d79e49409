// SPDX-License-Identifier: Apache-2.0
//
// DeviceChoice: asks each device in turn; explains at length only where all refuse.

#include "onnxifi/planner/device_choice.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <utility>

#include "onnxifi/planner/device_keys.h"
#include "onnxifi/split/placement.h"

namespace onnxifi::planner {

using base::Code;
using base::Status;
using plugins::ForwardedBackendId;

namespace {

bool Runs(Code code) { return code == Code::kOk || code == Code::kFallback; }

// What one device says of a model that it does not run.
struct Refusal {
  bool is_explained = false;
  Status verdict;
  size_t claimed_count = 0;
  // 0 where it does not know them, because it cannot read the model.
  size_t node_count = 0;
  // A line for each node that it refuses.
  std::vector<std::string> reasons;

  // What is told of the device, apart from its name.
  friend bool operator==(const Refusal& left, const Refusal& right) {
    return left.is_explained == right.is_explained && left.verdict.code() == right.verdict.code() &&
           left.verdict.Text() == right.verdict.Text() &&
           left.claimed_count == right.claimed_count && left.node_count == right.node_count &&
           left.reasons == right.reasons;
  }
};

Refusal ExplainRefusal(const ForwardedBackendId& device, std::span<const std::byte> model) {
  Refusal refusal;
  const auto explanation = device.Explain(model);
  if (!explanation.ok()) {
    refusal.verdict = explanation.status();
    return refusal;
  }
  std::set<uint32_t> refused;
  std::set<uint32_t> nodes;
  for (const abi::NodeVerdict& node : explanation->nodes) {
    nodes.insert(node.node_index);
    if (!Runs(node.code)) refused.insert(node.node_index);
  }
  refusal.is_explained = true;
  refusal.verdict = explanation->verdict;
  refusal.claimed_count = nodes.size() - refused.size();
  refusal.node_count = nodes.size();
  for (const abi::NodeVerdict& node : explanation->nodes) {
    if (Runs(node.code)) continue;
    refusal.reasons.push_back("  node " + std::to_string(node.node_index) + " (" +
                              node.operator_type + "): " + node.sentence);
  }
  return refusal;
}

// Devices that give the same answer, in the order in which they were asked.
struct SameAnswer {
  std::vector<std::string> keys;
  Refusal refusal;
};

void AddReasons(std::vector<SameAnswer> answers, Status& status) {
  const bool is_said = answers.size() == 1 && answers[0].refusal.node_count == 0;
  if (is_said) {
    // The status has all of it but who says so.
    status = Status(status.code(),
                    "No device runs the whole model. " + answers[0].refusal.verdict.Text());
    status.Context("the answer of " + ListKeys(answers[0].keys));
    return;
  }
  for (SameAnswer& answer : answers) {
    std::string line = ListKeys(answer.keys);
    if (answer.refusal.node_count > 0) {
      line += answer.keys.size() == 1 ? " claims " : " claim ";
      line += std::to_string(answer.refusal.claimed_count) + " of " +
              std::to_string(answer.refusal.node_count) + " nodes";
    }
    status.Context(line + ": " + answer.refusal.verdict.Text());
    for (std::string& reason : answer.refusal.reasons) status.Context(std::move(reason));
  }
}

// Fills in why no device runs the model, and which comes closest.
void ExplainRefusals(DeviceList devices, std::span<const std::byte> model, DeviceChoice& choice) {
  Status answer;
  size_t most_claimed = 0;
  std::vector<SameAnswer> answers;
  for (const ForwardedBackendId* device : devices) {
    Refusal refusal = ExplainRefusal(*device, model);
    const bool is_closest =
        choice.closest == nullptr ||
        (refusal.is_explained && (answer.ok() || refusal.claimed_count > most_claimed ||
                                  // A device that is not there does not speak for those that are.
                                  answer.code() == Code::kBackendUnavailable));
    if (is_closest) {
      choice.closest = device;
      most_claimed = refusal.claimed_count;
    }
    if (is_closest || answer.ok()) answer = refusal.verdict;
    const auto same = std::ranges::find(answers, refusal, &SameAnswer::refusal);
    if (same == answers.end()) {
      answers.push_back({{device->key()}, std::move(refusal)});
    } else {
      same->keys.push_back(device->key());
    }
  }
  if (answer.ok()) {
    choice.refusal =
        Status(Code::kInternalError,
               "Every device refuses the model, yet one of them explains that it runs.");
    return;
  }
  choice.refusal =
      Status(answer.code(), "No device runs the whole model. " + std::string(answer.sentence()));
  AddReasons(std::move(answers), choice.refusal);
}

}  // namespace

DeviceChoice ChooseDevice(DeviceList devices, std::span<const std::byte> model) {
  DeviceChoice choice;
  if (!split::PlacementsOf(model).empty()) {
    choice.refusal =
        Status(Code::kUnsupportedOperator,
               "The model names devices for its nodes; no one is chosen for all of them.");
    choice.closest = devices.front();
    return choice;
  }
  for (const ForwardedBackendId* device : devices) {
    const Status answer = device->CheckCompatibility(model);
    if (answer.ok()) {
      choice.device = device;
      return choice;
    }
    if (answer.code() == Code::kFallback && choice.emulating == nullptr) choice.emulating = device;
  }
  if (choice.emulating != nullptr) {
    // No refusal that anybody gets to see.
    choice.refusal = Status(Code::kUnsupportedOperator,
                            "No device has kernels of its own for every node of the model.");
    choice.closest = choice.emulating;
    return choice;
  }
  ExplainRefusals(devices, model, choice);
  return choice;
}

DeviceChoice ChooseDeviceForValues(DeviceList devices, std::span<const std::byte> model) {
  DeviceChoice choice;
  for (const ForwardedBackendId* device : devices) {
    Status answer = device->CheckValueCompatibility(model);
    if (answer.ok()) {
      choice.device = device;
      return choice;
    }
    if (answer.code() == Code::kFallback) {
      if (choice.emulating == nullptr) choice.emulating = device;
      continue;
    }
    const std::string reason = device->key() + ": " + answer.Text();
    if (choice.refusal.ok()) {
      choice.refusal = Status(answer.code(),
                              "No device runs the whole model. " + std::string(answer.sentence()));
    }
    choice.refusal.Context(reason);
  }
  return choice;
}

base::Result<std::vector<const ForwardedBackendId*>> OrderDevices(
    DeviceList devices, const PlacementRequest& placement) {
  using Kind = PlacementRequest::Kind;
  std::vector<const ForwardedBackendId*> left(devices.begin(), devices.end());
  std::vector<std::string> keys = placement.devices;
  if (placement.kind == Kind::kPlan) {
    for (const PlacementRequest::Group& island : placement.groups) keys.push_back(island.device);
  }
  std::vector<const ForwardedBackendId*> order;
  for (const std::string& key : keys) {
    const auto has_key = [&](const ForwardedBackendId* device) { return device->key() == key; };
    if (std::ranges::any_of(order, has_key)) continue;
    const auto found = std::ranges::find_if(left, has_key);
    if (found == left.end()) return NoSuchDevice(key, devices);
    order.push_back(*found);
    left.erase(found);
  }
  const bool takes_others = placement.kind == Kind::kPrefer || placement.kind == Kind::kAuto;
  if (takes_others) order.insert(order.end(), left.begin(), left.end());
  return order;
}

bool IsOfDevice(Code code) {
  return code == Code::kNoDeviceMemory || code == Code::kNoDeviceResources ||
         code == Code::kBackendUnavailable || code == Code::kInternalError;
}

base::Result<std::unique_ptr<AutoPlanner>> PlanTogether(DeviceList devices,
                                                        std::span<const std::byte> model,
                                                        std::vector<split::GivenWeight> weights,
                                                        Status refusal, RefusalOf refused) {
  // What no device can read, they cannot read together. What one has no room for, they may.
  const bool may_be_cut =
      IsOfDevice(refusal.code()) || refusal.code() == Code::kUnsupportedOperator ||
      refusal.code() == Code::kUnsupportedAttribute || refusal.code() == Code::kUnsupportedShape ||
      refusal.code() == Code::kUnsupportedDatatype;
  const bool names_devices = !split::PlacementsOf(model).empty();
  const bool has_choice = devices.size() > 1 || names_devices;
  const bool may_change_mind = refused == RefusalOf::kModelAlone && !weights.empty();
  if (!may_change_mind && (!has_choice || !may_be_cut)) return refusal;
  auto planner = AutoPlanner::Ask(devices, model, std::move(weights));
  if (!planner.ok()) {
    if (names_devices) return planner;
    if (!has_choice || !may_be_cut) return refusal;
    refusal.Context("Nor do several together: " + planner.status().Text());
    return refusal;
  }
  if (const auto plan = (*planner)->Plan(); !plan.ok()) {
    if (names_devices) return plan.status();
    if (!has_choice) return refusal;
    refusal.Context("Nor do several together: " + plan.status().Text());
    return refusal;
  }
  return planner;
}

}  // namespace onnxifi::planner
