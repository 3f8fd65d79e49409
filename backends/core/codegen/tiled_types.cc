// SPDX-License-Identifier: Apache-2.0
//
// TiledProduct: the types in which operands are laid out.

#include <algorithm>

#include "backends/core/codegen/tiled_product.h"
#include "backends/core/program/product_operand.h"

namespace onnxifi::codegen {

using program::FindProductOperand;
using program::ProductOperand;
using tensor::ElementType;
using tensor::Precision;

namespace {

bool IsByte(ElementType type) { return type == ElementType::kInt8 || type == ElementType::kUint8; }

bool IsHalf(ElementType type) {
  return type == ElementType::kFloat16 || type == ElementType::kBfloat16;
}

}  // namespace

ElementType TiledProduct::stored_type(Part part) const {
  const ElementType sum = contract_.accumulator;
  if (!tile_.is_of_group()) return sum;
  const int read = part == Part::kRows ? row_read() : column_read();
  const ProductOperand operand = FindProductOperand(program_, step_, read);
  if (sum == ElementType::kInt32 || sum == ElementType::kUint32) {
    if (!IsByte(operand.type)) return sum;
    if (operand.zero_point == program::kNoExpr) return operand.type;
    // A difference of two bytes.
    const bool is_narrow = sum == ElementType::kInt32 && IsByte(operand.zero_point_type);
    return is_narrow ? ElementType::kInt16 : sum;
  }
  if (sum != ElementType::kFloat32) return sum;
  if (IsHalf(operand.type)) return operand.type;
  // What may be read where it lies is not laid out.
  if (part == Part::kColumns && operand.is_stored && !IsConstant(part) && !HasTaps()) return sum;
  switch (program_.precision) {
    case Precision::kFloat16:
      return ElementType::kFloat16;
    case Precision::kBfloat16:
      return ElementType::kBfloat16;
    case Precision::kFloat32:
    case Precision::kTf32:  // as wide in memory
      break;
  }
  return sum;
}

Precision TiledProduct::precision() const {
  for (const Part part : {Part::kRows, Part::kColumns}) {
    const int read = part == Part::kRows ? row_read() : column_read();
    const ElementType type = stored_type(part);
    if (IsHalf(type) && type != FindProductOperand(program_, step_, read).type) {
      return program_.precision;
    }
  }
  return Precision::kFloat32;
}

bool TiledProduct::HasPlainColumns() const {
  const ProductOperand columns = FindProductOperand(program_, step_, column_read());
  return columns.is_stored && columns.zero_point == program::kNoExpr &&
         columns.type == stored_type(Part::kColumns);
}

bool TiledProduct::HasTaps() const {
  return is_window() &&
         !std::all_of(contract_.inner.begin() + 1, contract_.inner.end(),
                      [](const program::Dim& taps) { return taps == program::Dim(1); });
}

}  // namespace onnxifi::codegen
