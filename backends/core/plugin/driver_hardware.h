// SPDX-License-Identifier: Apache-2.0
//
// DriverHardware: the hardware of a plugin whose driver lists devices, of which some may not be fit
// for kernels of core/codegen.

#ifndef ONNXIFI_BACKENDS_CORE_PLUGIN_DRIVER_HARDWARE_H_
#define ONNXIFI_BACKENDS_CORE_PLUGIN_DRIVER_HARDWARE_H_

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "backends/core/base/result.h"
#include "backends/core/codegen/selector.h"
#include "backends/core/plugin/hardware.h"

namespace onnxifi::plugin {

// `DeviceInfo` is what a backend knows of a device; it has the members `capabilities` and `tuning`
// for the selector.
template <typename DeviceInfo>
class DriverHardware : public Hardware {
 public:
  // What a driver has.
  struct Found {
    std::vector<DeviceInfo> fit;
    // A clause per device that is not, such as "llvmpipe lacks shaderInt64".
    std::vector<std::string> left_out;
  };

  std::vector<DeviceDescription> Enumerate() final {
    base::Result<Found> found = Find();
    if (!found.ok()) {
      absence_ = std::string(found.status().sentence());
      return {};
    }
    absence_ = found->left_out.empty() ? sentences_.no_device : sentences_.none_is_fit + ": ";
    for (const std::string& clause : found->left_out) {
      absence_ += clause + (&clause == &found->left_out.back() ? "." : ", ");
    }
    devices_ = std::move(found->fit);
    std::vector<DeviceDescription> descriptions;
    for (const DeviceInfo& info : devices_) {
      descriptions.push_back(Describe(info));
      selectors_.push_back(std::make_unique<codegen::Selector>(info.capabilities, info.tuning));
    }
    return descriptions;
  }

  std::string absence() const final { return absence_; }

  const device::Selector& selector(int index) const final {
    return *selectors_[static_cast<size_t>(index)];
  }

 protected:
  struct Sentences {
    std::string no_device;    // why there is none where nothing is left out
    std::string none_is_fit;  // what comes before the clauses
  };
  explicit DriverHardware(Sentences sentences) : sentences_(std::move(sentences)) {}

  const DeviceInfo& info(int index) const { return devices_[static_cast<size_t>(index)]; }

 private:
  virtual base::Result<Found> Find() = 0;
  virtual DeviceDescription Describe(const DeviceInfo& info) const = 0;

  const Sentences sentences_;
  std::string absence_;
  std::vector<DeviceInfo> devices_;
  std::vector<std::unique_ptr<codegen::Selector>> selectors_;
};

}  // namespace onnxifi::plugin

#endif  // ONNXIFI_BACKENDS_CORE_PLUGIN_DRIVER_HARDWARE_H_
