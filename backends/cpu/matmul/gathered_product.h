// SPDX-License-Identifier: Apache-2.0
//
// GatheredProduct: rows each of which is multiplied with the one of several constant matrices that
// data selects, as those of experts are (program::MakeGatheredProducts). The matrices are of
// float32, or of at most 8 bits and dequantized by the prologue.

#ifndef ONNXIFI_BACKENDS_CPU_MATMUL_GATHERED_PRODUCT_H_
#define ONNXIFI_BACKENDS_CPU_MATMUL_GATHERED_PRODUCT_H_

#include <memory>

#include "backends/core/base/result.h"
#include "backends/cpu/matmul/gathered_matrices.h"
#include "backends/cpu/matmul/recipe.h"

namespace onnxifi::matmul {

// UNSUPPORTED_* with what is in the way. Whether the matrices are constant is not asked: see
// CheckConstant.
base::Result<GatheredMatrices> DescribeGatheredProduct(const device::Facts& facts);
base::Status CheckConstant(const device::Facts& facts, const GatheredMatrices& product);

// For all extents that the step can have.
std::shared_ptr<const Method> MakeMethod(const GatheredMatrices& product);

}  // namespace onnxifi::matmul

#endif  // ONNXIFI_BACKENDS_CPU_MATMUL_GATHERED_PRODUCT_H_
