// SPDX-License-Identifier: Apache-2.0
//
// Device: what the kit is given.

#include "backends/vulkan/device.h"

#include <utility>

#include "backends/vulkan/queue.h"

namespace onnxifi::vulkan {

base::Result<std::unique_ptr<Device>> Device::Open(const Instance& instance, const DeviceInfo& info,
                                                   const std::filesystem::path& cache_folder) {
  ONNXIFI_ASSIGN_OR_RETURN(std::unique_ptr<Runtime> runtime, Runtime::Open(instance, info));
  return std::unique_ptr<Device>(new Device(std::move(runtime), cache_folder));
}

base::Result<std::unique_ptr<Device>> Device::Share(const Instance& instance,
                                                    const CallersDevice& callers,
                                                    const std::filesystem::path& cache_folder) {
  ONNXIFI_ASSIGN_OR_RETURN(std::unique_ptr<Runtime> runtime, Runtime::Share(instance, callers));
  return std::unique_ptr<Device>(new Device(std::move(runtime), cache_folder));
}

base::Result<std::unique_ptr<device::Queue>> Device::NewQueue() {
  return std::unique_ptr<device::Queue>(std::make_unique<Queue>(*runtime_, heap_, loading_));
}

}  // namespace onnxifi::vulkan
