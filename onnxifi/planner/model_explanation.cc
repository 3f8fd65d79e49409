// SPDX-License-Identifier: Apache-2.0
//
// ModelExplanation: the planner's own questions, told whole. Nodes that no device is asked about,
// because the model fixes what they make, are told as given.

#include "onnxifi/planner/model_explanation.h"

#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "backends/core/abi/guard.h"
#include "backends/core/abi/library.h"
#include "backends/core/abi/node_verdict.h"
#include "backends/core/base/result.h"
#include "onnxifi/planner/node_questions.h"
#include "onnxifi/planner/twins.h"
#include "onnxifi/plugins/device_source.h"
#include "onnxifi/split/small_tensors.h"

namespace onnxifi::planner {

using base::Code;
using base::Status;
using plugins::DeviceSource;
using plugins::ForwardedBackendId;
using plugins::NodeReason;
using plugins::NodeReasons;

namespace {

bool Runs(const Status& verdict) { return verdict.ok() || verdict.code() == Code::kFallback; }

// Numbers for reasons, from 1: equal ones for reasons that are the same but for names.
class ReasonNumbers {
 public:
  // `sentence`: with marks for names where these are known.
  uint32_t Of(Code code, const std::string& sentence) {
    const std::string first_line = sentence.substr(0, sentence.find('\n'));
    return numbers_.try_emplace({code, first_line}, numbers_.size() + 1).first->second;
  }

 private:
  std::map<std::pair<Code, std::string>, uint32_t> numbers_;
};

// What devices answer of the nodes of one model, put together with the nodes that they are not
// asked about.
class Teller {
 public:
  explicit Teller(const split::WholeModel& whole)
      : whole_(whole), questions_(whole), accepting_(AcceptingVerdicts(whole)) {
    node_of_.resize(accepting_.size(), kGiven);
    for (size_t node = 0; node < whole.nodes().size(); ++node) {
      node_of_[static_cast<size_t>(whole.nodes()[node].model_index)] = static_cast<int32_t>(node);
    }
  }

  std::vector<NodeAnswer> Ask(const ForwardedBackendId& device, ReasonNumbers& numbers) {
    const NodeAnswers answers = questions_.Ask(device);
    std::vector<NodeAnswer> told;
    told.reserve(accepting_.size());
    for (size_t index = 0; index < accepting_.size(); ++index) {
      NodeAnswer answer;
      answer.verdict = accepting_[index];
      const int32_t node = node_of_[index];
      if (node == kGiven) {
        answer.role = ONNXIFI_SDK_NODE_GIVEN;
        told.push_back(std::move(answer));
        continue;
      }
      answer.placement = whole_.nodes()[node].placement;
      const NodeReasons& reasons = *answers[static_cast<size_t>(node)];
      if (IsClaimed(reasons)) {
        if (IsEmulated(reasons)) answer.verdict.code = Code::kFallback;
        told.push_back(std::move(answer));
        continue;
      }
      const std::vector<std::string> names = whole_.NamesOf(node);
      for (const NodeReason& reason : reasons) {
        NodeAnswer& refusal = told.emplace_back(answer);
        refusal.verdict.code = reason.code;
        refusal.verdict.sentence = reason.ToStatus(names).Text();
        refusal.reason = numbers.Of(reason.code, reason.sentence);
      }
    }
    return told;
  }

 private:
  static constexpr int32_t kGiven = -1;

  const split::WholeModel& whole_;
  NodeQuestions questions_;
  const std::vector<abi::NodeVerdict> accepting_;
  // By position in graph.node.
  std::vector<int32_t> node_of_;
};

DeviceAnswer Ask(const ForwardedBackendId& device, std::span<const std::byte> model, Teller* teller,
                 ReasonNumbers& numbers) {
  DeviceAnswer answer;
  answer.device_key = device.key();
  if (teller != nullptr) {
    // First, so that a device that has gone is not taken at its word of before.
    answer.verdict = device.CheckCompatibility(model);
    if (!device.explains_nodes()) answer.nodes_told = ONNXIFI_SDK_NODES_ASKED_ALONE;
    answer.nodes = teller->Ask(device, numbers);
    return answer;
  }
  auto explanation = device.Explain(model);
  answer.nodes_told = ONNXIFI_SDK_NODES_NOT_TOLD;
  if (!explanation.ok()) {
    answer.verdict = std::move(explanation).status();
    return answer;
  }
  answer.verdict = std::move(explanation->verdict);
  for (abi::NodeVerdict& verdict : explanation->nodes) {
    answer.nodes_told = ONNXIFI_SDK_NODES_EXPLAINED;
    NodeAnswer& node = answer.nodes.emplace_back();
    const bool runs = verdict.code == Code::kOk || verdict.code == Code::kFallback;
    if (!runs) node.reason = numbers.Of(verdict.code, verdict.sentence);
    node.verdict = std::move(verdict);
  }
  return answer;
}

// The folder of the model's external data, the only property there is.
base::Result<std::optional<std::string>> ReadBaseFolder(const uint64_t* properties) {
  std::optional<std::string> folder;
  if (properties == nullptr) return folder;
  for (; properties[0] != ONNXIFI_GRAPH_PROPERTY_NONE; properties += 2) {
    if (properties[0] != ONNXIFI_SDK_GRAPH_PROPERTY_BASE_FOLDER) {
      return Status(Code::kUnsupportedProperty,
                    "Property " + std::to_string(properties[0]) + " says nothing of a question.");
    }
    const char* path = reinterpret_cast<const char*>(static_cast<uintptr_t>(properties[1]));
    if (path == nullptr || path[0] == '\0') {
      return Status(Code::kInvalidProperty, "The base folder of the model is an empty path.");
    }
    folder = path;
  }
  return folder;
}

void Tell(const std::vector<DeviceAnswer>& answers, onnxDeviceAnswerCallback device_callback,
          onnxNodeAnswerCallback node_callback, void* context) {
  uint32_t device_index = 0;
  for (const DeviceAnswer& answer : answers) {
    const std::string sentence = Runs(answer.verdict) ? std::string() : answer.verdict.Text();
    onnxDeviceAnswer record = {};
    record.struct_size = sizeof(record);
    record.device_index = device_index;
    record.device_key = answer.device_key.c_str();
    record.status = static_cast<onnxStatus>(answer.verdict.code());
    record.sentence = sentence.c_str();
    record.nodes = answer.nodes_told;
    record.physical_device = answer.physical_device;
    device_callback(context, &record);
    for (const NodeAnswer& node : answer.nodes) {
      const onnxNodeVerdict verdict = abi::ToRecord(node.verdict);
      onnxNodeAnswer told = {};
      told.struct_size = sizeof(told);
      told.device_index = device_index;
      told.role = node.role;
      told.placement = node.placement.c_str();
      told.verdict = &verdict;
      told.reason = node.reason;
      node_callback(context, &told);
    }
    ++device_index;
  }
}

}  // namespace

std::vector<abi::NodeVerdict> AcceptingVerdicts(const split::WholeModel& whole) {
  std::vector<abi::NodeVerdict> verdicts;
  for (split::NodeHead& head : whole.Heads()) {
    abi::NodeVerdict& verdict = verdicts.emplace_back();
    verdict.node_index = static_cast<uint32_t>(verdicts.size() - 1);
    verdict.node_name = std::move(head.name);
    verdict.domain = head.domain.empty() ? "ai.onnx" : std::move(head.domain);
    verdict.operator_type = std::move(head.operator_type);
    verdict.opset_version = head.opset_version < 0 ? ONNXIFI_SDK_UNKNOWN : head.opset_version;
  }
  return verdicts;
}

std::vector<DeviceAnswer> ExplainOnDevices(std::span<const ForwardedBackendId* const> devices,
                                           std::span<const std::byte> model) {
  const auto whole = split::WholeModel::Read(model, /*weights=*/{});
  std::optional<Teller> teller;
  if (whole.ok()) teller.emplace(**whole);
  ReasonNumbers numbers;
  std::vector<DeviceAnswer> answers;
  for (const ForwardedBackendId* device : devices) {
    answers.push_back(Ask(*device, model, teller ? &*teller : nullptr, numbers));
  }
  uint64_t number = 0;
  for (const std::vector<partition::DeviceIndex>& group : FindTwins(devices)) {
    ++number;
    for (const partition::DeviceIndex device : group) {
      answers[static_cast<size_t>(device)].physical_device = number;
    }
  }
  return answers;
}

abi::Explanation ExplainForPlainDevice(const ForwardedBackendId& device,
                                       std::span<const std::byte> model) {
  abi::Explanation explanation;
  explanation.verdict = device.CheckCompatibility(model);
  const auto whole = split::WholeModel::Read(model, /*weights=*/{});
  if (!whole.ok()) return explanation;
  if (Runs(explanation.verdict)) {
    explanation.nodes = AcceptingVerdicts(**whole);
    return explanation;
  }
  ReasonNumbers numbers;
  bool tells_why = false;
  for (NodeAnswer& node : Teller(**whole).Ask(device, numbers)) {
    tells_why = tells_why || node.verdict.code == explanation.verdict.code();
    explanation.nodes.push_back(std::move(node.verdict));
  }
  // Nodes that it takes one by one would say that it takes the model.
  if (!tells_why) explanation.nodes.clear();
  return explanation;
}

onnxStatus ONNXIFI_ABI ExplainModelOnDevices(const uint64_t* properties, size_t size_bytes,
                                             const void* model,
                                             onnxDeviceAnswerCallback device_callback,
                                             onnxNodeAnswerCallback node_callback, void* context) {
  return abi::Guard(abi::Function::kExplainModelOnDevices, [&]() -> Status {
    if (model == nullptr || device_callback == nullptr || node_callback == nullptr) {
      return Status(Code::kInvalidPointer, "The model or a callback is NULL.");
    }
    if (size_bytes == 0) return Status(Code::kInvalidSize, "The model has 0 bytes.");
    ONNXIFI_ASSIGN_OR_RETURN(const std::optional<std::string> base_folder,
                             ReadBaseFolder(properties));
    std::span<const std::byte> bytes(static_cast<const std::byte*>(model), size_bytes);
    std::optional<std::string> completed;
    if (base_folder) {
      ONNXIFI_ASSIGN_OR_RETURN(completed, split::WithSmallTensors(bytes, *base_folder));
    }
    if (completed) bytes = std::as_bytes(std::span(*completed));
    auto& source = dynamic_cast<DeviceSource&>(abi::Library::Get().provider());
    Tell(ExplainOnDevices(source.Devices(), bytes), device_callback, node_callback, context);
    return base::Ok();
  });
}

}  // namespace onnxifi::planner
