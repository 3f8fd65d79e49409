// SPDX-License-Identifier: Apache-2.0
//
// The CUDA plugin: the devices of the driver, as far as they are fit.

#include <onnx/onnxifi.h>
#include <onnxifi/sdk.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "backends/core/base/cache_folder.h"
#include "backends/core/plugin/device_identity.h"
#include "backends/core/plugin/driver_hardware.h"
#include "backends/cuda/compile_only.h"
#include "backends/cuda/device.h"
#include "backends/cuda/driver.h"
#include "backends/cuda/kept_kernels.h"

namespace onnxifi::cuda {
namespace {

plugin::DeviceDescription Describe(const DeviceInfo& info) {
  plugin::DeviceDescription description;
  description.name = "CUDA on " + info.name;
  description.vendor = "ONNXIFI SDK";
  description.version = std::string(ONNXIFI_SDK_VERSION) + " with CUDA driver " +
                        std::to_string(info.driver_version / 1000) + "." +
                        std::to_string(info.driver_version % 1000 / 10);
  description.device = info.name;
  description.type = ONNXIFI_DEVICE_TYPE_GPU;
  description.memory_bytes = info.memory_bytes;
  description.memory_types = ONNXIFI_MEMORY_TYPE_CUDA_BUFFER;
  // With a stream of the caller's.
  description.synchronization_types = ONNXIFI_SYNCHRONIZATION_IMPLICIT;
  description.event_kinds = {ONNXIFI_SDK_NATIVE_EVENT_CUDA};
  description.backend_properties = {ONNXIFI_BACKEND_CUDA_STREAM};
  plugin::AnswerIdentity(info.uuid, /*luid=*/{},
                         device::PciAddress{info.pci_domain, info.pci_bus, info.pci_device},
                         description);
  description.more.emplace_back(ONNXIFI_BACKEND_CUDA_INDEX, static_cast<uint64_t>(info.index));
  const std::pair<onnxBackendInfo, uint64_t> rates[] = {
      {ONNXIFI_BACKEND_MACS_FP32, info.float32_macs},
      {ONNXIFI_BACKEND_MACS_FP16, info.float16_macs},
      {ONNXIFI_BACKEND_MEMORY_BANDWIDTH, info.memory_bandwidth}};
  for (const auto& [query, rate] : rates) {
    if (rate > 0) description.more.emplace_back(query, rate);
  }
  const auto text = [](auto number) { return std::to_string(number); };
  description.more.emplace_back(ONNXIFI_SDK_BACKEND_DEVICE_LIMITS,
                                "compute_capability=" + text(info.architecture / 10) + "." +
                                    text(info.architecture % 10) +
                                    "; multiprocessors=" + text(info.multiprocessors) +
                                    "; max_group_items=" + text(info.limits.most_group_items) +
                                    "; max_shared_memory_bytes=" + text(info.limits.shared_bytes));
  return description;
}

class Hardware final : public plugin::DriverHardware<DeviceInfo> {
 public:
  Hardware()
      : DriverHardware({.no_device = "The CUDA driver has no device.",
                        .none_is_fit = "No CUDA device is fit"}) {}

  std::string plugin_name() const override { return "cuda"; }

  base::Result<std::unique_ptr<device::Device>> Open(
      int index, const abi::BackendProperties& properties) override {
    std::optional<CUstream> stream;
    const auto given = std::ranges::find(properties.given, uint64_t{ONNXIFI_BACKEND_CUDA_STREAM},
                                         &abi::Property::key);
    if (given != properties.given.end()) {
      stream = reinterpret_cast<CUstream>(static_cast<uintptr_t>(given->value));
    }
    ONNXIFI_ASSIGN_OR_RETURN(
        std::unique_ptr<Device> device,
        Device::Open(api_, compiler_api_, info(index), base::CacheFolder(), stream));
    return std::unique_ptr<device::Device>(std::move(device));
  }

  device::Sharing* SharingOf(device::Device& device) const override {
    return &static_cast<Device&>(device).sharing();
  }

 private:
  base::Result<Found> Find() override {
    const char* const compile_for = secure_getenv("ONNXIFI_CUDA_COMPILE_FOR");
    const bool compiles_only = compile_for != nullptr && *compile_for != '\0';
    if (compiles_only) {
      ONNXIFI_ASSIGN_OR_RETURN(const int architecture, ParseArchitecture(compile_for));
      api_ = CompileOnlyApi(architecture);
    } else {
      ONNXIFI_ASSIGN_OR_RETURN(api_, LoadApi());
    }
    const std::filesystem::path folder = base::CacheFolder();
    base::Result<CompilerApi> compiler = LoadCompilerApi();
    if (!compiler.ok() && !compiles_only) compiler = FindKeptCompiler(folder, compiler.status());
    ONNXIFI_ASSIGN_OR_RETURN(compiler_api_, std::move(compiler));
    ONNXIFI_ASSIGN_OR_RETURN(FoundDevices found, FindDevices(api_));
    if (compiler_api_.kept_major > 0) KeepDevicesWithKernels(folder, found);
    for (DeviceInfo& info : found.fit) info.is_compiled_for_only = compiles_only;
    return Found{std::move(found.fit), std::move(found.left_out)};
  }

  plugin::DeviceDescription Describe(const DeviceInfo& info) const override {
    return cuda::Describe(info);
  }

  Api api_;
  CompilerApi compiler_api_;
};

}  // namespace
}  // namespace onnxifi::cuda

namespace onnxifi::abi {

std::unique_ptr<Provider> MakeProvider() {
  return plugin::MakeProvider(std::make_unique<cuda::Hardware>());
}

}  // namespace onnxifi::abi
