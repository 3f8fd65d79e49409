// SPDX-License-Identifier: Apache-2.0
//
// FewRows: up to eight rows times a constant matrix, which is read where it lies.

#ifndef ONNXIFI_BACKENDS_CPU_MATMUL_FEW_ROWS_H_
#define ONNXIFI_BACKENDS_CPU_MATMUL_FEW_ROWS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "backends/core/base/result.h"
#include "backends/cpu/matmul/constant_matrix.h"
#include "backends/cpu/matmul/recipe.h"

namespace onnxifi::matmul {

// A product of so few rows.
struct FewRows : ConstantMatrix {
  std::optional<int64_t> rows;  // nothing: known only once the step is bound
  size_t row_axis;              // of the domain: the one that may have more than one element
  bool is_uniform;              // whether the matrix is one number, read for all of its elements
  bool has_whole_rows;  // whether the columns of an inner element lie next to each other; else the
                        // inner elements of a column do
  int64_t w_stride;     // in elements: to the next inner element; else to the next column
};

// Of a step that `matrix` describes. UNSUPPORTED_SHAPE with what is in the way.
base::Result<FewRows> DescribeFewRows(const device::Facts& facts, const ConstantMatrix& matrix);

std::shared_ptr<const Method> MakeMethod(const FewRows& product);

}  // namespace onnxifi::matmul

#endif  // ONNXIFI_BACKENDS_CPU_MATMUL_FEW_ROWS_H_
