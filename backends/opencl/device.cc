// SPDX-License-Identifier: Apache-2.0
//
// Device: what the kit is given.

#include "backends/opencl/device.h"

#include <utility>

#include "backends/opencl/queue.h"

namespace onnxifi::opencl {

base::Result<std::unique_ptr<Device>> Device::Open(const Api& api, const DeviceInfo& info,
                                                   const std::filesystem::path& cache_folder,
                                                   const Shared& shared) {
  ONNXIFI_ASSIGN_OR_RETURN(std::unique_ptr<Runtime> runtime, Runtime::Open(api, info, shared));
  return std::unique_ptr<Device>(new Device(std::move(runtime), cache_folder));
}

base::Result<std::unique_ptr<device::Queue>> Device::NewQueue() {
  return std::unique_ptr<device::Queue>(std::make_unique<Queue>(*runtime_, memory_));
}

}  // namespace onnxifi::opencl
