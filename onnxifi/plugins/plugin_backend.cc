// SPDX-License-Identifier: Apache-2.0
//
// PluginBackend: RAII over the plugin's onnxBackend.

#include "onnxifi/plugins/plugin_backend.h"

namespace onnxifi::plugins {

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
  const onnxStatus answer = calls.functions().init_backend(calls.id(), list.data(), &handle);
  ONNXIFI_RETURN_IF_ERROR(calls.ToStatus(answer, "onnxInitBackend", "a backend", handle));
  return std::shared_ptr<const PluginBackend>(new PluginBackend(calls, handle));
}

base::Result<abi::SharedMemory> PluginBackend::AllocateShared(int64_t size_bytes) const {
  if (calls_.allocate_shared_memory == nullptr || has_no_shared_memory_) {
    return base::Status(base::Code::kUnsupportedMemoryType,
                        "Device '" + calls_.key() + "' shares no memory with the host.");
  }
  onnxSharedMemory memory = {};
  memory.struct_size = sizeof(memory);
  base::Status status = calls_.ToStatus(
      calls_.allocate_shared_memory(handle_, static_cast<uint64_t>(size_bytes), &memory),
      "onnxAllocateSharedMemory");
  if (status.code() == base::Code::kUnsupportedMemoryType) has_no_shared_memory_ = true;
  ONNXIFI_RETURN_IF_ERROR(std::move(status));
  if (memory.address == 0) {
    return calls_.Quarantine(
        "Function onnxAllocateSharedMemory of the plugin gives no address of the memory.");
  }
  return abi::SharedMemory{
      memory.address, memory.memory_type, memory.buffer,
      std::shared_ptr<const void>(
          reinterpret_cast<const void*>(memory.address),
          [backend = shared_from_this(), address = memory.address](const void* /*address*/) {
            static_cast<void>(backend->calls_.release_shared_memory(backend->handle_, address));
          })};
}

void PluginBackend::Release() const {
  if (is_released_.exchange(true)) return;
  static_cast<void>(calls_.functions().release_backend(handle_));
}

PluginBackend::~PluginBackend() { Release(); }

}  // namespace onnxifi::plugins
