// SPDX-License-Identifier: Apache-2.0
//
// Driver: info queries; a device that does not answer one is left out.

#include "backends/opencl/driver.h"

#include <algorithm>
#include <array>
#include <bit>
#include <filesystem>
#include <string>
#include <utility>

#include "backends/core/base/cache_folder.h"
#include "backends/core/codegen/binary_cache.h"
#include "backends/opencl/kernels.h"
#include "backends/opencl/signal_keeper.h"

namespace onnxifi::opencl {
namespace {

using base::Result;

template <typename T>
Result<T> Ask(const Api& api, cl_device_id device, cl_device_info query) {
  T value{};
  const cl_int result = api.GetDeviceInfo(device, query, sizeof(value), &value, nullptr);
  if (result != CL_SUCCESS) return ToStatus(result, "describe a device");
  return value;
}

// Without the trailing zero.
template <typename Object, typename Function>
Result<std::string> AskText(Function function, Object object, cl_uint query) {
  size_t size = 0;
  ONNXIFI_RETURN_IF_ERROR(
      ToStatus(function(object, query, 0, nullptr, &size), "describe a device"));
  std::string text(size, '\0');
  ONNXIFI_RETURN_IF_ERROR(
      ToStatus(function(object, query, size, text.data(), nullptr), "describe a device"));
  while (!text.empty() && text.back() == '\0') text.pop_back();
  return text;
}

// Which physical device it is, as far as the driver has extensions that tell.
void DescribeIdentity(const Api& api, cl_device_id id, DeviceInfo& info) {
  const Result<std::string> text = AskText(api.GetDeviceInfo, id, CL_DEVICE_EXTENSIONS);
  const std::string extensions = text.ok() ? " " + *text + " " : std::string();
  const auto has = [&](const char* name) {
    return extensions.find(" " + std::string(name) + " ") != std::string::npos;
  };
  // Numbers of cl_ext.h, which older headers lack.
  constexpr cl_device_info kUuid = 0x106A;
  constexpr cl_device_info kLuidValid = 0x106C;
  constexpr cl_device_info kLuid = 0x106D;
  constexpr cl_device_info kPciBusInfo = 0x410F;
  if (has("cl_khr_device_uuid")) {
    const auto uuid = Ask<std::array<uint8_t, 16>>(api, id, kUuid);
    if (uuid.ok()) info.uuid.assign(uuid->begin(), uuid->end());
    const auto is_valid = Ask<cl_bool>(api, id, kLuidValid);
    const auto luid = Ask<std::array<uint8_t, 8>>(api, id, kLuid);
    if (is_valid.ok() && *is_valid != CL_FALSE && luid.ok()) {
      info.luid.assign(luid->begin(), luid->end());
    }
  }
  if (has("cl_khr_pci_bus_info")) {
    // Domain, bus, device, function.
    const auto pci = Ask<std::array<cl_uint, 4>>(api, id, kPciBusInfo);
    if (pci.ok()) info.pci_address = {(*pci)[0], (*pci)[1], (*pci)[2]};
  }
}

Result<DeviceInfo> Describe(const Api& api, cl_platform_id platform, cl_device_id id) {
  DeviceInfo info;
  info.platform = platform;
  info.id = id;
  const auto text = [&](cl_device_info query) { return AskText(api.GetDeviceInfo, id, query); };
  ONNXIFI_ASSIGN_OR_RETURN(info.platform_name,
                           AskText(api.GetPlatformInfo, platform, CL_PLATFORM_NAME));
  ONNXIFI_ASSIGN_OR_RETURN(info.platform_version,
                           AskText(api.GetPlatformInfo, platform, CL_PLATFORM_VERSION));
  ONNXIFI_ASSIGN_OR_RETURN(info.name, text(CL_DEVICE_NAME));
  ONNXIFI_ASSIGN_OR_RETURN(info.vendor, text(CL_DEVICE_VENDOR));
  ONNXIFI_ASSIGN_OR_RETURN(info.driver_version, text(CL_DRIVER_VERSION));
  ONNXIFI_ASSIGN_OR_RETURN(info.device_version, text(CL_DEVICE_VERSION));
  DescribeIdentity(api, id, info);
  ONNXIFI_ASSIGN_OR_RETURN(info.type, (Ask<cl_device_type>(api, id, CL_DEVICE_TYPE)));
  ONNXIFI_ASSIGN_OR_RETURN(info.memory_bytes, (Ask<cl_ulong>(api, id, CL_DEVICE_GLOBAL_MEM_SIZE)));
  ONNXIFI_ASSIGN_OR_RETURN(info.largest_allocation_bytes,
                           (Ask<cl_ulong>(api, id, CL_DEVICE_MAX_MEM_ALLOC_SIZE)));
  ONNXIFI_ASSIGN_OR_RETURN(const cl_bool is_unified,
                           (Ask<cl_bool>(api, id, CL_DEVICE_HOST_UNIFIED_MEMORY)));
  info.is_unified = is_unified != CL_FALSE;
  // A device of OpenCL 1.2 does not know the question.
  const auto svm = Ask<cl_device_svm_capabilities>(api, id, CL_DEVICE_SVM_CAPABILITIES);
  info.has_shared_memory = api.SVMAlloc != nullptr && api.SVMFree != nullptr && svm.ok() &&
                           (*svm & CL_DEVICE_SVM_FINE_GRAIN_BUFFER) != 0;
  ONNXIFI_ASSIGN_OR_RETURN(const cl_device_fp_config single,
                           (Ask<cl_device_fp_config>(api, id, CL_DEVICE_SINGLE_FP_CONFIG)));
  info.keeps_subnormals = (single & CL_FP_DENORM) != 0;
  info.has_exact_division = (single & CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT) != 0;
  // 0 where the device has no float64.
  ONNXIFI_ASSIGN_OR_RETURN(const cl_device_fp_config twice,
                           (Ask<cl_device_fp_config>(api, id, CL_DEVICE_DOUBLE_FP_CONFIG)));
  info.capabilities.has_float64 = twice != 0;
  ONNXIFI_ASSIGN_OR_RETURN(const cl_uint vector_length,
                           (Ask<cl_uint>(api, id, CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT)));
  ONNXIFI_ASSIGN_OR_RETURN(const size_t most_group_items,
                           (Ask<size_t>(api, id, CL_DEVICE_MAX_WORK_GROUP_SIZE)));
  const auto shared_bytes = Ask<cl_ulong>(api, id, CL_DEVICE_LOCAL_MEM_SIZE);
  info.limits = {.is_processor = (info.type & CL_DEVICE_TYPE_CPU) != 0,
                 .vector_bits = 32 * static_cast<int>(
                                         std::bit_floor(std::clamp<cl_uint>(vector_length, 1, 16))),
                 .most_group_items = static_cast<int64_t>(most_group_items),
                 // OpenCL tells no rates; most GPUs have a small part of float32's.
                 .is_float64_fast = (info.type & CL_DEVICE_TYPE_CPU) != 0};
  const auto units = Ask<cl_uint>(api, id, CL_DEVICE_MAX_COMPUTE_UNITS);
  if (units.ok() && !info.limits.is_processor) info.limits.multiprocessors = *units;
  if (shared_bytes.ok()) info.limits.shared_bytes = static_cast<int64_t>(*shared_bytes);
  const std::filesystem::path folder = base::CacheFolder();
  info.tuning = codegen::FindTuning(info.limits, info.name, kTuningTable,
                                    folder.empty() ? folder : folder / kTuningFile);
  info.tuning.Describe(info.capabilities);
  return info;
}

// Whether kernels can be compiled on the device now.
bool IsUsable(const Api& api, cl_device_id id) {
  for (const cl_device_info query :
       {CL_DEVICE_AVAILABLE, CL_DEVICE_COMPILER_AVAILABLE, CL_DEVICE_ENDIAN_LITTLE}) {
    const Result<cl_bool> answer = Ask<cl_bool>(api, id, query);
    if (!answer.ok() || *answer == CL_FALSE) return false;
  }
  return true;
}

}  // namespace

Result<std::vector<DeviceInfo>> FindDevices(const Api& api) {
  const SignalKeeper keeper;
  cl_uint platform_count = 0;
  ONNXIFI_RETURN_IF_ERROR(
      ToStatus(api.GetPlatformIDs(0, nullptr, &platform_count), "list its platforms"));
  std::vector<cl_platform_id> platforms(platform_count);
  if (platform_count > 0) {
    ONNXIFI_RETURN_IF_ERROR(ToStatus(api.GetPlatformIDs(platform_count, platforms.data(), nullptr),
                                     "list its platforms"));
  }
  std::vector<DeviceInfo> found;
  for (const cl_platform_id platform : platforms) {
    cl_uint count = 0;
    if (api.GetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, nullptr, &count) != CL_SUCCESS) continue;
    std::vector<cl_device_id> ids(count);
    if (api.GetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, count, ids.data(), nullptr) != CL_SUCCESS) {
      continue;
    }
    for (const cl_device_id id : ids) {
      if (!IsUsable(api, id)) continue;
      Result<DeviceInfo> info = Describe(api, platform, id);
      if (info.ok()) found.push_back(*std::move(info));
    }
  }
  return found;
}

}  // namespace onnxifi::opencl
