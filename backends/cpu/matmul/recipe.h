// SPDX-License-Identifier: Apache-2.0
//
// Recipe: matrix products by kernels of this backend's own: few rows times a large constant matrix,
// which is read where it lies.

#ifndef ONNXIFI_BACKENDS_CPU_MATMUL_RECIPE_H_
#define ONNXIFI_BACKENDS_CPU_MATMUL_RECIPE_H_

#include <memory>
#include <string_view>

#include "backends/core/base/result.h"
#include "backends/core/device/device.h"
#include "backends/cpu/gemm/step_epilogue.h"
#include "backends/cpu/runtime/recipe_result.h"
#include "backends/cpu/runtime/runtime.h"

namespace onnxifi::matmul {

// A product of so few rows, with numbers for all extents. Strides in elements.
struct FewRows {
  int64_t vectors;
  int64_t depth;
  int64_t columns;
  int64_t x_stride, w_stride, y_stride;
  gemm::StepEpilogue epilogue;
};

class Recipe final : public device::Recipe {
 public:
  explicit Recipe(const FewRows& product) : product_(product) {}

  std::string_view implementation() const override { return "matrix times vector"; }
  // `runtime` outlives the kernel.
  std::unique_ptr<device::Kernel> BuildKernel(runtime::Runtime& runtime) const;

 private:
  const FewRows product_;
};

// UNSUPPORTED_* with what is in the way.
runtime::RecipeResult SelectFewRows(const device::Facts& facts);

}  // namespace onnxifi::matmul

#endif  // ONNXIFI_BACKENDS_CPU_MATMUL_RECIPE_H_
