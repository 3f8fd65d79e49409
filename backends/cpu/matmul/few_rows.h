// SPDX-License-Identifier: Apache-2.0
//
// FewRows: up to four rows times a constant matrix, which is read where it lies.

#ifndef ONNXIFI_BACKENDS_CPU_MATMUL_FEW_ROWS_H_
#define ONNXIFI_BACKENDS_CPU_MATMUL_FEW_ROWS_H_

#include <memory>

#include "backends/core/base/result.h"
#include "backends/cpu/matmul/constant_matrix.h"
#include "backends/cpu/matmul/few_rows_product.h"
#include "backends/cpu/matmul/recipe.h"

namespace onnxifi::matmul {

// Of a step that `matrix` describes. UNSUPPORTED_SHAPE with what is in the way.
base::Result<FewRowsProduct> DescribeFewRows(const device::Facts& facts,
                                             const ConstantMatrix& matrix);

std::shared_ptr<const Method> MakeMethod(const FewRowsProduct& product);

}  // namespace onnxifi::matmul

#endif  // ONNXIFI_BACKENDS_CPU_MATMUL_FEW_ROWS_H_
