// SPDX-License-Identifier: Apache-2.0
//
// FewRows: the threads divide the rows of the matrix.

#include "backends/cpu/matmul/few_rows.h"

#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "backends/cpu/gemm/matrix_vector.h"
#include "backends/cpu/onednn/operand.h"
#include "backends/cpu/processor/processor.h"

namespace onnxifi::matmul {
namespace {

using base::Code;
using base::Result;
using base::Status;
using program::Contract;
using program::Dim;

// Smaller matrices stay in a cache, where packing them pays.
int64_t LeastElements() { return processor::L2Floats() / 8; }

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

class BoundFewRows final : public device::BoundKernel {
 public:
  BoundFewRows(const device::BoundStep& step, const FewRows& product, int64_t rows,
               threads::ThreadPool& pool)
      : product_(product),
        pool_(pool),
        rows_(rows),
        x_(step.reads[0]),
        w_(step.reads[1]),
        y_(step.writes[0]),
        epilogue_(product.epilogue, step) {}

  Status Run(device::Addresses addresses) const override {
    const gemm::Epilogue epilogue = epilogue_.At(addresses);
    const gemm::MatrixVector product = {gemm::FloatsAt(addresses, x_),
                                        x_.strides[product_.row_axis],
                                        gemm::FloatsAt(addresses, w_),
                                        product_.w_stride,
                                        gemm::FloatsAt(addresses, y_),
                                        y_.strides[product_.row_axis],
                                        rows_,
                                        product_.depth};
    // A line of results at least, so that threads share none.
    constexpr int64_t kGrain = 16;
    pool_.For((product_.columns + kGrain - 1) / kGrain, /*grain=*/1,
              [&](int64_t begin, int64_t end) {
                gemm::MultiplyVectors(product, epilogue, begin * kGrain,
                                      std::min(product_.columns, end * kGrain));
              });
    return base::Ok();
  }
  std::string Detail() const override {
    return std::to_string(rows_) + (rows_ == 1 ? " row" : " rows") + " where the matrix lies, " +
           processor::VectorName();
  }

 private:
  const FewRows product_;
  threads::ThreadPool& pool_;
  const int64_t rows_;
  const device::BoundView x_, w_, y_;
  const gemm::BoundEpilogue epilogue_;
};

class FewRowsMethod final : public Method {
 public:
  explicit FewRowsMethod(const FewRows& product) : product_(product) {}

  std::string_view name() const override { return "matrix times vector"; }
  std::unique_ptr<device::BoundKernel> Bind(const device::BoundStep& step,
                                            threads::ThreadPool& pool) const override {
    const int64_t rows = product_.rows ? *product_.rows : step.domain[product_.row_axis];
    if (rows < 1 || rows > gemm::kMostVectors) return nullptr;
    return std::make_unique<BoundFewRows>(step, product_, rows, pool);
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
  if (product.columns > (int64_t{1} << 32) || product.depth > (int64_t{1} << 28) ||
      product.columns * product.depth < LeastElements()) {
    return Status(Code::kUnsupportedShape, "The matrix of " + std::to_string(product.depth) +
                                               " x " + std::to_string(product.columns) +
                                               " has less than " + std::to_string(LeastElements()) +
                                               " elements, or an extent beyond the limits.");
  }
  const program::View& x = step.reads[0];
  const program::View& w = step.reads[1];
  const program::View& y = step.writes[0];
  const size_t column_position = batch_axes + contract->inner.size() + column.position;
  ONNXIFI_ASSIGN_OR_RETURN(product.w_stride, Stride(w, column_position, product.columns));
  ONNXIFI_ASSIGN_OR_RETURN(const int64_t x_step,
                           Stride(x, row_axes + inner.position, product.depth));
  ONNXIFI_ASSIGN_OR_RETURN(const int64_t w_step,
                           Stride(w, batch_axes + inner.position, product.depth));
  ONNXIFI_ASSIGN_OR_RETURN(const int64_t y_step,
                           Stride(y, row_axes + column.position, product.columns));
  if ((product.depth > 1 && (x_step != 1 || w_step != 1)) || (product.columns > 1 && y_step != 1)) {
    return Status(Code::kUnsupportedShape,
                  "The inner elements, or the results, do not lie next to each other.");
  }
  ONNXIFI_ASSIGN_OR_RETURN(product.epilogue,
                           gemm::SelectEpilogue(facts, row_axes + column.position));
  if (product.epilogue.addend >= 0) {
    return Status(Code::kUnsupportedAttribute, "The epilogue adds a tensor.");
  }
  return product;
}

}  // namespace onnxifi::matmul
