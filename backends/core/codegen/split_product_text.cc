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
//   again by plain multiply-adds, whose result is then the same bit by bit.
//
// The product library defines PUT_SCALED, which stores a scaled element; SPLIT, which makes two
// parts of it; and UNSCALED, which scales a sum back.

#include <string>

#include "backends/core/codegen/depth_cursor.h"
#include "backends/core/codegen/tiled_writer.h"

namespace onnxifi::codegen {

void TiledProduct::PartWriter::WriteSplitProducts(const MatrixUnit& unit,
                                                  std::span<const UnitOperand> operands,
                                                  const std::string& parity,
                                                  const GroupItem& item) {
  const TileShape& tile = product_.tile_;
  const int row_blocks = tile.rows / 2;
  const int column_blocks = tile.columns() / 2;
  constexpr int kHalf = 4;  // words of the depth, of 8
  struct SplitWords {
    std::string large, small;
  };
  const auto declare = [&](int count) {
    SplitWords parts{writer_.NewName("s"), writer_.NewName("s")};
    for (const std::string& name : {parts.large, parts.small}) {
      writer_.Line("u32 ", name, "[", count, "];");
    }
    return parts;
  };
  const auto split = [&](const std::string& word, const SplitWords& parts,
                         const std::string& place) {
    writer_.Line("SPLIT(", word, ", ", parts.large, "[", place, "], ", parts.small, "[", place,
                 "]);");
  };
  const SplitWords b = declare(column_blocks * 2);
  std::string j = OpenUnrolled(column_blocks);
  const std::string column = writer_.Declare("int", UnitColumnOf(item, j));
  for (const int words : {0, 1}) {
    split(UnitWord(operands[1], parity, column, words * kHalf), b, Text(j, " * 2 + ", words));
  }
  writer_.Close();
  const std::string i = OpenUnrolled(row_blocks);
  const SplitWords a = declare(4);
  for (const int half : {0, 1}) {
    const std::string row =
        writer_.Declare("int", MatrixRowOf(item, Text("(", i, " * 2 + ", half, ")")));
    for (const int words : {0, 1}) {
      split(UnitWord(operands[0], parity, row, words * kHalf), a, Text(half + 2 * words));
    }
  }
  const std::string sums = writer_.NewName("s");
  writer_.Line(sum_type_, " ", sums, "[", column_blocks * 4, "];");
  const std::string sum = OpenUnrolled(column_blocks * 4);
  writer_.Line(sums, "[", sum, "] = AS(", sum_type_, ", 0);");
  writer_.Close();
  // The smallest first. Each needs the sums of the one before, so another block comes between.
  const auto multiply = [&](const std::string& rows, const std::string& columns) {
    j = OpenUnrolled(column_blocks);
    std::string arguments = Text(sums, "[", j, " * 4]");
    for (int k = 1; k < 4; ++k) arguments += Text(", ", sums, "[", j, " * 4 + ", k, "]");
    for (int k = 0; k < 4; ++k) arguments += Text(", ", rows, "[", k, "]");
    for (int k = 0; k < 2; ++k) arguments += Text(", ", columns, "[", j, " * 2 + ", k, "]");
    writer_.Line(unit.name, "(", arguments, ");");
    writer_.Close();
  };
  multiply(a.small, b.large);
  multiply(a.large, b.small);
  multiply(a.large, b.large);
  j = OpenUnrolled(column_blocks);
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
        const std::string row_at = Text(block.rows.at, " + ", cursor.row_place(), " * ",
                                        product_.tile_.block_rows(), " + ", row);
        const std::string column_at =
            Text(block.columns.at, " + ", cursor.column_offset(), " + ", lane);
        WriteProduct(own, LoadElement(/*is_rows=*/true, block.rows.buffer, row_at),
                     LoadElement(/*is_rows=*/false, block.columns.buffer, column_at));
        cursor.Advance(1);
        writer_.Close();
      });
}

}  // namespace onnxifi::codegen
