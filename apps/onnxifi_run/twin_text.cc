// SPDX-License-Identifier: Apache-2.0
//
// TwinText: a cut between twins that nobody wants is for nodes that no other device has kernels
// for, or for a gain that was measured; the answers tell which of the two.

#include "apps/onnxifi_run/twin_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

namespace onnxifi::run {
namespace {

using Keys = std::vector<std::string>;

bool Contains(const Keys& keys, const std::string& key) {
  return std::ranges::find(keys, key) != keys.end();
}

// "a, b and c".
std::string Enumerate(const Keys& keys) {
  std::string text;
  for (size_t k = 0; k < keys.size(); ++k) {
    const bool is_last = k + 1 == keys.size();
    text += (k == 0 ? "" : is_last ? " and " : ", ") + keys[k];
  }
  return text;
}

// Of each physical device with several IDs, their keys.
std::map<uint64_t, Keys> FindGroups(const client::ModelAnswers& answers) {
  std::map<uint64_t, Keys> groups;
  for (const DeviceAnswer& device : answers.devices) {
    if (device.physical_device != 0) groups[device.physical_device].push_back(device.device_key);
  }
  std::erase_if(groups, [](const auto& group) { return group.second.size() < 2; });
  return groups;
}

bool HasKernels(const DeviceAnswer& device, uint32_t node) {
  bool is_told = false;
  for (const NodeAnswer& answer : device.nodes) {
    if (answer.verdict.node_index != node) continue;
    if (answer.verdict.status != ONNXIFI_STATUS_SUCCESS) return false;
    is_told = true;
  }
  return is_told;
}

// Whether each island on twins of `kept` has a node that only twins have kernels for.
bool IsForced(const client::ModelAnswers& answers, const GraphPlan& plan, const Keys& group,
              const std::string& kept) {
  const auto only_twins = [&](uint32_t node) {
    return std::ranges::none_of(answers.devices, [&](const DeviceAnswer& device) {
      const bool is_twin = device.device_key != kept && Contains(group, device.device_key);
      return !is_twin && HasKernels(device, node);
    });
  };
  return std::ranges::all_of(plan.islands, [&](const PlanIsland& island) {
    const bool is_on_twin = island.device_key != kept && Contains(group, island.device_key);
    return !is_on_twin || std::ranges::any_of(island.nodes, only_twins);
  });
}

std::string TextOf(const client::ModelAnswers& answers, const GraphPlan& plan, bool is_placed,
                   const Keys& group) {
  Keys used;
  for (const PlanIsland& island : plan.islands) {
    if (Contains(group, island.device_key) && !Contains(used, island.device_key)) {
      used.push_back(island.device_key);
    }
  }
  const std::string are_one = Enumerate(group) + " are one physical device; ";
  if (used.size() < 2) {
    return are_one + "auto cuts no model between them without a measured gain.\n";
  }
  if (is_placed) return are_one + "the model is cut between them as nodes are placed.\n";
  const bool is_forced = std::ranges::any_of(
      used, [&](const std::string& kept) { return IsForced(answers, plan, group, kept); });
  return are_one + "the model is cut between them " +
         (is_forced ? "for nodes that no other device has kernels for.\n"
                    : "because runs were measured to take a tenth less so.\n");
}

}  // namespace

std::string MakeTwinText(const client::ModelAnswers& answers, const GraphPlan& plan,
                         bool is_placed) {
  std::string text;
  for (const auto& [number, group] : FindGroups(answers)) {
    text += TextOf(answers, plan, is_placed, group);
  }
  return text;
}

}  // namespace onnxifi::run
