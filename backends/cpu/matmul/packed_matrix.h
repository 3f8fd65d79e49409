// SPDX-License-Identifier: Apache-2.0
//
// PackedMatrix: any number of rows times a constant matrix that is packed once.

#ifndef ONNXIFI_BACKENDS_CPU_MATMUL_PACKED_MATRIX_H_
#define ONNXIFI_BACKENDS_CPU_MATMUL_PACKED_MATRIX_H_

#include <memory>

#include "backends/cpu/matmul/constant_matrix.h"
#include "backends/cpu/matmul/recipe.h"

namespace onnxifi::matmul {

// For all extents that the step can have. Rows may lie along several axes, and at any distance.
std::shared_ptr<const Method> MakePackedMatrix(const ConstantMatrix& matrix);

}  // namespace onnxifi::matmul

#endif  // ONNXIFI_BACKENDS_CPU_MATMUL_PACKED_MATRIX_H_
