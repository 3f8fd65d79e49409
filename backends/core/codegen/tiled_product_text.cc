// SPDX-License-Identifier: Apache-2.0
//
// TiledProduct: the text of its kernels.

#include <algorithm>
#include <string>
#include <utility>

#include "backends/core/codegen/family.h"
#include "backends/core/codegen/tiled_numbers.h"
#include "backends/core/codegen/tiled_product.h"

namespace onnxifi::codegen {

using program::Contract;
using program::ExprId;

// Writes one kernel.
class TiledProduct::PartWriter {
 public:
  PartWriter(const TiledProduct& product, Writer& writer, const Source& source)
      : product_(product),
        contract_(product.contract_),
        writer_(writer),
        source_(source),
        sum_type_(SumType(contract_.accumulator)) {}

  Launch WriteOperand(bool is_rows) {
    const bool is_a = product_.columns_are_a_ != is_rows;
    const int lanes = is_rows ? product_.tile_.rows : product_.tile_.columns();
    const bool is_window = product_.is_window();
    const std::string out = writer_.UseScratch(/*is_write=*/true, is_rows ? 0 : 1, sum_type_);
    const std::string item = OpenItem();
    const std::string chunks = writer_.UseGiven(kChunks);
    const std::string tiles = writer_.UseGiven(is_rows ? kRowTiles : kColumnTiles);
    const std::string count = writer_.UseGiven(is_rows ? kRows : kColumns);
    const std::string depth = writer_.UseGiven(kDepth);
    const std::string panel = writer_.Declare("idx", Text(item, " / ", chunks));
    const std::string begin = writer_.Declare("idx", Text(item, " % ", chunks, " * ", kChunk));
    const std::string end = writer_.Declare(
        "idx", Text(begin, " + ", kChunk, " < ", depth, " ? ", begin, " + ", kChunk, " : ", depth));
    const std::string first = writer_.Declare("idx", Text(panel, " % ", tiles, " * ", lanes));
    const std::string matrix = writer_.Declare("idx", Text(panel, " / ", tiles));
    std::vector<std::string> batch;
    if (!is_window) {
      std::vector<std::string> extents;
      for (int axis = 0; axis < product_.batch_axes(); ++axis) {
        extents.push_back(Given(is_rows ? Group::kRowPacked : Group::kColumnPacked, axis));
      }
      batch = WriteCoordinates(writer_, matrix, extents);
    }
    const std::string k = writer_.NewName("k");
    writer_.Open("for (idx ", k, " = ", begin, "; ", k, " < ", end, "; ++", k, ")");
    // The taps of a convolution come before its channels.
    std::vector<std::string> inner_extents;
    for (const program::Dim& dim : contract_.inner) inner_extents.push_back(writer_.UseDim(dim));
    if (is_window)
      std::rotate(inner_extents.begin(), inner_extents.begin() + 1, inner_extents.end());
    std::vector<std::string> inner = WriteCoordinates(writer_, k, inner_extents);
    if (is_window) std::rotate(inner.begin(), inner.end() - 1, inner.end());
    const std::string to =
        writer_.Declare("idx", Text("(", panel, " * ", depth, " + ", k, ") * ", lanes));
    const std::string lane = writer_.NewName("l");
    writer_.Line("INDEPENDENT");
    writer_.Open("for (int ", lane, " = 0; ", lane, " < ", lanes, "; ++", lane, ")");
    const std::string value = writer_.NewName("s");
    writer_.Line(sum_type_, " ", value, " = 0;");
    const std::string own = writer_.Declare("idx", Text(first, " + ", lane));
    writer_.Open("if (", own, " < ", count, ")");
    std::vector<std::string> at = batch;
    if (is_window) {
      if (product_.is_transposed()) {
        const std::string channels = writer_.UseDim(contract_.inner[0]);
        inner[0] = writer_.Declare("idx", Text(matrix, " * ", channels, " + ", inner[0]));
        inner.insert(inner.begin() + 1, own);
      } else {
        at.push_back(writer_.Declare("idx", Text(matrix, " * ", count, " + ", own)));
      }
      at.insert(at.end(), inner.begin(), inner.end());
    } else {
      std::vector<std::string> extents;
      const int first_axis = product_.batch_axes() + (is_a ? 0 : contract_.m_axes);
      const int axes = is_a ? contract_.m_axes : contract_.n_axes;
      for (int axis = 0; axis < axes; ++axis) {
        extents.push_back(Extent(writer_, first_axis + axis));
      }
      const std::vector<std::string> own_at = WriteCoordinates(writer_, own, extents);
      if (is_a) at.insert(at.end(), own_at.begin(), own_at.end());
      at.insert(at.end(), inner.begin(), inner.end());
      if (!is_a) at.insert(at.end(), own_at.begin(), own_at.end());
    }
    writer_.Line(value, " = AS(", sum_type_, ", ", Element(is_a, at), ");");
    writer_.Close();
    writer_.Line("STORE(", out, ", ", to, " + ", lane, ", ", value, ");");
    writer_.Close();
    writer_.Close();
    writer_.Close();
    return {.given_items = is_rows ? kRowItems : kColumnItems};
  }

  Launch WriteImage() {
    const std::string out = writer_.UseScratch(/*is_write=*/true, 1, sum_type_);
    const std::string item = OpenItem();
    const int axes = product_.column_axes();
    std::vector<std::string> extents = {Extent(writer_, 0)};
    extents.push_back(writer_.Declare(
        "idx", Text(writer_.UseDim(contract_.inner[0]), " * ", writer_.UseDim(contract_.group))));
    for (int axis = 0; axis < axes; ++axis) extents.push_back(Given(Group::kPhases, axis));
    for (int axis = 0; axis + 1 < axes; ++axis) extents.push_back(Given(Group::kImage, axis));
    const std::vector<std::string> at = WriteCoordinates(writer_, item, extents);
    const auto phase = [&](int axis) { return at[2 + static_cast<size_t>(axis)]; };
    std::string to = Text(at[0], " * ", Given(Group::kColumnBatch, 0), " + ", at[1], " * ",
                          writer_.UseGiven(kStep));
    std::string phases = phase(0);
    for (int axis = 1; axis < axes; ++axis) {
      phases = Text("(", phases, " * ", Given(Group::kPhases, axis), " + ", phase(axis), ")");
    }
    to += Text(" + ", phases, " * ", writer_.UseGiven(kPhasePitch));
    std::vector<std::string> positions = {at[0], at[1]};
    std::string is_inside = "true";
    for (int axis = 0; axis + 1 < axes; ++axis) {
      const std::string& row = at[2 + static_cast<size_t>(axes) + static_cast<size_t>(axis)];
      to += Text(" + ", row, " * ", Given(Group::kPitch, axis));
      positions.push_back(writer_.Declare("idx", Position(axis, row, phase(axis))));
      is_inside +=
          Text(" && ", positions.back(), " >= 0 && ", positions.back(), " < ", InExtent(axis));
    }
    to = writer_.Declare("idx", to);
    // Elements [low, high) of the row lie in the tensor, the others in its padding.
    const int last = axes - 1;
    const std::string length = Given(Group::kImage, last);
    const std::string stride = product_.is_transposed()
                                   ? "1"
                                   : writer_.UseDim(contract_.strides[static_cast<size_t>(last)]);
    const std::string pad = product_.is_transposed()
                                ? Text("(", MaxShift(last), " - ", Given(Group::kFirst, last), ")")
                                : writer_.UseDim(contract_.pads_begin[static_cast<size_t>(last)]);
    const auto bound = [&](const std::string& value) {
      const std::string from = writer_.Declare("idx", value);
      const std::string up = writer_.Declare(
          "idx", Text(from, " > 0 ? (", from, " + ", stride, " - 1) / ", stride, " : 0"));
      return writer_.Declare("idx", Text(up, " < ", length, " ? ", up, " : ", length));
    };
    const std::string low = bound(Text(pad, " - ", phase(last)));
    const std::string high = writer_.Declare(
        "idx", Text(is_inside, " ? ", bound(Text(InExtent(last), " + ", pad, " - ", phase(last))),
                    " : 0"));
    const std::string zeros =
        writer_.Declare("idx", Text(low, " < ", high, " ? ", low, " : ", high));
    const auto fill = [&](const std::string& begin, const std::string& end) {
      const std::string lane = writer_.NewName("l");
      writer_.Line("INDEPENDENT");
      writer_.Open("for (idx ", lane, " = ", begin, "; ", lane, " < ", end, "; ++", lane, ")");
      writer_.Line("STORE(", out, ", ", to, " + ", lane, ", AS(", sum_type_, ", 0));");
      writer_.Close();
    };
    fill("0", zeros);
    const std::string lane = writer_.NewName("l");
    writer_.Line("INDEPENDENT");
    writer_.Open("for (idx ", lane, " = ", zeros, "; ", lane, " < ", high, "; ++", lane, ")");
    positions.push_back(writer_.Declare("idx", Position(last, lane, phase(last))));
    const std::string element = Element(/*is_a=*/true, positions);
    writer_.Line("STORE(", out, ", ", to, " + ", lane, ", AS(", sum_type_, ", ", element, "));");
    writer_.Close();
    fill(high, length);
    writer_.Close();
    return {.given_items = kColumnItems};
  }

  Launch WriteSums() {
    const TileShape& tile = product_.tile_;
    const LoopForm& form = source_.form;
    const bool is_window = product_.is_window();
    const std::string row_panels = writer_.UseScratch(/*is_write=*/false, 0, sum_type_);
    const std::string column_panels = writer_.UseScratch(/*is_write=*/false, 1, sum_type_);
    const std::string item = OpenItem();
    const std::string rows = writer_.UseGiven(kRows);
    const std::string row_tiles = writer_.UseGiven(kRowTiles);
    const std::string column_tiles = writer_.UseGiven(kColumnTiles);
    const std::string columns = writer_.UseGiven(kColumns);
    const std::string depth = writer_.UseGiven(kDepth);
    const std::string channels = writer_.UseGiven(kChannels);
    const std::string step = writer_.UseGiven(kStep);
    const std::string last_start = writer_.UseGiven(kLastStart);
    // Which block: its rows first, so that blocks that follow each other share their columns.
    const std::string row_tile = writer_.Declare("idx", Text(item, " % ", row_tiles));
    const std::string tiles = writer_.Declare("idx", Text(item, " / ", row_tiles));
    const std::string column_tile = writer_.Declare("idx", Text(tiles, " % ", column_tiles));
    std::string matrix = writer_.Declare("idx", Text(tiles, " / ", column_tiles));
    for (int axis = product_.column_axes(); product_.is_transposed() && axis-- > 0;) {
      const std::string stride = writer_.UseDim(contract_.strides[static_cast<size_t>(axis)]);
      output_phases_.insert(output_phases_.begin(),
                            writer_.Declare("idx", Text(matrix, " % ", stride)));
      matrix = writer_.Declare("idx", Text(matrix, " / ", stride));
    }
    std::string part = "0";
    if (is_window) {
      const std::string parts = writer_.UseDim(contract_.group);
      part = writer_.Declare("idx", Text(matrix, " % ", parts));
      matrix = writer_.Declare("idx", Text(matrix, " / ", parts));
    }
    std::vector<std::string> extents;
    for (int axis = 0; axis < form.rank; ++axis) extents.push_back(Extent(writer_, axis));
    const auto batch_axes = static_cast<size_t>(product_.batch_axes());
    const auto outer_rank = static_cast<size_t>(form.outer_rank);
    const std::vector<std::string> batch = WriteCoordinates(
        writer_, matrix,
        {extents.begin(), extents.begin() + static_cast<std::ptrdiff_t>(batch_axes)});
    // A block at the edge may begin earlier, so as to read no further than the columns go.
    const std::string first = writer_.Declare("idx", Text(column_tile, " * ", tile.columns()));
    const std::string from =
        writer_.Declare("idx", Text(first, " < ", last_start, " ? ", first, " : ", last_start));
    std::string row_matrix = part;
    std::string column_at =
        Text(column_tile, " * ", writer_.UseGiven(kTilePitch), " - (", first, " - ", from, ")");
    if (is_window) column_at += Text(" + ", part, " * ", writer_.UseGiven(kPartPitch));
    for (size_t axis = 0; axis < batch_axes; ++axis) {
      const int number = static_cast<int>(axis);
      row_matrix += Text(" + ", batch[axis], " * ", Given(Group::kRowBatch, number));
      column_at += Text(" + ", batch[axis], " * ", Given(Group::kColumnBatch, number));
    }
    const std::string panel_at =
        writer_.Declare("idx", Text("((", row_matrix, ") * ", row_tiles, " + ", row_tile, ") * ",
                                    depth, " * ", tile.rows));
    column_at = writer_.Declare("idx", column_at);
    const std::string block = writer_.NewName("s");
    writer_.Line("TILE_DECLARE(", block, ");");
    WriteProducts(block, {row_panels, panel_at}, {column_panels, column_at}, channels, step);
    const std::string sums = writer_.NewName("s");
    writer_.Line(sum_type_, " ", sums, "[", tile.rows * tile.columns(), "];");
    writer_.Line("TILE_STORE(", block, ", ", sums, ");");

    // The columns of the block: all of them, or, where they have several axes, as far as they lie
    // in one row after the other. The last axis begins at column `origin`.
    const size_t column_axes = static_cast<size_t>(form.rank) - outer_rank;
    const std::string last = writer_.Declare("idx", Text(first, " + ", tile.columns()));
    const std::string end =
        writer_.Declare("idx", Text(last, " < ", columns, " ? ", last, " : ", columns));
    const auto out_extent = [&](int axis) {
      return extents[outer_rank + static_cast<size_t>(axis)];
    };
    // How many columns an axis has.
    const auto span = [&](int axis) {
      return product_.is_transposed() ? Given(Group::kSpan, axis) : out_extent(axis);
    };
    std::string begin = first;
    std::string stop = end;
    std::string next;
    std::string origin = "0";
    std::vector<std::string> outer_columns;
    if (column_axes > 1) {
      const auto inner = static_cast<int>(column_axes) - 1;
      begin = writer_.NewName("c");
      writer_.Line("idx ", begin, " = ", first, ";");
      writer_.Open("while (", begin, " < ", end, ")");
      const std::string length = Given(Group::kPitch, inner - 1);
      origin = writer_.Declare("idx", Text(begin, " / ", length, " * ", length));
      std::string rest = origin;
      std::string is_output;
      for (int axis = 0; axis < inner; ++axis) {
        const std::string pitch = Given(Group::kPitch, axis);
        outer_columns.push_back(writer_.Declare("idx", Text(rest, " / ", pitch)));
        const std::string& at = outer_columns.back();
        if (axis + 1 < inner) rest = writer_.Declare("idx", Text(rest, " - ", at, " * ", pitch));
        is_output += Text(at, " < ", span(axis), " && ");
        if (!product_.is_transposed()) continue;
        outer_columns.back() = writer_.Declare("idx", OutputAt(axis, at));
        is_output += IsOutput(outer_columns.back(), out_extent(axis)) + " && ";
      }
      next = writer_.Declare(
          "idx", Text(origin, " + ", length, " < ", end, " ? ", origin, " + ", length, " : ", end));
      // Behind the outputs of a row lies what only taps read.
      const std::string edge = writer_.Declare("idx", Text(origin, " + ", span(inner)));
      stop = writer_.Declare("idx", Text(edge, " < ", next, " ? ", edge, " : ", next));
      writer_.Open("if (", is_output, begin, " < ", stop, ")");
    }

    const std::string row = writer_.NewName("r");
    const std::string first_row = writer_.Declare("idx", Text(row_tile, " * ", tile.rows));
    writer_.Open("for (int ", row, " = 0; ", row, " < ", tile.rows, " && ", first_row, " + ", row,
                 " < ", rows, "; ++", row, ")");
    const std::string own =
        writer_.Declare("idx", Text(part, " * ", rows, " + ", first_row, " + ", row));
    std::vector<std::string> at = batch;
    for (std::string& name :
         WriteCoordinates(writer_, own,
                          {extents.begin() + static_cast<std::ptrdiff_t>(batch_axes),
                           extents.begin() + static_cast<std::ptrdiff_t>(outer_rank)})) {
      at.push_back(std::move(name));
    }
    if (product_.MeetsPadding()) {
      WriteSumsWithoutPadding({.first_lane = Text("AS(int, ", begin, " - ", from, ")"),
                               .end_lane = Text("AS(int, ", stop, " - ", from, ")"),
                               .from = from,
                               .row = row,
                               .panel = {row_panels, panel_at},
                               .columns = {column_panels, column_at},
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
      const int axis = static_cast<int>(column_axes) - 1;
      at.back() = writer_.Declare("idx", OutputAt(axis, at.back()));
      writer_.Open("if (", IsOutput(at.back(), out_extent(axis)), ")");
    }
    Scope scope;
    scope.coordinates = at;
    NameIndices(source_, scope);
    const std::string_view type = LaneType(contract_.accumulator);
    scope.accumulator = writer_.Declare(
        type, Text("AS(", type, ", ", sums, "[", row, " * ", tile.columns(), " + ", lane, "])"));
    const std::vector<std::string> values =
        WriteExpressions(writer_, source_.program, source_.step, scope, contract_.roots);
    for (size_t k = 0; k < values.size(); ++k) {
      WriteStore(writer_, source_.step, static_cast<int>(k), at, values[k]);
    }
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

 private:
  // The numbers behind the fixed ones.
  enum class Group : uint8_t {
    kRowBatch,
    kColumnBatch,
    kRowPacked,
    kColumnPacked,
    kPitch,
    kImage,
    kPhases,
    kSpan,
    kFirst
  };
  std::string Given(Group group, int axis) {
    const auto place = static_cast<int>(group);
    const int batch = product_.batch_axes();
    const int columns = product_.column_axes();
    const int before = place <= 4 ? place * batch : 4 * batch + (place - 4) * columns;
    return writer_.UseGiven(kFixed + before + axis);
  }

  std::string OpenItem() {
    writer_.Open("if (ITEM < count)");
    return writer_.Declare("idx", "AS(idx, ITEM)");
  }

  std::string Element(bool is_a, const std::vector<std::string>& at) {
    Scope scope;
    scope.coordinates = scope.indices = at;
    const ExprId roots[] = {product_.prologue(is_a)};
    return WriteExpressions(writer_, source_.program, source_.step, scope, roots)[0];
  }

  std::string InExtent(int axis) {
    return writer_.UseDim(contract_.a_spatial[static_cast<size_t>(axis)]);
  }
  // Where element `at` of a phase of the image lies in the tensor.
  std::string Position(int axis, const std::string& at, const std::string& phase) {
    const auto k = static_cast<size_t>(axis);
    if (product_.is_transposed()) {
      return Text(at, " + ", phase, " + ", Given(Group::kFirst, axis), " - ", MaxShift(axis));
    }
    return Text(at, " * ", writer_.UseDim(contract_.strides[k]), " + ", phase, " - ",
                writer_.UseDim(contract_.pads_begin[k]));
  }

  // Of a transposed convolution: how many elements its image has before the first q.
  std::string MaxShift(int axis) {
    return Text("(", Given(Group::kImage, axis), " - ", Given(Group::kSpan, axis), ")");
  }
  // The output, or none, that column `at` of the item's phase is.
  std::string OutputAt(int axis, const std::string& at) {
    const auto k = static_cast<size_t>(axis);
    return Text("(", at, " + ", Given(Group::kFirst, axis), ") * ",
                writer_.UseDim(contract_.strides[k]), " + ", output_phases_[k], " - ",
                writer_.UseDim(contract_.pads_begin[k]));
  }
  static std::string IsOutput(const std::string& at, const std::string& extent) {
    return Text(at, " >= 0 && ", at, " < ", extent);
  }

  // An element of a buffer.
  struct BufferElement {
    std::string buffer;
    std::string at;
  };
  // Names of one row of a block that was summed.
  struct SummedRow {
    std::string first_lane, end_lane;
    std::string from;  // the column of lane 0
    std::string row;
    BufferElement panel;    // the rows' elements, of which lane `row` is this row's
    BufferElement columns;  // the columns' elements at the first tap
    std::string sums;
  };
  // A block multiplies padding as zeros, which makes NaN of a weight that is infinite or NaN, but
  // padding enters no sum. So a sum that is NaN is taken anew from the taps that lie in the tensor.
  void WriteSumsWithoutPadding(const SummedRow& of) {
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
    const std::string anew = writer_.NewName("s");
    writer_.Line(sum_type_, " ", anew, " = 0;");
    const std::string weights = writer_.NewName("p");
    writer_.Line("idx ", weights, " = ", of.panel.at, " + ", of.row, ";");
    std::string rest = writer_.Declare("idx", Text(of.from, " + ", lane));
    std::vector<std::string> out;
    const int axes = product_.column_axes();
    for (int axis = 0; axis < axes; ++axis) {
      const std::string pitch = Given(Group::kPitch, axis);
      out.push_back(writer_.Declare("idx", Text(rest, " / ", pitch)));
      rest = writer_.Declare("idx", Text(rest, " - ", out.back(), " * ", pitch));
    }
    const Tap tap = OpenTaps();
    std::string is_inside = "true";
    for (int axis = 0; axis < axes; ++axis) {
      const auto k = static_cast<size_t>(axis);
      const std::string position = writer_.Declare("idx", Position(axis, out[k], tap.reaches[k]));
      is_inside += Text(" && ", position, " >= 0 && ", position, " < ", InExtent(axis));
    }
    const std::string channel = writer_.NewName("k");
    const std::string channels = writer_.UseGiven(kChannels);
    writer_.Open("for (idx ", channel, " = 0; (", is_inside, ") && ", channel, " < ", channels,
                 "; ++", channel, ")");
    writer_.Line(anew, " += LOAD(", of.panel.buffer, ", ",
                 product_.is_transposed() ? tap.RowsIn(weights, channels, tile.rows) : weights,
                 " + ", channel, " * ", tile.rows, ") * LOAD(", of.columns.buffer, ", ",
                 of.columns.at, " + ", tap.offset, " + ", channel, " * ", writer_.UseGiven(kStep),
                 " + ", lane, ");");
    writer_.Close();
    if (!product_.is_transposed()) writer_.Line(weights, " += ", channels, " * ", tile.rows, ";");
    for (int axis = 0; axis < axes; ++axis) writer_.Close();
    writer_.Line(sum(lane), " = ", anew, ";");
    writer_.Close();
    writer_.Close();
    writer_.Close();
  }

  // A tap of a convolution's kernel.
  struct Tap {
    std::vector<std::string> reaches;  // by axis: how many elements on in the padded tensor
    std::string offset;                // in the image
    std::string number;                // among all taps, of a transposed convolution

    // Where the elements of this tap begin in a panel.
    std::string RowsIn(const std::string& panel, const std::string& channels, int rows) const {
      return Text("(", panel, " + ", number, " * ", channels, " * ", rows, ")");
    }
  };
  // Opens a loop per spatial axis.
  Tap OpenTaps() {
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
      const std::string own = Text(reach, " % ", stride);
      phase = axis == 0 ? own : Text("(", phase, ") * ", Given(Group::kPhases, axis), " + ", own);
      phase = writer_.Declare("idx", phase);
      const std::string own_shift = Text(reach, " / ", stride, " * ", Given(Group::kPitch, axis));
      shift = writer_.Declare("idx", axis == 0 ? own_shift : Text(shift, " + ", own_shift));
    }
    opened.offset =
        writer_.Declare("idx", Text(phase, " * ", writer_.UseGiven(kPhasePitch), " + ", shift));
    return opened;
  }

  // Of a transposed convolution, to rounds for the taps of the item's phase.
  Tap OpenTapsOfPhase() {
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
      writer_.Line("if (", reach, " % ", stride, " != ", output_phases_[k], ") continue;");
      opened.reaches.push_back(
          writer_.Declare("idx", Text(MaxShift(axis), " - ", reach, " / ", stride)));
      opened.offset = writer_.Declare("idx", Text(opened.offset, " + ", opened.reaches.back(),
                                                  " * ", Given(Group::kPitch, axis)));
      opened.number = writer_.Declare("idx", Text(opened.number, " * ", taps, " + ", tap));
    }
    return opened;
  }

  void WriteProducts(const std::string& block, const BufferElement& panel,
                     const BufferElement& columns, const std::string& channels,
                     const std::string& step) {
    const auto add = [&](const std::string& row_at, const std::string& column_at) {
      writer_.Line("TILE_ADD(", block, ", ", panel.buffer, ", ", row_at, ", ", columns.buffer, ", ",
                   column_at, ", ", channels, ", ", step, ");");
    };
    if (!product_.is_window()) return add(panel.at, columns.at);
    std::string row_at = writer_.NewName("p");
    writer_.Line("idx ", row_at, " = ", panel.at, ";");
    const Tap tap = OpenTaps();
    const int rows = product_.tile_.rows;
    add(product_.is_transposed() ? tap.RowsIn(row_at, channels, rows) : row_at,
        Text(columns.at, " + ", tap.offset));
    if (!product_.is_transposed()) writer_.Line(row_at, " += ", channels, " * ", rows, ";");
    for (int axis = 0; axis < product_.column_axes(); ++axis) writer_.Close();
  }

  const TiledProduct& product_;
  const Contract& contract_;
  Writer& writer_;
  const Source& source_;
  const std::string_view sum_type_;
  std::vector<std::string> output_phases_;  // of the item's outputs, if transposed, by axis
};

KernelText TiledProduct::Generate(Part part, const LoopForm& form, const Capabilities& capabilities,
                                  const Dialect& dialect, std::string_view library) const {
  Writer writer(form);
  const Source source{program_, step_, form, capabilities};
  PartWriter part_writer(*this, writer, source);
  if (part != Part::kSums) {
    const Launch launch = part == Part::kColumns && is_window()
                              ? part_writer.WriteImage()
                              : part_writer.WriteOperand(part == Part::kRows);
    return writer.Finish(dialect, launch, form.is_narrow);
  }
  const Launch launch = part_writer.WriteSums();
  const std::string functions = Text(
      "#define TILE_ROWS ", tile_.rows, "\n#define TILE_VECTORS ", tile_.vectors,
      "\n#define TILE_LANES ", tile_.lanes, "\n#define TILE_TYPE ", SumType(contract_.accumulator),
      "\n", tensor::IsFloat(contract_.accumulator) ? "#define TILE_IS_FLOAT\n" : "", library);
  return writer.Finish(dialect, launch, form.is_narrow, functions);
}

}  // namespace onnxifi::codegen
