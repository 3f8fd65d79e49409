// SPDX-License-Identifier: Apache-2.0
//
// TiledProduct::PartWriter: the kernel in which the items of a group sum a block together, in
// neutral text. Columns run fastest among items, and an item's columns lie item_columns apart, so
// that neighbouring items read and write neighbouring elements.
//
// Either the group brings a piece of the depth of both operands to shared memory at a time: the
// pieces lie in two buffers in turns, so that one barrier a round is enough, and an item's elements
// of the next piece are on their way while it sums. Or, where there are too few rows to share, each
// item reads its columns where they lie, and the depth is shared out among items whose sums are
// added up in their order at the end.

#include <algorithm>
#include <string>
#include <utility>

#include "backends/core/codegen/conversion.h"
#include "backends/core/codegen/depth_cursor.h"
#include "backends/core/codegen/tiled_writer.h"

namespace onnxifi::codegen {

Launch TiledProduct::PartWriter::WriteGroupSums(Sums sums) {
  const TileShape& tile = product_.tile_;
  // Barriers stand in no condition: PoCL 3.1 forgets there what variables held before them. A group
  // beyond the blocks goes through a sum of nothing.
  GroupItem item;
  item.is_of_block = writer_.Declare("bool", "GROUP < count");
  const std::string group =
      writer_.Declare("idx", Text(item.is_of_block, " ? AS(idx, GROUP) : AS(idx, 0)"));
  std::string number = group;
  item.rows = tile.rows;
  if (sums == Sums::kJoined) {
    number = writer_.Declare("idx", Text(group, " / ", tile.rows));
    item.rows = 1;
    item.first_row = writer_.Declare("int", Text("AS(int, ", group, " % ", tile.rows, ")"));
  } else if (sums == Sums::kOfPart) {
    const Writer::Division division =
        writer_.DeclareDivision(group, writer_.UseGiven(kDepthPartCount));
    number = division.quotient;
    const std::string& part = division.rest;
    const std::string length = writer_.UseGiven(kDepthPartLength);
    item.first = writer_.Declare("idx", Text(part, " * ", length));
    item.end = writer_.Declare("idx", Text(item.first, " + ", length));
  }
  const Block block = WriteBlock(number);
  if (product_.has_fragments()) {
    PlaceInWarp(item);
  } else {
    item.column = writer_.Declare("int", Text("LANE % ", tile.item_columns));
    item.row = writer_.Declare("int", Text("LANE / ", tile.item_columns, " % ", tile.item_rows));
  }
  item.part = writer_.Declare("int", Text("LANE / ", block_items()));
  item.sums = writer_.NewName("s");
  const int count = item.rows * tile.columns();
  writer_.Line(sum_type_, " ", item.sums, "[", count, "];");
  const std::string sum = OpenUnrolled(count);
  writer_.Line(item.sums, "[", sum, "] = AS(", sum_type_, ", 0);");
  writer_.Close();
  if (sums == Sums::kJoined) {
    JoinDepthParts(number, item);
  } else if (const auto unit = product_.matrix_unit()) {
    if (product_.has_fragments()) {
      WriteMatrixSums(*unit, block, item);
    } else {
      WriteCooperativeSums(*unit, block, item);
    }
  } else if (tile.depth > 0) {
    WriteSharedSums(block, item);
  } else if (product_.reads_tensor()) {
    WriteTensorSums(block, item);
  } else {
    WriteDirectSums(block, item);
  }
  const bool has_parts = tile.parts > 1 && sums != Sums::kJoined;
  if (has_parts) {
    OpenSumOfParts(item);
  } else {
    writer_.Open("if (", item.is_of_block, ")");
  }
  if (sums == Sums::kOfPart) {
    StoreDepthPart(group, item);
    writer_.Close();
    return {
        .given_items = kDepthPartItems, .has_group_per_item = true, .group_size = tile.group_size};
  }
  if (!product_.reads_tensor() && product_.MeetsPadding())
    WriteGroupSumsWithoutPadding(block, item);
  WriteGroupOutputs(block, item);
  writer_.Close();
  if (sums == Sums::kJoined) {
    return {.given_items = kJoinItems, .has_group_per_item = true, .group_size = block_items()};
  }
  return {.given_items = kItems, .has_group_per_item = true, .group_size = tile.group_size};
}

// Where an item's sum `number` of a part lies: neighbouring items leave neighbours.
std::string TiledProduct::PartWriter::DepthPartPlace(const std::string& part,
                                                     const std::string& number) const {
  const TileShape& tile = product_.tile_;
  return Text("(", part, " * ", tile.rows * tile.columns(), " + ", number, ") * ", block_items(),
              " + LANE");
}

void TiledProduct::PartWriter::StoreDepthPart(const std::string& group, const GroupItem& item) {
  const std::string places = writer_.UseScratch(/*is_write=*/true, 2, sum_type_);
  const std::string sum = OpenUnrolled(product_.tile_.rows * product_.tile_.columns());
  writer_.Line("STORE(", places, ", ", DepthPartPlace(group, sum), ", ", item.sums, "[", sum,
               "]);");
  writer_.Close();
}

// A group adds up a row of each of its items, so that there are groups enough.
void TiledProduct::PartWriter::JoinDepthParts(const std::string& block, const GroupItem& item) {
  const int columns = product_.tile_.columns();
  const std::string places = writer_.UseScratch(/*is_write=*/false, 2, sum_type_);
  const std::string count = writer_.UseGiven(kDepthPartCount);
  const std::string part = writer_.NewName("k");
  writer_.Open("for (idx ", part, " = 0; ", part, " < ", count, "; ++", part, ")");
  const std::string number = writer_.Declare("idx", Text(block, " * ", count, " + ", part));
  const std::string sum = OpenUnrolled(columns);
  const std::string own = Text("(", item.first_row, " * ", columns, " + ", sum, ")");
  writer_.Line(item.sums, "[", sum, "] += LOAD(", places, ", ", DepthPartPlace(number, own), ");");
  writer_.Close();
  writer_.Close();
}

std::string TiledProduct::PartWriter::OpenUnrolled(int count) {
  std::string name = writer_.NewName("j");
  writer_.Open("UNROLL for (int ", name, " = 0; ", name, " < ", count, "; ++", name, ")");
  return name;
}

// Adds a product to a sum.
void TiledProduct::PartWriter::WriteProduct(const std::string& sum, const std::string& a,
                                            const std::string& b) {
  if (tensor::IsFloat(contract_.accumulator)) {
    writer_.Line(sum, " = M_fma(", a, ", ", b, ", ", sum, ");");
  } else {
    writer_.Line(sum, " += ", a, " * ", b, ";");
  }
}

// Adds the products of a row's and a column's elements to all sums of an item.
void TiledProduct::PartWriter::WriteItemProducts(const GroupItem& item, const std::string& rows,
                                                 const std::string& columns) {
  const TileShape& tile = product_.tile_;
  const std::string row = OpenUnrolled(tile.rows);
  const std::string column = OpenUnrolled(tile.columns());
  WriteProduct(Text(item.sums, "[", row, " * ", tile.columns(), " + ", column, "]"),
               Text(rows, "[", row, "]"), Text(columns, "[", column, "]"));
  writer_.Close();
  writer_.Close();
}

// The last column of a block's that is one, counted from the block's first. The elements of those
// behind it are read in its place, and summed for nothing.
std::string TiledProduct::PartWriter::LastColumn(const Block& block) {
  return writer_.Declare("idx", Text(writer_.UseGiven(kColumns), " - 1 - ", block.first));
}

// How many elements are brought to shared memory, and taken from there, at once.
int TiledProduct::PartWriter::SharedWidth() const {
  const TileShape& tile = product_.tile_;
  const bool has_vectors = sum_type_ == "f32" || sum_type_ == "i32";
  const bool are_fours = tile.rows % 4 == 0 && tile.columns() % 4 == 0;
  // There is room for four elements between places of the depth: see Tuning.
  return tile.depth > 0 && has_vectors && are_fours && tile.group_size / tile.depth >= 4 ? 4 : 1;
}

std::string TiledProduct::PartWriter::Widened(const std::string& value, int width) const {
  const std::string one = Text("AS(", sum_type_, ", ", value, ")");
  if (width == 1) return one;
  return Text("MAKE4(", sum_type_, ", ", one, ", ", one, ", ", one, ", ", one, ")");
}

// Which row of its block an item's row `number` is.
std::string TiledProduct::PartWriter::RowOf(const GroupItem& item,
                                            const std::string& number) const {
  const std::string own =
      item.first_row == "0" ? number : Text("(", item.first_row, " + ", number, ")");
  if (product_.has_fragments()) return MatrixRowOf(item, own);
  return Text(item.row, " * ", product_.tile_.rows, " + ", own);
}

// Which column of its block an item's column `number` is. Neighbouring items have neighbours.
std::string TiledProduct::PartWriter::ColumnOf(const GroupItem& item,
                                               const std::string& number) const {
  if (product_.has_fragments()) return MatrixColumnOf(item, number);
  const int step = product_.tile_.item_columns;
  if (product_.sums_runs()) {
    return Text(item.column, " * ", product_.tile_.columns(), " + ", number);
  }
  const int width = std::max(SharedWidth(), OwnWidth());
  if (width == 1) return Text(item.column, " + ", number, " * ", step);
  return Text("(", item.column, " + ", number, " / ", width, " * ", step, ") * ", width, " + ",
              number, " % ", width);
}

// Of the element at `lane`, or of four from there on.
void TiledProduct::PartWriter::WriteColumnLoad(const std::string& to, const Block& block,
                                               const std::string& at, const std::string& lane,
                                               const std::string& last) {
  const std::string& buffer = block.columns.buffer;
  const auto load = [&](const std::string& own_lane) {
    return LoadElement(/*is_rows=*/false, buffer, Text(at, " + ", Lesser(own_lane, last)));
  };
  if (SharedWidth() == 1) {
    writer_.Line(to, " = ", load(lane), ";");
    return;
  }
  writer_.Open("if (", lane, " + 3 <= ", last, ")");
  writer_.Line(to, " = ",
               LoadElements(/*is_rows=*/false, buffer, Text(at, " + ", lane), 4,
                            /*are_aligned=*/source_.form.lanes == 4),
               ";");
  writer_.Close();
  writer_.Open("if (", lane, " + 3 > ", last, ")");
  std::string fours;
  for (int k = 0; k < 4; ++k) fours += ", " + load(Text("(", lane, " + ", k, ")"));
  writer_.Line(to, " = MAKE4(", sum_type_, fours, ");");
  writer_.Close();
}

void TiledProduct::PartWriter::WriteSharedSums(const Block& block, const GroupItem& item) {
  const TileShape& tile = product_.tile_;
  // An item brings elements of one place of each piece of the depth, every so manieth, four at a
  // time where that can be.
  const int bringers = tile.group_size / tile.depth;
  const int width = SharedWidth();
  const std::string type = Text(sum_type_, width == 1 ? "" : "x4");
  const int row_count = tile.block_rows() / width;
  const int column_count = tile.block_columns() / width;
  const int row_loads = static_cast<int>(CeilDiv(row_count, bringers));
  const int column_loads = static_cast<int>(CeilDiv(column_count, bringers));
  const auto share = [&](int pitch) {
    std::string name = writer_.NewName("g");
    writer_.Share(Text(type, " ", name, "[", 2 * tile.depth * pitch, "]"));
    return name;
  };
  // Neighbouring places of the depth begin in other banks.
  const int row_pitch = row_count + (width == 1 ? bringers : 1);
  const int column_pitch = column_count + (width == 1 ? bringers : 1);
  const std::string shared_rows = share(row_pitch);
  const std::string shared_columns = share(column_pitch);
  const std::string place = writer_.Declare("int", Text("LANE / ", bringers));
  const std::string lane = writer_.Declare("int", Text("LANE % ", bringers));
  const std::string last = LastColumn(block);
  DepthCursor cursor(*this, item, place);
  const std::string rounds = cursor.WriteRounds(tile.depth);
  const std::string round = writer_.NewName("k");
  writer_.Open("for (idx ", round, " = 0; ", round, " <= ", rounds, "; ++", round, ")");
  const std::string rows = writer_.NewName("s");
  const std::string columns = writer_.NewName("s");
  writer_.Line(type, " ", rows, "[", row_loads, "];");
  writer_.Line(type, " ", columns, "[", column_loads, "];");
  // Opens a loop over what an item brings of `count` elements.
  const auto open_loads = [&](int loads, int count) {
    std::string load = OpenUnrolled(loads);
    if (loads * bringers != count) {
      writer_.Line("if (", lane, " + ", load, " * ", bringers, " >= ", count, ") continue;");
    }
    return load;
  };
  const auto clear = [&](const std::string& elements, int loads) {
    const std::string load = OpenUnrolled(loads);
    writer_.Line(elements, "[", load, "] = ", Widened("0", width), ";");
    writer_.Close();
  };
  clear(rows, row_loads);
  clear(columns, column_loads);
  writer_.Open("if (", cursor.is_inside(), ")");
  const std::string row_at =
      writer_.Declare("idx", Text(block.rows.at, " + ", cursor.row_place(), " * ",
                                  tile.block_rows(), " + ", lane, width == 1 ? "" : " * 4"));
  const std::string column_at =
      writer_.Declare("idx", Text(block.columns.at, " + ", cursor.column_offset()));
  std::string load = open_loads(row_loads, row_count);
  writer_.Line(rows, "[", load, "] = ",
               LoadElements(/*is_rows=*/true, block.rows.buffer,
                            Text(row_at, " + ", load, " * ", bringers * width), width,
                            /*are_aligned=*/true),
               ";");
  writer_.Close();
  load = open_loads(column_loads, column_count);
  WriteColumnLoad(Text(columns, "[", load, "]"), block, column_at,
                  writer_.Declare("idx", Text("(", lane, " + ", load, " * ", bringers, ")",
                                              width == 1 ? "" : " * 4")),
                  last);
  writer_.Close();
  cursor.Advance(tile.depth);
  writer_.Close();

  writer_.Open("if (", round, " > 0)");
  const std::string first =
      writer_.Declare("int", Text("AS(int, (", round, " + 1) % 2) * ", tile.depth));
  const std::string k = writer_.NewName("k");
  writer_.Open("for (int ", k, " = 0; ", k, " < ", tile.depth, "; ++", k, ")");
  const std::string own_rows = writer_.NewName("s");
  const std::string own_columns = writer_.NewName("s");
  writer_.Line(sum_type_, " ", own_rows, "[", tile.rows, "];");
  writer_.Line(sum_type_, " ", own_columns, "[", tile.columns(), "];");
  const std::string at = Text("(", first, " + ", k, ") * ");
  const auto take = [&](const std::string& elements, const std::string& shared, int count,
                        const std::string& first_of_item, int pitch) {
    const std::string own = OpenUnrolled(count / width);
    const std::string element = Text(shared, "[", first_of_item, " + ", own, " * ", pitch, "]");
    if (width == 1) {
      writer_.Line(elements, "[", own, "] = ", element, ";");
    } else {
      const std::string four = writer_.Declare(type, element);
      int k = 0;
      for (const char* const part : {".x", ".y", ".z", ".w"}) {
        writer_.Line(elements, "[", own, " * 4 + ", k++, "] = ", four, part, ";");
      }
    }
    writer_.Close();
  };
  take(own_rows, shared_rows, tile.rows,
       Text(at, row_pitch, " + ", item.row, " * ", tile.rows / width), 1);
  take(own_columns, shared_columns, tile.columns(), Text(at, column_pitch, " + ", item.column),
       tile.item_columns);
  WriteItemProducts(item, own_rows, own_columns);
  writer_.Close();
  writer_.Close();

  const std::string to =
      writer_.Declare("int", Text("AS(int, ", round, " % 2) * ", tile.depth, " + ", place));
  load = open_loads(row_loads, row_count);
  writer_.Line(shared_rows, "[", to, " * ", row_pitch, " + ", lane, " + ", load, " * ", bringers,
               "] = ", rows, "[", load, "];");
  writer_.Close();
  load = open_loads(column_loads, column_count);
  writer_.Line(shared_columns, "[", to, " * ", column_pitch, " + ", lane, " + ", load, " * ",
               bringers, "] = ", columns, "[", load, "];");
  writer_.Close();
  writer_.Line("BARRIER;");
  writer_.Close();
}

// An array of what an item reads of the rows, from `at` on.
std::string TiledProduct::PartWriter::WriteItemRows(const Block& block, const std::string& at) {
  std::string rows = writer_.NewName("s");
  writer_.Line(sum_type_, " ", rows, "[", product_.tile_.rows, "];");
  const std::string row = OpenUnrolled(product_.tile_.rows);
  writer_.Line(rows, "[", row,
               "] = ", LoadElement(/*is_rows=*/true, block.rows.buffer, Text(at, " + ", row)), ";");
  writer_.Close();
  return rows;
}

// The same of the rows at place `k`, wherever they lie. Rows behind the last are read in its
// place, and summed for nothing.
std::string TiledProduct::PartWriter::WriteOwnRows(const Block& block, const GroupItem& item,
                                                   const std::string& k) {
  const TileShape& tile = product_.tile_;
  std::string rows = writer_.NewName("s");
  writer_.Line(sum_type_, " ", rows, "[", tile.rows, "];");
  const std::string at =
      writer_.Declare("idx", Text(block.rows.at, " + ", k, " * ", writer_.UseGiven(kRowStep)));
  const std::string row = OpenUnrolled(tile.rows);
  const std::string own = Text(item.row, " * ", tile.rows, " + ", row);
  writer_.Line(rows, "[", row, "] = ",
               LoadElement(/*is_rows=*/true, block.rows.buffer,
                           Text(at, " + ", Lesser(Text("AS(idx, ", own, ")"), item.last_row), " * ",
                                writer_.UseGiven(kRowPitch))),
               ";");
  writer_.Close();
  return rows;
}

// How many columns an item reads as one word, in a product without shared memory.
int TiledProduct::PartWriter::OwnWidth() const {
  return product_.reads_rows_anywhere() ? source_.form.lanes : 1;
}

// An array of what an item reads of the columns, at a place that begins at `at`: words of 16 bytes,
// if they lie so.
std::string TiledProduct::PartWriter::WriteOwnColumns(const Block& block, const GroupItem& item,
                                                      const std::string& at,
                                                      const std::string& last) {
  const TileShape& tile = product_.tile_;
  const int width = OwnWidth();
  const std::string& buffer = block.columns.buffer;
  std::string columns = writer_.NewName("s");
  writer_.Line(sum_type_, " ", columns, "[", tile.columns(), "];");
  const std::string number = OpenUnrolled(tile.columns() / width);
  const std::string lane = writer_.Declare(
      "idx", Text("(", item.column, " + ", number, " * ", tile.item_columns, ") * ", width));
  if (width == 1) {
    writer_.Line(columns, "[", number, "] = ",
                 LoadElement(/*is_rows=*/false, buffer, Text(at, " + ", Lesser(lane, last))), ";");
    writer_.Close();
    return columns;
  }
  writer_.Open("if (", lane, " + ", width - 1, " <= ", last, ")");
  const std::string word =
      writer_.Declare("u32x4", Text("LOAD_WORD(", buffer, ", ", at, " + ", lane, ")"));
  const tensor::ElementType type = product_.stored_type(Part::kColumns);
  const int of_part = width / 4;
  for (int k = 0; k < width; ++k) {
    const std::string part = word + "." + "xyzw"[k / of_part];
    std::string element =
        of_part == 1 ? Text(sum_type_ == "f32" ? "FROM_BITS_f32(" : "AS(i32, ", part, ")")
                     : Text("AS(", LaneType(type), ", ", part, " >> ", k % of_part * 16, ")");
    if (type != contract_.accumulator) {
      element = WriteCast(writer_, type, contract_.accumulator, element);
    }
    writer_.Line(columns, "[", number, " * ", width, " + ", k, "] = AS(", sum_type_, ", ", element,
                 ");");
  }
  writer_.Close();
  writer_.Open("if (", lane, " + ", width - 1, " > ", last, ")");
  const std::string k = OpenUnrolled(width);
  writer_.Line(columns, "[", number, " * ", width, " + ", k, "] = ",
               LoadElement(/*is_rows=*/false, buffer,
                           Text(at, " + ", Lesser(Text("(", lane, " + ", k, ")"), last))),
               ";");
  writer_.Close();
  writer_.Close();
  writer_.Close();
  return columns;
}

// Of a product.
void TiledProduct::PartWriter::WriteDirectSums(const Block& block, GroupItem item) {
  const TileShape& tile = product_.tile_;
  const std::string depth = writer_.UseGiven(kDepth);
  const std::string step = writer_.UseGiven(kStep);
  const std::string last = LastColumn(block);
  item.last_row = writer_.Declare(
      "idx", Text(writer_.UseGiven(kRows), " - 1 - ", block.row_tile, " * ", tile.block_rows()));
  const auto add_place = [&](const std::string& round) {
    const std::string k = writer_.Declare("idx", Text(round, " + ", item.part));
    const std::string column_at =
        writer_.Declare("idx", Text(block.columns.at, " + ", k, " * ", step));
    const std::string rows = WriteOwnRows(block, item, k);
    const std::string columns = WriteOwnColumns(block, item, column_at, last);
    WriteItemProducts(item, rows, columns);
  };
  // All items go round equally often; what is left of the depth is for some of them.
  const std::string own_depth =
      writer_.Declare("idx", Text(item.is_of_block, " ? ", depth, " : AS(idx, 0)"));
  const std::string even =
      writer_.Declare("idx", Text(own_depth, " / ", tile.parts, " * ", tile.parts));
  const std::string round = writer_.NewName("k");
  writer_.Open("for (idx ", round, " = 0; ", round, " < ", even, "; ", round, " += ", tile.parts,
               ")");
  add_place(round);
  writer_.Close();
  if (tile.parts == 1) return;
  writer_.Open("if (", even, " + ", item.part, " < ", own_depth, ")");
  add_place(even);
  writer_.Close();
}

// Opens the block of the items of part 0, with the sums of all parts of the depth added to theirs.
// Of many parts, all items first add up some for each output.
void TiledProduct::PartWriter::OpenSumOfParts(const GroupItem& item) {
  const TileShape& tile = product_.tile_;
  const int count = tile.rows * tile.columns();
  const int items = block_items();
  const int outputs = count * items;
  const std::string shared = writer_.NewName("g");
  writer_.Share(Text(sum_type_, " ", shared, "[", tile.parts * outputs, "]"));
  const std::string own = writer_.Declare("int", Text("LANE % ", items));
  std::string sum = OpenUnrolled(count);
  writer_.Line(shared, "[", item.part, " * ", outputs, " + ", sum, " * ", items, " + ", own,
               "] = ", item.sums, "[", sum, "];");
  writer_.Close();
  writer_.Line("BARRIER;");
  int parts = tile.parts;
  const int adders = std::max(1, tile.group_size / outputs);  // of an output
  if (adders > 1 && parts >= 4 * adders) {
    const std::string output = writer_.Declare("int", Text("LANE % ", outputs));
    const std::string adder = writer_.Declare("int", Text("LANE / ", outputs));
    const std::string all = writer_.NewName("s");
    writer_.Line(sum_type_, " ", all, " = AS(", sum_type_, ", 0);");
    writer_.Open("if (", adder, " < ", adders, ")");
    const std::string part = writer_.NewName("j");
    writer_.Open("for (int ", part, " = ", adder, "; ", part, " < ", parts, "; ", part,
                 " += ", adders, ")");
    writer_.Line(all, " += ", shared, "[", part, " * ", outputs, " + ", output, "];");
    writer_.Close();
    // Nobody else reads this place.
    writer_.Line(shared, "[", adder, " * ", outputs, " + ", output, "] = ", all, ";");
    writer_.Close();
    writer_.Line("BARRIER;");
    parts = adders;
    sum = OpenUnrolled(count);
    writer_.Line("if (", item.part, " == 0) ", item.sums, "[", sum, "] = ", shared, "[", sum, " * ",
                 items, " + ", own, "];");
    writer_.Close();
  }
  writer_.Open("if (", item.is_of_block, " && ", item.part, " == 0)");
  const std::string part = writer_.NewName("j");
  writer_.Open("for (int ", part, " = 1; ", part, " < ", parts, "; ++", part, ")");
  sum = OpenUnrolled(count);
  writer_.Line(item.sums, "[", sum, "] += ", shared, "[", part, " * ", outputs, " + ", sum, " * ",
               items, " + ", own, "];");
  writer_.Close();
  writer_.Close();
}

}  // namespace onnxifi::codegen
