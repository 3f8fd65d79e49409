// SPDX-License-Identifier: Apache-2.0
//
// The Vulkan plugin's kernels against the limits of the same device (kernel_benchmark.h). The
// kernels of the limits are neutral text, which the device's dialect frames.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "backends/core/base/result.h"
#include "backends/core/codegen/dialect.h"
#include "backends/core/codegen/kernel_driver.h"
#include "backends/vulkan/api.h"
#include "backends/vulkan/device.h"
#include "backends/vulkan/driver.h"
#include "benchmarks/kernel_benchmark.h"

namespace onnxifi::vulkan {
namespace {

using base::Result;
using base::Status;

constexpr int kGroupSize = 64;
// Ten sums per item, so that none waits for another.
constexpr int kPeakSums = 10;
constexpr int kPeakRounds = 1000;
constexpr int64_t kPeakItems = int64_t{1} << 17;

std::string PeakBody() {
  std::string body = "  f32 b = AS(f32, ITEM) * 0.001f;\n  f32 c = AS(f32, ITEM) * 0.5f;\n";
  for (int sum = 0; sum < kPeakSums; ++sum) body += fmt::format("  f32 s{0} = c + {0};\n", sum);
  body += fmt::format("  for (int k = 0; k < {}; ++k) {{\n", kPeakRounds);
  for (int sum = 0; sum < kPeakSums; ++sum)
    body += fmt::format("    s{0} = M_fma(s{0}, b, c);\n", sum);
  body += "  }\n  f32 sum = s0;\n";
  for (int sum = 1; sum < kPeakSums; ++sum) body += fmt::format("  sum += s{};\n", sum);
  return body + "  STORE(out0, ITEM, sum);\n";
}

class VkLimits final : public benchmarks::Limits {
 public:
  static Result<std::unique_ptr<VkLimits>> Open(Device& device) {
    auto limits = std::make_unique<VkLimits>();
    limits->device_ = &device;
    ONNXIFI_ASSIGN_OR_RETURN(limits->queue_, device.NewQueue());
    const codegen::Parameter out{.name = "out0", .type = "f32", .is_written = true};
    const codegen::Parameter in{.name = "in0", .type = "f32"};
    ONNXIFI_ASSIGN_OR_RETURN(limits->peak_, limits->Compile({out}, PeakBody()));
    ONNXIFI_ASSIGN_OR_RETURN(limits->copy_,
                             limits->Compile({out, in}, "  STORE(out0, ITEM, LOAD(in0, ITEM));\n"));
    return limits;
  }

  double flops() const override { return 2.0 * kPeakSums * kPeakRounds * kPeakItems; }

  Status Reserve(int64_t bytes) override {
    elements_ = std::max(bytes / 8 / kGroupSize * kGroupSize, kPeakItems);
    for (std::unique_ptr<device::Allocation>& place : places_) {
      ONNXIFI_ASSIGN_OR_RETURN(place, device_->memory().Allocate(elements_ * 4));
    }
    return base::Ok();
  }
  Status MultiplyAdd() override { return Run(*peak_, 1, kPeakItems); }
  Status Copy() override { return Run(*copy_, 2, elements_); }

 private:
  Result<std::unique_ptr<codegen::DriverKernel>> Compile(std::vector<codegen::Parameter> parameters,
                                                         std::string body) {
    codegen::KernelDriver& driver = device_->kernel_driver();
    return driver.Compile(driver.dialect().Assemble({.is_narrow = true,
                                                     .parameters = std::move(parameters),
                                                     .group_size = kGroupSize,
                                                     .body = std::move(body)}));
  }

  Status Run(codegen::DriverKernel& kernel, size_t operands, int64_t items) {
    const std::array<codegen::Argument, 2> arguments = {
        {{.is_write = true, .is_scratch = true, .operand = 0}, {.is_scratch = true, .operand = 1}}};
    const std::array<program::BufferId, 2> buffers = {program::kNoBuffer, program::kNoBuffer};
    const std::array<int64_t, 2> bytes = {-1, -1};
    const std::array<std::byte*, 2> at = {places_[0]->data(), places_[1]->data()};
    const std::span<const codegen::Argument> used(arguments.data(), operands);
    ONNXIFI_RETURN_IF_ERROR(device_->kernel_driver().Start(
        queue_.get(), kernel,
        {.operands = codegen::KernelOperands(used, buffers, bytes, {}, at),
         .item_count = items,
         .group_count = items / kGroupSize,
         .group_size = kGroupSize}));
    return queue_->Finish();
  }

  Device* device_ = nullptr;
  std::unique_ptr<device::Queue> queue_;
  std::unique_ptr<codegen::DriverKernel> peak_, copy_;
  std::array<std::unique_ptr<device::Allocation>, 2> places_;
  int64_t elements_ = 0;
};

Status Run(const benchmarks::BenchmarkOptions& options) {
  ONNXIFI_ASSIGN_OR_RETURN(const Api api, LoadApi(kLoaderLibrary));
  ONNXIFI_ASSIGN_OR_RETURN(const std::unique_ptr<Instance> instance, Instance::Create(api));
  ONNXIFI_ASSIGN_OR_RETURN(const FoundDevices devices, FindDevices(*instance));
  if (devices.fit.empty()) return Status(base::Code::kBackendUnavailable, "There is no device.");
  const DeviceInfo& info = devices.fit.front();
  ONNXIFI_ASSIGN_OR_RETURN(const std::unique_ptr<Device> device, Device::Open(*instance, info));
  ONNXIFI_ASSIGN_OR_RETURN(const std::unique_ptr<VkLimits> limits, VkLimits::Open(*device));
  const std::string driver =
      info.driver_name + (info.driver_info.empty() ? "" : " " + info.driver_info);
  return RunBenchmark({*device, *limits, nullptr, info.name, driver}, options);
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
