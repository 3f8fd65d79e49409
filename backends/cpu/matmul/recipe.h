// SPDX-License-Identifier: Apache-2.0
//
// Recipe: matrix products by kernels of this backend's own: few rows times a large constant matrix,
// which is read where it lies.

#ifndef ONNXIFI_BACKENDS_CPU_MATMUL_RECIPE_H_
#define ONNXIFI_BACKENDS_CPU_MATMUL_RECIPE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "backends/core/base/result.h"
#include "backends/core/device/device.h"
#include "backends/cpu/gemm/step_epilogue.h"
#include "backends/cpu/runtime/runtime.h"

namespace onnxifi::matmul {

// A product of so few rows, with numbers for all extents but perhaps theirs.
struct FewRows {
  std::optional<int64_t> rows;  // nothing: known only once the step is bound
  size_t row_axis;              // of the domain: the one that may have more than one element
  int64_t depth;
  int64_t columns;
  int64_t w_stride;  // in elements
  gemm::StepEpilogue epilogue;
};

class Recipe final : public device::Recipe {
 public:
  // Where the rows have no number yet, `otherwise` does the step when they are more, or none.
  explicit Recipe(const FewRows& product,
                  std::unique_ptr<const device::Recipe> otherwise = nullptr);

  std::string_view implementation() const override { return implementation_; }
  const device::Recipe* otherwise() const { return otherwise_.get(); }
  // `otherwise` is the kernel of the other recipe, if there is one. `runtime` outlives the kernel.
  std::unique_ptr<device::Kernel> BuildKernel(runtime::Runtime& runtime,
                                              std::unique_ptr<device::Kernel> otherwise) const;

 private:
  const FewRows product_;
  const std::unique_ptr<const device::Recipe> otherwise_;
  const std::string implementation_;
};

// UNSUPPORTED_* with what is in the way.
base::Result<FewRows> DescribeFewRows(const device::Facts& facts);

}  // namespace onnxifi::matmul

#endif  // ONNXIFI_BACKENDS_CPU_MATMUL_RECIPE_H_
