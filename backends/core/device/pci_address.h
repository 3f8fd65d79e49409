// SPDX-License-Identifier: Apache-2.0
//
// PciAddress: where a device is in the machine, as its driver tells it.

#ifndef ONNXIFI_BACKENDS_CORE_DEVICE_PCI_ADDRESS_H_
#define ONNXIFI_BACKENDS_CORE_DEVICE_PCI_ADDRESS_H_

#include <cstdint>

namespace onnxifi::device {

struct PciAddress {
  uint32_t domain = 0;
  uint32_t bus = 0;
  uint32_t device = 0;
};

}  // namespace onnxifi::device

#endif  // ONNXIFI_BACKENDS_CORE_DEVICE_PCI_ADDRESS_H_
