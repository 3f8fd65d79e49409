// SPDX-License-Identifier: Apache-2.0
//
// The mock's provider: wraps what the kit makes.

#include "backends/mock/provider.h"

#include <onnxifi/sdk.h>

#include <chrono>
#include <memory>
#include <set>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "backends/core/plugin/hardware.h"
#include "backends/core/plugin/run_queue.h"
#include "backends/mock/device.h"
#include "backends/mock/graph.h"
#include "backends/mock/state.h"

namespace onnxifi::mock {
namespace {

using base::Code;
using base::Result;
using base::Status;

class Hardware final : public plugin::Hardware {
 public:
  Hardware(std::string plugin_name, Settings settings)
      : plugin_name_(std::move(plugin_name)), settings_(std::move(settings)) {
    for (int index = 0; index < settings_.device_count; ++index) {
      states_.push_back(std::make_unique<State>());
    }
  }

  std::string plugin_name() const override { return plugin_name_; }

  std::vector<plugin::DeviceDescription> Enumerate() override {
    plugin::DeviceDescription description;
    description.name = "Mock";
    description.vendor = "ONNXIFI SDK";
    description.version = "1";
    description.device = "A device that behaves as '" + plugin_name_ + "' is told";
    description.type = settings_.device_type;
    description.memory_types = settings_.memory_types;
    AnswerIdentity(description);
    constexpr uint64_t kPlenty = uint64_t{1} << 40;
    description.memory_bytes =
        settings_.memory_bytes > 0 ? static_cast<uint64_t>(settings_.memory_bytes) : kPlenty;
    return std::vector<plugin::DeviceDescription>(static_cast<size_t>(settings_.device_count),
                                                  description);
  }

  const device::Selector& selector(int /*index*/) const override { return selector_; }

  Result<std::unique_ptr<device::Device>> Open(
      int index, const abi::BackendProperties& /*properties*/) override {
    ONNXIFI_RETURN_IF_ERROR(state(index).CheckPresent());
    return std::unique_ptr<device::Device>(std::make_unique<Device>(settings_, state(index)));
  }

  const Settings& settings() const { return settings_; }
  State& state(int index) const { return *states_[static_cast<size_t>(index)]; }

 private:
  void AnswerIdentity(plugin::DeviceDescription& description) const {
    auto& more = description.more;
    if (!settings_.uuid.empty()) more.emplace_back(ONNXIFI_SDK_BACKEND_DEVICE_UUID, settings_.uuid);
    if (!settings_.luid.empty()) more.emplace_back(ONNXIFI_SDK_BACKEND_DEVICE_LUID, settings_.luid);
    if (!settings_.pci) return;
    const auto& [domain, bus, device] = *settings_.pci;
    more.emplace_back(ONNXIFI_BACKEND_PCI_DOMAIN_ID, domain);
    more.emplace_back(ONNXIFI_BACKEND_PCI_BUS_ID, bus);
    more.emplace_back(ONNXIFI_BACKEND_PCI_DEVICE_ID, device);
  }

  const std::string plugin_name_;
  const Settings settings_;
  std::vector<std::unique_ptr<State>> states_;
  const reference::Device selector_;
};

Status Refuse(const std::string& operator_type) {
  return {Code::kUnsupportedOperator,
          "Operator '" + operator_type + "' is not among those that this device runs."};
}

class Backend final : public abi::Backend {
 public:
  Backend(std::unique_ptr<abi::Backend> inner, const abi::BackendId& id, const Settings& settings,
          State& state)
      : inner_(std::move(inner)), id_(id), settings_(settings), state_(state) {}

  Result<std::unique_ptr<abi::Graph>> InitGraph(const abi::GraphRequest& request) override {
    ONNXIFI_RETURN_IF_ERROR(state_.CheckPresent());
    ONNXIFI_ASSIGN_OR_RETURN(const abi::Explanation explanation, id_.Explain(request.model));
    std::chrono::nanoseconds run_time = std::chrono::duration_cast<std::chrono::nanoseconds>(
        std::chrono::duration<double, std::milli>(settings_.launch_ms));
    std::set<uint32_t> counted;
    bool is_emulated = false;
    for (const abi::NodeVerdict& node : explanation.nodes) {
      is_emulated = is_emulated || node.code == Code::kFallback;
      if (!settings_.Claims(node.operator_type)) return Refuse(node.operator_type);
      if (settings_.lies.contains(node.operator_type)) {
        return Status(Code::kUnsupportedOperator,
                      "Operator '" + node.operator_type +
                          "' is claimed, but cannot be compiled by the mock device.");
      }
      if (counted.insert(node.node_index).second)
        run_time += settings_.StepTime(node.operator_type);
    }
    if (settings_.measured != nullptr && request.properties.may_measure) settings_.measured->Add(1);
    std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(settings_.init_ms));
    ONNXIFI_RETURN_IF_ERROR(worker_.Start());
    ONNXIFI_ASSIGN_OR_RETURN(auto graph, inner_->InitGraph(request));
    return std::unique_ptr<abi::Graph>(std::make_unique<Graph>(std::move(graph), settings_, state_,
                                                               worker_, run_time, is_emulated));
  }

  Result<std::shared_ptr<abi::Event>> NewEvent() override { return inner_->NewEvent(); }
  bool TakesDataType(onnxEnum data_type) const override { return inner_->TakesDataType(data_type); }

 private:
  const std::unique_ptr<abi::Backend> inner_;
  const abi::BackendId& id_;
  const Settings& settings_;
  State& state_;
  plugin::Worker worker_;
};

class BackendId final : public abi::BackendId {
 public:
  BackendId(const abi::BackendId& inner, const Settings& settings, State& state)
      : inner_(inner), settings_(settings), state_(state) {}

  std::string key() const override { return inner_.key(); }
  Result<abi::InfoValue> Info(onnxBackendInfo query) const override { return inner_.Info(query); }

  Status CheckCompatibility(std::span<const std::byte> model) const override {
    ONNXIFI_ASSIGN_OR_RETURN(abi::Explanation explanation, Explain(model));
    return std::move(explanation.verdict);
  }

  Status CheckValueCompatibility(std::span<const std::byte> model) const override {
    ONNXIFI_ASSIGN_OR_RETURN(const abi::Explanation explanation, Explain(model));
    for (const abi::NodeVerdict& node : explanation.nodes) {
      if (!settings_.Claims(node.operator_type)) return Refuse(node.operator_type);
    }
    Status answer = inner_.CheckValueCompatibility(model);
    const bool is_emulated = explanation.verdict.code() == Code::kFallback;
    if (answer.code() == Code::kFallback && !is_emulated) return base::Ok();
    return answer;
  }

  Result<abi::Explanation> Explain(std::span<const std::byte> model) const override {
    ONNXIFI_RETURN_IF_ERROR(state_.CheckPresent());
    ONNXIFI_ASSIGN_OR_RETURN(abi::Explanation explanation, inner_.Explain(model));
    // The reference, which computes all of it, says so of every node.
    if (explanation.verdict.code() == Code::kFallback) explanation.verdict = base::Ok();
    bool is_emulated = false;
    for (abi::NodeVerdict& node : explanation.nodes) {
      if (settings_.Claims(node.operator_type)) {
        const bool runs = node.code == Code::kOk || node.code == Code::kFallback;
        if (!runs) continue;
        node.code = settings_.Emulates(node.operator_type) ? Code::kFallback : Code::kOk;
        is_emulated = is_emulated || node.code == Code::kFallback;
        continue;
      }
      const Status refusal = Refuse(node.operator_type);
      node.code = refusal.code();
      node.subject_kind = ONNXIFI_SDK_SUBJECT_OPERATOR;
      node.subject = node.operator_type;
      node.sentence = refusal.Text();
      if (explanation.verdict.ok()) {
        explanation.verdict = refusal;
        explanation.verdict.Context("at node " + std::to_string(node.node_index));
      }
    }
    if (is_emulated && explanation.verdict.ok()) {
      explanation.verdict = Status(Code::kFallback, "The mock device emulates some of the nodes.");
    }
    return explanation;
  }

  Result<std::unique_ptr<abi::Backend>> InitBackend(
      const abi::BackendProperties& properties) const override {
    ONNXIFI_RETURN_IF_ERROR(state_.CheckPresent());
    ONNXIFI_ASSIGN_OR_RETURN(auto backend, inner_.InitBackend(properties));
    return std::unique_ptr<abi::Backend>(
        std::make_unique<Backend>(std::move(backend), *this, settings_, state_));
  }

 private:
  const abi::BackendId& inner_;
  const Settings& settings_;
  State& state_;
};

class Provider final : public abi::Provider {
 public:
  explicit Provider(std::unique_ptr<Hardware> hardware) {
    const Hardware& told = *hardware;
    kit_ = plugin::MakeProvider(std::move(hardware));
    const auto inner = kit_->EnumerateBackendIds();
    if (!inner.ok()) {
      status_ = inner.status();
      return;
    }
    for (size_t index = 0; index < inner->size(); ++index) {
      ids_.push_back(std::make_unique<BackendId>(*(*inner)[index], told.settings(),
                                                 told.state(static_cast<int>(index))));
    }
  }
  explicit Provider(Status status) : status_(std::move(status)) {}

  Result<std::vector<const abi::BackendId*>> EnumerateBackendIds() override {
    if (!status_.ok()) return status_;
    std::vector<const abi::BackendId*> ids;
    for (const auto& id : ids_) ids.push_back(id.get());
    return ids;
  }

 private:
  Status status_;
  std::unique_ptr<abi::Provider> kit_;  // owns the hardware, which all else refers to
  std::vector<std::unique_ptr<BackendId>> ids_;
};

}  // namespace

std::unique_ptr<abi::Provider> MakeProvider(std::string plugin_name, Result<Settings> settings) {
  if (!settings.ok()) {
    return std::make_unique<Provider>(Status(Code::kInternalError, settings.status().Text()));
  }
  return std::make_unique<Provider>(
      std::make_unique<Hardware>(std::move(plugin_name), *std::move(settings)));
}

}  // namespace onnxifi::mock
