// SPDX-License-Identifier: Apache-2.0
//
// Recipe: what every implementation on a device that compiles has in common: it makes its own
// kernel.

#ifndef ONNXIFI_BACKENDS_CORE_CODEGEN_RECIPE_H_
#define ONNXIFI_BACKENDS_CORE_CODEGEN_RECIPE_H_

#include <memory>

#include "backends/core/codegen/kernel_launch.h"
#include "backends/core/device/device.h"

namespace onnxifi::codegen {

class Recipe : public device::Recipe {
 public:
  // The device has its own copies of constants.
  bool TakesAnyAddress(int /*read*/) const override { return true; }
  // The kernel outlives the recipe; `services` outlives the kernel.
  virtual std::unique_ptr<device::Kernel> Build(Services& services) const = 0;
};

}  // namespace onnxifi::codegen

#endif  // ONNXIFI_BACKENDS_CORE_CODEGEN_RECIPE_H_
