// SPDX-License-Identifier: Apache-2.0
//
// PhysicalDevice: parts of one GPU share its PCI address and have UUIDs of their own, so that UUIDs
// count more.

#include "onnxifi/plugins/physical_device.h"

namespace onnxifi::plugins {

bool IsOneDevice(const PhysicalDevice& a, const PhysicalDevice& b) {
  if (a.is_processor && b.is_processor && (a.is_behind_interface || b.is_behind_interface)) {
    return true;
  }
  if (!a.uuid.empty() && !b.uuid.empty()) return a.uuid == b.uuid;
  if (!a.luid.empty() && !b.luid.empty()) return a.luid == b.luid;
  return a.pci_address && a.pci_address == b.pci_address;
}

}  // namespace onnxifi::plugins
