// SPDX-License-Identifier: Apache-2.0
//
// Recipe: Map, Reduce and Row on the tile engine. The families of this folder as the CPU device
// lists them.

#ifndef ONNXIFI_BACKENDS_CPU_ENGINE_RECIPE_H_
#define ONNXIFI_BACKENDS_CPU_ENGINE_RECIPE_H_

#include <memory>
#include <string_view>

#include "backends/core/base/result.h"
#include "backends/core/device/device.h"
#include "backends/cpu/engine/runtime.h"
#include "backends/cpu/runtime/recipe.h"

namespace onnxifi::engine {

using KernelResult = base::Result<std::unique_ptr<device::Kernel>>;

class Recipe final : public runtime::Recipe {
 public:
  using Builder = std::unique_ptr<device::Kernel> (*)(const device::Facts& facts, Runtime& runtime);

  Recipe(std::string_view implementation, const device::Facts& facts, Builder build)
      : implementation_(implementation), facts_(facts), build_(build) {}

  std::string_view implementation() const override { return implementation_; }
  bool TakesAnyAddress(int /*read*/) const override { return true; }
  KernelResult Build(const runtime::Runtimes& runtimes) const override {
    return BuildKernel(runtimes.engine);
  }
  // NO_SYSTEM_MEMORY. `runtime` outlives the kernel.
  KernelResult BuildKernel(Runtime& runtime) const;

 private:
  const std::string_view implementation_;
  const device::Facts facts_;
  const Builder build_;
};

// Each refuses with an UNSUPPORTED_* status what its family cannot do on tiles.
runtime::RecipeResult SelectMap(const device::Facts& facts);
runtime::RecipeResult SelectReduce(const device::Facts& facts);
runtime::RecipeResult SelectRow(const device::Facts& facts);
// The one for the step's family, if it is one of them.
bool HasFamily(const program::Step& step);
runtime::RecipeResult Select(const device::Facts& facts);

// What every family asks: no more axes than the engine walks, and only types that have lanes.
base::Status CheckStep(const device::Facts& facts);

std::unique_ptr<device::Kernel> BuildMap(const device::Facts& facts, Runtime& runtime);
std::unique_ptr<device::Kernel> BuildReduce(const device::Facts& facts, Runtime& runtime);
std::unique_ptr<device::Kernel> BuildRow(const device::Facts& facts, Runtime& runtime);

}  // namespace onnxifi::engine

#endif  // ONNXIFI_BACKENDS_CPU_ENGINE_RECIPE_H_
