// SPDX-License-Identifier: Apache-2.0
//
// Hardware: all that a backend tells the kit: which devices there are and how to open one. A
// plugin's whole own code is this, a device::Device, and one line that makes the provider.

#ifndef ONNXIFI_BACKENDS_CORE_PLUGIN_HARDWARE_H_
#define ONNXIFI_BACKENDS_CORE_PLUGIN_HARDWARE_H_

#include <onnx/onnxifi.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "backends/core/abi/provider.h"
#include "backends/core/base/result.h"
#include "backends/core/device/device.h"
#include "backends/core/device/sharing.h"
#include "backends/core/plugin/operator_source.h"

namespace onnxifi::plugin {

// Answers to onnxGetBackendInfo that differ between devices; the kit answers the others.
struct DeviceDescription {
  std::string name;  // product name without the vendor; the kit tells its first 49 bytes
  std::string vendor;
  std::string version;  // of the software, unique to a release
  std::string device;   // model name of the device
  onnxEnum type = ONNXIFI_DEVICE_TYPE_CPU;
  uint64_t memory_bytes = 0;
  // Bits of ONNXIFI_MEMORY_TYPE_... that inputs and outputs may lie in beside the host's memory,
  // with Hardware::SharingOf; of ONNXIFI_SYNCHRONIZATION_... beside events; kinds of
  // onnxNativeEvent.
  uint64_t memory_types = 0;
  uint64_t synchronization_types = 0;
  std::vector<uint32_t> event_kinds;
  // Keys of onnxInitBackend beyond OPTIMIZATION and LOG_LEVEL.
  std::vector<uint64_t> backend_properties;
  // Optional queries that this device answers.
  std::vector<std::pair<onnxBackendInfo, abi::InfoValue>> more;
};

class Hardware {
 public:
  virtual ~Hardware() = default;
  // As tools name it: "cpu" of "cpu:0".
  virtual std::string plugin_name() const = 0;
  // Looks without starting a device runtime. The number and order stay for the life of the process.
  virtual std::vector<DeviceDescription> Enumerate() = 0;
  // After Enumerate found nothing: why, in one sentence.
  virtual std::string absence() const { return {}; }
  // Answers for device `index` without opening it. Lives as long as the hardware. Any thread.
  virtual const device::Selector& selector(int index) const = 0;
  // INVALID_PROPERTY, BACKEND_UNAVAILABLE or a resource code. Any thread.
  virtual base::Result<std::unique_ptr<device::Device>> Open(
      int index, const abi::BackendProperties& properties) = 0;
  // Operators that this plugin adds. Live as long as the hardware.
  virtual std::span<const VendorDomain> domains() const { return {}; }
  // What a device that Open gave shares with callers who use its driver; lives as long as that
  // does. Null: nothing.
  virtual device::Sharing* SharingOf(device::Device& /*device*/) const { return nullptr; }
};

// The whole of a plugin's abi::MakeProvider().
std::unique_ptr<abi::Provider> MakeProvider(std::unique_ptr<Hardware> hardware);

}  // namespace onnxifi::plugin

#endif  // ONNXIFI_BACKENDS_CORE_PLUGIN_HARDWARE_H_
