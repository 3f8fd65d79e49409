// SPDX-License-Identifier: Apache-2.0
//
// Device: a CUDA device as a device::Device.

#ifndef ONNXIFI_BACKENDS_CUDA_DEVICE_H_
#define ONNXIFI_BACKENDS_CUDA_DEVICE_H_

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "backends/core/base/cache_folder.h"
#include "backends/core/codegen/compiling_device.h"
#include "backends/core/codegen/kernel_launch.h"
#include "backends/core/device/device.h"
#include "backends/core/device/host_threads.h"
#include "backends/core/device/staging.h"
#include "backends/cuda/captures.h"
#include "backends/cuda/driver.h"
#include "backends/cuda/gates.h"
#include "backends/cuda/kernel_driver.h"
#include "backends/cuda/libraries/library_host.h"
#include "backends/cuda/libraries/library_kernels.h"
#include "backends/cuda/memory.h"
#include "backends/cuda/queue.h"
#include "backends/cuda/runtime.h"
#include "backends/cuda/sharing.h"

namespace onnxifi::cuda {

class Device final : public codegen::CompilingDevice {
 public:
  // As Runtime::Open and Compiler::Create.
  static base::Result<std::unique_ptr<Device>> Open(
      const Api& api, const CompilerApi& compiler_api, const DeviceInfo& info,
      const std::filesystem::path& cache_folder = base::CacheFolder(),
      std::optional<CUstream> callers_stream = {});

  ~Device() override { captures_->Close(); }

  device::Memory& memory() override { return memory_; }
  base::Result<std::unique_ptr<device::Queue>> NewQueue() override;
  base::Result<device::Selection> Select(const device::Facts& facts) const override {
    return libraries_.Prefer(facts, CompilingDevice::Select(facts));
  }
  bool PrefersChannelsLast(const device::Facts& facts) const override {
    return libraries_.PrefersChannelsLast(facts);
  }
  // Kernels are compiled on all threads, but not where each has a stream of its own, which a run on
  // another one does not wait for.
  device::Parallel* parallel() override {
    return runtime_->stream() == CU_STREAM_PER_THREAD ? nullptr : &threads_;
  }

  cuda::Sharing& sharing() { return sharing_; }
  const Runtime& runtime() const { return *runtime_; }
  KernelDriver& kernel_driver() { return driver_; }

  const std::string& name() const { return runtime_->info().name; }

 private:
  Device(std::unique_ptr<Runtime> runtime, Compiler compiler,
         const std::filesystem::path& cache_folder)
      : CompilingDevice(runtime->info().capabilities, runtime->info().tuning),
        runtime_(std::move(runtime)),
        gates_(std::make_shared<Gates>(runtime_->context())),
        memory_(*runtime_, staging_, gates_),
        driver_(*runtime_, std::move(compiler)),
        services_(driver_, memory_, KernelsIn(cache_folder)),
        libraries_(library_host_, runtime_->info().libraries, runtime_->info().capabilities,
                   runtime_->info().name, KernelsIn(cache_folder)) {}

  codegen::Services& services() override { return services_; }

  device::HostThreads threads_;
  const std::unique_ptr<Runtime> runtime_;
  device::StagingPool staging_;
  // Shared with graphs of callers that have runs in them.
  const std::shared_ptr<Captures> captures_ = std::make_shared<Captures>();
  const std::shared_ptr<Gates> gates_;
  Memory memory_;
  KernelDriver driver_;
  codegen::Services services_;
  cuda::Sharing sharing_{*runtime_, gates_};
  const LibraryHostOf<Runtime, Queue> library_host_{*runtime_, *this};
  const LibraryKernels libraries_;
};

}  // namespace onnxifi::cuda

#endif  // ONNXIFI_BACKENDS_CUDA_DEVICE_H_
