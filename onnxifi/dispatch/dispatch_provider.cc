// SPDX-License-Identifier: Apache-2.0
//
// DispatchProvider: discovery once, then a fixed list.

#include "onnxifi/dispatch/dispatch_provider.h"

#include <onnxifi/sdk.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <tuple>
#include <utility>

#include "backends/core/abi/guard.h"
#include "backends/core/abi/library.h"
#include "discovery/search/environment.h"
#include "onnxifi/dispatch/graph_plan_function.h"
#include "onnxifi/planner/model_explanation.h"

namespace onnxifi::dispatch {

using base::Code;
using base::Status;
using planner::ExplainForPlainDevice;
using planner::ExplainModelOnDevices;
using plugins::ForwardedBackendId;
using plugins::PluginCalls;

namespace {

// Accelerators before the CPU at equal priority.
int KindRank(onnxEnum device_type) {
  switch (device_type) {
    case ONNXIFI_DEVICE_TYPE_GPU:
    case ONNXIFI_DEVICE_TYPE_NPU:
    case ONNXIFI_DEVICE_TYPE_DSP:
    case ONNXIFI_DEVICE_TYPE_FPGA:
      return 0;
    case ONNXIFI_DEVICE_TYPE_CPU:
      return 1;
    default:
      return 2;
  }
}

std::vector<const ForwardedBackendId*> AutoOrder(
    const std::vector<std::unique_ptr<ForwardedBackendId>>& devices) {
  std::vector<const ForwardedBackendId*> order;
  for (const auto& device : devices) {
    if (!device->is_reference()) order.push_back(device.get());
  }
  std::stable_sort(order.begin(), order.end(),
                   [](const ForwardedBackendId* a, const ForwardedBackendId* b) {
                     return std::make_tuple(a->priority(), KindRank(a->device_type())) <
                            std::make_tuple(b->priority(), KindRank(b->device_type()));
                   });
  // The processor comes after a plugin that is made for it, whatever the priorities say: through
  // another interface it does the same work with more overhead.
  const auto is_processor = [](const ForwardedBackendId* device) {
    return device->device_type() == ONNXIFI_DEVICE_TYPE_CPU &&
           !device->is_processor_behind_interface();
  };
  const auto last = std::find_if(order.rbegin(), order.rend(), is_processor).base();
  std::stable_partition(order.begin(), last, [](const ForwardedBackendId* device) {
    return !device->is_processor_behind_interface();
  });
  return order;
}

onnxStatus ONNXIFI_ABI GetDiscoveryReport(onnxDiscoveryRecordCallback callback, void* context) {
  return abi::Guard(abi::Function::kGetDiscoveryReport, [&]() -> Status {
    if (callback == nullptr) return Status(Code::kInvalidPointer, "The callback is NULL.");
    auto& provider = static_cast<DispatchProvider&>(abi::Library::Get().provider());
    for (const registry::Record& entry : provider.Registry().records()) {
      // What a plugin did since discovery counts.
      const bool is_quarantined = entry.health != nullptr && entry.health->is_quarantined();
      const std::string reason = is_quarantined ? entry.health->reason() : std::string();
      onnxDiscoveryRecord record = {};
      record.struct_size = sizeof(record);
      record.plugin = entry.plugin.c_str();
      record.path = entry.path.c_str();
      record.rule = entry.rule.c_str();
      record.verdict = is_quarantined ? ONNXIFI_SDK_VERDICT_QUARANTINED : entry.verdict;
      record.sentence = is_quarantined ? reason.c_str() : entry.sentence.c_str();
      record.detail = entry.detail.c_str();
      record.priority = entry.priority;
      record.device_count =
          is_quarantined ? provider.CountDevices(entry.plugin) : entry.device_count;
      record.microseconds = entry.microseconds;
      callback(context, &record);
    }
    return base::Ok();
  });
}

}  // namespace

const registry::PluginRegistry& DispatchProvider::Registry() {
  std::call_once(discovered_, [this] {
    // Any function of ours tells which file this library is.
    registry_ = registry::PluginRegistry::Discover(
        search::ReadEnvironment(), reinterpret_cast<const void*>(&GetDiscoveryReport));
    for (const registry::Plugin& plugin : registry_.plugins()) {
      std::vector<std::unique_ptr<ForwardedBackendId>> devices;
      for (size_t index = 0; index < plugin.ids.size(); ++index) {
        devices.push_back(std::make_unique<ForwardedBackendId>(
            PluginCalls(plugin.name, index, plugin.functions, plugin.ids[index]), plugin.priority,
            ExplainForPlainDevice));
      }
      // Its devices were asked what they are. IDs that callers have stay, whatever happens later.
      if (plugin.functions.health->is_quarantined()) continue;
      std::move(devices.begin(), devices.end(), std::back_inserter(devices_));
    }
    std::vector<const ForwardedBackendId*> order = AutoOrder(devices_);
    if (!order.empty()) auto_id_ = std::make_unique<AutoBackendId>(std::move(order));
  });
  return registry_;
}

uint32_t DispatchProvider::CountDevices(std::string_view plugin) const {
  return static_cast<uint32_t>(std::ranges::count_if(
      devices_, [&](const auto& device) { return device->calls().plugin_name() == plugin; }));
}

std::vector<const ForwardedBackendId*> DispatchProvider::Devices() {
  Registry();
  std::vector<const ForwardedBackendId*> devices;
  for (const auto& device : devices_) devices.push_back(device.get());
  return devices;
}

base::Result<std::vector<const abi::BackendId*>> DispatchProvider::EnumerateBackendIds() {
  Registry();
  std::vector<const abi::BackendId*> ids;
  if (auto_id_ != nullptr) ids.push_back(auto_id_.get());
  for (const auto& device : devices_) ids.push_back(device.get());
  return ids;
}

onnxExtensionFunctionPointer DispatchProvider::FindFunction(std::string_view name) const {
  const auto pointer = [](auto* function) {
    return reinterpret_cast<onnxExtensionFunctionPointer>(reinterpret_cast<void (*)()>(function));
  };
  if (name == "onnxGetDiscoveryReport") return pointer(&GetDiscoveryReport);
  if (name == "onnxGetGraphPlan") return pointer(&GetGraphPlan);
  if (name == "onnxExplainModelOnDevices") return pointer(&ExplainModelOnDevices);
  return nullptr;
}

}  // namespace onnxifi::dispatch
