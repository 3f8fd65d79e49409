// SPDX-License-Identifier: Apache-2.0
//
// DescribeConstantMatrix: one reason after the other.

#include "backends/cpu/matmul/constant_matrix.h"

#include <span>
#include <string>
#include <string_view>

#include "backends/cpu/matmul/one_axis.h"
#include "backends/cpu/runtime/plain_operand.h"

namespace onnxifi::matmul {
namespace {

using base::Code;
using base::Result;
using base::Status;
using program::Contract;
using program::Dim;

// The number of a stride, of no meaning for an axis of one element.
Result<int64_t> Stride(const program::View& view, size_t axis, int64_t extent) {
  if (extent == 1) return int64_t{0};
  const Dim& stride = view.strides[axis];
  if (stride.is_constant()) return stride.constant();
  return Status(Code::kUnsupportedShape, "A stride is known only once the inputs are.");
}

}  // namespace

Result<ConstantMatrix> DescribeConstantMatrix(const device::Facts& facts) {
  const program::Step& step = facts.step;
  ONNXIFI_ASSIGN_OR_RETURN(ConstantMatrix matrix, DescribeAnyMatrix(facts));
  if (!facts.IsConstant(step.reads[1])) {
    return Status(Code::kUnsupportedAttribute, "The matrix is computed at run time.");
  }
  ONNXIFI_RETURN_IF_ERROR(CheckOneMatrix(step, matrix));
  ONNXIFI_RETURN_IF_ERROR(runtime::CheckPlain(facts.program, step, 1));
  return matrix;
}

Status CheckOneMatrix(const program::Step& step, const ConstantMatrix& matrix) {
  for (size_t axis = 0; axis < matrix.batch_axes; ++axis) {
    if (step.domain[axis] != Dim(1) && step.reads[1].strides[axis] != Dim(0)) {
      return Status(Code::kUnsupportedShape, "Each row has a matrix of its own.");
    }
  }
  return base::Ok();
}

Result<ConstantMatrix> DescribeAnyMatrix(const device::Facts& facts) {
  const program::Step& step = facts.step;
  const Contract* contract = step.As<Contract>();
  if (contract == nullptr || contract->form != Contract::Form::kMatMul) {
    return Status(Code::kUnsupportedOperator, "The step is no matrix product.");
  }
  if (contract->accumulator != tensor::ElementType::kFloat32 || step.writes.size() != 1 ||
      step.writes[0].type != tensor::ElementType::kFloat32) {
    return Status(Code::kUnsupportedDatatype,
                  "The product has something else than one float32 result.");
  }
  ONNXIFI_RETURN_IF_ERROR(runtime::CheckPlain(facts.program, step, 0));
  ConstantMatrix matrix{};
  matrix.batch_axes = static_cast<size_t>(contract->batch_axes);
  matrix.row_axes = matrix.batch_axes + static_cast<size_t>(contract->m_axes);
  const std::span<const Dim> domain = step.domain;
  ONNXIFI_ASSIGN_OR_RETURN(const OneAxis column,
                           OneAxis::Of(domain.subspan(matrix.row_axes), "columns"));
  ONNXIFI_ASSIGN_OR_RETURN(const OneAxis inner, OneAxis::Of(contract->inner, "inner elements"));
  ONNXIFI_ASSIGN_OR_RETURN(matrix.columns, column.Number("columns"));
  ONNXIFI_ASSIGN_OR_RETURN(matrix.depth, inner.Number("inner elements"));
  if (matrix.columns > (int64_t{1} << 32) || matrix.depth > (int64_t{1} << 28)) {
    return Status(Code::kUnsupportedShape, "The matrix of " + std::to_string(matrix.depth) + " x " +
                                               std::to_string(matrix.columns) +
                                               " has an extent beyond the limits.");
  }
  const program::View& x = step.reads[0];
  const program::View& w = step.reads[1];
  const program::View& y = step.writes[0];
  matrix.inner_axis = matrix.batch_axes + inner.position;
  matrix.column_axis = matrix.batch_axes + contract->inner.size() + column.position;
  ONNXIFI_ASSIGN_OR_RETURN(matrix.w_column, Stride(w, matrix.column_axis, matrix.columns));
  ONNXIFI_ASSIGN_OR_RETURN(matrix.w_inner, Stride(w, matrix.inner_axis, matrix.depth));
  ONNXIFI_ASSIGN_OR_RETURN(const int64_t x_inner,
                           Stride(x, matrix.row_axes + inner.position, matrix.depth));
  ONNXIFI_ASSIGN_OR_RETURN(const int64_t y_column,
                           Stride(y, matrix.row_axes + column.position, matrix.columns));
  if ((matrix.depth > 1 && x_inner != 1) || (matrix.columns > 1 && y_column != 1)) {
    return Status(Code::kUnsupportedShape,
                  "The inner elements, or the results, do not lie next to each other.");
  }
  ONNXIFI_ASSIGN_OR_RETURN(matrix.epilogue,
                           gemm::SelectEpilogue(facts, matrix.row_axes + column.position));
  return matrix;
}

}  // namespace onnxifi::matmul
