// SPDX-License-Identifier: Apache-2.0
//
// TiledProduct::PartWriter: sums of a group by the matrix units of its device. 32 neighbouring
// items, a warp, multiply 16 rows by 8 columns of 32 bytes of depth at a time: 8 elements of 32
// bits, 16 of 16, or 32 bytes. An item's fragments are words of 32 bits, each of elements that
// follow each other in depth: of the rows g and g + 8 and of the column g the words t and t + 4,
// where the item is number 4 g + t of its warp; its sums are those of the columns 2 t and 2 t + 1
// of both rows.
//
// The group brings a piece of the depth of both operands to shared memory at a time, in two buffers
// in turns as group_product_text.cc does, but with the depth fastest, so that words are read whole.

#include <string>

#include "backends/core/codegen/depth_cursor.h"
#include "backends/core/codegen/tiled_writer.h"

namespace onnxifi::codegen {

using tensor::ElementType;

namespace {

constexpr int kWarp = 32;
constexpr int kWords = 8;  // of the depth at a time
// Rows of words begin 12 apart: the items of a warp, which read 8 rows of 4, find 32 banks.
constexpr int kPitch = 12;
constexpr int kWarpRows = 8;     // items along the rows
constexpr int kWarpColumns = 4;  // and along the columns

}  // namespace

// Warps lie along the columns first.
void TiledProduct::PartWriter::PlaceInWarp(GroupItem& item) {
  const int across = product_.tile_.item_columns / kWarpColumns;
  item.column = writer_.Declare("int", Text("LANE / ", kWarp, " % ", across, " * ", kWarpColumns,
                                            " + LANE % ", kWarpColumns));
  item.row = writer_.Declare("int", Text("LANE / ", kWarp * across, " * ", kWarpRows, " + LANE / ",
                                         kWarpColumns, " % ", kWarpRows));
}

std::string TiledProduct::PartWriter::MatrixRowOf(const GroupItem& item,
                                                  const std::string& number) const {
  return Text("(", item.row, " / ", kWarpRows, " * ", product_.tile_.rows, " + ", number, ") * ",
              kWarpRows, " + ", item.row, " % ", kWarpRows);
}

std::string TiledProduct::PartWriter::MatrixColumnOf(const GroupItem& item,
                                                     const std::string& number) const {
  const int pairs = product_.tile_.columns() / 2;
  return Text("(", item.column, " / ", kWarpColumns, " * ", pairs, " + ", number, " / 2) * ",
              2 * kWarpColumns, " + ", item.column, " % ", kWarpColumns, " * 2 + ", number, " % 2");
}

// An element of what was laid out, rounded to `type`. Functions of a unit round to TF32.
std::string TiledProduct::PartWriter::LoadUnitElement(bool is_rows, ElementType type,
                                                      const std::string& buffer,
                                                      const std::string& at) {
  if (product_.stored_type(PartOf(is_rows)) == type) return Text("LOAD(", buffer, ", ", at, ")");
  const std::string element = LoadElement(is_rows, buffer, at);
  if (type == contract_.accumulator) return element;
  return WriteCast(writer_, contract_.accumulator, type, element);
}

void TiledProduct::PartWriter::WriteUnitRounds(const UnitRounds& rounds,
                                               std::span<UnitOperand> operands, const Block& block,
                                               const GroupItem& item) {
  const TileShape& tile = product_.tile_;
  // An item brings elements of one place of each piece of the depth, every so manieth.
  const int bringers = tile.group_size / rounds.depth;
  const std::string place = writer_.Declare("int", Text("LANE / ", bringers));
  const std::string lane = writer_.Declare("int", Text("LANE % ", bringers));
  for (UnitOperand& operand : operands) {
    operand.loads = static_cast<int>(CeilDiv(operand.count, bringers));
  }
  const std::string last = LastColumn(block);
  DepthCursor cursor(*this, item, place);
  const std::string count = cursor.WriteRounds(rounds.depth);
  const std::string round = writer_.NewName("k");
  writer_.Open("for (idx ", round, " = 0; ", round, " <= ", count, "; ++", round, ")");

  // Opens a loop over what an item brings of an operand.
  const auto open_loads = [&](const UnitOperand& operand) {
    std::string load = OpenUnrolled(operand.loads);
    if (operand.loads * bringers != operand.count) {
      writer_.Line("if (", lane, " + ", load, " * ", bringers, " >= ", operand.count,
                   ") continue;");
    }
    return load;
  };
  for (UnitOperand& operand : operands) {
    operand.elements = writer_.NewName("s");
    const std::string_view type =
        operand.type == contract_.accumulator ? sum_type_ : LaneType(operand.type);
    writer_.Line(type, " ", operand.elements, "[", operand.loads, "];");
    const std::string load = OpenUnrolled(operand.loads);
    writer_.Line(operand.elements, "[", load, "] = AS(", type, ", 0);");
    writer_.Close();
  }
  writer_.Open("if (", cursor.is_inside(), ")");
  const std::string row_at = writer_.Declare(
      "idx", Text(block.rows.at, " + ", cursor.row_place(), " * ", tile.block_rows(), " + ", lane));
  const std::string column_at =
      writer_.Declare("idx", Text(block.columns.at, " + ", cursor.column_offset()));
  for (const UnitOperand& operand : operands) {
    const std::string load = open_loads(operand);
    const std::string own = Text("AS(idx, ", lane, " + ", load, " * ", bringers, ")");
    const std::string at = operand.is_rows ? Text(row_at, " + ", load, " * ", bringers)
                                           : Text(column_at, " + ", Lesser(own, last));
    const std::string& buffer = operand.is_rows ? block.rows.buffer : block.columns.buffer;
    writer_.Line(operand.elements, "[", load,
                 "] = ", LoadUnitElement(operand.is_rows, operand.type, buffer, at), ";");
    writer_.Close();
  }
  cursor.Advance(rounds.depth);
  writer_.Close();

  writer_.Open("if (", round, " > 0)");
  rounds.multiply(writer_.Declare("int", Text("AS(int, (", round, " + 1) % 2)")));
  writer_.Close();

  const std::string to = writer_.Declare("int", Text("AS(int, ", round, " % 2)"));
  for (UnitOperand operand : operands) {
    const std::string load = open_loads(operand);
    operand.elements += Text("[", load, "]");
    rounds.put(operand, to, Text(lane, " + ", load, " * ", bringers), place);
    writer_.Close();
  }
  writer_.Line("BARRIER;");
  writer_.Close();
}

std::string TiledProduct::PartWriter::UnitWord(const UnitOperand& operand,
                                               const std::string& parity, const std::string& row,
                                               int first) {
  return Text(operand.shared, "[(", parity, " * ", operand.count, " + ", row, ") * ", kPitch,
              " + LANE % ", kWarpColumns, " + ", first, "]");
}

// An item has the sums of two columns of a unit's block, but brings the words of column g.
std::string TiledProduct::PartWriter::UnitColumnOf(const GroupItem& item,
                                                   const std::string& number) const {
  return Text("(", item.column, " / ", kWarpColumns, " * ", product_.tile_.columns() / 2, " + ",
              number, ") * ", 2 * kWarpColumns, " + LANE / ", kWarpColumns, " % ", kWarpRows);
}

void TiledProduct::PartWriter::WriteUnitProducts(const MatrixUnit& unit,
                                                 std::span<const UnitOperand> operands,
                                                 const std::string& parity, const GroupItem& item) {
  const TileShape& tile = product_.tile_;
  const int row_blocks = tile.rows / 2;
  const int column_blocks = tile.columns() / 2;
  const std::string a = writer_.NewName("s");
  const std::string b = writer_.NewName("s");
  writer_.Line("u32 ", a, "[", row_blocks * 4, "];");
  writer_.Line("u32 ", b, "[", column_blocks * 2, "];");
  std::string i = OpenUnrolled(row_blocks);
  for (const int half : {0, 1}) {
    const std::string row =
        writer_.Declare("int", MatrixRowOf(item, Text("(", i, " * 2 + ", half, ")")));
    for (const int words : {0, 1}) {
      writer_.Line(a, "[", i, " * 4 + ", half + 2 * words,
                   "] = ", UnitWord(operands[0], parity, row, words * kWords / 2), ";");
    }
  }
  writer_.Close();
  std::string j = OpenUnrolled(column_blocks);
  const std::string column = writer_.Declare("int", UnitColumnOf(item, j));
  for (const int words : {0, 1}) {
    writer_.Line(b, "[", j, " * 2 + ", words,
                 "] = ", UnitWord(operands[1], parity, column, words * kWords / 2), ";");
  }
  writer_.Close();
  i = OpenUnrolled(row_blocks);
  j = OpenUnrolled(column_blocks);
  std::string arguments;
  for (const int row : {0, 1}) {
    for (const int own : {0, 1}) {
      arguments += Text(arguments.empty() ? "" : ", ", item.sums, "[(", i, " * 2 + ", row, ") * ",
                        tile.columns(), " + ", j, " * 2 + ", own, "]");
    }
  }
  for (int k = 0; k < 4; ++k) arguments += Text(", ", a, "[", i, " * 4 + ", k, "]");
  for (int k = 0; k < 2; ++k) arguments += Text(", ", b, "[", j, " * 2 + ", k, "]");
  writer_.Line(unit.name, "(", arguments, ");");
  writer_.Close();
  writer_.Close();
}

void TiledProduct::PartWriter::WriteMatrixSums(const MatrixUnit& unit, const Block& block,
                                               const GroupItem& item) {
  const TileShape& tile = product_.tile_;
  UnitOperand operands[] = {{true, tile.block_rows(), unit.rows, {}, {}},
                            {false, tile.block_columns(), unit.columns, {}, {}}};
  for (UnitOperand& operand : operands) {
    operand.shared = writer_.NewName("g");
    writer_.Share(Text("u32 ", operand.shared, "[", 2 * operand.count * kPitch, "]"));
  }
  UnitRounds rounds;
  rounds.depth = kWords * 4 / unit.element_bytes;
  rounds.multiply = [&](const std::string& parity) {
    if (unit.is_split) {
      WriteSplitProducts(unit, operands, parity, item);
    } else {
      WriteUnitProducts(unit, operands, parity, item);
    }
  };
  const std::string put = unit.is_split ? "PUT_SCALED" : Text("PUT", unit.element_bytes);
  rounds.put = [&](const UnitOperand& operand, const std::string& parity, const std::string& row,
                   const std::string& place) {
    writer_.Line(put, "(", operand.shared, ", ((", parity, " * ", operand.count, " + ", row, ") * ",
                 kPitch, ") * ", 4 / unit.element_bytes, " + ", place, ", ", operand.elements,
                 ");");
  };
  WriteUnitRounds(rounds, operands, block, item);
  if (unit.is_split) FinishSplitSums(block, item);
}

}  // namespace onnxifi::codegen
