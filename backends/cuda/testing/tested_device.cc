// SPDX-License-Identifier: Apache-2.0
//
// OpenTestedDevice: the first CUDA device of the machine that is fit.

#include "backends/core/codegen/testing/tested_device.h"

#include <utility>

#include "backends/cuda/device.h"

namespace onnxifi::codegen {
namespace {

class CudaDevice final : public TestedDevice {
 public:
  explicit CudaDevice(std::unique_ptr<cuda::Device> device) : device_(std::move(device)) {}

  device::Device& device() override { return *device_; }
  std::string name() const override { return device_->name(); }
  bool HasFloat64() const override { return true; }
  int64_t kernel_count() const override { return device_->kernel_count(); }

 private:
  const std::unique_ptr<cuda::Device> device_;
};

}  // namespace

base::Result<std::unique_ptr<TestedDevice>> OpenTestedDevice(
    const std::filesystem::path& cache_folder) {
  ONNXIFI_ASSIGN_OR_RETURN(const cuda::Api api, cuda::LoadApi());
  ONNXIFI_ASSIGN_OR_RETURN(const cuda::CompilerApi compiler_api, cuda::LoadCompilerApi());
  ONNXIFI_ASSIGN_OR_RETURN(const cuda::FoundDevices devices, cuda::FindDevices(api));
  if (devices.fit.empty()) {
    return base::Status(base::Code::kBackendUnavailable, "No CUDA device is fit.");
  }
  ONNXIFI_ASSIGN_OR_RETURN(
      auto device, cuda::Device::Open(api, compiler_api, devices.fit.front(), cache_folder));
  return std::unique_ptr<TestedDevice>(std::make_unique<CudaDevice>(std::move(device)));
}

}  // namespace onnxifi::codegen
