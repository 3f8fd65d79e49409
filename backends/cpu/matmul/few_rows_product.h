// SPDX-License-Identifier: Apache-2.0
//
// FewRowsProduct: what a product of up to four rows with a constant matrix looks like.

#ifndef ONNXIFI_BACKENDS_CPU_MATMUL_FEW_ROWS_PRODUCT_H_
#define ONNXIFI_BACKENDS_CPU_MATMUL_FEW_ROWS_PRODUCT_H_

#include <cstddef>
#include <cstdint>
#include <optional>

#include "backends/cpu/gemm/matrix_vector.h"
#include "backends/cpu/matmul/constant_matrix.h"

namespace onnxifi::matmul {

// Known before the step is bound.
struct FewRowsProduct : ConstantMatrix {
  std::optional<int64_t> rows;  // nothing: known only once the step is bound
  size_t row_axis;              // of the domain: the one that may have more than one element
  bool is_uniform;              // whether the matrix is one number, read for all of its elements
  bool has_whole_rows;  // whether the columns of an inner element lie next to each other; else the
                        // inner elements of a column do
  int64_t w_stride;     // in elements: to the next inner element; else to the next column

  // How many rows are worth reading the matrix where it lies: more take less time with a packed
  // copy, above all where sums of whole rows have to be kept.
  int64_t max_rows() const { return is_uniform ? gemm::kMaxVectors : has_whole_rows ? 2 : 4; }
};

}  // namespace onnxifi::matmul

#endif  // ONNXIFI_BACKENDS_CPU_MATMUL_FEW_ROWS_PRODUCT_H_
