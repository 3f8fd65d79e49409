// SPDX-License-Identifier: Apache-2.0
//
// TiledProduct::PartWriter: sums of float32 by matrix units of TF32, known as 3xTF32. An element is
// the sum of a large part, which is the element rounded to the 11 bits of TF32, and a small one,
// which is what is left, rounded alike. Of the four products of parts that of the small ones is
// left out.
//
// The errors stay near those of plain multiply-adds because of three things:
// - Units cut off what does not fit their sums, in place of rounding it, which adds up. So a unit
//   sums 8 places of the depth from zero, and the item adds this to its own sum, rounded.
// - Elements are scaled by 2^24, so that no part is subnormal, and sums are scaled back in the end.
// - Scaled numbers may overflow, and infinities have no small part. A sum that is not finite is
// made
//   again by plain multiply-adds.
//
// The product library defines SPLIT, which scales an element and leaves its large part in its
// place; UNSCALED, which scales a sum back; and MATRIX_tf32_FROM_ZERO, whose sums begin with zeros.

#include <string>

#include "backends/core/codegen/depth_cursor.h"
#include "backends/core/codegen/tiled_writer.h"

namespace onnxifi::codegen {

void TiledProduct::PartWriter::WriteSplitProducts(const MatrixUnit& unit,
                                                  std::span<const UnitOperand> operands,
                                                  const std::string& word, const GroupItem& item) {
  const TileShape& tile = product_.tile_;
  const int row_blocks = tile.rows / 2;
  const int column_blocks = tile.columns() / 2;
  struct SplitWords {
    std::string large, small;
  };
  const auto split = [&](const std::string& words, int count) {
    SplitWords parts{words, writer_.NewName("s")};
    writer_.Line("u32 ", parts.small, "[", count, "];");
    const std::string number = OpenUnrolled(count);
    writer_.Line("SPLIT(", words, "[", number, "], ", parts.small, "[", number, "]);");
    writer_.Close();
    return parts;
  };
  const SplitWords b =
      split(LoadFragments(operands[1], word, column_blocks / 2), column_blocks * 2);
  const SplitWords a = split(LoadFragments(operands[0], word, row_blocks), row_blocks * 4);
  const std::string i = OpenUnrolled(row_blocks);
  const std::string sums = writer_.NewName("s");
  writer_.Line(sum_type_, " ", sums, "[", column_blocks * 4, "];");
  // The smallest first. Each needs the sums of the one before, so another block comes between.
  const auto multiply = [&](std::string_view how, const std::string& rows,
                            const std::string& columns) {
    const std::string j = OpenUnrolled(column_blocks);
    std::string arguments = Text(sums, "[", j, " * 4]");
    for (int k = 1; k < 4; ++k) arguments += Text(", ", sums, "[", j, " * 4 + ", k, "]");
    for (int k = 0; k < 4; ++k) arguments += Text(", ", rows, "[", i, " * 4 + ", k, "]");
    for (int k = 0; k < 2; ++k) arguments += Text(", ", columns, "[", j, " * 2 + ", k, "]");
    writer_.Line(unit.name, how, "(", arguments, ");");
    writer_.Close();
  };
  multiply("_FROM_ZERO", a.small, b.large);
  multiply("", a.large, b.small);
  multiply("", a.large, b.large);
  const std::string j = OpenUnrolled(column_blocks);
  for (const int row : {0, 1}) {
    for (const int own : {0, 1}) {
      writer_.Line(item.sums, "[(", i, " * 2 + ", row, ") * ", tile.columns(), " + ", j, " * 2 + ",
                   own, "] += ", sums, "[", j, " * 4 + ", row * 2 + own, "];");
    }
  }
  writer_.Close();
  writer_.Close();
}

void TiledProduct::PartWriter::FinishSplitSums(const Block& block, const GroupItem& item) {
  const std::string sum = OpenUnrolled(product_.tile_.rows * product_.tile_.columns());
  writer_.Line(item.sums, "[", sum, "] = UNSCALED(", item.sums, "[", sum, "]);");
  writer_.Close();
  WriteGroupSumsAgain(
      block, item, [](const std::string& own) { return Text(own, " - ", own, " != 0"); },
      [&](const std::string& own, const std::string& row, const std::string& lane,
          const std::string& /*column*/) {
        writer_.Line(own, " = AS(", sum_type_, ", 0);");
        DepthCursor cursor(*this, item, "0");
        writer_.Open("while (", cursor.is_inside(), ")");
        const std::string place = writer_.Declare("idx", cursor.row_place());
        // Places that fill up words are zeros in the rows; there need be none in the columns.
        const bool has_taps = product_.is_window();
        writer_.Open("if (", cursor.channel(), " < ",
                     has_taps ? writer_.UseDim(contract_.inner[0]) : writer_.UseGiven(kInner), ")");
        const std::string own_lane = has_taps ? Text(cursor.tap_offset(), " + ", lane) : lane;
        WriteProduct(
            own, LoadElement(/*is_rows=*/true, block.rows.buffer, RowAt(block.rows.at, place, row)),
            LoadElement(/*is_rows=*/false, block.columns.buffer,
                        ColumnAt(block.columns.at, cursor.channel(), own_lane)));
        writer_.Close();
        cursor.Advance(1);
        writer_.Close();
      });
}

}  // namespace onnxifi::codegen
