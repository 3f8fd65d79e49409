// SPDX-License-Identifier: Apache-2.0
//
// Recipe: chooses between the method and the other kernel when a step is bound.

#include "backends/cpu/matmul/recipe.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "backends/core/base/result.h"

namespace onnxifi::matmul {
namespace {

using base::Code;
using base::Result;
using base::Status;

class Kernel final : public device::Kernel {
 public:
  Kernel(std::shared_ptr<const Method> method, runtime::Runtime& runtime,
         std::unique_ptr<device::Kernel> otherwise)
      : method_(std::move(method)), runtime_(runtime), otherwise_(std::move(otherwise)) {}

  Result<std::unique_ptr<device::BoundKernel>> Bind(const device::BoundStep& step,
                                                    device::Addresses constants) override {
    ONNXIFI_ASSIGN_OR_RETURN(std::unique_ptr<device::BoundKernel> bound,
                             method_->Bind(step, constants, runtime_, copy_));
    if (bound != nullptr) return bound;
    if (otherwise_ != nullptr) return otherwise_->Bind(step, constants);
    return Status(Code::kInternalError, "The extents of a matrix product are not those of '" +
                                            std::string(method_->name()) + "'.");
  }

 private:
  const std::shared_ptr<const Method> method_;  // shared with the recipe
  runtime::Runtime& runtime_;
  const std::unique_ptr<device::Kernel> otherwise_;
  MatrixCopy copy_;
};

}  // namespace

MatrixCopy::Copy MatrixCopy::Of(const std::byte* data, int64_t size_bytes, device::Memory& memory) {
  const std::lock_guard lock(mutex_);
  if (copy_ == nullptr) {
    ONNXIFI_ASSIGN_OR_RETURN(std::shared_ptr<device::Allocation> copy, memory.Allocate(size_bytes));
    std::memcpy(copy->data(), data, static_cast<size_t>(size_bytes));
    copy_ = std::move(copy);
  }
  return copy_;
}

MatrixCopy::Copy MatrixCopy::Repeated(const std::byte* number, int64_t count,
                                      device::Memory& memory) {
  const std::lock_guard lock(mutex_);
  if (copy_ == nullptr) {
    ONNXIFI_ASSIGN_OR_RETURN(std::shared_ptr<device::Allocation> copy,
                             memory.Allocate(count * static_cast<int64_t>(sizeof(float))));
    float value = 0;
    std::memcpy(&value, number, sizeof(value));
    std::fill_n(reinterpret_cast<float*>(copy->data()), count, value);
    copy_ = std::move(copy);
  }
  return copy_;
}

Recipe::Recipe(std::shared_ptr<const Method> method,
               std::unique_ptr<const device::Recipe> otherwise)
    : method_(std::move(method)),
      otherwise_(std::move(otherwise)),
      implementation_(std::string(method_->name()) +
                      (otherwise_ == nullptr
                           ? std::string()
                           : " or " + std::string(otherwise_->implementation()))) {}

std::unique_ptr<device::Kernel> Recipe::BuildKernel(
    runtime::Runtime& runtime, std::unique_ptr<device::Kernel> otherwise) const {
  return std::make_unique<Kernel>(method_, runtime, std::move(otherwise));
}

}  // namespace onnxifi::matmul
