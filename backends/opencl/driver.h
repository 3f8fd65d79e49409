// SPDX-License-Identifier: Apache-2.0
//
// Driver: the platforms and devices that the loader knows, and what they say of themselves.

#ifndef ONNXIFI_BACKENDS_OPENCL_DRIVER_H_
#define ONNXIFI_BACKENDS_OPENCL_DRIVER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "backends/core/codegen/expression.h"
#include "backends/core/codegen/tuning.h"
#include "backends/core/device/pci_address.h"
#include "backends/opencl/api.h"

namespace onnxifi::opencl {

struct DeviceInfo {
  cl_platform_id platform = nullptr;
  cl_device_id id = nullptr;
  std::string platform_name;
  std::string platform_version;
  std::string name;
  std::string vendor;
  std::string driver_version;
  std::string device_version;
  cl_device_type type = 0;
  // What physical device it is, where the driver tells: 16 and 8 bytes, else empty.
  std::vector<uint8_t> uuid;
  std::vector<uint8_t> luid;
  std::optional<device::PciAddress> pci_address;
  uint64_t memory_bytes = 0;
  uint64_t largest_allocation_bytes = 0;
  // The device's memory is the host's.
  bool is_unified = false;
  // There is memory on which host and device both work without being told of it (OpenCL 2.0's
  // fine-grained buffers).
  bool has_shared_memory = false;
  bool keeps_subnormals = false;  // of float32
  // Division and square root can be had with IEEE 754's rounding.
  bool has_exact_division = false;
  codegen::Capabilities capabilities;
  codegen::DeviceLimits limits;
  codegen::Tuning tuning;
};

// In a cache folder: what was measured on this machine (codegen/tuning.h).
inline constexpr const char kTuningFile[] = "opencl-tuning.csv";

// Every device that is available and can compile, platform by platform. BACKEND_UNAVAILABLE with
// the reason if there is no platform; a platform without devices is no fault.
base::Result<std::vector<DeviceInfo>> FindDevices(const Api& api);

}  // namespace onnxifi::opencl

#endif  // ONNXIFI_BACKENDS_OPENCL_DRIVER_H_
