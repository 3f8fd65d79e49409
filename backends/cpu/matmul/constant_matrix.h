// SPDX-License-Identifier: Apache-2.0
//
// ConstantMatrix: what the kernels for rows times a constant matrix ask of a step.

#ifndef ONNXIFI_BACKENDS_CPU_MATMUL_CONSTANT_MATRIX_H_
#define ONNXIFI_BACKENDS_CPU_MATMUL_CONSTANT_MATRIX_H_

#include <cstddef>
#include <cstdint>

#include "backends/core/base/result.h"
#include "backends/core/device/device.h"
#include "backends/cpu/gemm/step_epilogue.h"

namespace onnxifi::matmul {

// Y[rows, columns] = epilogue(X[rows, depth] * W[depth, columns]) in float32, where the elements of
// a row of X, and of Y, lie next to each other. Strides in elements, of no meaning along an axis of
// one. Inner elements and columns have an axis each, which are these of the operands.
struct ConstantMatrix {
  size_t batch_axes;  // of the domain
  size_t row_axes;    // of the domain, batch axes included; the rest are columns
  int64_t depth;
  int64_t columns;
  int64_t w_inner;                 // to the next inner element
  int64_t w_column;                // to the next column
  size_t inner_axis, column_axis;  // of W
  gemm::StepEpilogue epilogue;
};

// Of W in float32, as it is in memory. UNSUPPORTED_* with what is in the way.
base::Result<ConstantMatrix> DescribeConstantMatrix(const device::Facts& facts);
// Ok where all rows have the same matrix; else UNSUPPORTED_SHAPE.
base::Status CheckOneMatrix(const program::Step& step, const ConstantMatrix& matrix);
// Whatever the elements of W are, whether they are constant, and how many matrices there are.
base::Result<ConstantMatrix> DescribeAnyMatrix(const device::Facts& facts);

}  // namespace onnxifi::matmul

#endif  // ONNXIFI_BACKENDS_CPU_MATMUL_CONSTANT_MATRIX_H_
