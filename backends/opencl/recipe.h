// SPDX-License-Identifier: Apache-2.0
//
// Recipe: what every implementation of this device's has in common: it makes its own kernel.

#ifndef ONNXIFI_BACKENDS_OPENCL_RECIPE_H_
#define ONNXIFI_BACKENDS_OPENCL_RECIPE_H_

#include <memory>

#include "backends/core/device/device.h"
#include "backends/opencl/launch.h"

namespace onnxifi::opencl {

class Recipe : public device::Recipe {
 public:
  // The kernel outlives the recipe; `services` outlives the kernel.
  virtual std::unique_ptr<device::Kernel> Build(Services& services) const = 0;
};

}  // namespace onnxifi::opencl

#endif  // ONNXIFI_BACKENDS_OPENCL_RECIPE_H_
