// SPDX-License-Identifier: Apache-2.0
//
// Device: a recipe is the compiled step itself, so what was promised is what runs.

#include "backends/core/reference/device.h"

#include <utility>

#include "backends/core/reference/compiled_step.h"
#include "backends/core/reference/scratch.h"

namespace onnxifi::reference {
namespace {

class ReferenceRecipe final : public device::Recipe {
 public:
  explicit ReferenceRecipe(std::shared_ptr<const CompiledStep> step) : step_(std::move(step)) {}
  std::string_view implementation() const override { return "reference"; }
  bool TakesAnyAddress(int /*read*/) const override { return true; }
  const std::shared_ptr<const CompiledStep>& step() const { return step_; }

 private:
  std::shared_ptr<const CompiledStep> step_;  // shared with the kernels built from it
};

class ReferenceKernel final : public device::Kernel {
 public:
  ReferenceKernel(std::shared_ptr<const CompiledStep> step, device::Parallel& parallel)
      : step_(std::move(step)), parallel_(parallel) {}

  base::Result<std::unique_ptr<device::BoundKernel>> Bind(const device::BoundStep& step,
                                                          device::Addresses) override {
    std::unique_ptr<device::BoundKernel> bound;
    ONNXIFI_RETURN_IF_ERROR(Guarded([&] {
      bound = step_->Bind(step, parallel_);
      return base::Ok();
    }));
    return bound;
  }

 private:
  std::shared_ptr<const CompiledStep> step_;  // as in ReferenceRecipe
  device::Parallel& parallel_;
};

}  // namespace

base::Result<device::Selection> Device::Select(const device::Facts& facts) const {
  ONNXIFI_ASSIGN_OR_RETURN(std::shared_ptr<const CompiledStep> step,
                           CompileStep(facts.program, facts.step));
  device::Selection selection;
  selection.recipe = std::make_unique<ReferenceRecipe>(std::move(step));
  selection.is_emulated = true;
  return selection;
}

base::Result<std::unique_ptr<device::Kernel>> Device::Build(const device::Recipe& recipe) {
  return std::unique_ptr<device::Kernel>(std::make_unique<ReferenceKernel>(
      static_cast<const ReferenceRecipe&>(recipe).step(), *parallel_));
}

}  // namespace onnxifi::reference
