// SPDX-License-Identifier: Apache-2.0
//
// PhysicalDevice: what a plugin tells of the hardware behind a device, by which devices of several
// plugins are known to be one.

#ifndef ONNXIFI_ONNXIFI_PLUGINS_PHYSICAL_DEVICE_H_
#define ONNXIFI_ONNXIFI_PLUGINS_PHYSICAL_DEVICE_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>

namespace onnxifi::plugins {

struct PhysicalDevice {
  // As ONNXIFI_SDK_BACKEND_DEVICE_UUID and ..._LUID have them; empty where they are not told, or
  // are zeros only.
  std::string uuid;
  std::string luid;
  // Domain, bus, device.
  std::optional<std::array<uint64_t, 3>> pci_address;
  bool is_processor = false;
  // Whether it takes buffers of an interface, such as Vulkan's.
  bool is_behind_interface = false;
};

// By the UUID if both tell one, else by the LUID, else by the PCI address. A processor that is
// reached through an interface is the machine's, as that of every plugin for processors.
bool IsOneDevice(const PhysicalDevice& a, const PhysicalDevice& b);

}  // namespace onnxifi::plugins

#endif  // ONNXIFI_ONNXIFI_PLUGINS_PHYSICAL_DEVICE_H_
