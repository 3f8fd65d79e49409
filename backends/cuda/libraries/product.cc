// SPDX-License-Identifier: Apache-2.0
//
// LibraryProducts: the recipe, and what is done where a binding is refused.

#include "backends/cuda/libraries/product.h"

#include <string>
#include <string_view>
#include <utility>

#include "backends/core/codegen/recipe.h"
#include "backends/cuda/libraries/bound_product.h"
#include "backends/cuda/libraries/product_form.h"

namespace onnxifi::cuda {
namespace {

using base::Code;
using base::Result;
using base::Status;

Status Refuse(std::string sentence) {
  return Status(Code::kUnsupportedOperator, std::move(sentence));
}

// Computed by the kernel that was selected before.
class PassedOver final : public device::BoundKernel {
 public:
  PassedOver(std::unique_ptr<device::BoundKernel> kernel, std::string_view implementation,
             const Status& reason)
      : kernel_(std::move(kernel)), implementation_(implementation), reason_(reason.sentence()) {}
  Status Enqueue(device::Queue& queue, device::Addresses addresses) const override {
    return kernel_->Enqueue(queue, addresses);
  }
  bool ReadsAtRun(int read) const override { return kernel_->ReadsAtRun(read); }
  std::string Detail() const override {
    const std::string detail = kernel_->Detail();
    return implementation_ + (detail.empty() ? "" : ", " + detail) +
           ", cuBLASLt passed over: " + reason_;
  }

 private:
  const std::unique_ptr<device::BoundKernel> kernel_;
  const std::string implementation_;
  const std::string reason_;
};

// What a recipe and its kernels have in common.
struct Choice {
  const CublasLt& library;
  const LibraryRules& rules;
  const codegen::Capabilities& capabilities;
  ProductForm form;
};

class ProductKernel final : public device::Kernel {
 public:
  ProductKernel(const Choice& choice, std::unique_ptr<device::Kernel> before,
                std::string_view implementation, codegen::Services& services)
      : choice_(choice),
        before_(std::move(before)),
        implementation_(implementation),
        services_(services) {}

  Result<std::unique_ptr<device::BoundKernel>> Bind(const device::BoundStep& step,
                                                    device::Addresses constants) override {
    auto bound = BindProduct({choice_.library, choice_.rules, choice_.capabilities, services_},
                             choice_.form, step);
    if (bound.ok() || !IsRefusal(bound.status())) return bound;
    ONNXIFI_ASSIGN_OR_RETURN(std::unique_ptr<device::BoundKernel> before,
                             before_->Bind(step, constants));
    return std::unique_ptr<device::BoundKernel>(
        std::make_unique<PassedOver>(std::move(before), implementation_, bound.status()));
  }

 private:
  static bool IsRefusal(const Status& status) {
    return status.code() == Code::kUnsupportedOperator ||
           status.code() == Code::kUnsupportedDatatype;
  }

  const Choice choice_;
  const std::unique_ptr<device::Kernel> before_;
  const std::string implementation_;
  codegen::Services& services_;
};

class ProductRecipe final : public codegen::Recipe {
 public:
  ProductRecipe(Choice choice, std::unique_ptr<const device::Recipe> before)
      : choice_(choice), before_(std::move(before)) {}
  std::string_view implementation() const override { return "cuBLASLt"; }
  tensor::Precision precision() const override { return choice_.form.precision; }
  std::unique_ptr<device::Kernel> Build(codegen::Services& services) const override {
    // The device has no other recipes.
    const auto& before = static_cast<const codegen::Recipe&>(*before_);
    return std::make_unique<ProductKernel>(choice_, before.Build(services), before.implementation(),
                                           services);
  }

 private:
  const Choice choice_;
  const std::unique_ptr<const device::Recipe> before_;
};

}  // namespace

Result<const CublasLt*> LibraryProducts::Library() const {
  std::call_once(is_opened_, [&] {
    auto opened = CublasLt::Open(host_);
    if (opened.ok()) {
      library_ = *std::move(opened);
    } else {
      absence_ = std::move(opened).status();
    }
  });
  if (library_ == nullptr) return absence_;
  return library_.get();
}

Result<device::Selection> LibraryProducts::Prefer(const device::Facts& facts,
                                                  Result<device::Selection> selected) const {
  if (!selected.ok() || facts.step.As<program::Contract>() == nullptr) return selected;
  const auto choose = [&]() -> Result<Choice> {
    if (!host_.IsReal()) return Refuse("cuBLASLt is off: nothing runs on this device.");
    if (rules_.use == LibraryRules::Use::kNever) {
      return Refuse("cuBLASLt is off: ONNXIFI_CUDA_LIBRARIES is never.");
    }
    ONNXIFI_ASSIGN_OR_RETURN(ProductForm form, FindProductForm(facts));
    if (!rules_.TakesSome(form.type)) {
      return Refuse("There is no rule for cuBLASLt's products of " + std::string(form.type) + ".");
    }
    ONNXIFI_ASSIGN_OR_RETURN(const CublasLt* const library, Library());
    return Choice{*library, rules_, capabilities_, std::move(form)};
  };
  Result<Choice> choice = choose();
  if (choice.ok()) {
    selected->recipe =
        std::make_unique<ProductRecipe>(*std::move(choice), std::move(selected->recipe));
  } else {
    selected->rejected.insert(selected->rejected.begin(), std::move(choice).status());
  }
  return selected;
}

}  // namespace onnxifi::cuda
