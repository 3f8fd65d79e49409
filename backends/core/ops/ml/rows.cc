// SPDX-License-Identifier: Apache-2.0
//
// Rows of features.

#include "backends/core/ops/ml/rows.h"

#include <string>
#include <utility>

#include "backends/core/ops/contract/product.h"

namespace onnxifi::ops {

bool IsFeatureType(ElementType type) {
  return type == ElementType::kFloat32 || type == ElementType::kFloat64 ||
         type == ElementType::kInt64 || type == ElementType::kInt32;
}

Status CheckNumeric(const Lowering& lowering) {
  ONNXIFI_RETURN_IF_ERROR(lowering.NeedInputs(1));
  if (IsFeatureType(lowering.In(0).type())) return base::Ok();
  return lowering.UnsupportedType(0);
}

Result<Operand> ReadRows(Lowering& lowering) {
  ONNXIFI_RETURN_IF_ERROR(CheckNumeric(lowering));
  const Operand& x = lowering.In(0);
  if (x.rank() == 1) return program::InsertAxis(x, 0);
  if (x.rank() == 2) return x;
  return lowering.InvalidModel("Input 0 has " + std::to_string(x.rank()) +
                               " axes; 1 or 2 are required.");
}

Result<Operand> ReadRowsAsFloats(Lowering& lowering) {
  ONNXIFI_ASSIGN_OR_RETURN(const Operand rows, ReadRows(lowering));
  return lowering.CastTo(
      rows, rows.type() == ElementType::kFloat64 ? ElementType::kFloat64 : ElementType::kFloat32);
}

std::vector<float> FloatList(const Lowering& lowering, std::string_view name) {
  const std::vector<float>* numbers = lowering.Floats(name);
  return numbers == nullptr ? std::vector<float>() : *numbers;
}

Operand ConstantNumbers(Lowering& lowering, ElementType type, tensor::Extents extents,
                        const std::vector<float>& numbers) {
  if (type == ElementType::kFloat64) {
    return ConstantNumbers(lowering, type, std::move(extents),
                           std::vector<double>(numbers.begin(), numbers.end()));
  }
  return lowering.ConstantTensor(
      tensor::Tensor::FromValues<float>(ElementType::kFloat32, std::move(extents), numbers));
}

Operand ConstantNumbers(Lowering& lowering, ElementType type, tensor::Extents extents,
                        const std::vector<double>& numbers) {
  if (type == ElementType::kFloat32) {
    return ConstantNumbers(lowering, type, std::move(extents),
                           std::vector<float>(numbers.begin(), numbers.end()));
  }
  return lowering.ConstantTensor(
      tensor::Tensor::FromValues<double>(ElementType::kFloat64, std::move(extents), numbers));
}

Status CheckAlongLastAxis(Lowering& lowering, int64_t length, const Shape& shape,
                          std::string_view what) {
  if (length == 1) return base::Ok();
  if (shape.empty()) {
    return lowering.InvalidModel(std::string(what) + " has " + std::to_string(length) +
                                 " elements for a scalar.");
  }
  return lowering.RequireEqual(length, shape.back(),
                               "The length of " + std::string(what) + " and the last extent");
}

RowProduct::RowProduct(Lowering& lowering, const Operand& rows, const Operand& matrix)
    : lowering_(lowering), step_(lowering, {rows.shape[0], matrix.shape[1]}) {
  contract_.form = program::Contract::Form::kMatMul;
  contract_.m_axes = 1;
  contract_.n_axes = 1;
  contract_.inner = {matrix.shape[0]};
  sum_ = SumOfProducts(step_, {rows}, {matrix}, rows.type(), contract_);
}

Operand RowProduct::Write(Expr value) {
  const Operand out = lowering_.Temporary(value.type(), step_.domain());
  WriteTo(out, value);
  return out;
}

void RowProduct::WriteTo(const Operand& target, Expr value) {
  contract_.roots = {value.id()};
  step_.Finish(std::move(contract_), {target.view});
}

}  // namespace onnxifi::ops
