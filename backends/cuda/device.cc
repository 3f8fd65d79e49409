// SPDX-License-Identifier: Apache-2.0
//
// Device: what the kit is given.

#include "backends/cuda/device.h"

#include <utility>

#include "backends/cuda/kept_kernels.h"

namespace onnxifi::cuda {

base::Result<std::unique_ptr<Device>> Device::Open(const Api& api, const CompilerApi& compiler_api,
                                                   const DeviceInfo& info,
                                                   const std::filesystem::path& cache_folder,
                                                   std::optional<CUstream> callers_stream) {
  const std::filesystem::path report_file = info.is_compiled_for_only
                                                ? KernelReportFile(cache_folder, info.architecture)
                                                : std::filesystem::path();
  ONNXIFI_ASSIGN_OR_RETURN(Compiler compiler,
                           Compiler::Create(compiler_api, info.architecture, report_file));
  ONNXIFI_ASSIGN_OR_RETURN(std::unique_ptr<Runtime> runtime,
                           Runtime::Open(api, info, callers_stream));
  return std::unique_ptr<Device>(new Device(std::move(runtime), std::move(compiler), cache_folder));
}

base::Result<std::unique_ptr<device::Queue>> Device::NewQueue() {
  ONNXIFI_ASSIGN_OR_RETURN(std::unique_ptr<Queue> queue,
                           Queue::Create(*runtime_, staging_, *captures_));
  return std::unique_ptr<device::Queue>(std::move(queue));
}

}  // namespace onnxifi::cuda
