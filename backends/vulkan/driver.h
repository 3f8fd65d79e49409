// SPDX-License-Identifier: Apache-2.0
//
// Driver: the instance, the devices that are fit for kernels of this kit, what they say of
// themselves, and what the others lack.

#ifndef ONNXIFI_BACKENDS_VULKAN_DRIVER_H_
#define ONNXIFI_BACKENDS_VULKAN_DRIVER_H_

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backends/core/codegen/expression.h"
#include "backends/core/codegen/tuning.h"
#include "backends/core/device/pci_address.h"
#include "backends/vulkan/api.h"
#include "backends/vulkan/features.h"
#include "backends/vulkan/float_mode.h"
#include "backends/vulkan/memory_types.h"
#include "backends/vulkan/validation.h"

namespace onnxifi::vulkan {

// Version 1.2 of the interface, as this backend uses it.
inline constexpr uint32_t kApiVersion = VK_API_VERSION_1_2;

// Outlives all devices that were found in it.
class Instance {
 public:
  // BACKEND_UNAVAILABLE if the loader is too old or has no driver, or if there is no validation
  // layer and it is asked for; resource codes.
  static base::Result<std::unique_ptr<Instance>> Create(const Api& api,
                                                        bool is_validated = IsValidationAskedFor());
  ~Instance();
  Instance(const Instance&) = delete;
  Instance& operator=(const Instance&) = delete;

  const InstanceApi& api() const { return functions_; }
  VkInstance get() const { return instance_; }
  // A function of an extension; null if there is none.
  PFN_vkVoidFunction Find(const char* name) const { return look_up_(instance_, name); }
  // Or null.
  const Validation* validation() const { return validation_.get(); }

 private:
  explicit Instance(PFN_vkGetInstanceProcAddr look_up) : look_up_(look_up) {}

  const PFN_vkGetInstanceProcAddr look_up_;
  std::unique_ptr<Validation> validation_;
  VkInstance instance_ = VK_NULL_HANDLE;
  InstanceApi functions_;
};

struct DeviceInfo {
  VkPhysicalDevice id = VK_NULL_HANDLE;
  std::string name;
  std::string driver_name;
  std::string driver_info;
  uint32_t driver_version = 0;
  uint32_t api_version = 0;
  VkPhysicalDeviceType type = VK_PHYSICAL_DEVICE_TYPE_OTHER;
  std::array<uint8_t, VK_UUID_SIZE> uuid{};
  std::array<uint8_t, VK_UUID_SIZE> driver_uuid{};
  std::optional<std::array<uint8_t, VK_LUID_SIZE>> luid;
  std::optional<device::PciAddress> pci_address;
  Features features;  // that it has, or was made with
  uint32_t queue_family = 0;
  // 0 in timestamp_bits: the queue tells no times.
  uint32_t timestamp_bits = 0;
  double timestamp_period_ns = 1;
  std::string limits_text;  // as ONNXIFI_SDK_BACKEND_DEVICE_LIMITS has it
  uint32_t most_groups_x = 0;
  uint32_t most_groups_y = 0;
  uint64_t memory_bytes = 0;  // of the heap that buffers lie in
  uint64_t largest_allocation_bytes = 0;
  bool has_memory_budget = false;
  // Of memory of the host's that it takes; 0: it takes none.
  uint64_t host_memory_alignment = 0;
  bool takes_opaque_fds = false;
  MemoryTypes memory_types;
  FloatControls float_controls;
  codegen::Capabilities capabilities;
  // Its matrix units are VK_KHR_cooperative_matrix, and a device is opened with that; and with
  // VK_KHR_shader_bfloat16 if they multiply bfloat16.
  bool has_cooperative_matrices = false;
  std::string product_library;  // GLSL; codegen::KernelDriver says of what
  codegen::DeviceLimits limits;
  codegen::Tuning tuning;

  bool is_processor() const { return type == VK_PHYSICAL_DEVICE_TYPE_CPU; }
  // Whether its memory is the host's, so that kernels read the host's as fast.
  bool is_unified() const {
    return is_processor() || type == VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU;
  }
};

// In a cache folder: what was measured on this machine (codegen/tuning.h).
inline constexpr const char kTuningFile[] = "vulkan-tuning.csv";

struct FoundDevices {
  std::vector<DeviceInfo> fit;
  // A clause per device that is not, such as "llvmpipe lacks shaderInt64".
  std::vector<std::string> left_out;
};
// Resource codes, BACKEND_UNAVAILABLE.
base::Result<FoundDevices> FindDevices(const Instance& instance);

}  // namespace onnxifi::vulkan

#endif  // ONNXIFI_BACKENDS_VULKAN_DRIVER_H_
