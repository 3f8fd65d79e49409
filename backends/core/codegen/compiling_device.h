// SPDX-License-Identifier: Apache-2.0
//
// CompilingDevice: what all devices do alike whose kernels this folder writes: steps are selected
// by the device's description, and built with what its kernels share.

#ifndef ONNXIFI_BACKENDS_CORE_CODEGEN_COMPILING_DEVICE_H_
#define ONNXIFI_BACKENDS_CORE_CODEGEN_COMPILING_DEVICE_H_

#include <cstdint>
#include <filesystem>
#include <memory>
#include <utility>

#include "backends/core/codegen/binary_cache.h"
#include "backends/core/codegen/kernel_launch.h"
#include "backends/core/codegen/recipe.h"
#include "backends/core/codegen/selector.h"
#include "backends/core/device/device.h"

namespace onnxifi::codegen {

class CompilingDevice : public device::Device {
 public:
  base::Result<device::Selection> Select(const device::Facts& facts) const override {
    return selector_.Select(facts);
  }
  bool PrefersWinograd(const device::Facts& facts) const override {
    return selector_.PrefersWinograd(facts);
  }
  bool PrefersAttention(const device::Facts& facts) const override {
    return selector_.PrefersAttention(facts);
  }
  bool PrefersRecurrent(const device::Facts& facts) const override {
    return selector_.PrefersRecurrent(facts);
  }
  bool PrefersNarrowOperands(const device::Facts& facts) const override {
    return selector_.PrefersNarrowOperands(facts);
  }
  base::Result<std::unique_ptr<device::Kernel>> Build(const device::Recipe& recipe) override {
    return static_cast<const Recipe&>(recipe).Build(services());
  }

  // For tests: distinct kernels, those of them that were compiled from source.
  int64_t kernel_count() { return services().kernels.kernel_count(); }
  int64_t compiled_count() { return services().kernels.compiled_count(); }

 protected:
  CompilingDevice(const Capabilities& capabilities, Tuning tuning)
      : selector_(capabilities, std::move(tuning)) {}

  // Kernels of such devices in a folder. A kernel takes some ten thousand bytes.
  static BinaryCache KernelsIn(const std::filesystem::path& folder) {
    constexpr int64_t kMaxCacheBytes = int64_t{256} << 20;
    return {folder, kMaxCacheBytes};
  }

 private:
  // They go before the driver that they name, so that the device has them.
  virtual Services& services() = 0;

  const codegen::Selector selector_;  // Not the interface, which is a base of this.
};

}  // namespace onnxifi::codegen

#endif  // ONNXIFI_BACKENDS_CORE_CODEGEN_COMPILING_DEVICE_H_
