// SPDX-License-Identifier: Apache-2.0
//
// TiledProduct: the types in which operands are laid out and multiplied.

#include <algorithm>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>

#include "backends/core/codegen/tiled_numbers.h"
#include "backends/core/codegen/tiled_product.h"
#include "backends/core/codegen/writer.h"
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

// Matrix units multiply 16 rows by 8 columns, of which an item has 2 by 2; columns are brought from
// shared memory for two units at a time.
constexpr int kUnitRows = 8;
constexpr int kUnitColumns = 4;
constexpr int64_t kMaxFragmentBytes = 48 << 10;  // of shared memory
constexpr int64_t kMaxUnitBytes = 32 << 10;

bool FitsUnit(const TileShape& tile) {
  return tile.is_of_group() && tile.depth > 0 && tile.parts == 1 &&
         tile.item_rows % kUnitRows == 0 && tile.item_columns % kUnitColumns == 0 &&
         tile.rows % 2 == 0 && tile.columns() % 4 == 0 && tile.group_size % kPieceWords == 0 &&
         int64_t{kPieceStages} * kPieceWords * 16 * (tile.block_rows() + tile.block_columns()) <=
             kMaxFragmentBytes;
}

// Blocks are shared out evenly to the subgroups, and find room in shared memory twice for the
// operands and once for the sums.
bool FitsCooperativeUnit(const TileShape& tile, const MatrixUnits& units, ElementType type) {
  const MatrixBlock block = units.BlockOf(type);
  if (block.rows == 0) return false;
  if (!tile.is_of_group() || tile.depth == 0 || tile.parts != 1) return false;
  const int rows = tile.block_rows();
  const int columns = tile.block_columns();
  const int depth = CooperativeDepth(block);
  if (rows % block.rows != 0 || columns % block.columns != 0 ||
      tile.group_size % units.subgroup_items != 0 || tile.group_size % depth != 0) {
    return false;
  }
  const int subgroups = tile.group_size / units.subgroup_items;
  const int along_columns = subgroups / std::gcd(rows / block.rows, subgroups);
  const int64_t bytes =
      int64_t{2} * (rows + columns) * (depth + kCooperativeSpare) * 2 + int64_t{rows} * columns * 4;
  return columns / block.columns % along_columns == 0 && bytes <= kMaxUnitBytes;
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
  const auto unit = matrix_unit();
  return unit ? unit->precision : Precision::kFloat32;
}

std::optional<TiledProduct::MatrixUnit> TiledProduct::matrix_unit() const {
  const bool is_cooperative = matrix_units_.kind == MatrixUnits::Kind::kCooperative;
  if (matrix_units_.kind == MatrixUnits::Kind::kNone) return {};
  const ElementType rows = stored_type(Part::kRows);
  const ElementType columns = stored_type(Part::kColumns);
  const ElementType sum = contract_.accumulator;
  MatrixUnit unit;
  if (sum == ElementType::kInt32 || sum == ElementType::kUint32) {
    if (!IsByte(rows) || !IsByte(columns)) return {};
    const auto name = [](ElementType type) { return type == ElementType::kInt8 ? "i8" : "u8"; };
    unit = {Text("MATRIX_", name(rows), "_", name(columns)), rows, columns, 1};
  } else if (sum == ElementType::kFloat32) {
    const auto is_rounded_to = [&](ElementType type, Precision precision) {
      const auto is_one = [&](ElementType stored) {
        return stored == type || (stored == sum && program_.precision == precision);
      };
      return is_one(rows) && is_one(columns) && (rows == type || columns == type);
    };
    const bool rounds = rows == sum || columns == sum;
    const Precision precision = rounds ? program_.precision : Precision::kFloat32;
    if (is_rounded_to(ElementType::kFloat16, Precision::kFloat16)) {
      unit = {"MATRIX_f16", ElementType::kFloat16, ElementType::kFloat16, 2, precision};
    } else if (is_rounded_to(ElementType::kBfloat16, Precision::kBfloat16)) {
      unit = {"MATRIX_bf16", ElementType::kBfloat16, ElementType::kBfloat16, 2, precision};
    } else if (rounds && (precision == Precision::kTf32 ||
                          (precision == Precision::kFloat32 && SplitsFloats()))) {
      unit = {"MATRIX_tf32", sum, sum, 4, precision, precision == Precision::kFloat32};
    } else {
      return {};
    }
  } else {
    return {};
  }
  const bool fits =
      is_cooperative ? FitsCooperativeUnit(tile_, matrix_units_, unit.rows) : FitsUnit(tile_);
  if (!fits) return {};
  return unit;
}

bool TiledProduct::IsPlain(Part part) const {
  const int read = part == Part::kRows ? row_read() : column_read();
  const ProductOperand operand = FindProductOperand(program_, step_, read);
  return operand.is_stored && operand.zero_point == program::kNoExpr &&
         operand.type == stored_type(part);
}

bool TiledProduct::HasTaps() const {
  return is_window() &&
         !std::all_of(contract_.inner.begin() + 1, contract_.inner.end(),
                      [](const program::Dim& taps) { return taps == program::Dim(1); });
}

}  // namespace onnxifi::codegen
