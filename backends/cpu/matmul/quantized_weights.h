// SPDX-License-Identifier: Apache-2.0
//
// QuantizedWeights: rows times a constant matrix of at most 8 bits that the step's prologue
// dequantizes, per column or per block of one. The matrix is packed once, in 4 bits an element
// where all of its numbers have no more, whatever type they came in.

#ifndef ONNXIFI_BACKENDS_CPU_MATMUL_QUANTIZED_WEIGHTS_H_
#define ONNXIFI_BACKENDS_CPU_MATMUL_QUANTIZED_WEIGHTS_H_

#include <memory>

#include "backends/core/base/result.h"
#include "backends/cpu/gemm/quantized_matrix.h"
#include "backends/cpu/matmul/prologue_reader.h"
#include "backends/cpu/matmul/quantized_product.h"
#include "backends/cpu/matmul/recipe.h"
#include "backends/cpu/runtime/packed_weights.h"

namespace onnxifi::matmul {

// UNSUPPORTED_* with what is in the way. Whether what the prologue reads is constant is not asked:
// see CheckConstant.
base::Result<QuantizedProduct> DescribeQuantizedWeights(const device::Facts& facts);
base::Status CheckConstant(const device::Facts& facts, const QuantizedProduct& weights);

// What the prologue dequantizes, as `reader` finds it. UNSUPPORTED_* with what is in the way.
base::Result<QuantizedProduct> DescribeDequantization(const device::Facts& facts,
                                                      const ConstantMatrix& matrix,
                                                      const PrologueReader& reader);

struct PackedQuantizedMatrix {
  gemm::QuantizedLayout layout;
  runtime::PackedWeights numbers;
};
// Packs the matrix the first time; finds it in `store` from then on. NO_SYSTEM_MEMORY.
base::Result<PackedQuantizedMatrix> FindPackedMatrix(const QuantizedProduct& weights,
                                                     const device::BoundStep& step,
                                                     device::Addresses constants,
                                                     runtime::Runtime& runtime,
                                                     runtime::WeightStore& store);

// For all extents that the step can have.
std::shared_ptr<const Method> MakeMethod(const QuantizedProduct& weights);

}  // namespace onnxifi::matmul

#endif  // ONNXIFI_BACKENDS_CPU_MATMUL_QUANTIZED_WEIGHTS_H_
