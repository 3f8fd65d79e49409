// SPDX-License-Identifier: Apache-2.0
//
// TiledProduct::PartWriter: what the items of a group do with their sums: those that met padding
// are taken anew, and all go through the epilogue to their outputs.

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "backends/core/codegen/access.h"
#include "backends/core/codegen/tiled_writer.h"

namespace onnxifi::codegen {

// Sums are named by constants alone, so that they can stay in registers.
void TiledProduct::PartWriter::WriteGroupSumsAgain(const Block& block, const GroupItem& item,
                                                   const IsWrong& is_wrong,
                                                   const WriteAgain& write_again) {
  const TileShape& tile = product_.tile_;
  const int sums = item.rows * tile.columns();
  const std::string count = writer_.NewName("s");
  writer_.Line("int ", count, " = 0;");
  std::string sum = OpenUnrolled(sums);
  writer_.Line(count, " += ", is_wrong(Text(item.sums, "[", sum, "]")), " ? 1 : 0;");
  writer_.Close();
  writer_.Open("if (", count, " != 0)");
  const std::string number = writer_.NewName("j");
  writer_.Open("for (int ", number, " = 0; ", number, " < ", sums, "; ++", number, ")");
  const std::string own = writer_.NewName("s");
  writer_.Line(sum_type_, " ", own, " = AS(", sum_type_, ", 0);");
  sum = OpenUnrolled(sums);
  writer_.Line("if (", sum, " == ", number, ") ", own, " = ", item.sums, "[", sum, "];");
  writer_.Close();
  const std::string own_column = writer_.Declare("int", Text(number, " % ", tile.columns()));
  const std::string lane = writer_.Declare("int", ColumnOf(item, own_column));
  const std::string column = writer_.Declare("idx", Text(block.first, " + ", lane));
  writer_.Open("if (", is_wrong(own), " && ", column, " < ", writer_.UseGiven(kColumns), ")");
  const std::string own_row = writer_.Declare("int", Text(number, " / ", tile.columns()));
  const std::string row = writer_.Declare("int", RowOf(item, own_row));
  write_again(own, row, lane, column);
  sum = OpenUnrolled(sums);
  writer_.Line("if (", sum, " == ", number, ") ", item.sums, "[", sum, "] = ", own, ";");
  writer_.Close();
  writer_.Close();
  writer_.Close();
  writer_.Close();
}

// As WriteSumsWithoutPadding does.
void TiledProduct::PartWriter::WriteGroupSumsWithoutPadding(const Block& block,
                                                            const GroupItem& item) {
  WriteGroupSumsAgain(
      block, item, [](const std::string& sum) { return Text(sum, " != ", sum); },
      [&](const std::string& sum, const std::string& row, const std::string& lane,
          const std::string& column) { WriteSumWithoutPadding(sum, block, row, lane, column); });
}

std::string TiledProduct::PartWriter::WriteColumnCoordinates(const Block& block,
                                                             const std::string& column,
                                                             std::vector<std::string>& at) {
  const int axes = CountColumnAxes();
  std::string is_output = Text(column, " < ", writer_.UseGiven(kColumns));
  std::string rest = column;
  for (int axis = 0; axis < axes; ++axis) {
    std::string own = rest;
    if (axis + 1 < axes) {
      const std::string pitch = Given(Group::kPitch, axis);
      const Writer::Division division = writer_.DeclareDivision(rest, pitch);
      own = division.quotient;
      rest = division.rest;
    }
    if (axes > 1) is_output += Text(" && ", own, " < ", Span(block, axis));
    if (product_.is_transposed()) {
      own = writer_.Declare("idx", OutputAt(axis, own));
      is_output += " && " + IsOutput(own, OutExtent(block, axis));
    }
    at.push_back(std::move(own));
  }
  return is_output;
}

std::vector<int> TiledProduct::PartWriter::RowReads() {
  // More of them would not stay in registers.
  constexpr size_t kMaxReads = 2;
  const program::ExprPool& pool = source_.program.exprs;
  std::vector<program::ExprId> roots;
  for (const program::ExprId root : contract_.roots) {
    if (root != program::kNoExpr) roots.push_back(root);
  }
  std::vector<int> reads;
  for (const program::ExprId id : program::Reachable(pool, roots)) {
    const program::ExprNode& node = pool[id];
    if (node.op != program::ExprOp::kLoad || !node.operands.empty()) continue;
    const auto read = static_cast<int>(node.payload);
    const program::View& view = source_.step.reads[static_cast<size_t>(read)];
    if (!view.guards.empty() || view.strides.empty()) continue;
    bool is_of_row = true;
    for (int axis = source_.form.outer_rank; axis < source_.form.rank; ++axis) {
      is_of_row = is_of_row &&
                  writer_.UseStride(/*is_write=*/false, read, axis, view.strides.size()) == "0";
    }
    if (is_of_row && reads.size() < kMaxReads && std::ranges::count(reads, read) == 0) {
      reads.push_back(read);
    }
  }
  return reads;
}

void TiledProduct::PartWriter::WriteGroupOutputs(const Block& block, const GroupItem& item) {
  const TileShape& tile = product_.tile_;
  const std::string rows = writer_.UseGiven(kRows);
  const std::string first_row =
      writer_.Declare("idx", Text(block.row_tile, " * ", tile.block_rows()));
  const auto row_in_part = [&](const std::string& row) {
    return writer_.Declare("idx", Text(first_row, " + ", RowOf(item, row)));
  };
  const auto row_number = [&](const std::string& row) {
    return writer_.Declare("idx", Text(block.part, " * ", rows, " + ", row));
  };
  // What all columns share is loaded once.
  std::map<int, std::string> shared;
  for (const int read : RowReads()) {
    const std::string elements = writer_.NewName("s");
    const std::string_view type = LaneType(source_.step.reads[static_cast<size_t>(read)].type);
    writer_.Line(type, " ", elements, "[", item.rows, "];");
    const std::string row = OpenUnrolled(item.rows);
    writer_.Line(elements, "[", row, "] = AS(", type, ", 0);");
    const std::string own_row = row_in_part(row);
    writer_.Open("if (", own_row, " < ", rows, ")");
    std::vector<std::string> at = WriteRowCoordinates(block, row_number(own_row));
    at.resize(at.size() + static_cast<size_t>(CountColumnAxes()), "0");
    writer_.Line(elements, "[", row, "] = ", WriteLoad(writer_, source_.step, read, at), ";");
    writer_.Close();
    writer_.Close();
    shared[read] = elements;
  }
  // A column at a time, so that the compiler sees the epilogue once a row.
  const std::string column = writer_.NewName("j");
  writer_.Open("for (int ", column, " = 0; ", column, " < ", tile.columns(), "; ++", column, ")");
  std::vector<std::string> column_at;
  const std::string is_output = WriteColumnCoordinates(
      block, writer_.Declare("idx", Text(block.first, " + ", ColumnOf(item, column))), column_at);
  writer_.Open("if (", is_output, ")");
  const std::string own = writer_.NewName("s");
  writer_.Line(sum_type_, " ", own, "[", item.rows, "];");
  const std::string copied = OpenUnrolled(item.rows);
  writer_.Line(own, "[", copied, "] = ", item.sums, "[", copied, " * ", tile.columns(), "];");
  if (tile.columns() > 1) {
    const std::string other = OpenUnrolled(tile.columns());
    writer_.Line("if (", other, " == ", column, ") ", own, "[", copied, "] = ", item.sums, "[",
                 copied, " * ", tile.columns(), " + ", other, "];");
    writer_.Close();
  }
  writer_.Close();
  const std::string row = OpenUnrolled(item.rows);
  const std::string own_row = row_in_part(row);
  writer_.Open("if (", own_row, " < ", rows, ")");
  std::vector<std::string> at = WriteRowCoordinates(block, row_number(own_row));
  at.insert(at.end(), column_at.begin(), column_at.end());
  std::map<int, std::string> loaded;
  for (const auto& [read, elements] : shared) loaded[read] = Text(elements, "[", row, "]");
  WriteOutputs(at, Text(own, "[", row, "]"), std::move(loaded));
  writer_.Close();
  writer_.Close();
  writer_.Close();
  writer_.Close();
}

}  // namespace onnxifi::codegen
