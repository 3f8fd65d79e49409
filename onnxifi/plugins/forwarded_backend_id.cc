// SPDX-License-Identifier: Apache-2.0
//
// ForwardedBackendId: queries, claims and initialisation, passed on.

#include "onnxifi/plugins/forwarded_backend_id.h"

#include <onnxifi/sdk.h>

#include <utility>
#include <variant>
#include <vector>

#include "onnxifi/plugins/forwarded_backend.h"
#include "onnxifi/plugins/plugin_backend.h"

namespace onnxifi::plugins {

using base::Code;
using base::Status;

namespace {

enum class InfoType { kNumber, kText, kPointer, kUnknown };

InfoType TypeOf(onnxBackendInfo query) {
  switch (query) {
    case ONNXIFI_BACKEND_NAME:
    case ONNXIFI_BACKEND_VENDOR:
    case ONNXIFI_BACKEND_VERSION:
    case ONNXIFI_BACKEND_EXTENSIONS:
    case ONNXIFI_BACKEND_DEVICE:
    case ONNXIFI_BACKEND_ONNX_IR_VERSION:
    case ONNXIFI_BACKEND_OPSET_VERSION:
    case ONNXIFI_SDK_BACKEND_DEVICE_UUID:
    case ONNXIFI_SDK_BACKEND_DEVICE_LUID:
    case ONNXIFI_SDK_BACKEND_DEVICE_LIMITS:
      return InfoType::kText;
    case ONNXIFI_BACKEND_OPENCL_PLATFORM_ID:
    case ONNXIFI_BACKEND_OPENCL_DEVICE_ID:
      return InfoType::kPointer;
    case ONNXIFI_BACKEND_ONNXIFI_VERSION:
    case ONNXIFI_BACKEND_DEVICE_TYPE:
    case ONNXIFI_BACKEND_CAPABILITIES:
    case ONNXIFI_BACKEND_INIT_PROPERTIES:
    case ONNXIFI_BACKEND_MEMORY_TYPES:
    case ONNXIFI_BACKEND_GRAPH_INIT_PROPERTIES:
    case ONNXIFI_BACKEND_SYNCHRONIZATION_TYPES:
    case ONNXIFI_BACKEND_MEMORY_SIZE:
    case ONNXIFI_BACKEND_MAX_GRAPH_SIZE:
    case ONNXIFI_BACKEND_MAX_GRAPH_COUNT:
    case ONNXIFI_BACKEND_MACS_FP32:
    case ONNXIFI_BACKEND_MACS_FP16:
    case ONNXIFI_BACKEND_MEMORY_BANDWIDTH:
    case ONNXIFI_BACKEND_CPU_MEMORY_READ_BANDWIDTH:
    case ONNXIFI_BACKEND_CPU_MEMORY_WRITE_BANDWIDTH:
    case ONNXIFI_BACKEND_PCI_BUS_ID:
    case ONNXIFI_BACKEND_PCI_DEVICE_ID:
    case ONNXIFI_BACKEND_PCI_DOMAIN_ID:
    case ONNXIFI_BACKEND_DIRECTX_ID:
    case ONNXIFI_BACKEND_CUDA_INDEX:
      return InfoType::kNumber;
    default:
      return InfoType::kUnknown;
  }
}

// A value of fixed size; an answer of another size is a fault of the plugin.
template <typename T>
base::Result<T> FixedInfo(const PluginCalls& calls, onnxBackendInfo query) {
  T value = {};
  size_t size_bytes = sizeof(value);
  ONNXIFI_RETURN_IF_ERROR(
      calls.ToStatus(calls.functions().get_backend_info(calls.id(), query, &value, &size_bytes),
                     "onnxGetBackendInfo"));
  if (size_bytes != sizeof(value)) {
    return Status(Code::kBackendUnavailable,
                  "Plugin '" + calls.plugin_name() + "' answers query " + std::to_string(query) +
                      " with " + std::to_string(size_bytes) + " bytes; the interface says " +
                      std::to_string(sizeof(value)) + ".");
  }
  return value;
}

base::Result<std::string> TextInfo(const PluginCalls& calls, onnxBackendInfo query) {
  return calls.ReadText("onnxGetBackendInfo", [&](char* text, size_t* size_bytes) {
    return calls.functions().get_backend_info(calls.id(), query, text, size_bytes);
  });
}

// An identity that is zeros only is none.
std::string IdentityInfo(const PluginCalls& calls, onnxBackendInfo query) {
  base::Result<std::string> text = TextInfo(calls, query);
  const bool is_told = text.ok() && text->find_first_not_of('0') != std::string::npos;
  return is_told ? *std::move(text) : std::string();
}

// Keys of vendors have bits in the high half only.
bool IsAnnounced(uint64_t key, uint64_t announced) {
  constexpr uint64_t kLowHalf = 0xFFFFFFFF;
  return (key & kLowHalf) == 0 && key != 0 && (key & ~announced) == 0;
}

}  // namespace

ForwardedBackendId::ForwardedBackendId(PluginCalls calls, int32_t priority,
                                       PlainExplainer explain_plain)
    : calls_(std::move(calls)),
      priority_(priority),
      explain_plain_(explain_plain),
      device_type_(NumberInfo(ONNXIFI_BACKEND_DEVICE_TYPE)),
      backend_properties_(NumberInfo(ONNXIFI_BACKEND_INIT_PROPERTIES)),
      graph_properties_(NumberInfo(ONNXIFI_BACKEND_GRAPH_INIT_PROPERTIES)),
      memory_bandwidth_(NumberInfo(ONNXIFI_BACKEND_MEMORY_BANDWIDTH)),
      memory_types_(NumberInfo(ONNXIFI_BACKEND_MEMORY_TYPES)) {}

uint64_t ForwardedBackendId::NumberInfo(onnxBackendInfo query) const {
  const auto number = FixedInfo<uint64_t>(calls_, query);
  return number.ok() ? *number : 0;
}

PhysicalDevice ForwardedBackendId::AskPhysicalDevice() const {
  PhysicalDevice told;
  told.uuid = IdentityInfo(calls_, ONNXIFI_SDK_BACKEND_DEVICE_UUID);
  told.luid = IdentityInfo(calls_, ONNXIFI_SDK_BACKEND_DEVICE_LUID);
  const auto bus = FixedInfo<uint64_t>(calls_, ONNXIFI_BACKEND_PCI_BUS_ID);
  const auto device = FixedInfo<uint64_t>(calls_, ONNXIFI_BACKEND_PCI_DEVICE_ID);
  if (bus.ok() && device.ok()) {
    told.pci_address = {NumberInfo(ONNXIFI_BACKEND_PCI_DOMAIN_ID), *bus, *device};
  }
  told.is_processor = device_type_ == ONNXIFI_DEVICE_TYPE_CPU;
  told.is_behind_interface = (memory_types_ & ~uint64_t{ONNXIFI_MEMORY_TYPE_CPU}) != 0;
  return told;
}

const PhysicalDevice& ForwardedBackendId::physical_device() const {
  std::call_once(has_physical_device_, [this] { physical_device_ = AskPhysicalDevice(); });
  return physical_device_;
}

base::Result<abi::InfoValue> ForwardedBackendId::Info(onnxBackendInfo query) const {
  switch (TypeOf(query)) {
    case InfoType::kNumber: {
      ONNXIFI_ASSIGN_OR_RETURN(const uint64_t number, FixedInfo<uint64_t>(calls_, query));
      return abi::InfoValue(number);
    }
    case InfoType::kText: {
      ONNXIFI_ASSIGN_OR_RETURN(std::string text, TextInfo(calls_, query));
      return abi::InfoValue(std::move(text));
    }
    case InfoType::kPointer: {
      ONNXIFI_ASSIGN_OR_RETURN(void* const pointer, FixedInfo<void*>(calls_, query));
      return abi::InfoValue(pointer);
    }
    case InfoType::kUnknown:
      break;
  }
  return Status(Code::kUnsupportedAttribute,
                "Query " + std::to_string(query) + " is not part of the interface.");
}

Status ForwardedBackendId::CheckCompatibility(std::span<const std::byte> model) const {
  return calls_.ToStatus(
      calls_.functions().get_backend_compatibility(calls_.id(), model.size(), model.data()),
      "onnxGetBackendCompatibility");
}

Status ForwardedBackendId::CheckValueCompatibility(std::span<const std::byte> model) const {
  if (!calls_.TakesValues()) {
    return Status(Code::kUnsupportedDatatype,
                  "Plugin '" + calls_.plugin_name() +
                      "' takes no values, only the tensors of numbers that descriptors carry.");
  }
  return calls_.ToStatus(
      calls_.get_backend_value_compatibility(calls_.id(), model.size(), model.data()),
      "onnxGetBackendValueCompatibility");
}

base::Result<abi::Explanation> ForwardedBackendId::Explain(std::span<const std::byte> model) const {
  if (!explains_nodes() && explain_plain_ != nullptr) return explain_plain_(*this, model);
  abi::Explanation explanation;
  if (!explains_nodes()) {
    explanation.verdict = CheckCompatibility(model);
    return explanation;
  }
  Told<abi::NodeVerdict> told;
  const onnxStatus status =
      calls_.explain_model(calls_.id(), model.size(), model.data(), AppendVerdict, &told);
  explanation.verdict = told.ToStatus(calls_, status, "onnxExplainModel");
  if (!calls_.is_quarantined()) explanation.nodes = std::move(told.items);
  return explanation;
}

base::Result<std::unique_ptr<abi::Backend>> ForwardedBackendId::InitBackend(
    const abi::BackendProperties& properties) const {
  ONNXIFI_ASSIGN_OR_RETURN(auto backend, PluginBackend::Init(calls_, properties.given));
  const bool takes_implicit_fences =
      (NumberInfo(ONNXIFI_BACKEND_SYNCHRONIZATION_TYPES) & ONNXIFI_SYNCHRONIZATION_IMPLICIT) != 0;
  return std::unique_ptr<abi::Backend>(
      std::make_unique<ForwardedBackend>(std::move(backend), takes_implicit_fences));
}

bool ForwardedBackendId::TakesBackendProperty(uint64_t key) const {
  return key == ONNXIFI_BACKEND_CUDA_STREAM || key == ONNXIFI_BACKEND_OPENCL_CONTEXT ||
         IsAnnounced(key, backend_properties_);
}

bool ForwardedBackendId::TakesGraphProperty(uint64_t key) const {
  return IsAnnounced(key, graph_properties_);
}

onnxExtensionFunctionPointer ForwardedBackendId::FindFunction(std::string_view name) const {
  return calls_.FindFunction(std::string(name).c_str());
}

}  // namespace onnxifi::plugins
