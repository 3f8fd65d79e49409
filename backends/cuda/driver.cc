// SPDX-License-Identifier: Apache-2.0
//
// Driver: the questions to its devices.

#include "backends/cuda/driver.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>

#include "backends/core/base/cache_folder.h"

namespace onnxifi::cuda {
namespace {

using base::Status;

constexpr int kMinArchitecture = 80;

// Multiply-adds of float32 that a multiprocessor does in a clock; 0: not known.
int LanesOf(int architecture) {
  if (architecture == 80) return 64;
  return architecture < 130 ? 128 : 0;
}

// The same of float16 on tensor cores, as NVIDIA's papers on the architectures have them.
int HalfLanesOf(int architecture) {
  if (architecture == 80) return 1024;
  if (architecture == 86 || architecture == 89) return 512;
  if (architecture == 90) return 2048;
  return architecture == 100 ? 4096 : 0;
}

// Whether a multiprocessor does half as many multiply-adds of float64, or more. Of those since 8.0
// the ones of data centres do; others, and unknown ones, count as slow.
bool IsFloat64Fast(int architecture) { return architecture == 80 || architecture == 90; }

Status Describe(const Api& api, int index, DeviceInfo& info) {
  info.index = index;
  ONNXIFI_RETURN_IF_ERROR(ToStatus(api.DeviceGet(&info.id, index), "find a device"));
  std::array<char, 256> name{};
  ONNXIFI_RETURN_IF_ERROR(ToStatus(
      api.DeviceGetName(name.data(), static_cast<int>(name.size()) - 1, info.id), "name a device"));
  info.name = name.data();
  CUuuid uuid{};
  ONNXIFI_RETURN_IF_ERROR(ToStatus(api.DeviceGetUuid(&uuid, info.id), "tell a device's UUID"));
  std::ranges::transform(uuid.bytes, info.uuid.begin(),
                         [](char byte) { return static_cast<uint8_t>(byte); });
  size_t memory_bytes = 0;
  ONNXIFI_RETURN_IF_ERROR(
      ToStatus(api.DeviceTotalMem(&memory_bytes, info.id), "tell a device's memory"));
  info.memory_bytes = memory_bytes;
  Status status = base::Ok();
  const auto ask = [&](CUdevice_attribute attribute) {
    int value = 0;
    Status answer =
        ToStatus(api.DeviceGetAttribute(&value, attribute, info.id), "tell a device's attributes");
    if (status.ok()) status = std::move(answer);
    return value;
  };
  info.architecture = 10 * ask(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) +
                      ask(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  info.multiprocessors = ask(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  const auto cycles = static_cast<uint64_t>(info.multiprocessors) *
                      static_cast<uint64_t>(ask(CU_DEVICE_ATTRIBUTE_CLOCK_RATE)) * 1000;
  info.float32_macs = cycles * static_cast<uint64_t>(LanesOf(info.architecture));
  info.float16_macs = cycles * static_cast<uint64_t>(HalfLanesOf(info.architecture));
  // Memory sends twice a cycle.
  info.memory_bandwidth =
      2 * static_cast<uint64_t>(ask(CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE)) * 1000 *
      static_cast<uint64_t>(ask(CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH)) / 8;
  info.pci_domain = static_cast<uint32_t>(ask(CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID));
  info.pci_bus = static_cast<uint32_t>(ask(CU_DEVICE_ATTRIBUTE_PCI_BUS_ID));
  info.pci_device = static_cast<uint32_t>(ask(CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID));
  info.limits = {.is_processor = false,
                 .vector_bits = 32,
                 .most_group_items = ask(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK),
                 .shared_bytes = ask(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK),
                 .is_float64_fast = IsFloat64Fast(info.architecture),
                 .multiprocessors = info.multiprocessors};
  ONNXIFI_RETURN_IF_ERROR(std::move(status));
  const std::filesystem::path folder = base::CacheFolder();
  info.tuning = FindTuning(info.limits, info.name, folder.empty() ? folder : folder / kTuningFile);
  info.libraries = FindLibraryRules(info.name, folder.empty() ? folder : folder / kLibrariesFile);
  info.capabilities.has_float64 = true;
  info.capabilities.matrix_units.kind = codegen::MatrixUnits::Kind::kFragments;
  info.tuning.Describe(info.capabilities);
  return base::Ok();
}

}  // namespace

codegen::Tuning FindTuning(const codegen::DeviceLimits& limits, const std::string& name,
                           const std::filesystem::path& file) {
  // As in "NVIDIA A100-SXM4-40GB MIG 1g.5gb".
  const std::string whole = name.substr(0, name.find(" MIG "));
  std::error_code error;
  std::string table;
  if (whole != name && std::filesystem::exists(file, error)) {
    std::ifstream stream(file);
    for (std::string line; std::getline(stream, line);) {
      if (line.starts_with(whole + ",")) table += name + line.substr(whole.size()) + "\n";
    }
  }
  return codegen::FindTuning(limits, name, table, file);
}

base::Result<FoundDevices> FindDevices(const Api& api) {
  FoundDevices found;
  const CUresult started = api.Init(0);
  if (started == CUDA_ERROR_NO_DEVICE) return found;
  ONNXIFI_RETURN_IF_ERROR(ToStatus(started, "start the driver"));
  int driver_version = 0;
  ONNXIFI_RETURN_IF_ERROR(
      ToStatus(api.DriverGetVersion(&driver_version), "tell the driver's version"));
  int count = 0;
  ONNXIFI_RETURN_IF_ERROR(ToStatus(api.DeviceGetCount(&count), "count devices"));
  for (int index = 0; index < count; ++index) {
    DeviceInfo info;
    info.driver_version = driver_version;
    const Status status = Describe(api, index, info);
    if (!status.ok()) {
      found.left_out.push_back("device " + std::to_string(index) + " does not describe itself");
    } else if (info.architecture < kMinArchitecture) {
      found.left_out.push_back(info.name + " has compute capability " +
                               std::to_string(info.architecture / 10) + "." +
                               std::to_string(info.architecture % 10) + " in place of 8.0");
    } else {
      found.fit.push_back(std::move(info));
    }
  }
  return found;
}

}  // namespace onnxifi::cuda
