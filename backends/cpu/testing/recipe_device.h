// SPDX-License-Identifier: Apache-2.0
//
// RecipeDevice: for tests: one implementation over the engine's runtime as a device, which refuses
// what that refuses.

#ifndef ONNXIFI_BACKENDS_CPU_TESTING_RECIPE_DEVICE_H_
#define ONNXIFI_BACKENDS_CPU_TESTING_RECIPE_DEVICE_H_

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "backends/core/reference/host_memory.h"
#include "backends/core/reference/testing/step_comparison.h"
#include "backends/cpu/engine/recipe.h"

namespace onnxifi::cpu {

class RecipeDevice final : public device::Device {
 public:
  using Selection = runtime::RecipeResult (*)(const device::Facts& facts);

  RecipeDevice(Selection select, device::Parallel& parallel, const engine::Settings& settings)
      : select_(select), runtime_(parallel, settings) {}

  device::Memory& memory() override { return memory_; }
  base::Result<device::Selection> Select(const device::Facts& facts) const override {
    ONNXIFI_ASSIGN_OR_RETURN(std::unique_ptr<const device::Recipe> recipe, select_(facts));
    device::Selection selection;
    selection.recipe = std::move(recipe);
    return selection;
  }
  base::Result<std::unique_ptr<device::Kernel>> Build(const device::Recipe& recipe) override {
    return static_cast<const engine::Recipe&>(recipe).BuildKernel(runtime_);
  }

 private:
  const Selection select_;
  reference::HostMemory memory_;
  engine::Runtime runtime_;
};

// Compares random steps of a family; `least_share` of them are not refused.
inline void CompareRandomSteps(RecipeDevice& device, reference::Family family, uint64_t seed,
                               int64_t count, double least_share) {
  const reference::Comparison comparison =
      reference::CompareWithReference(device, family, seed, count);
  EXPECT_EQ(comparison.different, 0) << comparison.first_difference;
  EXPECT_GE(static_cast<double>(comparison.compared), least_share * static_cast<double>(count));
}

}  // namespace onnxifi::cpu

#endif  // ONNXIFI_BACKENDS_CPU_TESTING_RECIPE_DEVICE_H_
