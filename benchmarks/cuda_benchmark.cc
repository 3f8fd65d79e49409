// SPDX-License-Identifier: Apache-2.0
//
// The CUDA plugin's kernels against the limits of the same device, products against cuBLAS where it
// is installed, and contractions also as three products of TF32 and by cuBLASLt
// (kernel_benchmark.h).

#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <utility>

#include "backends/core/base/result.h"
#include "backends/cuda/api.h"
#include "backends/cuda/device.h"
#include "backends/cuda/driver.h"
#include "benchmarks/cublas.h"
#include "benchmarks/driver_limits.h"
#include "benchmarks/kernel_benchmark.h"

namespace onnxifi::cuda {
namespace {

using base::Status;
using benchmarks::DriverLimits;

Status Run(const benchmarks::BenchmarkOptions& options) {
  ONNXIFI_ASSIGN_OR_RETURN(const Api api, LoadApi());
  ONNXIFI_ASSIGN_OR_RETURN(const CompilerApi compiler_api, LoadCompilerApi());
  ONNXIFI_ASSIGN_OR_RETURN(const FoundDevices devices, FindDevices(api));
  if (devices.fit.empty()) return Status(base::Code::kBackendUnavailable, "There is no device.");
  DeviceInfo info = devices.fit.front();
  info.libraries.cublaslt = info.libraries.cudnn = LibraryRules::Use::kNever;
  ONNXIFI_ASSIGN_OR_RETURN(const std::unique_ptr<Device> device,
                           Device::Open(api, compiler_api, info));
  DeviceInfo split_info = info;
  split_info.tuning.split_depth = codegen::Tuning::kMinSplitDepth;
  split_info.tuning.Describe(split_info.capabilities);
  ONNXIFI_ASSIGN_OR_RETURN(const std::unique_ptr<Device> split,
                           Device::Open(api, compiler_api, split_info));
  DeviceInfo library_info = info;
  library_info.libraries.cublaslt = LibraryRules::Use::kAlways;
  ONNXIFI_ASSIGN_OR_RETURN(const std::unique_ptr<Device> by_library,
                           Device::Open(api, compiler_api, library_info));
  constexpr auto kClock = benchmarks::Clock::kDevice;
  ONNXIFI_ASSIGN_OR_RETURN(const std::unique_ptr<DriverLimits> limits,
                           DriverLimits::Create(*device, device->kernel_driver(), kClock));
  base::Result<std::unique_ptr<Cublas>> cublas = Cublas::Open(*device);
  if (!cublas.ok()) fmt::print(stderr, "Without cuBLAS: {}\n", cublas.status().Text());
  benchmarks::ProductPeer* const peer = cublas.ok() ? cublas->get() : nullptr;
  const std::string driver =
      fmt::format("CUDA driver {}.{}, compute capability {}.{}", info.driver_version / 1000,
                  info.driver_version / 10 % 100, info.architecture / 10, info.architecture % 10);
  return RunBenchmark({.device = *device,
                       .limits = *limits,
                       .peer = peer,
                       .clock = kClock,
                       .device_name = info.name,
                       .driver = driver,
                       .variants = {{"3xTF32", *split}, {"cuBLASLt", *by_library}}},
                      options);
}

}  // namespace
}  // namespace onnxifi::cuda

int main(int argument_count, char** arguments) {
  const onnxifi::base::Status status = onnxifi::cuda::Run(onnxifi::benchmarks::ParseOptions(
      argument_count, arguments,
      "Times the CUDA plugin's kernels beside kernels that only multiply and add, or only copy, "
      "beside cuBLAS, as 3xTF32 and by cuBLASLt, on the first device."));
  if (status.ok()) return 0;
  fmt::print(stderr, "cuda_benchmark: {}\n", status.Text());
  return 1;
}
