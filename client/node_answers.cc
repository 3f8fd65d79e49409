// SPDX-License-Identifier: Apache-2.0
//
// NodeAnswers: the one call where there is it, else the same put together.

#include "client/node_answers.h"

#include <algorithm>
#include <utility>

#include "client/status_names.h"

namespace onnxifi::client {
namespace {

constexpr const char* kAuto = "auto";

DeviceAnswer AnswerOf(const Device& device, std::string key, std::span<const std::byte> model) {
  DeviceAnswer answer;
  answer.device_key = std::move(key);
  answer.nodes_told = ONNXIFI_SDK_NODES_NOT_TOLD;
  const Outcome outcome = device.CheckCompatibility(model);
  if (outcome) return answer;
  answer.status = outcome.error().status;
  if (!answer.runs_model()) answer.sentence = outcome.error().sentence;
  return answer;
}

// Reasons are told apart as libonnxifi does, but for names, which only it knows.
using Reasons = std::map<std::pair<onnxStatus, std::string>, uint32_t>;

DeviceAnswer ExplainedAnswerOf(const Device& device, std::string key,
                               std::span<const std::byte> model, Reasons& reasons) {
  auto explanation = device.Explain(model);
  if (!explanation) return AnswerOf(device, std::move(key), model);
  DeviceAnswer answer;
  answer.device_key = std::move(key);
  answer.status = explanation->status;
  if (!answer.runs_model()) answer.sentence = std::move(explanation->sentence);
  if (explanation->nodes.empty()) answer.nodes_told = ONNXIFI_SDK_NODES_NOT_TOLD;
  for (NodeVerdict& verdict : explanation->nodes) {
    NodeAnswer& node = answer.nodes.emplace_back();
    if (!IsAcceptance(verdict.status)) {
      const std::string first_line = verdict.sentence.substr(0, verdict.sentence.find('\n'));
      node.reason =
          reasons.try_emplace({verdict.status, first_line}, reasons.size() + 1).first->second;
    }
    node.verdict = std::move(verdict);
  }
  return answer;
}

}  // namespace

bool ModelAnswers::is_runnable() const {
  return std::ranges::any_of(devices, &DeviceAnswer::runs_model) ||
         (chosen && chosen->runs_model());
}

Result<ModelAnswers> AskDevices(const Library& library, std::span<const std::byte> model,
                                const std::optional<std::string>& base_folder) {
  const Result<std::vector<Device>> devices = library.Devices();
  if (!devices) return devices.error();
  ModelAnswers answers;
  Result<std::vector<DeviceAnswer>> all = library.ExplainOnDevices(model, base_folder);
  if (!all && all.error().status != ONNXIFI_STATUS_UNIDENTIFIED_NAME) return all.error();
  if (all) answers.devices = *std::move(all);
  const bool is_told = !answers.devices.empty();
  Reasons reasons;
  for (size_t index = 0; index < devices->size(); ++index) {
    const Device& device = (*devices)[index];
    Result<std::string> key = device.Key();
    // A plain ONNXIFI 1.0 library does not name its devices.
    std::string name = key ? *std::move(key) : "device:" + std::to_string(index);
    if (name == kAuto) {
      answers.chosen = AnswerOf(device, std::move(name), model);
    } else if (!is_told) {
      answers.devices.push_back(ExplainedAnswerOf(device, std::move(name), model, reasons));
    }
  }
  return answers;
}

std::map<uint32_t, std::string> DevicesOfNodes(const GraphPlan& plan, const ModelAnswers& answers) {
  std::map<uint32_t, std::string> devices;
  for (const PlanIsland& island : plan.islands) {
    for (const uint32_t node : island.nodes) devices.emplace(node, island.device_key);
  }
  // A graph that one device has whole lists none.
  if (plan.islands.size() != 1 || !devices.empty() || answers.devices.empty()) return devices;
  for (const NodeAnswer& node : answers.devices.front().nodes) {
    if (node.role == ONNXIFI_SDK_NODE_WORK) {
      devices.emplace(node.verdict.node_index, plan.islands.front().device_key);
    }
  }
  return devices;
}

}  // namespace onnxifi::client
