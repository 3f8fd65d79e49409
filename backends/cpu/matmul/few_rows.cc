// SPDX-License-Identifier: Apache-2.0
//
// FewRows: which steps are such products.

#include "backends/cpu/matmul/few_rows.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "backends/cpu/matmul/few_rows_kernel.h"
#include "backends/cpu/matmul/one_axis.h"
#include "backends/cpu/runtime/aligned_constant.h"

namespace onnxifi::matmul {
namespace {

using base::Code;
using base::Result;
using base::Status;

constexpr auto kFloatBytes = static_cast<int64_t>(sizeof(float));

// What was allocated begins at a line of the cache. What does not is part of a model's bytes, on
// small pages: walking through these takes an eighth longer while the matrices of a model stay in a
// cache. Larger ones do not, and to copy them takes as long as to read them dozens of times.
constexpr int64_t kMaxCopiedBytes = int64_t{16} << 20;
bool IsAtLine(const std::byte* data) { return reinterpret_cast<uintptr_t>(data) % 64 == 0; }

class FewRowsMethod final : public Method {
 public:
  explicit FewRowsMethod(const FewRowsProduct& product) : product_(product) {}

  std::string_view name() const override { return "matrix times vector"; }
  BindResult Bind(const device::BoundStep& step, device::Addresses constants,
                  runtime::Runtime& runtime, runtime::WeightStore& store) const override {
    const int64_t rows = product_.rows ? *product_.rows : step.domain[product_.row_axis];
    if (rows < 1 || rows > product_.max_rows()) return std::unique_ptr<device::BoundKernel>();
    const std::byte* const matrix = constants[step.reads[1].buffer];
    const int64_t size_bytes = runtime::ConstantBytes(step, step.reads[1].buffer);
    const auto find = [&](Layout layout, int64_t floats,
                          const std::function<base::Status(float*)>& pack) {
      return store.Find(static_cast<int>(layout), runtime.memory(), floats, pack);
    };
    runtime::PackedWeights own;
    if (product_.is_uniform) {
      const auto repeat = [&](float* column) {
        float number = 0;
        std::memcpy(&number, matrix + step.reads[1].offset * kFloatBytes, sizeof(number));
        std::fill_n(column, product_.depth, number);
        return base::Ok();
      };
      ONNXIFI_ASSIGN_OR_RETURN(own, find(Layout::kOneColumn, product_.depth, repeat));
    } else if (!IsAtLine(matrix) && size_bytes <= kMaxCopiedBytes) {
      const auto copy = [&](float* to) {
        std::memcpy(to, matrix, static_cast<size_t>(size_bytes));
        return base::Ok();
      };
      ONNXIFI_ASSIGN_OR_RETURN(own, find(Layout::kCopy, size_bytes / kFloatBytes, copy));
    }
    return BindFewRows(product_, rows, step, std::move(own), runtime);
  }

 private:
  const FewRowsProduct product_;
};

}  // namespace

std::shared_ptr<const Method> MakeMethod(const FewRowsProduct& product) {
  return std::make_shared<FewRowsMethod>(product);
}

Result<FewRowsProduct> DescribeFewRows(const device::Facts& facts, const ConstantMatrix& matrix) {
  FewRowsProduct product{};
  static_cast<ConstantMatrix&>(product) = matrix;
  ONNXIFI_ASSIGN_OR_RETURN(
      const OneAxis rows,
      OneAxis::Of(std::span<const program::Dim>(facts.step.domain).first(matrix.row_axes), "rows"));
  product.row_axis = rows.position;
  if (rows.extent.is_constant()) {
    ONNXIFI_ASSIGN_OR_RETURN(product.rows, rows.Number("rows"));
  }
  product.is_uniform = matrix.depth > 1 && matrix.w_inner == 0 && matrix.w_column == 0;
  product.has_whole_rows = matrix.columns > 1 && matrix.w_column == 1;
  product.w_stride = product.has_whole_rows ? matrix.w_inner : matrix.w_column;
  if (product.rows && *product.rows > product.max_rows()) {
    return Status(Code::kUnsupportedShape, "The product has " + std::to_string(*product.rows) +
                                               " rows, more than " +
                                               std::to_string(product.max_rows()) + ".");
  }
  const bool takes_matrix = product.has_whole_rows || product.is_uniform || matrix.w_inner == 1;
  if (matrix.depth > 1 && !takes_matrix) {
    return Status(Code::kUnsupportedShape,
                  "Neither the rows nor the columns of the matrix lie whole.");
  }
  return product;
}

}  // namespace onnxifi::matmul
