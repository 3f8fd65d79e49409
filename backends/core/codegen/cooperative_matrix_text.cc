// SPDX-License-Identifier: Apache-2.0
//
// TiledProduct::PartWriter: sums of a group by cooperative matrices: blocks that the items of a
// subgroup hold together, in parts that only the device knows. The group brings pieces of the depth
// to shared memory as for other matrix units (matrix_unit_text.cc), as float16 or bfloat16 with the
// depth fastest. A subgroup has some rows and columns of blocks. In the end sums go to their
// items through shared memory, so that epilogues are as for other sums.
//
// The product library has, in the language of the device, for each type T of elements, f16 or bf16,
// that the device multiplies: T itself; the types MATRIX_ROWS_T, MATRIX_COLUMNS_T and MATRIX_SUMS_T
// of blocks; MATRIX_ZERO_T(sums); PUT_T(array, at, bits). For all of them
// MATRIX_LOAD_ROWS(to, array, at, pitch) and MATRIX_LOAD_COLUMNS(to, array, at, pitch), of arrays
// in which the depth is fastest; MATRIX_ADD(sums, rows, columns); MATRIX_STORE(sums, array, at,
// pitch), row by row; SUBGROUP, the number of the item's subgroup in its group.

#include <numeric>
#include <string>

#include "backends/core/codegen/depth_cursor.h"
#include "backends/core/codegen/tiled_writer.h"

namespace onnxifi::codegen {

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

void TiledProduct::PartWriter::WriteCooperativeSums(const MatrixUnit& unit, const Block& block,
                                                    const GroupItem& item) {
  const TileShape& tile = product_.tile_;
  const MatrixBlock of = product_.matrix_units_.BlockOf(unit.rows);
  const std::string type = unit.rows == tensor::ElementType::kFloat16 ? "f16" : "bf16";
  UnitOperand operands[] = {
      {.is_rows = true, .count = tile.block_rows(), .type = unit.rows},
      {.is_rows = false, .count = tile.block_columns(), .type = unit.columns}};
  UnitRounds rounds;
  rounds.depth = CooperativeDepth(of);
  const int pitch = rounds.depth + kCooperativeSpare;
  for (UnitOperand& operand : operands) {
    operand.shared = writer_.NewName("g");
    writer_.Share(Text(type, " ", operand.shared, "[", 2 * operand.count * pitch, "]"));
  }
  // Subgroups lie along the rows, and along the columns where there are more of them than blocks.
  const int subgroups = tile.group_size / product_.matrix_units_.subgroup_items;
  const int along_rows = std::gcd(tile.block_rows() / of.rows, subgroups);
  const int along_columns = subgroups / along_rows;
  const int row_blocks = tile.block_rows() / of.rows / along_rows;
  const int column_blocks = tile.block_columns() / of.columns / along_columns;
  const std::string first_row =
      writer_.Declare("int", Text("SUBGROUP / ", along_columns, " * ", row_blocks * of.rows));
  const std::string first_column =
      writer_.Declare("int", Text("SUBGROUP % ", along_columns, " * ", column_blocks * of.columns));
  const std::string sums = writer_.NewName("s");
  writer_.Line("MATRIX_SUMS_", type, " ", sums, "[", row_blocks * column_blocks, "];");
  const std::string cleared = OpenUnrolled(row_blocks * column_blocks);
  writer_.Line("MATRIX_ZERO_", type, "(", sums, "[", cleared, "]);");
  writer_.Close();

  rounds.multiply = [&](const std::string& parity) {
    const auto at = [&](const UnitOperand& operand, const std::string& row, int place) {
      return Text("(", parity, " * ", operand.count, " + ", row, ") * ", pitch, " + ", place);
    };
    for (int place = 0; place < rounds.depth; place += of.depth) {
      const std::string columns = writer_.NewName("s");
      writer_.Line("MATRIX_COLUMNS_", type, " ", columns, "[", column_blocks, "];");
      std::string j = OpenUnrolled(column_blocks);
      writer_.Line("MATRIX_LOAD_COLUMNS(", columns, "[", j, "], ", operands[1].shared, ", ",
                   at(operands[1], Text(first_column, " + ", j, " * ", of.columns), place), ", ",
                   pitch, ");");
      writer_.Close();
      const std::string i = OpenUnrolled(row_blocks);
      const std::string rows = writer_.NewName("s");
      writer_.Line("MATRIX_ROWS_", type, " ", rows, ";");
      writer_.Line("MATRIX_LOAD_ROWS(", rows, ", ", operands[0].shared, ", ",
                   at(operands[0], Text(first_row, " + ", i, " * ", of.rows), place), ", ", pitch,
                   ");");
      j = OpenUnrolled(column_blocks);
      writer_.Line("MATRIX_ADD(", sums, "[", i, " * ", column_blocks, " + ", j, "], ", rows, ", ",
                   columns, "[", j, "]);");
      writer_.Close();
      writer_.Close();
    }
  };
  rounds.put = [&](const UnitOperand& operand, const std::string& parity, const std::string& row,
                   const std::string& place) {
    writer_.Line("PUT_", type, "(", operand.shared, ", (", parity, " * ", operand.count, " + ", row,
                 ") * ", pitch, " + ", place, ", ", operand.elements, ");");
  };
  WriteUnitRounds(rounds, operands, block, item);

  const std::string shared = writer_.NewName("g");
  writer_.Share(Text("f32 ", shared, "[", tile.block_rows() * tile.block_columns(), "]"));
  const std::string i = OpenUnrolled(row_blocks);
  const std::string j = OpenUnrolled(column_blocks);
  writer_.Line("MATRIX_STORE(", sums, "[", i, " * ", column_blocks, " + ", j, "], ", shared, ", (",
               first_row, " + ", i, " * ", of.rows, ") * ", tile.block_columns(), " + ",
               first_column, " + ", j, " * ", of.columns, ", ", tile.block_columns(), ");");
  writer_.Close();
  writer_.Close();
  writer_.Line("BARRIER;");
  const std::string row = OpenUnrolled(tile.rows);
  const std::string column = OpenUnrolled(tile.columns());
  writer_.Line(item.sums, "[", row, " * ", tile.columns(), " + ", column, "] = ", shared, "[(",
               RowOf(item, row), ") * ", tile.block_columns(), " + ", ColumnOf(item, column), "];");
  writer_.Close();
  writer_.Close();
}

}  // namespace onnxifi::codegen
