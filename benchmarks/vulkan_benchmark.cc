// SPDX-License-Identifier: Apache-2.0
//
// The Vulkan plugin's kernels against the limits of the same device (kernel_benchmark.h).

#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <string>

#include "backends/core/base/result.h"
#include "backends/vulkan/api.h"
#include "backends/vulkan/device.h"
#include "backends/vulkan/driver.h"
#include "benchmarks/driver_limits.h"
#include "benchmarks/kernel_benchmark.h"

namespace onnxifi::vulkan {
namespace {

using base::Status;
using benchmarks::DriverLimits;

Status Run(const benchmarks::BenchmarkOptions& options) {
  ONNXIFI_ASSIGN_OR_RETURN(const Api api, LoadApi(kLoaderLibrary));
  ONNXIFI_ASSIGN_OR_RETURN(const std::unique_ptr<Instance> instance, Instance::Create(api));
  ONNXIFI_ASSIGN_OR_RETURN(const FoundDevices devices, FindDevices(*instance));
  if (devices.fit.empty()) return Status(base::Code::kBackendUnavailable, "There is no device.");
  const DeviceInfo& info = devices.fit.front();
  ONNXIFI_ASSIGN_OR_RETURN(const std::unique_ptr<Device> device, Device::Open(*instance, info));
  constexpr auto kClock = benchmarks::Clock::kDevice;
  ONNXIFI_ASSIGN_OR_RETURN(const std::unique_ptr<DriverLimits> limits,
                           DriverLimits::Create(*device, device->kernel_driver(), kClock));
  const std::string driver =
      info.driver_name + (info.driver_info.empty() ? "" : " " + info.driver_info);
  return RunBenchmark({*device, *limits, nullptr, kClock, info.name, driver}, options);
}

}  // namespace
}  // namespace onnxifi::vulkan

int main(int argument_count, char** arguments) {
  const onnxifi::base::Status status = onnxifi::vulkan::Run(onnxifi::benchmarks::ParseOptions(
      argument_count, arguments,
      "Times the Vulkan plugin's kernels beside kernels that only multiply and add, or only copy, "
      "on the first device."));
  if (status.ok()) return 0;
  fmt::print(stderr, "vulkan_benchmark: {}\n", status.Text());
  return 1;
}
