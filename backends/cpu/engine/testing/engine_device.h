// SPDX-License-Identifier: Apache-2.0
//
// EngineDevice: for tests: the tile engine alone as a device, which refuses what the engine
// refuses.

#ifndef ONNXIFI_BACKENDS_CPU_ENGINE_TESTING_ENGINE_DEVICE_H_
#define ONNXIFI_BACKENDS_CPU_ENGINE_TESTING_ENGINE_DEVICE_H_

#include <memory>
#include <utility>

#include "backends/core/reference/host_memory.h"
#include "backends/cpu/engine/recipe.h"

namespace onnxifi::engine {

class EngineDevice final : public device::Device {
 public:
  EngineDevice(device::Parallel& parallel, const Settings& settings)
      : runtime_(parallel, settings) {}

  device::Memory& memory() override { return memory_; }
  base::Result<device::Selection> Select(const device::Facts& facts) const override {
    ONNXIFI_ASSIGN_OR_RETURN(std::unique_ptr<const device::Recipe> recipe, engine::Select(facts));
    device::Selection selection;
    selection.recipe = std::move(recipe);
    return selection;
  }
  base::Result<std::unique_ptr<device::Kernel>> Build(const device::Recipe& recipe) override {
    return static_cast<const Recipe&>(recipe).BuildKernel(runtime_);
  }

 private:
  reference::HostMemory memory_;
  Runtime runtime_;
};

// Cuts as finely as the grain allows and runs the pieces from the last to the first: results that
// depend on the partition show.
class Shredder final : public device::Parallel {
 public:
  void For(int64_t count, int64_t grain,
           const std::function<void(int64_t begin, int64_t end)>& body) override {
    const int64_t pieces = (count + grain - 1) / grain;
    for (int64_t piece = pieces; piece-- > 0;) {
      body(piece * grain, std::min(count, (piece + 1) * grain));
    }
  }
};

}  // namespace onnxifi::engine

#endif  // ONNXIFI_BACKENDS_CPU_ENGINE_TESTING_ENGINE_DEVICE_H_
