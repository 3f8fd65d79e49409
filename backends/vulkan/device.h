// SPDX-License-Identifier: Apache-2.0
//
// Device: a Vulkan device as a device::Device.

#ifndef ONNXIFI_BACKENDS_VULKAN_DEVICE_H_
#define ONNXIFI_BACKENDS_VULKAN_DEVICE_H_

#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include "backends/core/base/cache_folder.h"
#include "backends/core/codegen/compiling_device.h"
#include "backends/core/codegen/kernel_launch.h"
#include "backends/core/device/device.h"
#include "backends/core/device/host_threads.h"
#include "backends/vulkan/driver.h"
#include "backends/vulkan/heap.h"
#include "backends/vulkan/kernel_driver.h"
#include "backends/vulkan/loading.h"
#include "backends/vulkan/memory.h"
#include "backends/vulkan/runtime.h"
#include "backends/vulkan/sharing.h"

namespace onnxifi::vulkan {

class Device final : public codegen::CompilingDevice {
 public:
  // As Runtime::Open.
  static base::Result<std::unique_ptr<Device>> Open(
      const Instance& instance, const DeviceInfo& info,
      const std::filesystem::path& cache_folder = base::CacheFolder());
  // As Runtime::Share.
  static base::Result<std::unique_ptr<Device>> Share(
      const Instance& instance, const CallersDevice& callers,
      const std::filesystem::path& cache_folder = base::CacheFolder());

  device::Memory& memory() override { return memory_; }
  base::Result<std::unique_ptr<device::Queue>> NewQueue() override;

  // Kernels are compiled on all threads.
  device::Parallel* parallel() override { return &threads_; }

  vulkan::Sharing& sharing() { return sharing_; }

  const std::string& name() const { return runtime_->info().name; }

  // For tests: pieces of memory made, allocations of the driver's and bytes of staging memory that
  // exist.
  int64_t buffer_count() const { return heap_.piece_count(); }
  int64_t block_count() const { return heap_.block_count(); }
  int64_t staging_bytes() const { return heap_.staging_bytes(); }
  KernelDriver& kernel_driver() { return driver_; }

 private:
  Device(std::unique_ptr<Runtime> runtime, const std::filesystem::path& cache_folder)
      : CompilingDevice(runtime->info().capabilities, runtime->info().tuning),
        runtime_(std::move(runtime)),
        heap_(*runtime_),
        loading_(*runtime_, heap_),
        memory_(heap_, loading_),
        driver_(*runtime_, heap_, loading_),
        services_(driver_, memory_, KernelsIn(cache_folder)) {}

  codegen::Services& services() override { return services_; }

  device::HostThreads threads_;
  const std::unique_ptr<Runtime> runtime_;
  Heap heap_;
  Loading loading_;
  Memory memory_;
  KernelDriver driver_;
  codegen::Services services_;
  vulkan::Sharing sharing_{*runtime_, heap_};
};

}  // namespace onnxifi::vulkan

#endif  // ONNXIFI_BACKENDS_VULKAN_DEVICE_H_
