// SPDX-License-Identifier: Apache-2.0
//
// Window: an item per output, which folds the elements under its window in ascending order.

#include <cstdint>
#include <limits>

#include "backends/core/codegen/family.h"

namespace onnxifi::codegen {
namespace {

using program::Window;
using tensor::ElementType;
using tensor::Scalar;

// Less than every element that is no NaN.
Scalar Least(ElementType type) {
  if (tensor::IsFloat(type)) return Scalar{.f = -std::numeric_limits<double>::infinity()};
  if (tensor::IsUnsigned(type)) return Scalar{.u = 0};
  return Scalar{.i = std::numeric_limits<int64_t>::min() >> (64 - tensor::BitWidth(type))};
}

class WindowWriter {
 public:
  WindowWriter(Writer& writer, const Source& source)
      : writer_(writer),
        source_(source),
        window_(*source.step.As<Window>()),
        type_(window_.accumulator),
        lane_(LaneType(type_)) {
    sum_type_ = !tensor::IsFloat(type_)                                             ? "i64"
                : type_ == ElementType::kFloat64 || source.capabilities.has_float64 ? "f64"
                                                                                    : "f32";
    if (sum_type_ == "f64") writer_.UseFloat64();
  }

  Launch Write() {
    const int rank = source_.form.rank;
    out_ = OpenItems(writer_, rank);
    Scope scope;
    scope.coordinates = scope.indices = out_;
    scope.accumulator = window_.kind == Window::Kind::kLrn ? WriteLrn() : WriteFold();
    const bool has_indices = window_.kind == Window::Kind::kMax && source_.step.writes.size() == 2;
    const std::span<const program::ExprId> roots(window_.roots);
    const std::vector<std::string> values = WriteExpressions(
        writer_, source_.program, source_.step, scope, has_indices ? roots.first(1) : roots);
    for (size_t k = 0; k < values.size(); ++k) {
      WriteStore(writer_, source_.step, static_cast<int>(k), out_, values[k]);
    }
    if (has_indices) WriteStore(writer_, source_.step, 1, out_, index_);
    writer_.Close();
    return {.item_axes = rank};
  }

 private:
  std::string Element(const std::vector<std::string>& at) {
    const ElementType stored = source_.step.reads[0].type;
    const std::string value =
        writer_.Declare(LaneType(stored), WriteLoad(writer_, source_.step, 0, at));
    return writer_.Declare(lane_, WriteCast(writer_, stored, type_, value));
  }

  // A floating number of the sum's type.
  std::string Number(double value) {
    const ElementType type = sum_type_ == "f64" ? ElementType::kFloat64 : ElementType::kFloat32;
    return Literal(writer_, type, Scalar{.f = value});
  }

  std::string WriteFold() {
    const size_t axes = window_.kernel.size();
    std::string maximum = writer_.NewName("s");
    const std::string index = writer_.NewName("s");
    const std::string sum = writer_.NewName("s");
    const std::string taken = writer_.NewName("s");
    writer_.Line(lane_, " ", maximum, " = ", Literal(writer_, type_, Least(type_)), ";");
    writer_.Line("i64 ", index, " = -1;");
    writer_.Line(sum_type_, " ", sum, " = 0;");
    writer_.Line("i64 ", taken, " = 0;");
    std::vector<std::string> positions;
    std::string is_element, is_padding;
    for (size_t axis = 0; axis < axes; ++axis) {
      const std::string tap = writer_.NewName("k");
      writer_.Open("for (idx ", tap, " = 0; ", tap, " < ", writer_.UseDim(window_.kernel[axis]),
                   "; ++", tap, ")");
      const std::string extent = writer_.UseDim(window_.in_spatial[axis]);
      const std::string position =
          writer_.Declare("idx", Text(out_[axis + 2], " * ", writer_.UseDim(window_.strides[axis]),
                                      " + ", tap, " * ", writer_.UseDim(window_.dilations[axis]),
                                      " - ", writer_.UseDim(window_.pads_begin[axis])));
      positions.push_back(position);
      is_element += Text(axis == 0 ? "" : " && ", position, " >= 0 && ", position, " < ", extent);
      // A tap is never before the padding; only rounding the output's extent up leads beyond its
      // end.
      is_padding += Text(axis == 0 ? "(" : " && (", position, " < ", extent, " || ", position,
                         " - ", extent, " < ", writer_.UseDim(window_.pads_end[axis]), ")");
    }
    if (axes == 0) is_element = is_padding = "1";
    if (window_.count_include_pad) writer_.Line("if (", is_padding, ") ++", taken, ";");
    writer_.Open("if (", is_element, ")");
    if (!window_.count_include_pad) writer_.Line("++", taken, ";");
    std::vector<std::string> at = {out_[0], out_[1]};
    at.insert(at.end(), positions.begin(), positions.end());
    const std::string value = Element(at);
    switch (window_.kind) {
      case Window::Kind::kMax:
        // The first of equals stays; NaN wins over everything.
        writer_.Open("if (", index, " < 0 || ", value, " > ", maximum, " || (", value,
                     " != ", value, " && ", maximum, " == ", maximum, "))");
        writer_.Line(maximum, " = ", value, ";");
        writer_.Line(index, " = ", FlatIndex(positions), ";");
        writer_.Close();
        break;
      case Window::Kind::kLp:
        writer_.Line(sum, " += M_pow(M_abs(AS(", sum_type_, ", ", value, ")), ",
                     Number(static_cast<double>(window_.p)), ");");
        break;
      default:
        writer_.Line(sum, " += AS(", sum_type_, ", ", value, ");");
        break;
    }
    writer_.Close();
    for (size_t axis = 0; axis < axes; ++axis) writer_.Close();
    index_ = index;
    if (window_.kind == Window::Kind::kMax) return maximum;
    if (window_.kind == Window::Kind::kLp) {
      return writer_.Declare(lane_, Text("AS(", lane_, ", M_pow(", sum, ", ",
                                         Number(1.0 / static_cast<double>(window_.p)), "))"));
    }
    return writer_.Declare(lane_, Text(taken, " == 0 ? AS(", lane_, ", 0) : AS(", lane_, ", ", sum,
                                       " / AS(", sum_type_, ", ", taken, "))"));
  }

  // The element's position in the flattened input.
  std::string FlatIndex(const std::vector<std::string>& positions) {
    std::string flat = Text("(", out_[0], " * ", Extent(writer_, 1), " + ", out_[1], ")");
    std::string within = "0";
    for (size_t k = 0; k < positions.size(); ++k) {
      const std::string extent = writer_.UseDim(window_.in_spatial[k]);
      flat = Text(flat, " * ", extent);
      const size_t axis = window_.column_major ? positions.size() - 1 - k : k;
      within = Text("(", within, " * ", writer_.UseDim(window_.in_spatial[axis]), " + ",
                    positions[axis], ")");
    }
    return Text("AS(i64, ", flat, " + ", within, ")");
  }

  // x / (bias + alpha / size * sum of squares over the channels around c) ^ beta, as ONNX's LRN.
  std::string WriteLrn() {
    const std::string size = writer_.UseDim(window_.kernel[0]);
    const std::string sum = writer_.NewName("s");
    const std::string channel = writer_.NewName("k");
    writer_.Line(sum_type_, " ", sum, " = 0;");
    const std::string first = writer_.Declare("idx", Text(out_[1], " - (", size, " - 1) / 2"));
    const std::string last = writer_.Declare("idx", Text(out_[1], " + ", size, " / 2"));
    writer_.Open("for (idx ", channel, " = ", first, " < 0 ? 0 : ", first, "; ", channel,
                 " <= ", last, " && ", channel, " < ", Extent(writer_, 1), "; ++", channel, ")");
    std::vector<std::string> at = out_;
    at[1] = channel;
    const std::string square = Element(at);
    writer_.Line(sum, " += AS(", sum_type_, ", ", square, ") * AS(", sum_type_, ", ", square, ");");
    writer_.Close();
    const std::string value = Element(out_);
    const std::string scale = Text(Number(window_.bias), " + ", Number(window_.alpha), " / AS(",
                                   sum_type_, ", ", size, ") * ", sum);
    return writer_.Declare(lane_, Text("AS(", lane_, ", AS(", sum_type_, ", ", value, ") / M_pow(",
                                       scale, ", ", Number(window_.beta), "))"));
  }

  Writer& writer_;
  const Source& source_;
  const Window& window_;
  const ElementType type_;
  const std::string_view lane_;
  std::string_view sum_type_;
  std::vector<std::string> out_;  // coordinates of the output
  std::string index_;             // of the maximum
};

}  // namespace

Launch WriteWindow(Writer& writer, const Source& source) {
  return WindowWriter(writer, source).Write();
}

}  // namespace onnxifi::codegen
