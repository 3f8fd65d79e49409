// SPDX-License-Identifier: Apache-2.0
//
// Device: the reference's kernels over memory with a limit.

#ifndef ONNXIFI_BACKENDS_MOCK_DEVICE_H_
#define ONNXIFI_BACKENDS_MOCK_DEVICE_H_

#include <memory>

#include "backends/core/device/device.h"
#include "backends/core/reference/device.h"
#include "backends/mock/settings.h"
#include "backends/mock/state.h"

namespace onnxifi::mock {

// Memory of the host, as much of it as the settings allow, counted over the whole device.
class LimitedMemory final : public device::Memory {
 public:
  LimitedMemory(device::Memory& host, State& state, int64_t limit_bytes)
      : host_(host), state_(state), limit_bytes_(limit_bytes) {}

  base::Result<std::unique_ptr<device::Allocation>> Allocate(int64_t size_bytes) override;
  // Counts as memory of the device, though it lies in the host's.
  base::Result<std::unique_ptr<device::Allocation>> Hold(const tensor::Tensor& constant) override;

 private:
  // What `make` makes, if there is room for it.
  template <typename Make>
  base::Result<std::unique_ptr<device::Allocation>> Count(int64_t size_bytes, const Make& make);

  device::Memory& host_;
  State& state_;
  const int64_t limit_bytes_;  // 0: none
};

class Device final : public device::Device {
 public:
  Device(const Settings& settings, State& state)
      : memory_(reference_.memory(), state, settings.memory_bytes) {}

  device::Memory& memory() override { return memory_; }
  base::Result<device::Selection> Select(const device::Facts& facts) const override {
    return reference_.Select(facts);
  }
  base::Result<std::unique_ptr<device::Kernel>> Build(const device::Recipe& recipe) override {
    return reference_.Build(recipe);
  }

 private:
  reference::Device reference_;
  LimitedMemory memory_;
};

}  // namespace onnxifi::mock

#endif  // ONNXIFI_BACKENDS_MOCK_DEVICE_H_
