// SPDX-License-Identifier: Apache-2.0
//
// Recipe: matrix products by kernels of this backend's own, each for some extents only. Where those
// are known once a step is bound, another recipe stands by for all others.

#ifndef ONNXIFI_BACKENDS_CPU_MATMUL_RECIPE_H_
#define ONNXIFI_BACKENDS_CPU_MATMUL_RECIPE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "backends/core/base/result.h"
#include "backends/core/device/device.h"
#include "backends/cpu/runtime/packed_weights.h"
#include "backends/cpu/runtime/recipe.h"
#include "backends/cpu/runtime/runtime.h"

namespace onnxifi::matmul {

// In which ways kernels keep a constant matrix, for the store of the kernel that they share.
// The last is the first of several numbers.
enum class Layout : uint8_t { kCopy, kOneColumn, kPanels, kQuantized };

using BindResult = base::Result<std::unique_ptr<device::BoundKernel>>;

// One way of multiplying, described for one step. Immutable.
class Method {
 public:
  virtual ~Method() = default;
  virtual std::string_view name() const = 0;
  // Null where it is not for these extents. `runtime` outlives what is returned; `store` is the
  // kernel's, by Layout.
  virtual BindResult Bind(const device::BoundStep& step, device::Addresses constants,
                          runtime::Runtime& runtime, runtime::WeightStore& store) const = 0;
};

class Recipe final : public runtime::Recipe {
 public:
  using Methods = std::vector<std::shared_ptr<const Method>>;

  // The first of `methods` that is for the extents; `otherwise` does the step where none is, and is
  // null if there are none such. `matrix`: the read that is packed.
  explicit Recipe(Methods methods, std::unique_ptr<const device::Recipe> otherwise = nullptr,
                  int matrix = 1);

  std::string_view implementation() const override { return implementation_; }
  bool TakesAnyAddress(int read) const override {
    return read == matrix_ && (otherwise_ == nullptr || otherwise_->TakesAnyAddress(read));
  }
  const device::Recipe* otherwise() const { return otherwise_.get(); }
  base::Result<std::unique_ptr<device::Kernel>> Build(
      const runtime::Runtimes& runtimes) const override;
  // `otherwise` is the kernel of the other recipe, if there is one. `runtime` outlives the kernel.
  std::unique_ptr<device::Kernel> BuildKernel(runtime::Runtime& runtime,
                                              std::unique_ptr<device::Kernel> otherwise) const;

 private:
  const Methods methods_;  // shared with the kernels
  const std::unique_ptr<const device::Recipe> otherwise_;
  const int matrix_;
  const std::string implementation_;
};

}  // namespace onnxifi::matmul

#endif  // ONNXIFI_BACKENDS_CPU_MATMUL_RECIPE_H_
