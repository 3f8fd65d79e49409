// SPDX-License-Identifier: Apache-2.0
//
// PluginBackend: RAII over the plugin's onnxBackend.

#include "onnxifi/dispatch/plugin_backend.h"

namespace onnxifi::dispatch {

std::vector<uint64_t> EncodeProperties(const std::vector<abi::Property>& properties) {
  std::vector<uint64_t> list;
  for (const abi::Property& property : properties) {
    list.push_back(property.key);
    list.push_back(property.value);
  }
  list.push_back(ONNXIFI_BACKEND_PROPERTY_NONE);
  return list;
}

base::Result<std::shared_ptr<const PluginBackend>> PluginBackend::Init(
    const PluginCalls& calls, const std::vector<abi::Property>& properties) {
  const std::vector<uint64_t> list = EncodeProperties(properties);
  onnxBackend handle = nullptr;
  ONNXIFI_RETURN_IF_ERROR(calls.ToStatus(
      calls.functions().init_backend(calls.id(), list.data(), &handle), "onnxInitBackend"));
  return std::shared_ptr<const PluginBackend>(new PluginBackend(calls, handle));
}

PluginBackend::~PluginBackend() { static_cast<void>(calls_.functions().release_backend(handle_)); }

}  // namespace onnxifi::dispatch
