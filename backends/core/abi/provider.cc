// SPDX-License-Identifier: Apache-2.0
//
// Provider: the answers of backends that share no events and no memory with a driver.

#include "backends/core/abi/provider.h"

namespace onnxifi::abi {
namespace {

base::Status NoDriversEvents(uint32_t kind) {
  return base::Status(base::Code::kUnsupportedFenceType,
                      "The backend has no driver with events of"
                      " kind " +
                          std::to_string(kind) + ".");
}

}  // namespace

base::Result<std::shared_ptr<Event>> Backend::ImportEvent(const NativeEvent& native) {
  return NoDriversEvents(native.kind);
}

base::Result<NativeEvent> Backend::ExportEvent(uint32_t kind, std::shared_ptr<Event> /*event*/) {
  return NoDriversEvents(kind);
}

base::Result<SharedMemory> Backend::AllocateSharedMemory(int64_t /*size_bytes*/) {
  return base::Status(base::Code::kUnsupportedMemoryType,
                      "The backend has no memory that host and device share.");
}

}  // namespace onnxifi::abi
