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
#include "backends/core/codegen/compiling_device.h"
#include "backends/core/codegen/kernel_launch.h"
#include "backends/core/device/device.h"
#include "backends/opencl/driver.h"
#include "backends/opencl/kernel_driver.h"
#include "backends/opencl/memory.h"
#include "backends/opencl/runtime.h"
#include "backends/opencl/sharing.h"

namespace onnxifi::opencl {

class Device final : public codegen::CompilingDevice {
 public:
  // As Runtime::Open.
  static base::Result<std::unique_ptr<Device>> Open(
      const Api& api, const DeviceInfo& info,
      const std::filesystem::path& cache_folder = base::CacheFolder(), const Shared& shared = {});

  device::Memory& memory() override { return memory_; }
  base::Result<std::unique_ptr<device::Queue>> NewQueue() override;

  opencl::Sharing& sharing() { return sharing_; }

  const std::string& name() const { return runtime_->info().name; }

  // For tests: the compiler, pieces of memory asked of the driver.
  KernelDriver& kernel_driver() { return driver_; }
  int64_t buffer_count() const { return memory_.buffer_count(); }

 private:
  Device(std::unique_ptr<Runtime> runtime, const std::filesystem::path& cache_folder)
      : CompilingDevice(runtime->info().capabilities, runtime->info().tuning),
        runtime_(std::move(runtime)),
        memory_(*runtime_),
        driver_(*runtime_, memory_),
        services_(driver_, memory_, KernelsIn(cache_folder)) {}

  codegen::Services& services() override { return services_; }

  const std::unique_ptr<Runtime> runtime_;
  Memory memory_;
  KernelDriver driver_;
  codegen::Services services_;
  opencl::Sharing sharing_{*runtime_, memory_};
};

}  // namespace onnxifi::opencl

#endif  // ONNXIFI_BACKENDS_OPENCL_DEVICE_H_
