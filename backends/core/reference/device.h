// SPDX-License-Identifier: Apache-2.0
//
// Device: the reference as a device::Device. The whole of the null plugin's hardware, the CPU
// backend's kernels where it has none of its own, and what every other device is compared with.

#ifndef ONNXIFI_BACKENDS_CORE_REFERENCE_DEVICE_H_
#define ONNXIFI_BACKENDS_CORE_REFERENCE_DEVICE_H_

#include <memory>

#include "backends/core/device/device.h"
#include "backends/core/device/parallel.h"
#include "backends/core/reference/host_memory.h"

namespace onnxifi::reference {

// Every selection says that it is emulated. Results do not depend on how `parallel` splits. Kernels
// keep the device alive no longer than it lives itself.
class Device final : public device::Device {
 public:
  // On the calling thread.
  Device() : parallel_(&serial_) {}
  // On the caller's threads; `parallel` outlives the device and its kernels.
  explicit Device(device::Parallel& parallel) : parallel_(&parallel) {}

  device::Memory& memory() override { return memory_; }
  base::Result<device::Selection> Select(const device::Facts& facts) const override;
  bool PrefersRecurrent(const device::Facts& /*facts*/) const override { return true; }
  base::Result<std::unique_ptr<device::Kernel>> Build(const device::Recipe& recipe) override;

 private:
  HostMemory memory_;
  device::Serial serial_;
  device::Parallel* parallel_;
};

}  // namespace onnxifi::reference

#endif  // ONNXIFI_BACKENDS_CORE_REFERENCE_DEVICE_H_
