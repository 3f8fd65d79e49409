// SPDX-License-Identifier: Apache-2.0
//
// Window: an item per output, which reduces the elements under its window in ascending order; or a
// group per output of a large window; or, where items compute runs, an item per row of outputs,
// whose windows all take their element of a tap before the next.

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
    // A power takes several times as long in float64; a few squares need no more than float32.
    const bool is_lrn = window_.kind == Window::Kind::kLrn;
    const bool has_fast_float64 =
        source.capabilities.has_float64 && source.capabilities.is_float64_fast;
    const bool needs_float64 = type_ == ElementType::kFloat64 || (has_fast_float64 && !is_lrn);
    sum_type_ = !tensor::IsFloat(type_) ? "i64" : needs_float64 ? "f64" : "f32";
    is_compensated_ = sum_type_ == "f32" && !is_lrn && window_.kind != Window::Kind::kMax;
    if (sum_type_ == "f64") writer_.UseFloat64();
  }

  Launch Write() {
    const int rank = source_.form.rank;
    const int run_length = source_.capabilities.run_length;
    // Rows of one or two outputs, of global pooling above all, are no runs.
    const program::Dim& row = source_.step.domain.back();
    const bool is_short = row.is_constant() && row.constant() < 4;
    if (run_length > 1 && rank > 2 && !is_short) return WriteRuns(run_length);
    if (source_.form.is_grouped) return WriteGroup();
    out_ = OpenItems(writer_, rank);
    WriteOutputs(window_.kind == Window::Kind::kLrn ? WriteLrn() : WriteReduction());
    writer_.Close();
    return {.item_axes = rank, .group_size = GroupSizeOfItems(source_)};
  }

 private:
  bool has_indices() const {
    return window_.kind == Window::Kind::kMax && source_.step.writes.size() == 2;
  }

  void WriteOutputs(const std::string& accumulator) {
    Scope scope;
    scope.coordinates = scope.indices = out_;
    scope.accumulator = accumulator;
    const std::span<const program::ExprId> roots(window_.roots);
    const std::vector<std::string> values = WriteExpressions(
        writer_, source_.program, source_.step, scope, has_indices() ? roots.first(1) : roots);
    for (size_t k = 0; k < values.size(); ++k) {
      WriteStore(writer_, source_.step, static_cast<int>(k), out_, values[k]);
    }
    if (has_indices()) WriteStore(writer_, source_.step, 1, out_, index_);
  }

  // --- runs ---

  Launch WriteRuns(int run_length) {
    run_ = OpenRun(writer_, source_.form.rank, run_length);
    const bool is_max = window_.kind == Window::Kind::kMax;
    const std::string reduced = DeclareLanes(is_max ? lane_ : sum_type_, run_length);
    const std::string lost = is_compensated_ ? DeclareLanes("f32", run_length) : std::string();
    const std::string taken = DeclareLanes("int", run_length);
    const std::string index = has_indices() ? DeclareLanes("i64", run_length) : std::string();
    OpenLanes("0", run_.count);
    writer_.Line(reduced, At(), " = ", is_max ? Literal(writer_, type_, Least(type_)) : "0", ";");
    if (is_compensated_) writer_.Line(lost, At(), " = 0;");
    writer_.Line(taken, At(), " = 0;");
    if (has_indices()) writer_.Line(index, At(), " = -1;");
    writer_.Close();
    if (window_.kind == Window::Kind::kLrn) {
      WriteLrnSums(reduced);
    } else {
      WriteTaps(reduced, lost, taken, index);
    }
    OpenLanes("0", run_.count);
    if (has_indices()) index_ = writer_.Declare("i64", index + At());
    const std::string value =
        writer_.Declare(is_max ? lane_ : sum_type_, WholeSum(reduced + At(), lost + At()));
    WriteOutputs(is_max ? value : Finish(value, taken + At()));
    writer_.Close();
    writer_.Close();
    return {.item_axes = source_.form.rank,
            .run_length = run_length,
            .group_size = source_.capabilities.run_group_size};
  }

  std::string DeclareLanes(std::string_view type, int run_length) {
    std::string name = writer_.NewName("s");
    writer_.Line(type, " ", name, "[", run_length, "];");
    return name;
  }
  std::string At() const { return Text("[", run_.lane, "]"); }
  void OpenLanes(const std::string& begin, const std::string& end) {
    codegen::OpenLanes(writer_, run_, begin, end);
    out_ = run_.coordinates;
  }

  // Adds to a sum. Many floats are added to a float with what each rounding lost kept beside it, as
  // Knuth's exact sum of two has it.
  void WriteAddition(const std::string& sum, const std::string& lost, const std::string& summand) {
    if (!is_compensated_) {
      writer_.Line(sum, " += ", summand, ";");
      return;
    }
    const std::string value = writer_.Declare("f32", summand);
    const std::string before = writer_.Declare("f32", sum);
    const std::string after = writer_.Declare("f32", Text(before, " + ", value));
    const std::string part = writer_.Declare("f32", Text(after, " - ", before));
    writer_.Line(lost, " += (", before, " - (", after, " - ", part, ")) + (", value, " - ", part,
                 ");");
    writer_.Line(sum, " = ", after, ";");
  }
  // Nothing is lost of an infinite sum.
  std::string WholeSum(const std::string& sum, const std::string& lost) const {
    if (!is_compensated_) return sum;
    return Text("(", lost, " - ", lost, " == 0 ? ", sum, " + ", lost, " : ", sum, ")");
  }

  // What an average, a norm or LRN makes of its sum.
  std::string Finish(const std::string& sum, const std::string& taken) {
    if (window_.kind == Window::Kind::kLrn) return FinishLrn(sum);
    if (window_.kind == Window::Kind::kLp) {
      return writer_.Declare(lane_, Text("AS(", lane_, ", M_pow(", sum, ", ",
                                         Number(1.0 / static_cast<double>(window_.p)), "))"));
    }
    return writer_.Declare(lane_, Text(taken, " == 0 ? AS(", lane_, ", 0) : AS(", lane_, ", ", sum,
                                       " / AS(", sum_type_, ", ", taken, "))"));
  }

  void WriteLrnSums(const std::string& sums) {
    const std::string channel = OpenChannels(run_.coordinates);
    OpenLanes("0", run_.count);
    std::vector<std::string> at = out_;
    at[1] = channel;
    const std::string square = Element(at);
    writer_.Line(sums, At(), " += AS(", sum_type_, ", ", square, ") * AS(", sum_type_, ", ", square,
                 ");");
    writer_.Close();
    writer_.Close();
  }

  // The lanes at whose windows element `tap` of the last axis is before element `extent`, as the
  // end of a range; `first` is where it lies for lane 0.
  std::string EndOfLanes(const std::string& first, const std::string& extent) {
    const std::string stride = writer_.UseDim(window_.strides.back());
    const std::string rest = writer_.Declare("idx", Text(extent, " - ", first));
    const std::string lanes = writer_.Declare(
        "idx", Text(rest, " > 0 ? (", rest, " + ", stride, " - 1) / ", stride, " : 0"));
    return writer_.Declare(
        "int", Text(lanes, " < ", run_.count, " ? AS(int, ", lanes, ") : ", run_.count));
  }

  void WriteTaps(const std::string& reduced, const std::string& lost, const std::string& taken,
                 const std::string& index) {
    const size_t axes = window_.kernel.size();
    std::vector<std::string> positions;
    std::string is_element, is_padding;
    std::string first;
    for (size_t axis = 0; axis < axes; ++axis) {
      const std::string tap = writer_.NewName("k");
      writer_.Open("for (idx ", tap, " = 0; ", tap, " < ", writer_.UseDim(window_.kernel[axis]),
                   "; ++", tap, ")");
      const bool is_last = axis + 1 == axes;
      const std::string position =
          Position(axis, is_last ? run_.begin : run_.coordinates[axis + 2], tap);
      if (is_last) {
        first = position;
        break;
      }
      positions.push_back(position);
      is_element += Text(axis == 0 ? "" : " && ", IsElement(axis, position));
      is_padding += Text(axis == 0 ? "" : " && ", IsPadding(axis, position));
    }
    const std::string extent = writer_.UseDim(window_.in_spatial.back());
    if (window_.count_include_pad) {
      const std::string pads_end = writer_.UseDim(window_.pads_end.back());
      const std::string padded =
          writer_.Declare("idx", Text(pads_end, " > 0 ? ", extent, " + ", pads_end, " : ", extent));
      const std::string end = EndOfLanes(first, padded);
      OpenLanes("0", is_padding.empty() ? end : Text("((", is_padding, ") ? ", end, " : 0)"));
      writer_.Line("++", taken, At(), ";");
      writer_.Close();
    }
    const std::string end = EndOfLanes(first, extent);
    const std::string begin = EndOfLanes(first, "0");
    OpenLanes(begin, is_element.empty() ? end : Text("((", is_element, ") ? ", end, " : 0)"));
    if (!window_.count_include_pad) writer_.Line("++", taken, At(), ";");
    positions.push_back(writer_.Declare(
        "idx", Text(first, " + ", run_.lane, " * ", writer_.UseDim(window_.strides.back()))));
    std::vector<std::string> at = {out_[0], out_[1]};
    at.insert(at.end(), positions.begin(), positions.end());
    const std::string value = Element(at);
    if (window_.kind == Window::Kind::kMax) {
      // As below, without branches.
      const std::string before = writer_.Declare(lane_, reduced + At());
      std::string is_new = Text(value, " > ", before, " || (", value, " != ", value, " && ", before,
                                " == ", before, ")");
      if (has_indices()) {
        is_new = writer_.Declare("bool", Text(index, At(), " < 0 || ", is_new));
        writer_.Line(index, At(), " = ", is_new, " ? ", FlatIndex(positions), " : ", index, At(),
                     ";");
      }
      writer_.Line(reduced, At(), " = ", is_new, " ? ", value, " : ", before, ";");
    } else {
      WriteAddition(reduced + At(), lost + At(), Summand(value));
    }
    writer_.Close();
    for (size_t axis = 0; axis < axes; ++axis) writer_.Close();
  }

  // --- one output ---

  std::string Position(size_t axis, const std::string& out, const std::string& tap) {
    return writer_.Declare("idx", Text(out, " * ", writer_.UseDim(window_.strides[axis]), " + ",
                                       tap, " * ", writer_.UseDim(window_.dilations[axis]), " - ",
                                       writer_.UseDim(window_.pads_begin[axis])));
  }
  std::string IsElement(size_t axis, const std::string& position) {
    return Text(position, " >= 0 && ", position, " < ", writer_.UseDim(window_.in_spatial[axis]));
  }
  // A tap is never before the padding; only rounding the output's extent up leads beyond its end.
  std::string IsPadding(size_t axis, const std::string& position) {
    const std::string extent = writer_.UseDim(window_.in_spatial[axis]);
    return Text("(", position, " < ", extent, " || ", position, " - ", extent, " < ",
                writer_.UseDim(window_.pads_end[axis]), ")");
  }
  std::string Summand(const std::string& value) {
    if (window_.kind != Window::Kind::kLp) return Text("AS(", sum_type_, ", ", value, ")");
    return Text("M_pow(M_abs(AS(", sum_type_, ", ", value, ")), ",
                Number(static_cast<double>(window_.p)), ")");
  }

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

  // What an item has seen of a window: variables.
  struct Reduced {
    std::string maximum;
    // Of the maximum in the flattened input, if anybody wants it; -1: there is none yet.
    std::string index;
    std::string tap;  // its number among the taps
    std::string sum;
    std::string lost;  // by the roundings of the sum, where it is compensated
    std::string taken;
  };
  Reduced DeclareReduced() {
    Reduced reduced;
    for (std::string Reduced::*name : {&Reduced::maximum, &Reduced::index, &Reduced::tap,
                                       &Reduced::sum, &Reduced::lost, &Reduced::taken}) {
      reduced.*name = writer_.NewName("s");
    }
    writer_.Line(lane_, " ", reduced.maximum, " = ", Literal(writer_, type_, Least(type_)), ";");
    writer_.Line("i64 ", reduced.index, " = -1;");
    writer_.Line("i64 ", reduced.tap, " = 0;");
    writer_.Line(sum_type_, " ", reduced.sum, " = 0;");
    if (is_compensated_) writer_.Line("f32 ", reduced.lost, " = 0;");
    writer_.Line("i64 ", reduced.taken, " = 0;");
    return reduced;
  }

  // Takes the element of the tap at `taps`, which is number `number` of all.
  void WriteTap(const Reduced& reduced, const std::vector<std::string>& taps,
                const std::string& number) {
    std::vector<std::string> positions;
    std::string is_element, is_padding;
    for (size_t axis = 0; axis < taps.size(); ++axis) {
      positions.push_back(Position(axis, out_[axis + 2], taps[axis]));
      is_element += Text(axis == 0 ? "" : " && ", IsElement(axis, positions.back()));
      is_padding += Text(axis == 0 ? "" : " && ", IsPadding(axis, positions.back()));
    }
    if (taps.empty()) is_element = is_padding = "true";
    if (window_.count_include_pad) writer_.Line("if (", is_padding, ") ++", reduced.taken, ";");
    writer_.Open("if (", is_element, ")");
    if (!window_.count_include_pad) writer_.Line("++", reduced.taken, ";");
    std::vector<std::string> at = {out_[0], out_[1]};
    at.insert(at.end(), positions.begin(), positions.end());
    const std::string value = Element(at);
    if (window_.kind == Window::Kind::kMax) {
      // The first of equals stays; NaN wins over everything.
      writer_.Open("if (", reduced.index, " < 0 || ", IsGreater(value, reduced.maximum), ")");
      writer_.Line(reduced.maximum, " = ", value, ";");
      writer_.Line(reduced.index, " = ", has_indices() ? FlatIndex(positions) : "0", ";");
      if (!number.empty()) writer_.Line(reduced.tap, " = AS(i64, ", number, ");");
      writer_.Close();
    } else {
      WriteAddition(reduced.sum, reduced.lost, Summand(value));
    }
    writer_.Close();
  }
  static std::string IsGreater(const std::string& value, const std::string& than) {
    return Text(value, " > ", than, " || (", value, " != ", value, " && ", than, " == ", than, ")");
  }
  std::string WriteResult(const Reduced& reduced) {
    index_ = reduced.index;
    return window_.kind == Window::Kind::kMax
               ? reduced.maximum
               : Finish(WholeSum(reduced.sum, reduced.lost), reduced.taken);
  }

  std::string WriteReduction() {
    const size_t axes = window_.kernel.size();
    const Reduced reduced = DeclareReduced();
    std::vector<std::string> taps;
    for (size_t axis = 0; axis < axes; ++axis) {
      taps.push_back(writer_.NewName("k"));
      writer_.Open("for (idx ", taps.back(), " = 0; ", taps.back(), " < ",
                   writer_.UseDim(window_.kernel[axis]), "; ++", taps.back(), ")");
    }
    WriteTap(reduced, taps, {});
    for (size_t axis = 0; axis < axes; ++axis) writer_.Close();
    return WriteResult(reduced);
  }

  // A group per output, whose items take the taps of a large window in turns and join what they
  // have seen. All items of all groups meet at every barrier.
  Launch WriteGroup() {
    const int rank = source_.form.rank;
    const int items = Launch().group_size;
    const std::string is_inside = writer_.Declare("bool", "GROUP < count");
    const std::string group =
        writer_.Declare("idx", Text(is_inside, " ? AS(idx, GROUP) : AS(idx, 0)"));
    std::vector<std::string> extents, kernel;
    for (int axis = 0; axis < rank; ++axis) extents.push_back(Extent(writer_, axis));
    out_ = WriteCoordinates(writer_, group, extents);
    std::string total = "1";
    for (const program::Dim& extent : window_.kernel) {
      kernel.push_back(writer_.UseDim(extent));
      total += " * " + kernel.back();
    }
    total = writer_.Declare("idx", total);
    const Reduced reduced = DeclareReduced();
    const std::string tap = writer_.NewName("k");
    writer_.Open("for (idx ", tap, " = AS(idx, LANE); ", tap, " < ", total, "; ", tap,
                 " += ", items, ")");
    WriteTap(reduced, WriteCoordinates(writer_, tap, kernel), tap);
    writer_.Close();
    JoinItems(reduced, items);
    writer_.Open("if (LANE == 0 && ", is_inside, ")");
    WriteOutputs(WriteResult(reduced));
    writer_.Close();
    return {.item_axes = rank, .has_group_per_item = true, .group_size = items};
  }

  void JoinItems(const Reduced& reduced, int items) {
    const bool is_max = window_.kind == Window::Kind::kMax;
    struct State {
      std::string_view type;
      std::string name, shared;
    };
    std::vector<State> states;
    if (is_max) {
      states = {{lane_, reduced.maximum, {}}, {"i64", reduced.index, {}}, {"i64", reduced.tap, {}}};
    } else {
      states = {{sum_type_, reduced.sum, {}}, {"i64", reduced.taken, {}}};
      if (is_compensated_) states.push_back({"f32", reduced.lost, {}});
    }
    for (State& state : states) {
      state.shared = writer_.NewName("g");
      writer_.Share(Text(state.type, " ", state.shared, "[", items, "]"));
      writer_.Line(state.shared, "[LANE] = ", state.name, ";");
    }
    writer_.Line("BARRIER;");
    const std::string half = writer_.NewName("j");
    writer_.Open("for (int ", half, " = ", items / 2, "; ", half, " > 0; ", half, " /= 2)");
    writer_.Open("if (LANE < ", half, ")");
    std::vector<std::string> other;
    for (const State& state : states) {
      other.push_back(writer_.Declare(state.type, Text(state.shared, "[LANE + ", half, "]")));
    }
    if (is_max) {
      // Of equals that of the earlier tap; NaN is equal to NaN.
      writer_.Open("if (", other[1], " >= 0 && (", reduced.index, " < 0 || ",
                   IsGreater(other[0], reduced.maximum), " || (!(",
                   IsGreater(reduced.maximum, other[0]), ") && ", other[2], " < ", reduced.tap,
                   ")))");
      for (size_t k = 0; k < states.size(); ++k) {
        writer_.Line(states[k].name, " = ", other[k], ";");
      }
      writer_.Close();
    } else {
      WriteAddition(reduced.sum, reduced.lost, other[0]);
      for (size_t k = 1; k < states.size(); ++k) {
        writer_.Line(states[k].name, " += ", other[k], ";");
      }
    }
    for (const State& state : states) writer_.Line(state.shared, "[LANE] = ", state.name, ";");
    writer_.Close();
    writer_.Line("BARRIER;");
    writer_.Close();
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

  // Opens the loop over the channels around that of `out`.
  std::string OpenChannels(const std::vector<std::string>& out) {
    const std::string size = writer_.UseDim(window_.kernel[0]);
    std::string channel = writer_.NewName("k");
    const std::string first = writer_.Declare("idx", Text(out[1], " - (", size, " - 1) / 2"));
    const std::string last = writer_.Declare("idx", Text(out[1], " + ", size, " / 2"));
    writer_.Open("for (idx ", channel, " = ", first, " < 0 ? 0 : ", first, "; ", channel,
                 " <= ", last, " && ", channel, " < ", Extent(writer_, 1), "; ++", channel, ")");
    return channel;
  }

  // x / (bias + alpha / size * sum of squares over the channels around c) ^ beta, as ONNX's LRN.
  std::string WriteLrn() {
    const std::string sum = writer_.NewName("s");
    writer_.Line(sum_type_, " ", sum, " = 0;");
    std::vector<std::string> at = out_;
    at[1] = OpenChannels(out_);
    const std::string square = Element(at);
    writer_.Line(sum, " += AS(", sum_type_, ", ", square, ") * AS(", sum_type_, ", ", square, ");");
    writer_.Close();
    return FinishLrn(sum);
  }
  std::string FinishLrn(const std::string& sum) {
    const std::string value = Element(out_);
    const std::string scale = Text(Number(window_.bias), " + ", Number(window_.alpha), " / AS(",
                                   sum_type_, ", ", writer_.UseDim(window_.kernel[0]), ") * ", sum);
    // A power of a positive number, in the two functions that compilers know as vectors.
    const std::string power = sum_type_ == "f32"
                                  ? Text("M_exp(", Number(window_.beta), " * M_log(", scale, "))")
                                  : Text("M_pow(", scale, ", ", Number(window_.beta), ")");
    return writer_.Declare(lane_,
                           Text("AS(", lane_, ", AS(", sum_type_, ", ", value, ") / ", power, ")"));
  }

  Writer& writer_;
  const Source& source_;
  const Window& window_;
  const ElementType type_;
  const std::string_view lane_;
  std::string_view sum_type_;
  bool is_compensated_ = false;   // of an average's or norm's sum
  std::vector<std::string> out_;  // coordinates of the output
  std::string index_;             // of the maximum
  Run run_;
};

}  // namespace

Launch WriteWindow(Writer& writer, const Source& source) {
  return WindowWriter(writer, source).Write();
}

}  // namespace onnxifi::codegen
