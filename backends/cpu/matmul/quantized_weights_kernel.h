// SPDX-License-Identifier: Apache-2.0
//
// The kernel of QuantizedWeights.

#ifndef ONNXIFI_BACKENDS_CPU_MATMUL_QUANTIZED_WEIGHTS_KERNEL_H_
#define ONNXIFI_BACKENDS_CPU_MATMUL_QUANTIZED_WEIGHTS_KERNEL_H_

#include <memory>

#include "backends/cpu/gemm/quantized_matrix.h"
#include "backends/cpu/matmul/quantized_product.h"
#include "backends/cpu/runtime/packed_weights.h"
#include "backends/cpu/runtime/runtime.h"

namespace onnxifi::matmul {

// `packed` holds what `layout` says. `runtime` outlives the kernel.
std::unique_ptr<device::BoundKernel> BindQuantizedWeights(const QuantizedProduct& weights,
                                                          const gemm::QuantizedLayout& layout,
                                                          runtime::PackedWeights packed,
                                                          const device::BoundStep& step,
                                                          runtime::Runtime& runtime);

}  // namespace onnxifi::matmul

#endif  // ONNXIFI_BACKENDS_CPU_MATMUL_QUANTIZED_WEIGHTS_KERNEL_H_
