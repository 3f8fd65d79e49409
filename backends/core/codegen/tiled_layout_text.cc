// SPDX-License-Identifier: Apache-2.0
//
// TiledProduct::PartWriter: the kernels that lay operands out.

#include <algorithm>
#include <string>

#include "backends/core/codegen/tiled_writer.h"

namespace onnxifi::codegen {

namespace {

// Not every language makes 16 or 8 bits of a number by itself.
std::string Zero(std::string_view type) {
  return type.ends_with("16") || type.ends_with("8") ? Text("AS(", type, ", 0)") : "0";
}

}  // namespace

Launch TiledProduct::PartWriter::WriteOperand(bool is_rows) {
  const bool is_a = product_.columns_are_a_ != is_rows;
  const int lanes = is_rows ? product_.tile_.block_rows() : product_.tile_.block_columns();
  const bool is_window = product_.is_window();
  const std::string_view type = StoredType(is_rows);
  const std::string out = writer_.UseScratch(/*is_write=*/true, is_rows ? 0 : 1, type);
  const std::string item = OpenItem();
  const std::string tiles = writer_.UseGiven(is_rows ? kRowTiles : kColumnTiles);
  const std::string count = writer_.UseGiven(is_rows ? kRows : kColumns);
  const std::string depth = writer_.UseGiven(kDepth);
  // An item has one element, or the elements of a piece of the depth.
  const bool is_by_element = product_.tile_.are_items_lanes;
  const int word = product_.word_elements();
  std::string panel, place, begin, end;
  if (is_by_element) {
    begin = writer_.Declare("idx", Text(item, " / ", lanes * word));
    const Writer::Division division =
        writer_.DeclareDivision(begin, word == 1 ? depth : writer_.UseGiven(kDepthWords));
    panel = division.quotient;
    place = word == 1 ? division.rest
                      : writer_.Declare("idx",
                                        Text(division.rest, " * ", word, " + ", item, " % ", word));
  } else {
    const std::string chunks = writer_.UseGiven(kChunks);
    const Writer::Division division = writer_.DeclareDivision(item, chunks);
    panel = division.quotient;
    begin = writer_.Declare("idx", Text(division.rest, " * ", kChunk));
    end = writer_.Declare(
        "idx", Text(begin, " + ", kChunk, " < ", depth, " ? ", begin, " + ", kChunk, " : ", depth));
  }
  const auto [matrix, tile] = writer_.DeclareDivision(panel, tiles);
  const std::string first = writer_.Declare("idx", Text(tile, " * ", lanes));
  std::vector<std::string> batch;
  if (!is_window) {
    std::vector<std::string> extents;
    for (int axis = 0; axis < product_.batch_axes(); ++axis) {
      extents.push_back(Given(is_rows ? Group::kRowPacked : Group::kColumnPacked, axis));
    }
    batch = WriteCoordinates(writer_, matrix, extents);
  }
  std::string k;
  if (is_by_element) {
    k = place;
  } else {
    k = writer_.NewName("k");
    writer_.Open("for (idx ", k, " = ", begin, "; ", k, " < ", end, "; ++", k, ")");
  }
  // The taps of a convolution come before its channels.
  std::vector<std::string> inner_extents;
  for (const program::Dim& dim : contract_.inner) inner_extents.push_back(writer_.UseDim(dim));
  std::string is_inside;
  if (is_window) {
    std::rotate(inner_extents.begin(), inner_extents.begin() + 1, inner_extents.end());
    if (word > 1) inner_extents.back() = writer_.UseGiven(kChannels);
  }
  std::vector<std::string> inner = WriteCoordinates(writer_, k, inner_extents);
  if (is_window) std::rotate(inner.begin(), inner.end() - 1, inner.end());
  if (word > 1) {
    is_inside = is_window ? Text(inner[0], " < ", writer_.UseDim(contract_.inner[0]), " && ")
                          : Text(k, " < ", writer_.UseGiven(kInner), " && ");
  }
  std::string to, lane;
  if (is_by_element) {
    to = item;
    lane = writer_.Declare(
        "idx", word == 1 ? Text(item, " % ", lanes) : Text(item, " / ", word, " % ", lanes));
  } else {
    to = writer_.Declare("idx", Text("(", panel, " * ", depth, " + ", k, ") * ", lanes));
    lane = writer_.NewName("l");
    to += " + " + lane;
    writer_.Line("INDEPENDENT");
    writer_.Open("for (int ", lane, " = 0; ", lane, " < ", lanes, "; ++", lane, ")");
  }
  const std::string value = writer_.NewName("s");
  writer_.Line(type, " ", value, " = ", Zero(type), ";");
  const std::string own = writer_.Declare("idx", Text(first, " + ", lane));
  writer_.Open("if (", is_inside, own, " < ", count, ")");
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
  writer_.Line(value, " = AS(", type, ", ", LaidOutElement(is_rows, at), ");");
  writer_.Close();
  writer_.Line("STORE(", out, ", ", to, ", ", value, ");");
  for (int loop = 0; !is_by_element && loop < 2; ++loop) writer_.Close();
  writer_.Close();
  return {.given_items = is_rows ? kRowItems : kColumnItems};
}

Launch TiledProduct::PartWriter::WriteImage() {
  if (product_.tile_.are_items_lanes) return WriteImageElements();
  const std::string_view type = StoredType(/*is_rows=*/false);
  const std::string out = writer_.UseScratch(/*is_write=*/true, 1, type);
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
  const std::string stride =
      product_.is_transposed() ? "1" : writer_.UseDim(contract_.strides[static_cast<size_t>(last)]);
  const std::string pad = product_.is_transposed()
                              ? Text("(", MaxShift(last), " - ", Given(Group::kFirst, last), ")")
                              : writer_.UseDim(contract_.pads_begin[static_cast<size_t>(last)]);
  const auto bound = [&](const std::string& value) {
    const std::string from = writer_.Declare("idx", value);
    // Of no meaning where it is not used.
    const std::string quotient =
        writer_.DeclareQuotient(Text("(", from, " + ", stride, " - 1)"), stride);
    const std::string up = writer_.Declare("idx", Text(from, " > 0 ? ", quotient, " : 0"));
    return writer_.Declare("idx", Text(up, " < ", length, " ? ", up, " : ", length));
  };
  const std::string low = bound(Text(pad, " - ", phase(last)));
  const std::string high = writer_.Declare(
      "idx",
      Text(is_inside, " ? ", bound(Text(InExtent(last), " + ", pad, " - ", phase(last))), " : 0"));
  const std::string zeros = writer_.Declare("idx", Text(low, " < ", high, " ? ", low, " : ", high));
  const auto fill = [&](const std::string& begin, const std::string& end) {
    const std::string lane = writer_.NewName("l");
    writer_.Line("INDEPENDENT");
    writer_.Open("for (idx ", lane, " = ", begin, "; ", lane, " < ", end, "; ++", lane, ")");
    writer_.Line("STORE(", out, ", ", to, " + ", lane, ", AS(", type, ", 0));");
    writer_.Close();
  };
  fill("0", zeros);
  const std::string lane = writer_.NewName("l");
  writer_.Line("INDEPENDENT");
  writer_.Open("for (idx ", lane, " = ", zeros, "; ", lane, " < ", high, "; ++", lane, ")");
  positions.push_back(writer_.Declare("idx", Position(last, lane, phase(last))));
  const std::string element = LaidOutElement(/*is_rows=*/false, positions);
  writer_.Line("STORE(", out, ", ", to, " + ", lane, ", AS(", type, ", ", element, "));");
  writer_.Close();
  fill(high, length);
  writer_.Close();
  return {.given_items = kColumnItems};
}

Launch TiledProduct::PartWriter::WriteImageElements() {
  const std::string_view type = StoredType(/*is_rows=*/false);
  const std::string out = writer_.UseScratch(/*is_write=*/true, 1, type);
  const std::string item = OpenItem();
  const int axes = product_.column_axes();
  const int word = product_.word_elements();
  // Channels by word, then elements, then those of a word.
  std::vector<std::string> extents = {Extent(writer_, 0), writer_.UseDim(contract_.group),
                                      writer_.UseGiven(kChannelWords)};
  for (int axis = 0; axis < axes; ++axis) extents.push_back(Given(Group::kPhases, axis));
  for (int axis = 0; axis < axes; ++axis) extents.push_back(Given(Group::kImage, axis));
  if (word > 1) extents.push_back(Text(word));
  const std::vector<std::string> at = WriteCoordinates(writer_, item, extents);
  // Channels are further apart than their elements are many.
  const std::string channels = writer_.Declare(
      "idx", Text("(", at[0], " * ", extents[1], " + ", at[1], ") * ", extents[2], " + ", at[2]));
  std::string product = "1";
  for (size_t axis = 3; axis < extents.size(); ++axis) product += " * " + extents[axis];
  const std::string elements = writer_.Declare("idx", product);
  const std::string channel =
      word == 1 ? at[2] : writer_.Declare("idx", Text(at[2], " * ", word, " + ", at.back()));
  const std::string to =
      writer_.Declare("idx", Text(at[0], " * ", Given(Group::kColumnBatch, 0), " + ", at[1], " * ",
                                  writer_.UseGiven(kPartPitch), " + ", at[2], " * ",
                                  writer_.UseGiven(kStep), word == 1 ? "" : Text(" * ", word),
                                  " + (", item, " - ", channels, " * ", elements, ")"));
  const std::string own_channels = writer_.UseDim(contract_.inner[0]);
  std::vector<std::string> positions = {
      at[0], writer_.Declare("idx", Text(at[1], " * ", own_channels, " + ", channel))};
  std::string is_inside = word == 1 ? "true" : Text(channel, " < ", own_channels);
  for (int axis = 0; axis < axes; ++axis) {
    const auto phase = static_cast<size_t>(3 + axis);
    const auto place = static_cast<size_t>(3 + axes + axis);
    positions.push_back(writer_.Declare("idx", Position(axis, at[place], at[phase])));
    is_inside +=
        Text(" && ", positions.back(), " >= 0 && ", positions.back(), " < ", InExtent(axis));
  }
  const std::string value = writer_.NewName("s");
  writer_.Line(type, " ", value, " = ", Zero(type), ";");
  writer_.Open("if (", is_inside, ")");
  writer_.Line(value, " = AS(", type, ", ", LaidOutElement(/*is_rows=*/false, positions), ");");
  writer_.Close();
  writer_.Line("STORE(", out, ", ", to, ", ", value, ");");
  writer_.Close();
  return {.given_items = kColumnItems};
}

}  // namespace onnxifi::codegen
