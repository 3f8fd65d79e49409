// SPDX-License-Identifier: Apache-2.0
//
// DoubleProducts: products of float64 matrices in memory, whatever their strides.

#ifndef ONNXIFI_BACKENDS_CPU_MATMUL_DOUBLE_PRODUCTS_H_
#define ONNXIFI_BACKENDS_CPU_MATMUL_DOUBLE_PRODUCTS_H_

#include "backends/core/device/device.h"
#include "backends/cpu/runtime/recipe.h"

namespace onnxifi::matmul {

// Takes matrix products of float64 with any batch and row axes, at most one axis of columns and one
// of depth; sums may be scaled, and a scaled tensor added to them, as Gemm does. UNSUPPORTED_* with
// what is in the way.
runtime::RecipeResult SelectDoubleProducts(const device::Facts& facts);

}  // namespace onnxifi::matmul

#endif  // ONNXIFI_BACKENDS_CPU_MATMUL_DOUBLE_PRODUCTS_H_
