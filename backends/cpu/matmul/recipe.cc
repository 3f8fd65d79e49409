// SPDX-License-Identifier: Apache-2.0
//
// Recipe: chooses among the methods and the other kernel when a step is bound.

#include "backends/cpu/matmul/recipe.h"

#include <string>
#include <utility>

#include "backends/core/base/result.h"

namespace onnxifi::matmul {
namespace {

using base::Code;
using base::Result;
using base::Status;

class Kernel final : public device::Kernel {
 public:
  Kernel(Recipe::Methods methods, runtime::Runtime& runtime,
         std::unique_ptr<device::Kernel> otherwise)
      : methods_(std::move(methods)), runtime_(runtime), otherwise_(std::move(otherwise)) {}

  Result<std::unique_ptr<device::BoundKernel>> Bind(const device::BoundStep& step,
                                                    device::Addresses constants) override {
    for (const std::shared_ptr<const Method>& method : methods_) {
      ONNXIFI_ASSIGN_OR_RETURN(std::unique_ptr<device::BoundKernel> bound,
                               method->Bind(step, constants, runtime_, store_));
      if (bound != nullptr) return bound;
    }
    if (otherwise_ != nullptr) return otherwise_->Bind(step, constants);
    return Status(Code::kInternalError, "The extents of a matrix product are not those of '" +
                                            std::string(methods_.back()->name()) + "'.");
  }

 private:
  const Recipe::Methods methods_;  // shared with the recipe
  runtime::Runtime& runtime_;
  const std::unique_ptr<device::Kernel> otherwise_;
  runtime::WeightStore store_;
};

// The names of all that may do the step.
std::string NamesOf(const Recipe::Methods& methods, const device::Recipe* otherwise) {
  std::string names;
  for (const std::shared_ptr<const Method>& method : methods) {
    names += (names.empty() ? "" : " or ") + std::string(method->name());
  }
  if (otherwise != nullptr) names += " or " + std::string(otherwise->implementation());
  return names;
}

}  // namespace

Recipe::Recipe(Methods methods, std::unique_ptr<const device::Recipe> otherwise, int matrix)
    : methods_(std::move(methods)),
      otherwise_(std::move(otherwise)),
      matrix_(matrix),
      implementation_(NamesOf(methods_, otherwise_.get())) {}

Result<std::unique_ptr<device::Kernel>> Recipe::Build(const runtime::Runtimes& runtimes) const {
  std::unique_ptr<device::Kernel> otherwise;
  if (otherwise_ != nullptr) {
    // Of another folder of this plugin.
    const auto& recipe = dynamic_cast<const runtime::Recipe&>(*otherwise_);
    ONNXIFI_ASSIGN_OR_RETURN(otherwise, recipe.Build(runtimes));
  }
  return BuildKernel(runtimes.own, std::move(otherwise));
}

std::unique_ptr<device::Kernel> Recipe::BuildKernel(
    runtime::Runtime& runtime, std::unique_ptr<device::Kernel> otherwise) const {
  return std::make_unique<Kernel>(methods_, runtime, std::move(otherwise));
}

}  // namespace onnxifi::matmul
