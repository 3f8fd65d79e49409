// SPDX-License-Identifier: Apache-2.0
//
// FewRows: which steps are so.

#include "backends/cpu/matmul/few_rows.h"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "backends/cpu/gemm/matrix_vector.h"
#include "backends/cpu/matmul/few_rows_kernel.h"
#include "backends/cpu/onednn/operand.h"

namespace onnxifi::matmul {
namespace {

using base::Code;
using base::Result;
using base::Status;
using program::Contract;
using program::Dim;

// Axes as one: which of them may have more than one element.
struct Axis {
  Dim extent = Dim(1);
  size_t position = 0;  // among the axes given
};

Result<Axis> OneAxis(std::span<const Dim> extents, std::string_view what) {
  Axis axis;
  for (size_t k = 0; k < extents.size(); ++k) {
    if (extents[k] == Dim(1)) continue;
    if (axis.extent != Dim(1)) {
      return Status(Code::kUnsupportedShape,
                    "The " + std::string(what) + " have more than one axis.");
    }
    axis = {extents[k], k};
  }
  return axis;
}

Result<int64_t> Number(const Axis& axis, std::string_view what) {
  if (axis.extent.is_constant() && axis.extent.constant() >= 1) return axis.extent.constant();
  return Status(
      Code::kUnsupportedShape,
      "The number of " + std::string(what) +
          (axis.extent.is_constant() ? " is less than 1." : " is known only once the inputs are."));
}

// The number of a stride, of no meaning for an axis of one element.
Result<int64_t> Stride(const program::View& view, size_t axis, int64_t extent) {
  if (extent == 1) return int64_t{0};
  const Dim& stride = view.strides[axis];
  if (stride.is_constant()) return stride.constant();
  return Status(Code::kUnsupportedShape, "A stride is known only once the inputs are.");
}

// What was allocated begins at a line of the cache. What does not is part of a model's bytes, on
// small pages: walking through these takes an eighth longer while the matrices of a model stay in a
// cache. Larger ones do not, and to copy them takes as long as to read them dozens of times.
constexpr int64_t kMostCopiedBytes = int64_t{16} << 20;
bool IsAtLine(const std::byte* data) { return reinterpret_cast<uintptr_t>(data) % 64 == 0; }

int64_t ConstantBytes(const device::BoundStep& step, program::BufferId constant) {
  int64_t bytes = sizeof(float);
  for (const Dim& dim : step.program->buffers[constant].shape) bytes *= step.Number(dim);
  return bytes;
}

class FewRowsMethod final : public Method {
 public:
  explicit FewRowsMethod(const FewRows& product) : product_(product) {}

  std::string_view name() const override { return "matrix times vector"; }
  BindResult Bind(const device::BoundStep& step, device::Addresses constants,
                  runtime::Runtime& runtime, MatrixCopy& copy) const override {
    const int64_t rows = product_.rows ? *product_.rows : step.domain[product_.row_axis];
    if (rows < 1 || rows > gemm::kMostVectors) return std::unique_ptr<device::BoundKernel>();
    std::shared_ptr<device::Allocation> own;
    const std::byte* const matrix = constants[step.reads[1].buffer];
    if (product_.is_uniform) {
      const std::byte* const number =
          matrix + step.reads[1].offset * static_cast<int64_t>(sizeof(float));
      ONNXIFI_ASSIGN_OR_RETURN(own, copy.Repeated(number, product_.depth, runtime.memory()));
      return BindFewRows(product_, rows, step, std::move(own), runtime);
    }
    const int64_t size_bytes = ConstantBytes(step, step.reads[1].buffer);
    if (!IsAtLine(matrix) && size_bytes <= kMostCopiedBytes) {
      ONNXIFI_ASSIGN_OR_RETURN(own, copy.Of(matrix, size_bytes, runtime.memory()));
    }
    return BindFewRows(product_, rows, step, std::move(own), runtime);
  }

 private:
  const FewRows product_;
};

}  // namespace

std::shared_ptr<const Method> MakeMethod(const FewRows& product) {
  return std::make_shared<FewRowsMethod>(product);
}

Result<FewRows> DescribeFewRows(const device::Facts& facts) {
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
  if (!facts.IsConstant(step.reads[1])) {
    return Status(Code::kUnsupportedAttribute, "The matrix is computed at run time.");
  }
  for (int operand = 0; operand < 2; ++operand) {
    ONNXIFI_RETURN_IF_ERROR(onednn::CheckPlain(facts.program, step, operand));
  }
  const auto batch_axes = static_cast<size_t>(contract->batch_axes);
  const size_t row_axes = batch_axes + static_cast<size_t>(contract->m_axes);
  const std::span<const Dim> domain = step.domain;
  ONNXIFI_ASSIGN_OR_RETURN(const Axis rows, OneAxis(domain.first(row_axes), "rows"));
  ONNXIFI_ASSIGN_OR_RETURN(const Axis column, OneAxis(domain.subspan(row_axes), "columns"));
  ONNXIFI_ASSIGN_OR_RETURN(const Axis inner, OneAxis(contract->inner, "inner elements"));
  FewRows product{};
  product.row_axis = rows.position;
  ONNXIFI_ASSIGN_OR_RETURN(product.columns, Number(column, "columns"));
  ONNXIFI_ASSIGN_OR_RETURN(product.depth, Number(inner, "inner elements"));
  if (rows.extent.is_constant()) {
    ONNXIFI_ASSIGN_OR_RETURN(product.rows, Number(rows, "rows"));
  }
  if (product.rows && *product.rows > gemm::kMostVectors) {
    return Status(Code::kUnsupportedShape, "The product has " + std::to_string(*product.rows) +
                                               " rows, more than " +
                                               std::to_string(gemm::kMostVectors) + ".");
  }
  if (rows.extent != Dim(1) && rows.position < batch_axes) {
    return Status(Code::kUnsupportedShape, "Each row has a matrix of its own.");
  }
  if (product.columns > (int64_t{1} << 32) || product.depth > (int64_t{1} << 28)) {
    return Status(Code::kUnsupportedShape, "The matrix of " + std::to_string(product.depth) +
                                               " x " + std::to_string(product.columns) +
                                               " has an extent beyond the limits.");
  }
  const program::View& x = step.reads[0];
  const program::View& w = step.reads[1];
  const program::View& y = step.writes[0];
  const size_t column_position = batch_axes + contract->inner.size() + column.position;
  ONNXIFI_ASSIGN_OR_RETURN(const int64_t w_column, Stride(w, column_position, product.columns));
  ONNXIFI_ASSIGN_OR_RETURN(const int64_t w_inner,
                           Stride(w, batch_axes + inner.position, product.depth));
  ONNXIFI_ASSIGN_OR_RETURN(const int64_t x_inner,
                           Stride(x, row_axes + inner.position, product.depth));
  ONNXIFI_ASSIGN_OR_RETURN(const int64_t y_column,
                           Stride(y, row_axes + column.position, product.columns));
  product.is_uniform = product.depth > 1 && w_inner == 0 && w_column == 0;
  product.has_whole_rows = product.columns > 1 && w_column == 1;
  product.w_stride = product.has_whole_rows ? w_inner : w_column;
  const bool takes_matrix = product.has_whole_rows || product.is_uniform || w_inner == 1;
  if ((product.depth > 1 && (x_inner != 1 || !takes_matrix)) ||
      (product.columns > 1 && y_column != 1)) {
    return Status(Code::kUnsupportedShape,
                  "The inner elements, or the results, do not lie next to each other.");
  }
  ONNXIFI_ASSIGN_OR_RETURN(product.epilogue,
                           gemm::SelectEpilogue(facts, row_axes + column.position));
  return product;
}

}  // namespace onnxifi::matmul
