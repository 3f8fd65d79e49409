// SPDX-License-Identifier: Apache-2.0
//
// LibraryKernels: the recipe, and the choice among what can be bound.

#include "backends/cuda/libraries/library_kernels.h"

#include <onnxifi/sdk.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backends/core/codegen/recipe.h"
#include "backends/cuda/libraries/candidate.h"
#include "backends/cuda/libraries/contract_form.h"
#include "backends/cuda/libraries/convolution.h"
#include "backends/cuda/libraries/product.h"

namespace onnxifi::cuda {
namespace {

using base::Code;
using base::Result;
using base::Status;
using OwnedKernel = std::unique_ptr<device::BoundKernel>;

Status Refuse(std::string sentence) {
  return Status(Code::kUnsupportedOperator, std::move(sentence));
}

// Whether the next candidate is tried, which may need less memory of the device; also of what
// cannot be done now, while the caller captures his stream.
bool IsPassedOver(const Status& status) {
  return status.code() == Code::kUnsupportedOperator ||
         status.code() == Code::kUnsupportedDatatype || status.code() == Code::kInvalidState ||
         status.code() == Code::kNoDeviceMemory;
}

// One of the kernels that a step could have, which tells why it is not another.
class ChosenKernel final : public device::BoundKernel {
 public:
  ChosenKernel(OwnedKernel kernel, std::string before, std::string behind)
      : kernel_(std::move(kernel)), before_(std::move(before)), behind_(std::move(behind)) {}
  Status Enqueue(device::Queue& queue, device::Addresses addresses) const override {
    return kernel_->Enqueue(queue, addresses);
  }
  bool ReadsAtRun(int read) const override { return kernel_->ReadsAtRun(read); }
  std::string Detail() const override {
    const std::string detail = kernel_->Detail();
    return before_ + (before_.empty() || detail.empty() ? "" : ", ") + detail + behind_;
  }

 private:
  const OwnedKernel kernel_;
  const std::string before_, behind_;
};

// What a recipe and its kernels have in common; the candidates are theirs together.
struct Order {
  std::shared_ptr<const std::vector<std::unique_ptr<const Candidate>>> candidates;
  const LibraryRules& rules;
  const codegen::Capabilities& capabilities;
  const MeasuredChoices* choices = nullptr;  // null: the first that takes the step
  std::string_view device_name;
};

class OrderedKernel final : public device::Kernel {
 public:
  OrderedKernel(const Order& order, std::unique_ptr<device::Kernel> ours, std::string_view our_name,
                codegen::Services& services)
      : order_(order), ours_(std::move(ours)), our_name_(our_name), services_(services) {}

  Result<OwnedKernel> Bind(const device::BoundStep& step, device::Addresses constants) override {
    return order_.choices == nullptr ? BindFirst(step, constants) : BindFastest(step, constants);
  }

 private:
  struct Bound {
    std::string name;
    OwnedKernel kernel;
  };

  Result<OwnedKernel> BindFirst(const device::BoundStep& step, device::Addresses constants,
                                std::string reasons = {}) {
    for (const auto& candidate : *order_.candidates) {
      Result<OwnedKernel> bound =
          candidate->Bind({step, constants, order_.capabilities, services_, &order_.rules});
      if (!bound.ok() && !IsPassedOver(bound.status())) return bound;
      if (bound.ok()) return Choose({std::string(candidate->name()), *std::move(bound)}, reasons);
      reasons += PassedOver(candidate->name(), bound.status());
    }
    ONNXIFI_ASSIGN_OR_RETURN(OwnedKernel ours, ours_->Bind(step, constants));
    return Choose({our_name_, std::move(ours)}, reasons);
  }

  Result<OwnedKernel> BindFastest(const device::BoundStep& step, device::Addresses constants) {
    std::string key = "fastest of " + our_name_ + " " ONNXIFI_SDK_VERSION;
    for (const auto& candidate : *order_.candidates) {
      key += ", " + std::string(candidate->name()) + " " + candidate->version();
    }
    key += " on " + std::string(order_.device_name) + "\n" + DescribeStep(step);
    if (const auto known = order_.choices->Find(key)) {
      std::vector<Bound> bound;
      std::string reasons;
      Status same = BindAll(step, constants, known->name, bound, reasons);
      if (!same.ok() && !IsPassedOver(same)) return same;
      // A library may refuse what it took in another process.
      if (bound.size() == 1) return Choose(std::move(bound[0]), Measured(*known));
    }
    std::vector<Bound> bound;
    std::string reasons;
    ONNXIFI_RETURN_IF_ERROR(BindAll(step, constants, /*only=*/{}, bound, reasons));
    if (bound.size() == 1) return Choose(std::move(bound[0]), reasons);
    std::vector<MeasuredChoices::Runner> runners;
    for (const Bound& each : bound) runners.push_back({each.name, each.kernel.get()});
    const auto choice = order_.choices->Measure(key, step, constants, services_.memory, runners);
    if (!choice.ok()) {
      if (!IsPassedOver(choice.status())) return Status(choice.status());
      bound.clear();
      return BindFirst(step, constants,
                       ", not measured: " + std::string(choice.status().sentence()));
    }
    const auto fastest = std::ranges::find(bound, choice->name, &Bound::name);
    return Choose(std::move(*fastest), reasons + Measured(*choice));
  }

  // All that take the step, ours last, or the one called `only`.
  Status BindAll(const device::BoundStep& step, device::Addresses constants, std::string_view only,
                 std::vector<Bound>& bound, std::string& reasons) {
    for (const auto& candidate : *order_.candidates) {
      if (!only.empty() && candidate->name() != only) continue;
      Result<OwnedKernel> made = candidate->Bind({step, constants, order_.capabilities, services_});
      if (made.ok()) {
        bound.push_back({std::string(candidate->name()), *std::move(made)});
      } else if (IsPassedOver(made.status())) {
        reasons += PassedOver(candidate->name(), made.status());
      } else {
        return std::move(made).status();
      }
    }
    if (!only.empty() && only != our_name_) return base::Ok();
    Result<OwnedKernel> ours = ours_->Bind(step, constants);
    if (ours.ok()) {
      bound.push_back({our_name_, *std::move(ours)});
    } else if (bound.empty() || !IsPassedOver(ours.status())) {
      return std::move(ours).status();
    } else {
      reasons += PassedOver(our_name_, ours.status());
    }
    return base::Ok();
  }

  // The recipe has the first candidate's name.
  Result<OwnedKernel> Choose(Bound bound, std::string behind) const {
    std::string before = bound.name == order_.candidates->front()->name() ? "" : bound.name;
    if (before.empty() && behind.empty()) return std::move(bound.kernel);
    return OwnedKernel(std::make_unique<ChosenKernel>(std::move(bound.kernel), std::move(before),
                                                      std::move(behind)));
  }
  static std::string PassedOver(std::string_view name, const Status& reason) {
    return ", " + std::string(name) + " passed over: " + std::string(reason.sentence());
  }
  static std::string Measured(const MeasuredChoices::Choice& choice) {
    return ", measured: " + choice.times;
  }

  const Order order_;
  const std::unique_ptr<device::Kernel> ours_;
  const std::string our_name_;
  codegen::Services& services_;
};

class OrderedRecipe final : public codegen::Recipe {
 public:
  OrderedRecipe(Order order, tensor::Precision precision,
                std::unique_ptr<const device::Recipe> ours)
      : order_(std::move(order)), precision_(precision), ours_(std::move(ours)) {}
  std::string_view implementation() const override { return order_.candidates->front()->name(); }
  tensor::Precision precision() const override { return precision_; }
  std::unique_ptr<device::Kernel> Build(codegen::Services& services) const override {
    // The device has no other recipes.
    const auto& ours = static_cast<const codegen::Recipe&>(*ours_);
    return std::make_unique<OrderedKernel>(order_, ours.Build(services), ours.implementation(),
                                           services);
  }

 private:
  const Order order_;
  const tensor::Precision precision_;
  const std::unique_ptr<const device::Recipe> ours_;
};

// Whether there may be a rule for some step of the form.
Status CheckUse(const LibraryRules& rules, Library library, const char* what,
                std::string_view type) {
  if (rules.TakesSome(library, type)) return base::Ok();
  if (rules.UseOf(library) == LibraryRules::Use::kNever) {
    return Refuse(std::string(what) + " are off: so says ONNXIFI_CUDA_LIBRARIES.");
  }
  return Refuse("There is no rule for " + std::string(what) + " of " + std::string(type) + ".");
}

}  // namespace

bool LibraryKernels::PrefersChannelsLast(const device::Facts& facts) const {
  const auto* const contract = facts.step.As<program::Contract>();
  if (contract == nullptr || !host_.IsReal()) return false;
  const Result<ContractForm> form = FindContractForm(facts);
  const bool is_plain = form.ok() && form->operand == tensor::ElementType::kFloat32 &&
                        form->precision == tensor::Precision::kFloat32;
  return form.ok() && !is_plain && CheckConvolution(*contract, *form).ok() &&
         rules_.TakesSome(Library::kCudnn, form->type) && cudnn_.Get(host_).ok();
}

Result<device::Selection> LibraryKernels::Prefer(const device::Facts& facts,
                                                 Result<device::Selection> selected) const {
  const auto* const contract = facts.step.As<program::Contract>();
  if (!selected.ok() || contract == nullptr) return selected;
  std::vector<Status> rejected;
  std::vector<std::unique_ptr<const Candidate>> candidates;
  const auto find = [&](auto make) -> Status {
    ONNXIFI_ASSIGN_OR_RETURN(std::unique_ptr<const Candidate> candidate, make());
    candidates.push_back(std::move(candidate));
    return base::Ok();
  };
  const auto try_one = [&](auto make) {
    Status found = find(make);
    if (!found.ok()) rejected.push_back(std::move(found));
  };
  const Result<ContractForm> form = host_.IsReal()
                                        ? FindContractForm(facts)
                                        : Refuse("Libraries are off: nothing runs on this device.");
  const bool may_measure = facts.program.may_measure;
  if (!form.ok()) {
    rejected.push_back(form.status());
  } else {
    if (contract->form != program::Contract::Form::kMatMul) {
      try_one([&]() -> Result<std::unique_ptr<const Candidate>> {
        ONNXIFI_RETURN_IF_ERROR(CheckConvolution(*contract, *form));
        // Never without a rule: its engines were chosen for an H100 that was described to it, none
        // has run on a GPU.
        ONNXIFI_RETURN_IF_ERROR(
            CheckUse(rules_, Library::kCudnn, "cuDNN's convolutions", form->type));
        ONNXIFI_ASSIGN_OR_RETURN(const Cudnn* const library, cudnn_.Get(host_));
        return MakeConvolution(*library, *form);
      });
    }
    try_one([&]() -> Result<std::unique_ptr<const Candidate>> {
      ONNXIFI_RETURN_IF_ERROR(CheckProduct(*contract));
      const bool is_by_rule = rules_.cublaslt == LibraryRules::Use::kByRule;
      if (!may_measure || !is_by_rule) {
        ONNXIFI_RETURN_IF_ERROR(
            CheckUse(rules_, Library::kCublasLt, "cuBLASLt's products", form->type));
      }
      ONNXIFI_ASSIGN_OR_RETURN(const CublasLt* const library, cublaslt_.Get(host_));
      return MakeProduct(*library, *form);
    });
  }
  selected->rejected.insert(selected->rejected.begin(), rejected.begin(), rejected.end());
  if (candidates.empty()) return selected;
  Order order{
      std::make_shared<const std::vector<std::unique_ptr<const Candidate>>>(std::move(candidates)),
      rules_, capabilities_, may_measure ? &choices_ : nullptr, device_name_};
  selected->recipe = std::make_unique<OrderedRecipe>(std::move(order), form->precision,
                                                     std::move(selected->recipe));
  return selected;
}

}  // namespace onnxifi::cuda
