// SPDX-License-Identifier: Apache-2.0
//
// AutoBackendId: answers for all devices together, by the decisions that AutoBackend carries out.

#include "onnxifi/dispatch/auto_backend_id.h"

#include <onnxifi/auto_device.h>
#include <onnxifi/sdk.h>

#include <algorithm>
#include <bit>
#include <map>
#include <set>
#include <sstream>
#include <variant>

#include "onnxifi/dispatch/auto_backend.h"
#include "onnxifi/planner/device_choice.h"
#include "onnxifi/planner/graph_decision.h"

namespace onnxifi::dispatch {

using base::Code;
using base::Status;
using planner::ChooseDevice;
using planner::DecideByOrder;
using planner::DecideTogether;
using planner::DeviceChoice;
using planner::GraphDecision;
using planner::GraphQuestion;
using planner::RefusalOf;
using plugins::ForwardedBackendId;

namespace {

std::vector<std::string> Words(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(std::move(word));
  return words;
}

std::string Join(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

// A version that one of the devices takes may be asked of the auto device.
std::string UnionOfNumbers(const std::vector<std::string>& lists) {
  std::set<uint64_t> numbers;
  for (const std::string& list : lists) {
    for (const std::string& word : Words(list)) {
      uint64_t number = 0;
      if (std::istringstream(word) >> number) numbers.insert(number);
    }
  }
  std::vector<std::string> words;
  for (uint64_t number : numbers) words.push_back(std::to_string(number));
  return Join(words);
}

// The highest version of each domain.
std::string UnionOfOpsets(const std::vector<std::string>& lists) {
  std::map<std::string, uint64_t> versions;
  for (const std::string& list : lists) {
    for (const std::string& word : Words(list)) {
      const size_t colon = word.rfind(':');
      uint64_t version = 0;
      if (colon == std::string::npos || !(std::istringstream(word.substr(colon + 1)) >> version)) {
        continue;
      }
      uint64_t& highest = versions[word.substr(0, colon)];
      highest = std::max(highest, version);
    }
  }
  std::vector<std::string> words;
  for (const auto& [domain, version] : versions) {
    words.push_back(domain + ":" + std::to_string(version));
  }
  return Join(words);
}

}  // namespace

base::Result<abi::InfoValue> AutoBackendId::Info(onnxBackendInfo query) const {
  const auto texts = [&] {
    std::vector<std::string> found;
    for (const ForwardedBackendId* device : devices_) {
      const auto value = device->Info(query);
      if (!value.ok()) continue;
      if (const auto* text = std::get_if<std::string>(&*value)) found.push_back(*text);
    }
    return found;
  };
  const auto numbers = [&] {
    std::vector<uint64_t> found;
    for (const ForwardedBackendId* device : devices_) {
      const auto value = device->Info(query);
      if (!value.ok()) continue;
      if (const auto* number = std::get_if<uint64_t>(&*value)) found.push_back(*number);
    }
    return found;
  };
  const auto largest = [&]() -> uint64_t {
    const std::vector<uint64_t> found = numbers();
    return found.empty() ? 0 : *std::max_element(found.begin(), found.end());
  };
  switch (query) {
    case ONNXIFI_BACKEND_NAME:
      return abi::InfoValue(std::string("auto"));
    case ONNXIFI_BACKEND_VENDOR:
      return abi::InfoValue(std::string("ONNXIFI SDK"));
    case ONNXIFI_BACKEND_VERSION:
      return abi::InfoValue(std::string(ONNXIFI_SDK_VERSION));
    case ONNXIFI_BACKEND_EXTENSIONS:
      return abi::InfoValue(std::string());
    case ONNXIFI_BACKEND_DEVICE: {
      std::string keys = "the first fit of";
      for (const ForwardedBackendId* device : devices_) keys += " " + device->key();
      if (devices_.size() > 1) keys += ", or several together";
      return abi::InfoValue(std::move(keys));
    }
    case ONNXIFI_BACKEND_DEVICE_TYPE:
      return abi::InfoValue(uint64_t{ONNXIFI_DEVICE_TYPE_HETEROGENEOUS});
    case ONNXIFI_BACKEND_ONNX_IR_VERSION:
      return abi::InfoValue(UnionOfNumbers(texts()));
    case ONNXIFI_BACKEND_OPSET_VERSION:
      return abi::InfoValue(UnionOfOpsets(texts()));
    case ONNXIFI_BACKEND_CAPABILITIES: {
      uint64_t bits = ~uint64_t{0};
      for (uint64_t number : numbers()) bits &= number;
      return abi::InfoValue(numbers().empty() ? uint64_t{0} : bits);
    }
    case ONNXIFI_BACKEND_INIT_PROPERTIES:
    case ONNXIFI_BACKEND_MEMORY_TYPES:
    case ONNXIFI_BACKEND_SYNCHRONIZATION_TYPES:
      return abi::InfoValue(uint64_t{0});
    case ONNXIFI_BACKEND_GRAPH_INIT_PROPERTIES:
      return abi::InfoValue(ONNXIFI_SDK_GRAPH_PROPERTY_MEASURE |
                            ONNXIFI_SDK_GRAPH_PROPERTY_PLACEMENT |
                            ONNXIFI_SDK_GRAPH_PROPERTY_FALLBACK);
    case ONNXIFI_BACKEND_MEMORY_SIZE:
    case ONNXIFI_BACKEND_MAX_GRAPH_SIZE:
    case ONNXIFI_BACKEND_MAX_GRAPH_COUNT:
      return abi::InfoValue(largest());
    default:
      return Status(Code::kUnsupportedAttribute,
                    "The auto device does not answer query " + std::to_string(query) + ".");
  }
}

// Each key is a bit that no other has: the list of properties takes both of two that share one.
static_assert(std::popcount(ONNXIFI_SDK_GRAPH_PROPERTY_BASE_FOLDER |
                            ONNXIFI_SDK_GRAPH_PROPERTY_PROFILE | ONNXIFI_SDK_GRAPH_PROPERTY_VALUES |
                            ONNXIFI_SDK_GRAPH_PROPERTY_FAST_ALGORITHMS |
                            ONNXIFI_SDK_GRAPH_PROPERTY_PRECISION |
                            ONNXIFI_SDK_GRAPH_PROPERTY_DYNAMIC_QUANTIZATION |
                            ONNXIFI_SDK_GRAPH_PROPERTY_MAPPED_MODEL |
                            ONNXIFI_SDK_GRAPH_PROPERTY_LASTING_MODEL |
                            ONNXIFI_SDK_GRAPH_PROPERTY_CALLER_RUNS |
                            ONNXIFI_SDK_GRAPH_PROPERTY_MEASURE |
                            ONNXIFI_SDK_GRAPH_PROPERTY_PLACEMENT |
                            ONNXIFI_SDK_GRAPH_PROPERTY_FALLBACK) == 12);

bool AutoBackendId::TakesGraphProperty(uint64_t key) const {
  return key == ONNXIFI_SDK_GRAPH_PROPERTY_MEASURE || key == ONNXIFI_SDK_GRAPH_PROPERTY_PLACEMENT ||
         key == ONNXIFI_SDK_GRAPH_PROPERTY_FALLBACK || abi::BackendId::TakesGraphProperty(key);
}

Status AutoBackendId::CheckCompatibility(std::span<const std::byte> model) const {
  GraphQuestion question;
  question.model = model;
  return DecideByOrder(devices_, question).Verdict();
}

Status AutoBackendId::CheckValueCompatibility(std::span<const std::byte> model) const {
  GraphQuestion question;
  question.model = model;
  question.takes_values = true;
  return DecideByOrder(devices_, question).Verdict();
}

base::Result<abi::Explanation> AutoBackendId::Explain(std::span<const std::byte> model) const {
  DeviceChoice choice = ChooseDevice(devices_, model);
  if (choice.device != nullptr) return choice.device->Explain(model);
  ONNXIFI_ASSIGN_OR_RETURN(abi::Explanation explanation, choice.closest->Explain(model));
  GraphQuestion question;
  question.model = model;
  const GraphDecision together =
      DecideTogether(devices_, question, std::move(choice.refusal), RefusalOf::kModelAlone);
  if (together.planner != nullptr) explanation.nodes = together.planner->AcceptingVerdicts();
  explanation.verdict = together.Verdict();
  return explanation;
}

base::Result<std::unique_ptr<abi::Backend>> AutoBackendId::InitBackend(
    const abi::BackendProperties& properties) const {
  return std::unique_ptr<abi::Backend>(std::make_unique<AutoBackend>(devices_, costs_, properties));
}

}  // namespace onnxifi::dispatch
