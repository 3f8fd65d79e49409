// SPDX-License-Identifier: Apache-2.0
//
// TiledProduct::PartWriter: the kernel in which an item sums a block.

#include <string>
#include <utility>

#include "backends/core/codegen/tiled_writer.h"

namespace onnxifi::codegen {

Launch TiledProduct::PartWriter::WriteSums() {
  const TileShape& tile = product_.tile_;
  const Block block = WriteBlock(OpenItem());
  const std::string& first = block.first;
  const std::string& from = block.from;
  const std::string tile_name = writer_.NewName("s");
  writer_.Line("TILE_DECLARE(", tile_name, ");");
  WriteProducts(tile_name, block);
  const std::string sums = writer_.NewName("s");
  writer_.Line(sum_type_, " ", sums, "[", tile.rows * tile.columns(), "];");
  writer_.Line("TILE_STORE(", tile_name, ", ", sums, ");");

  // The columns of the block: all of them, or, where they have several axes, as far as they lie
  // in one row after the other. The last axis begins at column `origin`.
  const int column_axes = CountColumnAxes();
  const std::string columns = writer_.UseGiven(kColumns);
  const std::string last = writer_.Declare("idx", Text(first, " + ", tile.columns()));
  const std::string end =
      writer_.Declare("idx", Text(last, " < ", columns, " ? ", last, " : ", columns));
  std::string begin = first;
  std::string stop = end;
  std::string next;
  std::string origin = "0";
  std::vector<std::string> outer_columns;
  if (column_axes > 1) {
    const int inner = column_axes - 1;
    begin = writer_.NewName("c");
    writer_.Line("idx ", begin, " = ", first, ";");
    writer_.Open("while (", begin, " < ", end, ")");
    const std::string length = Given(Group::kPitch, inner - 1);
    origin = writer_.Declare("idx", Text(writer_.DeclareQuotient(begin, length), " * ", length));
    std::string rest = origin;
    std::string is_output;
    for (int axis = 0; axis < inner; ++axis) {
      const std::string pitch = Given(Group::kPitch, axis);
      outer_columns.push_back(writer_.DeclareQuotient(rest, pitch));
      const std::string& at = outer_columns.back();
      if (axis + 1 < inner) rest = writer_.Declare("idx", Text(rest, " - ", at, " * ", pitch));
      is_output += Text(at, " < ", Span(block, axis), " && ");
      if (!product_.is_transposed()) continue;
      outer_columns.back() = writer_.Declare("idx", OutputAt(axis, at));
      is_output += IsOutput(outer_columns.back(), OutExtent(block, axis)) + " && ";
    }
    next = writer_.Declare(
        "idx", Text(origin, " + ", length, " < ", end, " ? ", origin, " + ", length, " : ", end));
    // Behind the outputs of a row lies what only taps read.
    const std::string edge = writer_.Declare("idx", Text(origin, " + ", Span(block, inner)));
    stop = writer_.Declare("idx", Text(edge, " < ", next, " ? ", edge, " : ", next));
    writer_.Open("if (", is_output, begin, " < ", stop, ")");
  }

  const std::string rows = writer_.UseGiven(kRows);
  const std::string row = writer_.NewName("r");
  const std::string first_row = writer_.Declare("idx", Text(block.row_tile, " * ", tile.rows));
  writer_.Open("for (int ", row, " = 0; ", row, " < ", tile.rows, " && ", first_row, " + ", row,
               " < ", rows, "; ++", row, ")");
  std::vector<std::string> at = WriteRowCoordinates(
      block, writer_.Declare("idx", Text(block.part, " * ", rows, " + ", first_row, " + ", row)));
  if (product_.MeetsPadding()) {
    WriteSumsWithoutPadding(block, {.first_lane = Text("AS(int, ", begin, " - ", from, ")"),
                                    .end_lane = Text("AS(int, ", stop, " - ", from, ")"),
                                    .from = from,
                                    .row = row,
                                    .sums = sums});
  }
  const std::string lane = writer_.NewName("l");
  at.insert(at.end(), outer_columns.begin(), outer_columns.end());
  writer_.Line("INDEPENDENT");
  writer_.Open("for (int ", lane, " = AS(int, ", begin, " - ", from, "); ", lane, " < AS(int, ",
               stop, " - ", from, "); ++", lane, ")");
  if (column_axes > 0) {
    at.push_back(writer_.Declare("idx", Text(from, " + ", lane, " - ", origin)));
  }
  if (product_.is_transposed()) {
    const int axis = column_axes - 1;
    at.back() = writer_.Declare("idx", OutputAt(axis, at.back()));
    writer_.Open("if (", IsOutput(at.back(), OutExtent(block, axis)), ")");
  }
  WriteOutputs(at, Text(sums, "[", row, " * ", tile.columns(), " + ", lane, "]"));
  if (product_.is_transposed()) writer_.Close();
  writer_.Close();
  writer_.Close();
  if (column_axes > 1) {
    writer_.Close();
    writer_.Line(begin, " = ", next, ";");
    writer_.Close();
  }
  writer_.Close();
  return {.given_items = kItems, .group_size = tile.group_size};
}

// A block multiplies padding as zeros, which makes NaN of a weight that is infinite or NaN, but
// padding enters no sum. So a sum that is NaN is taken anew from the taps that lie in the tensor.
void TiledProduct::PartWriter::WriteSumsWithoutPadding(const Block& block, const SummedRow& of) {
  const TileShape& tile = product_.tile_;
  const auto sum = [&](const std::string& lane) {
    return Text(of.sums, "[", of.row, " * ", tile.columns(), " + ", lane, "]");
  };
  const auto open_lanes = [&] {
    std::string lane = writer_.NewName("l");
    writer_.Open("for (int ", lane, " = ", of.first_lane, "; ", lane, " < ", of.end_lane, "; ++",
                 lane, ")");
    return lane;
  };
  const std::string count = writer_.NewName("s");
  writer_.Line("int ", count, " = 0;");
  std::string lane = open_lanes();
  writer_.Line(count, " += ", sum(lane), " != ", sum(lane), " ? 1 : 0;");
  writer_.Close();
  writer_.Open("if (", count, " != 0)");
  lane = open_lanes();
  writer_.Open("if (", sum(lane), " != ", sum(lane), ")");
  WriteSumWithoutPadding(sum(lane), block, of.row, lane, Text(of.from, " + ", lane));
  writer_.Close();
  writer_.Close();
  writer_.Close();
}

void TiledProduct::PartWriter::WriteProducts(const std::string& tile, const Block& block) {
  const std::string channels = writer_.UseGiven(kChannels);
  const std::string step = writer_.UseGiven(kStep);
  const auto add = [&](const std::string& row_at, const std::string& column_at) {
    writer_.Line("TILE_ADD(", tile, ", ", block.rows.buffer, ", ", row_at, ", ",
                 block.columns.buffer, ", ", column_at, ", ", channels, ", ", step, ");");
  };
  if (!product_.is_window()) return add(block.rows.at, block.columns.at);
  std::string row_at = writer_.NewName("p");
  writer_.Line("idx ", row_at, " = ", block.rows.at, ";");
  const Tap tap = OpenTaps();
  const int rows = product_.tile_.rows;
  add(product_.is_transposed() ? tap.RowsIn(row_at, channels, rows) : row_at,
      Text(block.columns.at, " + ", tap.offset));
  if (!product_.is_transposed()) writer_.Line(row_at, " += ", channels, " * ", rows, ";");
  for (int axis = 0; axis < product_.column_axes(); ++axis) writer_.Close();
}

}  // namespace onnxifi::codegen
