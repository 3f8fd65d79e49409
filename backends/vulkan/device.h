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
#include "backends/core/codegen/binary_cache.h"
#include "backends/core/codegen/kernel_launch.h"
#include "backends/core/codegen/selector.h"
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

class Device final : public device::Device {
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
  base::Result<device::Selection> Select(const device::Facts& facts) const override {
    return selector_.Select(facts);
  }
  bool PrefersWinograd(const device::Facts& facts) const override {
    return selector_.PrefersWinograd(facts);
  }
  bool PrefersAttention(const device::Facts& facts) const override {
    return selector_.PrefersAttention(facts);
  }
  bool PrefersRecurrent(const device::Facts& facts) const override {
    return selector_.PrefersRecurrent(facts);
  }
  bool PrefersNarrowOperands(const device::Facts& facts) const override {
    return selector_.PrefersNarrowOperands(facts);
  }
  base::Result<std::unique_ptr<device::Kernel>> Build(const device::Recipe& recipe) override;

  // Kernels are compiled on all threads.
  device::Parallel* parallel() override { return &threads_; }

  vulkan::Sharing& sharing() { return sharing_; }

  const std::string& name() const { return runtime_->info().name; }

  // For tests: distinct kernels, those of them that were compiled from source, pieces of memory
  // made, allocations of the driver's and bytes of staging memory that exist.
  int64_t kernel_count() const { return services_.kernels.kernel_count(); }
  int64_t compiled_count() const { return services_.kernels.compiled_count(); }
  int64_t buffer_count() const { return heap_.piece_count(); }
  int64_t block_count() const { return heap_.block_count(); }
  int64_t staging_bytes() const { return heap_.staging_bytes(); }
  KernelDriver& kernel_driver() { return driver_; }

 private:
  Device(std::unique_ptr<Runtime> runtime, const std::filesystem::path& cache_folder)
      : runtime_(std::move(runtime)),
        selector_(runtime_->info().capabilities, runtime_->info().tuning),
        heap_(*runtime_),
        loading_(*runtime_, heap_),
        memory_(heap_, loading_),
        driver_(*runtime_, heap_, loading_),
        services_(driver_, memory_, codegen::BinaryCache(cache_folder, kMaxCacheBytes)) {}

  // A kernel takes some ten thousand bytes.
  static constexpr int64_t kMaxCacheBytes = int64_t{256} << 20;

  device::HostThreads threads_;
  const std::unique_ptr<Runtime> runtime_;
  const codegen::Selector selector_;
  Heap heap_;
  Loading loading_;
  Memory memory_;
  KernelDriver driver_;
  codegen::Services services_;
  vulkan::Sharing sharing_{*runtime_, heap_};
};

}  // namespace onnxifi::vulkan

#endif  // ONNXIFI_BACKENDS_VULKAN_DEVICE_H_
