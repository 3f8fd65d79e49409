// SPDX-License-Identifier: Apache-2.0
//
// TiledProduct::PartWriter: the sums of a convolution of few rows by a group: items read the tensor
// where it lies, since little would be read twice.

#include <string>
#include <vector>

#include "backends/core/codegen/tiled_writer.h"

namespace onnxifi::codegen {

// Of a convolution: a tap that lies in the padding is left out.
void TiledProduct::PartWriter::WriteTensorSums(const Block& block, const GroupItem& item) {
  const TileShape& tile = product_.tile_;
  const int axes = product_.column_axes();
  const std::string last = LastColumn(block);
  std::vector<std::string> outputs;  // by axis, arrays of the columns' coordinates
  for (int axis = 0; axis < axes; ++axis) {
    outputs.push_back(writer_.NewName("k"));
    writer_.Line("idx ", outputs.back(), "[", tile.columns(), "];");
  }
  std::string column = OpenUnrolled(tile.columns());
  const std::string lane = writer_.Declare("idx", ColumnOf(item, column));
  std::string rest = writer_.Declare("idx", Text(block.first, " + ", Lesser(lane, last)));
  for (int axis = 0; axis < axes; ++axis) {
    const std::string output = Text(outputs[static_cast<size_t>(axis)], "[", column, "]");
    if (axis + 1 == axes) {
      writer_.Line(output, " = ", rest, ";");
      break;
    }
    const std::string pitch = Given(Group::kPitch, axis);
    writer_.Line(output, " = ", writer_.DeclareQuotient(rest, pitch), ";");
    rest = writer_.Declare("idx", Text(rest, " - ", output, " * ", pitch));
  }
  writer_.Close();

  std::string is_summed = item.is_of_block;
  if (product_.sums_runs()) {
    // Not around the end of a line of outputs.
    const std::string line = outputs[static_cast<size_t>(axes - 1)];
    const std::string is_run =
        writer_.Declare("bool", Text(item.is_of_block, " && ", line, "[0] + ", tile.columns() - 1,
                                     " == ", line, "[", tile.columns() - 1, "]"));
    writer_.Open("if (", is_run, ")");
    WriteRunSums(block, item, outputs);
    writer_.Close();
    is_summed = Text(item.is_of_block, " && !", is_run);
  }
  const std::string channels = writer_.UseGiven(kChannels);
  const std::string row_at = writer_.NewName("p");
  writer_.Line("idx ", row_at, " = ", block.rows.at, " + ", item.row, " * ", tile.rows, ";");
  const std::string first_channel = writer_.Declare("idx", Text(block.part, " * ", channels));
  writer_.Open("if (", is_summed, ")");
  const Tap tap = OpenTaps();
  const std::string tap_rows = writer_.Declare(
      "idx", product_.is_transposed() ? tap.RowsIn(row_at, channels, tile.block_rows()) : row_at);
  const std::string channel = writer_.NewName("k");
  writer_.Open("for (idx ", channel, " = 0; ", channel, " < ", channels, "; ++", channel, ")");
  const std::string rows =
      WriteItemRows(block, Text(tap_rows, " + ", channel, " * ", tile.block_rows()));
  column = OpenUnrolled(tile.columns());
  std::vector<std::string> at = {block.batch[0],
                                 writer_.Declare("idx", Text(first_channel, " + ", channel))};
  std::string is_inside = "true";
  for (int axis = 0; axis < axes; ++axis) {
    const auto k = static_cast<size_t>(axis);
    const std::string output = Text(outputs[k], "[", column, "]");
    at.push_back(writer_.Declare("idx", Position(axis, output, tap.reaches[k])));
    is_inside += Text(" && ", at.back(), " >= 0 && ", at.back(), " < ", InExtent(axis));
  }
  writer_.Open("if (", is_inside, ")");
  const std::string element =
      writer_.Declare(sum_type_, Text("AS(", sum_type_, ", ", Element(/*is_a=*/true, at), ")"));
  const std::string row = OpenUnrolled(tile.rows);
  WriteProduct(Text(item.sums, "[", row, " * ", tile.columns(), " + ", column, "]"),
               Text(rows, "[", row, "]"), element);
  for (int block_end = 0; block_end < 4; ++block_end) writer_.Close();
  if (!product_.is_transposed()) {
    writer_.Line(row_at, " += ", channels, " * ", tile.block_rows(), ";");
  }
  for (int axis = 0; axis < axes; ++axis) writer_.Close();
  writer_.Close();
}

// Of a depthwise convolution whose taps are neighbours: an item's columns are neighbours, too, and
// what one tap reads of them moves by one for the next.
void TiledProduct::PartWriter::WriteRunSums(const Block& block, const GroupItem& item,
                                            const std::vector<std::string>& outputs) {
  const TileShape& tile = product_.tile_;
  const int last = product_.column_axes() - 1;
  const int columns = tile.columns();
  const std::string row_at = writer_.NewName("p");
  writer_.Line("idx ", row_at, " = ", block.rows.at, ";");
  std::vector<std::string> at = {block.batch[0], block.part};
  std::string is_inside = "true";
  for (int axis = 0; axis < last; ++axis) {
    const auto k = static_cast<size_t>(axis);
    const std::string tap = writer_.NewName("k");
    writer_.Open("for (idx ", tap, " = 0; ", tap, " < ", writer_.UseDim(contract_.inner[k + 1]),
                 "; ++", tap, ")");
    at.push_back(
        writer_.Declare("idx", Position(axis, Text(outputs[k], "[0]"),
                                        Text(tap, " * ", writer_.UseDim(contract_.dilations[k])))));
    is_inside += Text(" && ", at.back(), " >= 0 && ", at.back(), " < ", InExtent(axis));
  }
  is_inside = writer_.Declare("bool", is_inside);
  const std::string first =
      writer_.Declare("idx", Position(last, Text(outputs[static_cast<size_t>(last)], "[0]"), "0"));
  const std::string elements = writer_.NewName("s");
  writer_.Line(sum_type_, " ", elements, "[", columns, "];");
  const auto is_there = [&](const std::string& position) {
    return Text(is_inside, " && ", position, " >= 0 && ", position, " < ", InExtent(last));
  };
  const auto load = [&](const std::string& number, const std::string& position) {
    const std::string element = Text(elements, "[", number, "]");
    writer_.Line(element, " = AS(", sum_type_, ", 0);");
    writer_.Open("if (", is_there(position), ")");
    std::vector<std::string> own = at;
    own.push_back(position);
    writer_.Line(element, " = AS(", sum_type_, ", ", Element(/*is_a=*/true, own), ");");
    writer_.Close();
  };
  std::string column = OpenUnrolled(columns - 1);
  load(Text(column, " + 1"), writer_.Declare("idx", Text(first, " + ", column)));
  writer_.Close();
  const std::string tap = writer_.NewName("k");
  writer_.Open("for (idx ", tap, " = 0; ", tap, " < ",
               writer_.UseDim(contract_.inner[static_cast<size_t>(last) + 1]), "; ++", tap, ")");
  const std::string weight =
      writer_.Declare(sum_type_, LoadElement(/*is_rows=*/true, block.rows.buffer, row_at));
  writer_.Line(row_at, " += 1;");
  column = OpenUnrolled(columns - 1);
  writer_.Line(elements, "[", column, "] = ", elements, "[", column, " + 1];");
  writer_.Close();
  load(Text(columns - 1), writer_.Declare("idx", Text(first, " + ", tap, " + ", columns - 1)));
  column = OpenUnrolled(columns);
  const std::string position = writer_.Declare("idx", Text(first, " + ", tap, " + ", column));
  writer_.Open("if (", is_there(position), ")");
  WriteProduct(Text(item.sums, "[", column, "]"), weight, Text(elements, "[", column, "]"));
  writer_.Close();
  writer_.Close();
  for (int axis = 0; axis <= last; ++axis) writer_.Close();
}

}  // namespace onnxifi::codegen
