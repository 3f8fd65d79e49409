// SPDX-License-Identifier: Apache-2.0
//
// The kernel of GatheredProduct.

#ifndef ONNXIFI_BACKENDS_CPU_MATMUL_GATHERED_PRODUCT_KERNEL_H_
#define ONNXIFI_BACKENDS_CPU_MATMUL_GATHERED_PRODUCT_KERNEL_H_

#include <memory>
#include <optional>

#include "backends/cpu/gemm/quantized_matrix.h"
#include "backends/cpu/matmul/gathered_matrices.h"
#include "backends/cpu/runtime/packed_weights.h"
#include "backends/cpu/runtime/runtime.h"

namespace onnxifi::matmul {

// `packed` holds what `layout` says, or, without one, the panels of each matrix behind those of the
// one before. `runtime` outlives the kernel.
std::unique_ptr<device::BoundKernel> BindGatheredProduct(
    const GatheredMatrices& product, const std::optional<gemm::QuantizedLayout>& layout,
    runtime::PackedWeights packed, const device::BoundStep& step, runtime::Runtime& runtime);

}  // namespace onnxifi::matmul

#endif  // ONNXIFI_BACKENDS_CPU_MATMUL_GATHERED_PRODUCT_KERNEL_H_
