// SPDX-License-Identifier: Apache-2.0
//
// The kernels of FewRows, one per order of the matrix.

#ifndef ONNXIFI_BACKENDS_CPU_MATMUL_FEW_ROWS_KERNEL_H_
#define ONNXIFI_BACKENDS_CPU_MATMUL_FEW_ROWS_KERNEL_H_

#include <cstdint>
#include <memory>

#include "backends/core/device/device.h"
#include "backends/cpu/matmul/few_rows_product.h"
#include "backends/cpu/runtime/packed_weights.h"
#include "backends/cpu/runtime/runtime.h"

namespace onnxifi::matmul {

// `rows` is 1 to gemm::kMaxVectors. The matrix is read in `own`, a copy of its buffer, or of one
// column where it is uniform, unless that is null. `runtime` outlives what is returned.
std::unique_ptr<device::BoundKernel> BindFewRows(const FewRowsProduct& product, int64_t rows,
                                                 const device::BoundStep& step,
                                                 runtime::PackedWeights own,
                                                 runtime::Runtime& runtime);

}  // namespace onnxifi::matmul

#endif  // ONNXIFI_BACKENDS_CPU_MATMUL_FEW_ROWS_KERNEL_H_
