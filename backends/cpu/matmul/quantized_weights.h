// SPDX-License-Identifier: Apache-2.0
//
// QuantizedWeights: rows times a constant matrix of at most 8 bits that the step's prologue
// dequantizes, per column or per block of one. The matrix is packed once, in 4 bits an element
// where all of its numbers have no more, whatever type they came in.

#ifndef ONNXIFI_BACKENDS_CPU_MATMUL_QUANTIZED_WEIGHTS_H_
#define ONNXIFI_BACKENDS_CPU_MATMUL_QUANTIZED_WEIGHTS_H_

#include <memory>
#include <optional>

#include "backends/core/base/result.h"
#include "backends/cpu/matmul/constant_matrix.h"
#include "backends/cpu/matmul/recipe.h"

namespace onnxifi::matmul {

// Numbers that blocks of the columns of a matrix have: those of block b of column n are at
// `offset` + b * `block_stride` + n * `column_stride` of a read's buffer.
struct PerBlock {
  int read;
  int64_t block;  // inner elements; the depth where a column has one number
  int64_t block_stride, column_stride;
};

// weight = (number - zero_point) * scale. The matrix is read 1.
struct QuantizedWeights : ConstantMatrix {
  PerBlock scale;
  std::optional<PerBlock> zero_point;
  int64_t block;  // of the scale and the zero point
};

// UNSUPPORTED_* with what is in the way. Whether what the prologue reads is constant is not asked:
// see CheckConstant.
base::Result<QuantizedWeights> DescribeQuantizedWeights(const device::Facts& facts);
base::Status CheckConstant(const device::Facts& facts, const QuantizedWeights& weights);

// For all extents that the step can have.
std::shared_ptr<const Method> MakeMethod(const QuantizedWeights& weights);

}  // namespace onnxifi::matmul

#endif  // ONNXIFI_BACKENDS_CPU_MATMUL_QUANTIZED_WEIGHTS_H_
