// SPDX-License-Identifier: Apache-2.0
//
// Recipe: matrix products by kernels of this backend's own, each for some extents only. Where those
// are known once a step is bound, another recipe stands by for all others.

#ifndef ONNXIFI_BACKENDS_CPU_MATMUL_RECIPE_H_
#define ONNXIFI_BACKENDS_CPU_MATMUL_RECIPE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "backends/core/base/result.h"
#include "backends/core/device/device.h"
#include "backends/cpu/runtime/runtime.h"

namespace onnxifi::matmul {

// A copy of a kernel's constant matrix, made when a binding first asks for it. Threads: any.
class MatrixCopy {
 public:
  using Copy = base::Result<std::shared_ptr<device::Allocation>>;

  // Shared by bindings, and by runs that outlive one; a kernel asks for one of them, always the
  // same. NO_SYSTEM_MEMORY.
  Copy Of(const std::byte* data, int64_t size_bytes, device::Memory& memory);
  // `count` times the float at `number`.
  Copy Repeated(const std::byte* number, int64_t count, device::Memory& memory);

 private:
  std::mutex mutex_;
  std::shared_ptr<device::Allocation> copy_;
};

using BindResult = base::Result<std::unique_ptr<device::BoundKernel>>;

// One way of multiplying, described for one step. Immutable.
class Method {
 public:
  virtual ~Method() = default;
  virtual std::string_view name() const = 0;
  // Null where it is not for these extents. `runtime` outlives what is returned; `copy` is the
  // kernel's.
  virtual BindResult Bind(const device::BoundStep& step, device::Addresses constants,
                          runtime::Runtime& runtime, MatrixCopy& copy) const = 0;
};

class Recipe final : public device::Recipe {
 public:
  // `otherwise` does the step where `method` does not; null if the method is for all extents that
  // the step can have.
  explicit Recipe(std::shared_ptr<const Method> method,
                  std::unique_ptr<const device::Recipe> otherwise = nullptr);

  std::string_view implementation() const override { return implementation_; }
  bool TakesAnyAddress(int read) const override {
    return read == 1 && (otherwise_ == nullptr || otherwise_->TakesAnyAddress(read));
  }
  const device::Recipe* otherwise() const { return otherwise_.get(); }
  // `otherwise` is the kernel of the other recipe, if there is one. `runtime` outlives the kernel.
  std::unique_ptr<device::Kernel> BuildKernel(runtime::Runtime& runtime,
                                              std::unique_ptr<device::Kernel> otherwise) const;

 private:
  const std::shared_ptr<const Method> method_;  // shared with the kernels
  const std::unique_ptr<const device::Recipe> otherwise_;
  const std::string implementation_;
};

}  // namespace onnxifi::matmul

#endif  // ONNXIFI_BACKENDS_CPU_MATMUL_RECIPE_H_
