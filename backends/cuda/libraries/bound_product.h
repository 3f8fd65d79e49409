// SPDX-License-Identifier: Apache-2.0
//
// BoundProduct: a Contract with numbers, as a product that cuBLASLt has an algorithm for. What the
// library cannot make of its sums a kernel of ours does behind it: they are then in working memory.

#ifndef ONNXIFI_BACKENDS_CUDA_LIBRARIES_BOUND_PRODUCT_H_
#define ONNXIFI_BACKENDS_CUDA_LIBRARIES_BOUND_PRODUCT_H_

#include <memory>

#include "backends/core/base/result.h"
#include "backends/core/codegen/expression.h"
#include "backends/core/codegen/kernel_launch.h"
#include "backends/core/device/device.h"
#include "backends/cuda/libraries/cublaslt.h"
#include "backends/cuda/libraries/product_form.h"
#include "backends/cuda/libraries/rules.h"

namespace onnxifi::cuda {

// What outlives a product that is bound.
struct ProductServices {
  const CublasLt& library;
  const LibraryRules& rules;
  const codegen::Capabilities& capabilities;
  codegen::Services& codegen;
};

// UNSUPPORTED_* with the reason: there is no rule for these extents, or the library does not take
// them. Else only for lack of resources.
base::Result<std::unique_ptr<device::BoundKernel>> BindProduct(const ProductServices& services,
                                                               const ProductForm& form,
                                                               const device::BoundStep& step);

}  // namespace onnxifi::cuda

#endif  // ONNXIFI_BACKENDS_CUDA_LIBRARIES_BOUND_PRODUCT_H_
