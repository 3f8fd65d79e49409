// SPDX-License-Identifier: Apache-2.0
//
// Recipe: what every implementation of the CPU device answers for a step that it takes: its name,
// and how its kernel is built.

#ifndef ONNXIFI_BACKENDS_CPU_RUNTIME_RECIPE_H_
#define ONNXIFI_BACKENDS_CPU_RUNTIME_RECIPE_H_

#include <memory>

#include "backends/core/base/result.h"
#include "backends/core/device/device.h"
#include "backends/cpu/runtime/runtime.h"

namespace onnxifi::engine {
class Runtime;
}
namespace onnxifi::onednn {
class Runtime;
}

namespace onnxifi::runtime {

// What kernels of a device share, by the folder that they come from. They outlive the kernels.
struct Runtimes {
  Runtime& own;
  engine::Runtime& engine;
  onednn::Runtime& onednn;
};

class Recipe : public device::Recipe {
 public:
  // NO_SYSTEM_MEMORY.
  virtual base::Result<std::unique_ptr<device::Kernel>> Build(const Runtimes& runtimes) const = 0;
};

// The answer for a step: a refusal is an UNSUPPORTED_* code with a sentence.
using RecipeResult = base::Result<std::unique_ptr<const device::Recipe>>;

}  // namespace onnxifi::runtime

#endif  // ONNXIFI_BACKENDS_CPU_RUNTIME_RECIPE_H_
