// SPDX-License-Identifier: Apache-2.0
//
// TiledProduct::PartWriter: what its kernels have in common.

#include "backends/core/codegen/tiled_writer.h"

#include <string>
#include <utility>

#include "backends/core/codegen/conversion.h"
#include "backends/core/program/product_operand.h"

namespace onnxifi::codegen {

using program::ExprId;

std::string TiledProduct::PartWriter::Given(Group group, int axis) {
  const auto place = static_cast<int>(group);
  const int batch = product_.batch_axes();
  const int columns = product_.column_axes();
  const int before = place <= 4 ? place * batch : 4 * batch + (place - 4) * columns;
  return writer_.UseGiven(kFixed + before + axis);
}

std::string TiledProduct::PartWriter::OpenItem() {
  writer_.Open("if (ITEM < count)");
  return writer_.Declare("idx", "AS(idx, ITEM)");
}

std::string TiledProduct::PartWriter::Element(bool is_a, const std::vector<std::string>& at) {
  Scope scope;
  scope.coordinates = scope.indices = at;
  const ExprId roots[] = {product_.prologue(is_a)};
  return WriteExpressions(writer_, source_.program, source_.step, scope, roots)[0];
}

std::string TiledProduct::PartWriter::LaidOutElement(bool is_rows,
                                                     const std::vector<std::string>& at) {
  const tensor::ElementType type = product_.stored_type(PartOf(is_rows));
  const bool is_a = product_.columns_are_a_ != is_rows;
  if (type == contract_.accumulator) return Element(is_a, at);
  const program::ProductOperand operand =
      program::FindProductOperand(source_.program, source_.step, is_a ? 0 : 1);
  if (operand.type != type)
    return WriteCast(writer_, contract_.accumulator, type, Element(is_a, at));
  Scope scope;
  scope.coordinates = scope.indices = at;
  const ExprId roots[] = {operand.element};
  return WriteExpressions(writer_, source_.program, source_.step, scope, roots)[0];
}

std::string TiledProduct::PartWriter::LoadElement(bool is_rows, const std::string& buffer,
                                                  const std::string& at) {
  const tensor::ElementType type = product_.stored_type(PartOf(is_rows));
  std::string element = Text("LOAD(", buffer, ", ", at, ")");
  if (type == contract_.accumulator) return element;
  return Text("AS(", sum_type_, ", ", WriteCast(writer_, type, contract_.accumulator, element),
              ")");
}

std::string TiledProduct::PartWriter::LoadElements(bool is_rows, const std::string& buffer,
                                                   const std::string& at, int width,
                                                   bool are_aligned) {
  if (width == 1) return LoadElement(is_rows, buffer, at);
  if (product_.stored_type(PartOf(is_rows)) == contract_.accumulator) {
    if (!are_aligned) return Text("LOAD4(", buffer, ", ", at, ")");
    const std::string word = writer_.Declare("u32x4", Text("LOAD_WORD(", buffer, ", ", at, ")"));
    std::string elements;
    for (const char* const bits : {".x", ".y", ".z", ".w"}) {
      elements += sum_type_ == "f32" ? Text(", FROM_BITS_f32(", word, bits, ")")
                                     : Text(", AS(", sum_type_, ", ", word, bits, ")");
    }
    return Text("MAKE4(", sum_type_, elements, ")");
  }
  std::string elements;
  for (int k = 0; k < width; ++k) {
    elements += Text(", ", LoadElement(is_rows, buffer, Text(at, " + ", k)));
  }
  return Text("MAKE4(", sum_type_, elements, ")");
}

std::string TiledProduct::PartWriter::RowAt(const std::string& at, const std::string& place,
                                            const std::string& row) const {
  const int rows = product_.tile_.block_rows();
  const int word = product_.word_elements();
  if (word == 1) return Text(at, " + ", place, " * ", rows, " + ", row);
  return Text(at, " + ", place, " / ", word, " * ", rows * word, " + ", row, " * ", word, " + ",
              place, " % ", word);
}

std::string TiledProduct::PartWriter::ColumnAt(const std::string& at, const std::string& place,
                                               const std::string& column) {
  const std::string step = writer_.UseGiven(kStep);
  const int word = ColumnWord();
  if (word == 1) return Text(at, " + ", place, " * ", step, " + ", column);
  return Text(at, " + (", place, " - ", place, " % ", word, ") * ", step, " + (", column, ") * ",
              word, " + ", place, " % ", word);
}

std::string TiledProduct::PartWriter::Position(int axis, const std::string& at,
                                               const std::string& phase) {
  const auto k = static_cast<size_t>(axis);
  if (product_.is_transposed()) {
    return Text(at, " + ", phase, " + ", Given(Group::kFirst, axis), " - ", MaxShift(axis));
  }
  return Text(at, " * ", writer_.UseDim(contract_.strides[k]), " + ", phase, " - ",
              writer_.UseDim(contract_.pads_begin[k]));
}

std::string TiledProduct::PartWriter::OutputAt(int axis, const std::string& at) {
  const auto k = static_cast<size_t>(axis);
  return Text("(", at, " + ", Given(Group::kFirst, axis), ") * ",
              writer_.UseDim(contract_.strides[k]), " + ", output_phases_[k], " - ",
              writer_.UseDim(contract_.pads_begin[k]));
}

TiledProduct::PartWriter::Block TiledProduct::PartWriter::WriteBlock(const std::string& number) {
  const TileShape& tile = product_.tile_;
  const LoopForm& form = source_.form;
  Block block;
  block.rows.buffer = writer_.UseScratch(/*is_write=*/false, 0, StoredType(/*is_rows=*/true));
  if (!product_.reads_tensor()) {
    block.columns.buffer = writer_.UseScratch(/*is_write=*/false, 1, StoredType(/*is_rows=*/false));
  }
  const std::string row_tiles = writer_.UseGiven(kRowTiles);
  const std::string column_tiles = writer_.UseGiven(kColumnTiles);
  // Its rows first, so that blocks that follow each other share their columns.
  const auto [tiles, row_tile] = writer_.DeclareDivision(number, row_tiles);
  block.row_tile = row_tile;
  const Writer::Division by_columns = writer_.DeclareDivision(tiles, column_tiles);
  const std::string& column_tile = by_columns.rest;
  std::string matrix = by_columns.quotient;
  for (int axis = product_.column_axes(); product_.is_transposed() && axis-- > 0;) {
    const std::string stride = writer_.UseDim(contract_.strides[static_cast<size_t>(axis)]);
    const Writer::Division division = writer_.DeclareDivision(matrix, stride);
    output_phases_.insert(output_phases_.begin(), division.rest);
    matrix = division.quotient;
  }
  block.part = "0";
  if (product_.is_window()) {
    const std::string parts = writer_.UseDim(contract_.group);
    const Writer::Division division = writer_.DeclareDivision(matrix, parts);
    block.part = division.rest;
    matrix = division.quotient;
  }
  for (int axis = 0; axis < form.rank; ++axis) block.extents.push_back(Extent(writer_, axis));
  const auto batch_axes = static_cast<size_t>(product_.batch_axes());
  block.batch = WriteCoordinates(
      writer_, matrix,
      {block.extents.begin(), block.extents.begin() + static_cast<std::ptrdiff_t>(batch_axes)});
  // An item's block at the edge may begin earlier, so as to read no further than the columns go.
  block.first = writer_.Declare("idx", Text(column_tile, " * ", tile.block_columns()));
  std::string row_at = Text(block.row_tile, " * ", writer_.UseGiven(kRowTilePitch));
  if (product_.is_window()) {
    row_at += Text(" + ", block.part, " * ", writer_.UseGiven(kRowPartPitch));
  }
  std::string column_at = Text(column_tile, " * ", writer_.UseGiven(kTilePitch));
  if (tile.is_of_group()) {
    block.from = block.first;
  } else {
    const std::string last_start = writer_.UseGiven(kLastStart);
    block.from = writer_.Declare(
        "idx", Text(block.first, " < ", last_start, " ? ", block.first, " : ", last_start));
    column_at += Text(" - (", block.first, " - ", block.from, ")");
  }
  if (product_.is_window()) {
    column_at += Text(" + ", block.part, " * ", writer_.UseGiven(kPartPitch));
  }
  for (size_t axis = 0; axis < batch_axes; ++axis) {
    const int place = static_cast<int>(axis);
    row_at += Text(" + ", block.batch[axis], " * ", Given(Group::kRowBatch, place));
    column_at += Text(" + ", block.batch[axis], " * ", Given(Group::kColumnBatch, place));
  }
  block.rows.at = writer_.Declare("idx", row_at);
  if (!product_.reads_tensor()) block.columns.at = writer_.Declare("idx", column_at);
  return block;
}

std::vector<std::string> TiledProduct::PartWriter::WriteRowCoordinates(const Block& block,
                                                                       const std::string& row) {
  std::vector<std::string> at = block.batch;
  const auto batch_axes = static_cast<std::ptrdiff_t>(product_.batch_axes());
  for (std::string& name : WriteCoordinates(
           writer_, row,
           {block.extents.begin() + batch_axes, block.extents.begin() + source_.form.outer_rank})) {
    at.push_back(std::move(name));
  }
  return at;
}

TiledProduct::PartWriter::Tap TiledProduct::PartWriter::OpenTaps() {
  if (product_.is_transposed()) return OpenTapsOfPhase();
  Tap opened;
  const int axes = product_.column_axes();
  std::string phase, shift;
  for (int axis = 0; axis < axes; ++axis) {
    const auto k = static_cast<size_t>(axis);
    const std::string tap = writer_.NewName("k");
    writer_.Open("for (idx ", tap, " = 0; ", tap, " < ", writer_.UseDim(contract_.inner[k + 1]),
                 "; ++", tap, ")");
    const std::string stride = writer_.UseDim(contract_.strides[k]);
    const std::string reach =
        writer_.Declare("idx", Text(tap, " * ", writer_.UseDim(contract_.dilations[k])));
    opened.reaches.push_back(reach);
    const Writer::Division by_stride = writer_.DeclareDivision(reach, stride);
    phase = axis == 0
                ? by_stride.rest
                : Text("(", phase, ") * ", Given(Group::kPhases, axis), " + ", by_stride.rest);
    phase = writer_.Declare("idx", phase);
    const std::string own_shift = Text(by_stride.quotient, " * ", Given(Group::kPitch, axis));
    shift = writer_.Declare("idx", axis == 0 ? own_shift : Text(shift, " + ", own_shift));
  }
  opened.offset =
      writer_.Declare("idx", Text(phase, " * ", writer_.UseGiven(kPhasePitch), " + ", shift));
  return opened;
}

// Of a transposed convolution, to rounds for the taps of the item's phase.
TiledProduct::PartWriter::Tap TiledProduct::PartWriter::OpenTapsOfPhase() {
  Tap opened{.reaches = {}, .offset = "0", .number = "0"};
  const int axes = product_.column_axes();
  for (int axis = 0; axis < axes; ++axis) {
    const auto k = static_cast<size_t>(axis);
    const std::string tap = writer_.NewName("k");
    const std::string taps = writer_.UseDim(contract_.inner[k + 1]);
    writer_.Open("for (idx ", tap, " = 0; ", tap, " < ", taps, "; ++", tap, ")");
    const std::string stride = writer_.UseDim(contract_.strides[k]);
    const std::string reach =
        writer_.Declare("idx", Text(tap, " * ", writer_.UseDim(contract_.dilations[k])));
    const Writer::Division by_stride = writer_.DeclareDivision(reach, stride);
    writer_.Line("if (", by_stride.rest, " != ", output_phases_[k], ") continue;");
    opened.reaches.push_back(
        writer_.Declare("idx", Text(MaxShift(axis), " - ", by_stride.quotient)));
    opened.offset = writer_.Declare("idx", Text(opened.offset, " + ", opened.reaches.back(), " * ",
                                                Given(Group::kPitch, axis)));
    opened.number = writer_.Declare("idx", Text(opened.number, " * ", taps, " + ", tap));
  }
  return opened;
}

void TiledProduct::PartWriter::WriteSumWithoutPadding(const std::string& sum, const Block& block,
                                                      const std::string& row,
                                                      const std::string& lane,
                                                      const std::string& column) {
  const std::string anew = writer_.NewName("s");
  writer_.Line(sum_type_, " ", anew, " = 0;");
  std::string rest = writer_.Declare("idx", column);
  std::vector<std::string> out;
  const int axes = product_.column_axes();
  for (int axis = 0; axis < axes; ++axis) {
    const std::string pitch = Given(Group::kPitch, axis);
    const Writer::Division division = writer_.DeclareDivision(rest, pitch);
    out.push_back(division.quotient);
    rest = division.rest;
  }
  const std::string number = writer_.NewName("k");  // of the tap
  writer_.Line("idx ", number, " = 0;");
  const Tap tap = OpenTaps();
  std::string is_inside = "true";
  for (int axis = 0; axis < axes; ++axis) {
    const auto k = static_cast<size_t>(axis);
    const std::string position = writer_.Declare("idx", Position(axis, out[k], tap.reaches[k]));
    is_inside += Text(" && ", position, " >= 0 && ", position, " < ", InExtent(axis));
  }
  const std::string channel = writer_.NewName("k");
  writer_.Open("for (idx ", channel, " = 0; (", is_inside, ") && ", channel, " < ",
               writer_.UseDim(contract_.inner[0]), "; ++", channel, ")");
  const std::string place =
      writer_.Declare("idx", Text("(", product_.is_transposed() ? tap.number : number, ") * ",
                                  writer_.UseGiven(kChannels), " + ", channel));
  const std::string row_element =
      LoadElement(/*is_rows=*/true, block.rows.buffer, RowAt(block.rows.at, place, row));
  const std::string column_element =
      LoadElement(/*is_rows=*/false, block.columns.buffer,
                  ColumnAt(block.columns.at, channel, Text(tap.offset, " + ", lane)));
  writer_.Line(anew, " += ", row_element, " * ", column_element, ";");
  writer_.Close();
  if (!product_.is_transposed()) writer_.Line(number, " += 1;");
  for (int axis = 0; axis < axes; ++axis) writer_.Close();
  writer_.Line(sum, " = ", anew, ";");
}

void TiledProduct::PartWriter::WriteOutputs(const std::vector<std::string>& at,
                                            const std::string& sum,
                                            std::map<int, std::string> loaded) {
  Scope scope;
  scope.loaded = std::move(loaded);
  scope.coordinates = at;
  NameIndices(source_, scope);
  const std::string_view type = LaneType(contract_.accumulator);
  scope.accumulator = writer_.Declare(type, Text("AS(", type, ", ", sum, ")"));
  const std::vector<std::string> values =
      WriteExpressions(writer_, source_.program, source_.step, scope, contract_.roots);
  for (size_t k = 0; k < values.size(); ++k) {
    WriteStore(writer_, source_.step, static_cast<int>(k), at, values[k]);
  }
}

KernelText TiledProduct::Generate(Part part, const LoopForm& form, const Capabilities& capabilities,
                                  const Dialect& dialect, std::string_view library) const {
  Writer writer(form, program::FamilyName(step_));
  const Source source{program_, step_, form, capabilities};
  PartWriter part_writer(*this, writer, source);
  if (part == Part::kRows || part == Part::kColumns) {
    const Launch launch = part == Part::kColumns && is_window()
                              ? part_writer.WriteImage()
                              : part_writer.WriteOperand(part == Part::kRows);
    return writer.Finish(dialect, launch, form.is_narrow);
  }
  if (tile_.is_of_group()) {
    using Sums = PartWriter::Sums;
    const Sums sums = part == Part::kDepthParts ? Sums::kOfPart
                      : form.is_grouped         ? Sums::kJoined
                                                : Sums::kWhole;
    const Launch launch = part_writer.WriteGroupSums(sums);
    const bool has_unit = matrix_unit() && sums != Sums::kJoined;
    return writer.Finish(dialect, launch, form.is_narrow, has_unit ? library : std::string_view());
  }
  const Launch launch = part_writer.WriteSums();
  const std::string functions = Text(
      "#define TILE_ROWS ", tile_.rows, "\n#define TILE_VECTORS ", tile_.vectors,
      "\n#define TILE_LANES ", tile_.lanes, "\n#define TILE_TYPE ", SumType(contract_.accumulator),
      "\n", tensor::IsFloat(contract_.accumulator) ? "#define TILE_IS_FLOAT\n" : "", library);
  return writer.Finish(dialect, launch, form.is_narrow, functions);
}

}  // namespace onnxifi::codegen
