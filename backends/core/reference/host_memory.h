// SPDX-License-Identifier: Apache-2.0
//
// HostMemory: memory of devices that compute in the host's own: aligned blocks, refused while there
// is still memory left for everybody else rather than when the system starts to kill processes.

#ifndef ONNXIFI_BACKENDS_CORE_REFERENCE_HOST_MEMORY_H_
#define ONNXIFI_BACKENDS_CORE_REFERENCE_HOST_MEMORY_H_

#include <cstdint>
#include <memory>

#include "backends/core/device/device.h"

namespace onnxifi::reference {

// Bytes that this process can still get: what the system has available, within the limit of its
// control group and its own address space limit. Linux; elsewhere INT64_MAX.
int64_t AvailableBytes();

// Threads: any.
class HostMemory final : public device::Memory {
 public:
  // NO_SYSTEM_MEMORY with the size asked for and what is available.
  base::Result<std::unique_ptr<device::Allocation>> Allocate(int64_t size_bytes) override;
};

}  // namespace onnxifi::reference

#endif  // ONNXIFI_BACKENDS_CORE_REFERENCE_HOST_MEMORY_H_
