// SPDX-License-Identifier: Apache-2.0
//
// DepthCursor: where in the depth of a sum an item of a group is, in the text of a kernel. For the
// files that write the sums of groups alone.

#ifndef ONNXIFI_BACKENDS_CORE_CODEGEN_DEPTH_CURSOR_H_
#define ONNXIFI_BACKENDS_CORE_CODEGEN_DEPTH_CURSOR_H_

#include <string>
#include <utility>
#include <vector>

#include "backends/core/codegen/tiled_writer.h"

namespace onnxifi::codegen {

// Variables that Advance changes.
class TiledProduct::PartWriter::DepthCursor {
 public:
  // From place `begin` of what the item's group sums of the depth; there is no depth for a group
  // without a block.
  DepthCursor(PartWriter& writer, const GroupItem& item, const std::string& begin)
      : parts_(writer),
        writer_(writer.writer_),
        is_window_(writer.product_.is_window()),
        is_transposed_(writer.product_.is_transposed()),
        first_(item.first) {
    if (is_window_) DeclareTaps();
    depth_ = writer_.Declare(
        "idx", Text(item.is_of_block, " ? ", is_transposed_ ? depth_ : writer_.UseGiven(kDepth),
                    " : AS(idx, 0)"));
    if (!item.end.empty()) depth_ = writer_.Declare("idx", Lesser(depth_, item.end));
    place_ = writer_.NewName("k");
    writer_.Line("idx ", place_, " = AS(idx, ", begin, ")",
                 first_.empty() ? "" : Text(" + ", first_), ";");
    if (!is_window_) return;
    channel_ = writer_.NewName("k");
    writer_.Line("idx ", channel_, " = ", place_, ";");
    if (!first_.empty()) WriteTapOfPlace();
    offset_ = writer_.NewName("p");
    writer_.Line("idx ", offset_, " = ", Offset(), ";");
    WriteCarry();
  }

  // Declares how many rounds of `length` places the group's part of the depth has.
  std::string WriteRounds(int length) const {
    return writer_.Declare("idx", Text("(", depth_, first_.empty() ? "" : Text(" - ", first_),
                                       " + ", length - 1, ") / ", length));
  }
  const std::string& depth() const { return depth_; }
  const std::string& place() const { return place_; }
  // Of a convolution, the channel; else the place.
  const std::string& channel() const { return is_window_ ? channel_ : place_; }
  // Of its tap in the image, if it has one.
  const std::string& tap_offset() const { return offset_; }
  std::string is_inside() const { return Text(place_, " < ", depth_); }
  // The place of its elements in a panel of rows, and in the columns from the block's first on.
  std::string row_place() const {
    if (!is_transposed_) return place_;
    std::string number = "0";
    for (const Axis& axis : axes_)
      number = Text("(", number, " * ", axis.taps, " + ", axis.tap, ")");
    return Text("(", number, " * ", parts_.writer_.UseGiven(kChannels), " + ", channel_, ")");
  }
  std::string column_offset() const {
    const std::string step = parts_.writer_.UseGiven(kStep);
    if (!is_window_) return Text(place_, " * ", step);
    const int word = parts_.ColumnWord();
    return Text(offset_, word == 1 ? "" : Text(" * ", word), " + ", channel_, " * ", step);
  }

  void Advance(int by) {
    writer_.Line(place_, " += ", by, ";");
    if (!is_window_) return;
    writer_.Line(channel_, " += ", by, ";");
    WriteCarry();
  }

 private:
  struct Axis {
    std::string tap, taps;
    std::string phase, shift;  // of the tap's reach: its rest by the stride, and how many of it
    std::string stride;
    std::string rest, strides;                         // of the dilation, by the stride
    std::string output_phase, first_tap, first_shift;  // of a transposed convolution
  };

  void DeclareTaps() {
    const program::Contract& contract = parts_.contract_;
    const auto variable = [&](std::string_view value) {
      std::string name = writer_.NewName("k");
      writer_.Line("idx ", name, " = ", value, ";");
      return name;
    };
    if (is_transposed_) depth_ = variable(writer_.UseGiven(kChannels));
    for (size_t k = 0; k < contract.strides.size(); ++k) {
      Axis axis;
      axis.taps = writer_.UseDim(contract.inner[k + 1]);
      const std::string dilation = writer_.UseDim(contract.dilations[k]);
      axis.stride = writer_.UseDim(contract.strides[k]);
      const Writer::Division by_stride = writer_.DeclareDivision(dilation, axis.stride);
      axis.rest = by_stride.rest;
      axis.strides = by_stride.quotient;
      axis.tap = variable("0");
      axis.phase = variable("0");
      axis.shift = variable("0");
      if (is_transposed_) {
        axis.output_phase = parts_.output_phases_[k];
        axis.first_tap = variable("0");
        axis.first_shift = variable("0");
        const std::string count = variable("0");
        writer_.Open("for (; ", axis.tap, " < ", axis.taps, "; ++", axis.tap, ")");
        writer_.Open("if (", axis.phase, " == ", axis.output_phase, ")");
        writer_.Open("if (", count, " == 0)");
        writer_.Line(axis.first_tap, " = ", axis.tap, ";");
        writer_.Line(axis.first_shift, " = ", axis.shift, ";");
        writer_.Close();
        writer_.Line(count, " += 1;");
        writer_.Close();
        WriteReach(axis);
        writer_.Close();
        writer_.Line(depth_, " *= ", count, ";");
        WriteFirstTap(axis);
      }
      axes_.push_back(std::move(axis));
    }
  }

  // The reach of the next tap.
  void WriteReach(const Axis& axis) {
    writer_.Line(axis.phase, " += ", axis.rest, ";");
    writer_.Line(axis.shift, " += ", axis.strides, ";");
    writer_.Open("if (", axis.phase, " >= ", axis.stride, ")");
    writer_.Line(axis.phase, " -= ", axis.stride, ";");
    writer_.Line(axis.shift, " += 1;");
    writer_.Close();
  }

  void WriteFirstTap(const Axis& axis) {
    writer_.Line(axis.tap, " = ", is_transposed_ ? axis.first_tap : "0", ";");
    writer_.Line(axis.phase, " = ", is_transposed_ ? axis.output_phase : "0", ";");
    writer_.Line(axis.shift, " = ", is_transposed_ ? axis.first_shift : "0", ";");
  }

  // To the next tap along an axis, and along those before it where it has no more.
  void WriteNextTap(size_t number) {
    const Axis& axis = axes_[number];
    if (is_transposed_) writer_.Open("while (true)");
    writer_.Line(axis.tap, " += 1;");
    WriteReach(axis);
    if (is_transposed_) {
      writer_.Line("if (", axis.tap, " >= ", axis.taps, " || ", axis.phase,
                   " == ", axis.output_phase, ") break;");
      writer_.Close();
    }
    if (number == 0) return;
    writer_.Open("if (", axis.tap, " >= ", axis.taps, ")");
    WriteFirstTap(axis);
    WriteNextTap(number - 1);
    writer_.Close();
  }

  // From the first tap to that of the first place, of a convolution that is not transposed.
  void WriteTapOfPlace() {
    const std::string channels = parts_.writer_.UseGiven(kChannels);
    std::string rest = writer_.DeclareQuotient(channel_, channels);
    writer_.Line(channel_, " -= ", rest, " * ", channels, ";");
    for (size_t k = axes_.size(); k-- > 0;) {
      const Axis& axis = axes_[k];
      const Writer::Division by_taps = writer_.DeclareDivision(rest, axis.taps);
      writer_.Line(axis.tap, " = ", by_taps.rest, ";");
      const std::string reach = writer_.Declare(
          "idx", Text(axis.tap, " * (", axis.strides, " * ", axis.stride, " + ", axis.rest, ")"));
      const Writer::Division by_stride = writer_.DeclareDivision(reach, axis.stride);
      writer_.Line(axis.shift, " = ", by_stride.quotient, ";");
      writer_.Line(axis.phase, " = ", by_stride.rest, ";");
      rest = by_taps.quotient;
    }
  }

  // To the tap of a place whose channel is counted from an earlier tap's.
  void WriteCarry() {
    const std::string channels = writer_.UseGiven(kChannels);
    writer_.Open("while (", channel_, " >= ", channels, " && ", is_inside(), ")");
    writer_.Line(channel_, " -= ", channels, ";");
    WriteNextTap(axes_.size() - 1);
    writer_.Line(offset_, " = ", Offset(), ";");
    writer_.Close();
  }

  // Of a tap in the image.
  std::string Offset() {
    std::string phase, shifts;
    for (size_t k = 0; k < axes_.size(); ++k) {
      const int number = static_cast<int>(k);
      const Axis& axis = axes_[k];
      phase = k == 0 ? axis.phase
                     : Text("(", phase, " * ", parts_.Given(Group::kPhases, number), " + ",
                            axis.phase, ")");
      const std::string shift =
          is_transposed_ ? Text("(", parts_.MaxShift(number), " - ", axis.shift, ")") : axis.shift;
      shifts += Text(k == 0 ? "" : " + ", shift, " * ", parts_.Given(Group::kPitch, number));
    }
    return is_transposed_ ? shifts
                          : Text(phase, " * ", writer_.UseGiven(kPhasePitch), " + ", shifts);
  }

  PartWriter& parts_;
  Writer& writer_;
  const bool is_window_, is_transposed_;
  const std::string first_;  // of the places; empty: 0
  std::vector<Axis> axes_;
  std::string place_, channel_, offset_, depth_;
};

}  // namespace onnxifi::codegen

#endif  // ONNXIFI_BACKENDS_CORE_CODEGEN_DEPTH_CURSOR_H_
