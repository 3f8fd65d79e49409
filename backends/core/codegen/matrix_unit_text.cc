// SPDX-License-Identifier: Apache-2.0
//
// TiledProduct::PartWriter: sums of a group by the matrix units of its device. 32 neighbouring
// items, a warp, multiply 16 rows by 8 columns of 32 bytes of depth at a time: 8 elements of 32
// bits, 16 of 16, or 32 bytes. An item's fragments are words of 32 bits, each of elements that
// follow each other in depth: of the rows g and g + 8 and of the column g the words t and t + 4,
// where the item is number 4 g + t of its warp; its sums are those of the columns 2 t and 2 t + 1
// of both rows.
//
// Both operands are laid out in words of 16 bytes of the depth, word by word of the depth and in
// these row by row. The group brings pieces of some words to shared memory, where they lie alike,
// so that eight rows are 128 bytes and fragments are read without conflicts of banks. Pieces are
// copied while those before are multiplied, without a way through registers; only columns that are
// read where they lie, or rounded on the way, take that way.
//
// The product library has COPY_WORD(word, buffer, at), which copies 16 bytes later; COPIES_END,
// behind which a piece is complete; COPIES_WAIT(n), until all but the last n pieces are there;
// LOAD_FRAGMENTS(words, at, a, b, c, d), the words of 32 bits of four blocks of eight rows, of
// which each item names a row; TF32_WORD(word), a float32 rounded; and a function MATRIX_* of each
// unit.

#include <string>

#include "backends/core/codegen/depth_cursor.h"
#include "backends/core/codegen/tiled_writer.h"

namespace onnxifi::codegen {

using tensor::ElementType;

namespace {

constexpr int kWarp = 32;
constexpr int kWarpRows = 8;     // items along the rows
constexpr int kWarpColumns = 4;  // and along the columns
constexpr int kUnitWords = 2;    // of 16 bytes of the depth

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

// The 16 bytes of a word whose elements are brought one by one: `own` is the row or column of the
// block.
std::string TiledProduct::PartWriter::LoadUnitWord(const UnitOperand& operand, const Block& block,
                                                   const std::string& at, const std::string& place,
                                                   const std::string& own) {
  const int count = product_.word_elements();
  const bool is_laid_out = operand.is_rows || ColumnWord() > 1;
  const std::string words = writer_.NewName("s");
  writer_.Line("u32 ", words, "[4];");
  const std::string cleared = OpenUnrolled(4);
  writer_.Line(words, "[", cleared, "] = 0u;");
  writer_.Close();
  const std::string k = OpenUnrolled(count);
  std::string element_at = Text(at, " + ", own, " * ", count, " + ", k);
  if (!is_laid_out) {
    element_at = Text(at, " + ", k, " * ", writer_.UseGiven(kStep), " + ", own);
    writer_.Open("if (", place, " + ", k, " < ", writer_.UseGiven(kInner), ")");
  }
  const std::string element =
      LoadUnitElement(operand.is_rows, operand.type,
                      operand.is_rows ? block.rows.buffer : block.columns.buffer, element_at);
  const int bits = tensor::BitWidth(operand.type);
  std::string value = operand.type == ElementType::kFloat32
                          ? Text("BITS_f32(", element, ")")
                          : Text("AS(u32, AS(u", bits, ", ", element, "))");
  if (bits < 32) {
    value += Text(" << AS(u32, ", k, " % ", 32 / bits, " * ", bits, ")");
  }
  writer_.Line(words, "[", k, " / ", 32 / bits, "] |= ", value, ";");
  if (!is_laid_out) writer_.Close();
  writer_.Close();
  return Text("MAKE4(u32, ", words, "[0], ", words, "[1], ", words, "[2], ", words, "[3])");
}

void TiledProduct::PartWriter::WriteFragmentRounds(
    std::span<UnitOperand> operands, const Block& block, const GroupItem& item,
    const std::function<void(const std::string&)>& multiply) {
  const TileShape& tile = product_.tile_;
  const int word = product_.word_elements();
  constexpr int kWords = kPieceWords;
  constexpr int kStages = kPieceStages;
  // An item brings words of one place of each piece, every so manieth.
  const int bringers = tile.group_size / kWords;
  const std::string place = writer_.Declare("int", Text("LANE / ", bringers));
  const std::string lane = writer_.Declare("int", Text("LANE % ", bringers));
  const std::string last = LastColumn(block);
  DepthCursor cursor(*this, item, Text(place, " * ", word));
  const std::string rounds = cursor.WriteRounds(kWords * word);
  const std::string round = writer_.NewName("k");
  writer_.Open("for (idx ", round, " = 0; ", round, " < ", rounds, " + ", kStages - 1, "; ++",
               round, ")");
  writer_.Open("if (", round, " >= ", kStages - 1, ")");
  writer_.Line("COPIES_WAIT(", kStages - 2, ");");
  writer_.Line("BARRIER;");
  writer_.Close();
  const std::string to = writer_.Declare(
      "int", Text("(AS(int, ", round, " % ", kStages, ") * ", kWords, " + ", place, ")"));
  const auto open_loads = [&](const UnitOperand& operand) {
    std::string load = OpenUnrolled(operand.loads);
    if (operand.loads * bringers != operand.count) {
      writer_.Line("if (", lane, " + ", load, " * ", bringers, " >= ", operand.count,
                   ") continue;");
    }
    return load;
  };
  const auto word_of = [&](const UnitOperand& operand, const std::string& load) {
    return Text(operand.shared, "[", to, " * ", operand.count, " + ", lane, " + ", load, " * ",
                bringers, "]");
  };
  const std::string row_at = writer_.Declare(
      "idx", Text(block.rows.at, " + ", cursor.row_place(), " * ", tile.block_rows()));
  const std::string column_at =
      writer_.Declare("idx", Text(block.columns.at, " + ", cursor.column_offset()));
  const std::string is_inside = writer_.Declare("bool", cursor.is_inside());
  for (UnitOperand& operand : operands) {
    operand.loads = static_cast<int>(CeilDiv(operand.count, bringers));
    const Part part = PartOf(operand.is_rows);
    operand.is_copied =
        tensor::BitWidth(product_.stored_type(part)) == tensor::BitWidth(operand.type) &&
        (operand.is_rows || ColumnWord() > 1);
    if (!operand.is_copied) {
      operand.elements = writer_.NewName("s");
      writer_.Line("u32x4 ", operand.elements, "[", operand.loads, "];");
    }
    const std::string load = open_loads(operand);
    const std::string own = Text("AS(idx, ", lane, " + ", load, " * ", bringers, ")");
    const std::string zero = "MAKE4(u32, 0u, 0u, 0u, 0u)";
    if (operand.is_copied) {
      const Location& from = operand.is_rows ? block.rows : block.columns;
      writer_.Open("if (", is_inside, ")");
      writer_.Line("COPY_WORD(", word_of(operand, load), ", ", from.buffer, ", ",
                   operand.is_rows ? row_at : column_at, " + ", own, " * ", word, ");");
      writer_.Close();
      writer_.Open("if (!", is_inside, ")");
      writer_.Line(word_of(operand, load), " = ", zero, ";");
      writer_.Close();
    } else {
      const std::string element = Text(operand.elements, "[", load, "]");
      writer_.Line(element, " = ", zero, ";");
      writer_.Open("if (", is_inside, ")");
      const std::string value =
          LoadUnitWord(operand, block, operand.is_rows ? row_at : column_at, cursor.place(),
                       operand.is_rows ? own : Lesser(own, last));
      writer_.Line(element, " = ", value, ";");
      writer_.Close();
    }
    writer_.Close();
  }
  writer_.Line("COPIES_END;");
  cursor.Advance(kWords * word);
  writer_.Open("if (", round, " >= ", kStages - 1, ")");
  multiply(writer_.Declare("int", Text("AS(int, (", round, " + 1) % ", kStages, ") * ", kWords)));
  writer_.Close();
  for (const UnitOperand& operand : operands) {
    if (operand.is_copied) continue;
    const std::string load = open_loads(operand);
    writer_.Line(word_of(operand, load), " = ", operand.elements, "[", load, "];");
    writer_.Close();
  }
  writer_.Close();
}

// Of each block of eight rows of a fragment, an item names a row: those of an operand's rows are
// two blocks of rows of two words, those of the columns two words of two blocks of columns.
std::string TiledProduct::PartWriter::WriteFragmentPlace(const UnitOperand& operand,
                                                         const GroupItem& item) {
  const TileShape& tile = product_.tile_;
  const std::string in_block = Text("LANE % ", kWarpRows);
  const std::string odd_block = Text("LANE / ", kWarpRows, " % 2");
  const std::string late_block = Text("LANE % ", kWarp, " / ", 2 * kWarpRows);
  if (operand.is_rows) {
    return writer_.Declare(
        "int", Text("(", item.row, " / ", kWarpRows, " * ", tile.rows, " + ", odd_block, ") * ",
                    kWarpRows, " + ", in_block, " + ", late_block, " * ", operand.count));
  }
  return writer_.Declare("int", Text("(", item.column, " / ", kWarpColumns, " * ",
                                     tile.columns() / 2, " + ", late_block, ") * ", kWarpRows,
                                     " + ", in_block, " + ", odd_block, " * ", operand.count));
}

// Reads `count` fragments, two blocks of rows or columns each, of the words from `word` on.
std::string TiledProduct::PartWriter::LoadFragments(const UnitOperand& operand,
                                                    const std::string& word, int count) {
  std::string words = writer_.NewName("s");
  writer_.Line("u32 ", words, "[", count * 4, "];");
  const std::string number = OpenUnrolled(count);
  writer_.Line("LOAD_FRAGMENTS(", operand.shared, ", ", word, " * ", operand.count, " + ",
               operand.place, " + ", number, " * ", 2 * kWarpRows, ", ", words, "[", number,
               " * 4], ", words, "[", number, " * 4 + 1], ", words, "[", number, " * 4 + 2], ",
               words, "[", number, " * 4 + 3]);");
  writer_.Close();
  return words;
}

void TiledProduct::PartWriter::WriteUnitProducts(const MatrixUnit& unit,
                                                 std::span<const UnitOperand> operands,
                                                 const std::string& word, const GroupItem& item) {
  const TileShape& tile = product_.tile_;
  const int row_blocks = tile.rows / 2;
  const int column_blocks = tile.columns() / 2;
  const std::string a = LoadFragments(operands[0], word, row_blocks);
  const std::string b = LoadFragments(operands[1], word, column_blocks / 2);
  if (unit.rows == ElementType::kFloat32) {
    for (const auto& [words, count] :
         {std::pair(a, row_blocks * 4), std::pair(b, column_blocks * 2)}) {
      const std::string number = OpenUnrolled(count);
      writer_.Line(words, "[", number, "] = TF32_WORD(", words, "[", number, "]);");
      writer_.Close();
    }
  }
  const std::string i = OpenUnrolled(row_blocks);
  const std::string j = OpenUnrolled(column_blocks);
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
  UnitOperand operands[] = {
      {.is_rows = true, .count = tile.block_rows(), .type = unit.rows},
      {.is_rows = false, .count = tile.block_columns(), .type = unit.columns}};
  for (UnitOperand& operand : operands) {
    operand.shared = writer_.NewName("g");
    writer_.Share(
        Text("u32x4 ", operand.shared, "[", kPieceStages * kPieceWords * operand.count, "]"));
    operand.place = WriteFragmentPlace(operand, item);
  }
  WriteFragmentRounds(operands, block, item, [&](const std::string& first) {
    for (int word = 0; word < kPieceWords; word += kUnitWords) {
      const std::string at = Text("(", first, " + ", word, ")");
      if (unit.is_split) {
        WriteSplitProducts(unit, operands, at, item);
      } else {
        WriteUnitProducts(unit, operands, at, item);
      }
    }
  });
  if (unit.is_split) FinishSplitSums(block, item);
}

}  // namespace onnxifi::codegen
