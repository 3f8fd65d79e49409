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
// `offset` + b * `block_stride` + n * `column_stride` of a read's buffer, and those of matrix e of
// several e * `entry_stride` behind that.
struct PerBlock {
  int read;
  int64_t block;  // inner elements; the depth where a column has one number
  int64_t block_stride, column_stride;
  int64_t entry_stride = 0;
};

// weight = (number - zero_point) * scale.
struct QuantizedProduct : ConstantMatrix {
  int numbers = 1;           // the read that the matrix is
  int64_t entry_stride = 0;  // as of PerBlock
  int64_t matrices = 1;      // that lie behind each other, column behind column
  PerBlock scale;
  std::optional<PerBlock> zero_point;
  int64_t block;  // of the scale and the zero point
  // Rows may be rounded to bytes.
  bool may_round_rows = false;
};

}  // namespace onnxifi::matmul

#endif  // ONNXIFI_BACKENDS_CPU_MATMUL_QUANTIZED_PRODUCT_H_
