// SPDX-License-Identifier: Apache-2.0
//
// WithMergedAxes: a recipe of the step along two axes stands for that of the step along three.

#include <memory>
#include <utility>

#include "backends/cpu/convolution/recipe.h"
#include "backends/cpu/convolution/step_axes.h"

namespace onnxifi::convolution {
namespace {

class MergedKernel final : public device::Kernel {
 public:
  MergedKernel(std::shared_ptr<const program::Step> merged, std::unique_ptr<device::Kernel> kernel)
      : merged_(std::move(merged)), kernel_(std::move(kernel)) {}

  base::Result<std::unique_ptr<device::BoundKernel>> Bind(const device::BoundStep& step,
                                                          device::Addresses constants) override {
    return kernel_->Bind(device::Bind(*step.program, *merged_, step.dims), constants);
  }

 private:
  const std::shared_ptr<const program::Step> merged_;
  const std::unique_ptr<device::Kernel> kernel_;
};

class MergedRecipe final : public runtime::Recipe {
 public:
  MergedRecipe(std::shared_ptr<const program::Step> merged,
               std::unique_ptr<const device::Recipe> recipe)
      : merged_(std::move(merged)), recipe_(std::move(recipe)) {}

  std::string_view implementation() const override { return recipe_->implementation(); }
  bool TakesAnyAddress(int read) const override { return recipe_->TakesAnyAddress(read); }
  base::Result<std::unique_ptr<device::Kernel>> Build(
      const runtime::Runtimes& runtimes) const override {
    const auto& own = dynamic_cast<const runtime::Recipe&>(*recipe_);
    ONNXIFI_ASSIGN_OR_RETURN(std::unique_ptr<device::Kernel> kernel, own.Build(runtimes));
    return std::unique_ptr<device::Kernel>(
        std::make_unique<MergedKernel>(merged_, std::move(kernel)));
  }

 private:
  const std::shared_ptr<const program::Step> merged_;
  const std::unique_ptr<const device::Recipe> recipe_;
};

}  // namespace

runtime::RecipeResult WithMergedAxes(
    const device::Facts& facts,
    const std::function<runtime::RecipeResult(const device::Facts&)>& select) {
  std::optional<program::Step> step = MergeAxes(facts.step);
  if (!step) {
    return base::Status(base::Code::kUnsupportedShape,
                        "The kernel reaches along all axes, or they are no neighbours in memory.");
  }
  auto merged = std::make_shared<const program::Step>(*std::move(step));
  ONNXIFI_ASSIGN_OR_RETURN(std::unique_ptr<const device::Recipe> recipe,
                           select({facts.program, *merged}));
  return std::unique_ptr<const device::Recipe>(
      std::make_unique<MergedRecipe>(std::move(merged), std::move(recipe)));
}

}  // namespace onnxifi::convolution
