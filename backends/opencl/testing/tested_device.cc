// SPDX-License-Identifier: Apache-2.0
//
// OpenTestedDevice: the first OpenCL device of the machine.

#include "backends/core/codegen/testing/tested_device.h"

#include <utility>
#include <vector>

#include "backends/opencl/device.h"

namespace onnxifi::codegen {
namespace {

class OpenClDevice final : public TestedDevice {
 public:
  OpenClDevice(std::unique_ptr<opencl::Device> device, const opencl::DeviceInfo& info)
      : device_(std::move(device)),
        has_float64_(info.capabilities.has_float64),
        meaning_{.has_exact_quotients = info.has_exact_division,
                 .keeps_subnormals = info.keeps_subnormals},
        is_processor_((info.type & CL_DEVICE_TYPE_CPU) != 0) {}

  device::Device& device() override { return *device_; }
  std::string name() const override { return device_->name(); }
  bool HasFloat64() const override { return has_float64_; }
  FloatMeaning Meaning() const override { return meaning_; }
  bool CompilesSlowly() const override { return is_processor_; }
  int64_t kernel_count() const override { return device_->kernel_count(); }

 private:
  const std::unique_ptr<opencl::Device> device_;
  const bool has_float64_;
  const FloatMeaning meaning_;
  const bool is_processor_;
};

}  // namespace

base::Result<std::unique_ptr<TestedDevice>> OpenTestedDevice(
    const std::filesystem::path& cache_folder) {
  ONNXIFI_ASSIGN_OR_RETURN(const opencl::Api api, opencl::LoadApi(opencl::kLoaderLibrary));
  ONNXIFI_ASSIGN_OR_RETURN(const std::vector<opencl::DeviceInfo> devices, FindDevices(api));
  if (devices.empty()) {
    return base::Status(base::Code::kBackendUnavailable, "No OpenCL platform has a device.");
  }
  const opencl::DeviceInfo& info = devices.front();
  ONNXIFI_ASSIGN_OR_RETURN(auto device, opencl::Device::Open(api, info, cache_folder));
  return std::unique_ptr<TestedDevice>(std::make_unique<OpenClDevice>(std::move(device), info));
}

}  // namespace onnxifi::codegen
