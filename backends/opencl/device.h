// SPDX-License-Identifier: Apache-2.0
//
// Device: an OpenCL device as a device::Device.

#ifndef ONNXIFI_BACKENDS_OPENCL_DEVICE_H_
#define ONNXIFI_BACKENDS_OPENCL_DEVICE_H_

#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include "backends/core/base/cache_folder.h"
#include "backends/core/codegen/binary_cache.h"
#include "backends/core/codegen/kernel_launch.h"
#include "backends/core/codegen/selector.h"
#include "backends/core/device/device.h"
#include "backends/opencl/driver.h"
#include "backends/opencl/kernel_driver.h"
#include "backends/opencl/memory.h"
#include "backends/opencl/runtime.h"
#include "backends/opencl/sharing.h"

namespace onnxifi::opencl {

class Device final : public device::Device {
 public:
  // As Runtime::Open.
  static base::Result<std::unique_ptr<Device>> Open(
      const Api& api, const DeviceInfo& info,
      const std::filesystem::path& cache_folder = base::CacheFolder(), const Shared& shared = {});

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

  opencl::Sharing& sharing() { return sharing_; }

  const std::string& name() const { return runtime_->info().name; }

  // For tests: the compiler, distinct kernels, those of them that were compiled from source, pieces
  // of memory asked of the driver.
  KernelDriver& kernel_driver() { return driver_; }
  int64_t kernel_count() const { return services_.kernels.kernel_count(); }
  int64_t compiled_count() const { return services_.kernels.compiled_count(); }
  int64_t buffer_count() const { return memory_.buffer_count(); }

 private:
  Device(std::unique_ptr<Runtime> runtime, const std::filesystem::path& cache_folder)
      : runtime_(std::move(runtime)),
        selector_(runtime_->info().capabilities, runtime_->info().tuning),
        memory_(*runtime_),
        driver_(*runtime_, memory_),
        services_(driver_, memory_, codegen::BinaryCache(cache_folder, kMaxCacheBytes)) {}

  // A kernel takes some ten thousand bytes.
  static constexpr int64_t kMaxCacheBytes = int64_t{256} << 20;

  const std::unique_ptr<Runtime> runtime_;
  const codegen::Selector selector_;
  Memory memory_;
  KernelDriver driver_;
  codegen::Services services_;
  opencl::Sharing sharing_{*runtime_, memory_};
};

}  // namespace onnxifi::opencl

#endif  // ONNXIFI_BACKENDS_OPENCL_DEVICE_H_
