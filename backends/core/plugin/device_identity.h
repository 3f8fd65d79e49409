// SPDX-License-Identifier: Apache-2.0
//
// DeviceIdentity: what drivers tell of the physical device behind an ID, as answers to queries.

#ifndef ONNXIFI_BACKENDS_CORE_PLUGIN_DEVICE_IDENTITY_H_
#define ONNXIFI_BACKENDS_CORE_PLUGIN_DEVICE_IDENTITY_H_

#include <onnx/onnxifi.h>
#include <onnxifi/sdk.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "backends/core/device/pci_address.h"
#include "backends/core/plugin/hardware.h"

namespace onnxifi::plugin {

// Two hexadecimal digits per byte.
inline std::string HexText(std::span<const uint8_t> bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const uint8_t byte : bytes) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

// Adds the answers. An empty UUID or LUID is one that is not told.
inline void AnswerIdentity(std::span<const uint8_t> uuid, std::span<const uint8_t> luid,
                           const std::optional<device::PciAddress>& pci_address,
                           DeviceDescription& description) {
  auto& more = description.more;
  if (!uuid.empty()) more.emplace_back(ONNXIFI_SDK_BACKEND_DEVICE_UUID, HexText(uuid));
  if (!luid.empty()) more.emplace_back(ONNXIFI_SDK_BACKEND_DEVICE_LUID, HexText(luid));
  if (!pci_address) return;
  more.emplace_back(ONNXIFI_BACKEND_PCI_DOMAIN_ID, uint64_t{pci_address->domain});
  more.emplace_back(ONNXIFI_BACKEND_PCI_BUS_ID, uint64_t{pci_address->bus});
  more.emplace_back(ONNXIFI_BACKEND_PCI_DEVICE_ID, uint64_t{pci_address->device});
}

}  // namespace onnxifi::plugin

#endif  // ONNXIFI_BACKENDS_CORE_PLUGIN_DEVICE_IDENTITY_H_
