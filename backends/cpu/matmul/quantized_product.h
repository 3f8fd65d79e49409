// SPDX-License-Identifier: Apache-2.0
//
// QuantizedProduct: what a product with a constant matrix looks like that the step's prologue
// dequantizes.

#ifndef ONNXIFI_BACKENDS_CPU_MATMUL_QUANTIZED_PRODUCT_H_
#define ONNXIFI_BACKENDS_CPU_MATMUL_QUANTIZED_PRODUCT_H_

#include <cstdint>
#include <optional>

#include "backends/cpu/matmul/constant_matrix.h"

namespace onnxifi::matmul {

// Numbers that blocks of the columns of a matrix have: those of block b of column n are at
// `offset` + b * `block_stride` + n * `column_stride` of a read's buffer.
struct PerBlock {
  int read;
  int64_t block;  // inner elements; the depth where a column has one number
  int64_t block_stride, column_stride;
};

// weight = (number - zero_point) * scale. The matrix is read 1.
struct QuantizedProduct : ConstantMatrix {
  PerBlock scale;
  std::optional<PerBlock> zero_point;
  int64_t block;  // of the scale and the zero point
};

}  // namespace onnxifi::matmul

#endif  // ONNXIFI_BACKENDS_CPU_MATMUL_QUANTIZED_PRODUCT_H_
