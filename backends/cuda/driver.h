// SPDX-License-Identifier: Apache-2.0
//
// Driver: the devices that are fit for kernels of this kit, in the driver's order, what they say of
// themselves, and what the others lack. No context is made.

#ifndef ONNXIFI_BACKENDS_CUDA_DRIVER_H_
#define ONNXIFI_BACKENDS_CUDA_DRIVER_H_

#include <array>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "backends/core/codegen/expression.h"
#include "backends/core/codegen/tuning.h"
#include "backends/cuda/api.h"
#include "backends/cuda/libraries/rules.h"

namespace onnxifi::cuda {

// A GPU, or an instance of one (MIG): the driver shows those that CUDA_VISIBLE_DEVICES names, else
// the first, each with its own name, UUID, memory and multiprocessors.
struct DeviceInfo {
  CUdevice id = 0;
  int index = 0;
  std::string name;
  std::array<uint8_t, 16> uuid{};
  uint32_t pci_domain = 0;
  uint32_t pci_bus = 0;
  uint32_t pci_device = 0;
  int architecture = 0;    // 90 for compute capability 9.0
  int driver_version = 0;  // 13000 for CUDA 13.0
  uint64_t memory_bytes = 0;
  int multiprocessors = 0;
  // A second, by clocks and units; 0 for an architecture not known, or where the driver tells none.
  uint64_t float32_macs = 0;
  uint64_t float16_macs = 0;
  uint64_t memory_bandwidth = 0;
  codegen::Capabilities capabilities;
  codegen::DeviceLimits limits;
  codegen::Tuning tuning;
  LibraryRules libraries;
  // Of compile_only.h: kernels are compiled and nothing runs.
  bool is_compiled_for_only = false;
};

// In a cache folder: what was measured on this machine (codegen/tuning.h).
inline constexpr const char kTuningFile[] = "cuda-tuning.csv";

// The rules of `file` for a device of this name; those for the whole GPU serve its instances.
codegen::Tuning FindTuning(const codegen::DeviceLimits& limits, const std::string& name,
                           const std::filesystem::path& file);

struct FoundDevices {
  std::vector<DeviceInfo> fit;
  // A clause per device that is not, such as "Tesla T4 has compute capability 7.5 in place of 8.0".
  std::vector<std::string> left_out;
};
// BACKEND_UNAVAILABLE if the driver cannot be initialised.
base::Result<FoundDevices> FindDevices(const Api& api);

}  // namespace onnxifi::cuda

#endif  // ONNXIFI_BACKENDS_CUDA_DRIVER_H_
