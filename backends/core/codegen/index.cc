// SPDX-License-Identifier: Apache-2.0
//
// Index: scatter, counting and positions of non-zero elements run on one item, in the ascending
// order that their results are defined by; top-k ranks each element on an item of its own, and
// suppression has an item per row.

#include "backends/core/codegen/family.h"

namespace onnxifi::codegen {
namespace {

using program::Index;
using tensor::ElementType;

// The widest type of an element's class.
ElementType WideType(ElementType type) {
  if (type == ElementType::kFloat64) return type;
  if (tensor::IsFloat(type)) return ElementType::kFloat32;
  return tensor::IsSigned(type) ? ElementType::kInt64 : ElementType::kUint64;
}

class IndexWriter {
 public:
  IndexWriter(Writer& writer, const Source& source)
      : writer_(writer), source_(source), index_(*source.step.As<Index>()) {}

  Launch Write() {
    switch (index_.kind) {
      case Index::Kind::kScatter:
        return Scatter();
      case Index::Kind::kTopK:
        return TopK();
      case Index::Kind::kCountNonZero:
      case Index::Kind::kNonZero:
        return NonZero();
      case Index::Kind::kSuppress:
        return Suppress();
    }
    return {};
  }

 private:
  // One item for all, and a loop for each axis of the domain.
  std::vector<std::string> OpenAll() {
    std::vector<std::string> names;
    for (int axis = 0; axis < source_.form.rank; ++axis) {
      names.push_back(writer_.NewName("j"));
      writer_.Open("for (idx ", names.back(), " = 0; ", names.back(), " < ", Extent(writer_, axis),
                   "; ++", names.back(), ")");
    }
    return names;
  }
  void CloseAll() {
    for (int axis = 0; axis < source_.form.rank; ++axis) writer_.Close();
  }

  std::string Read(int read, std::span<const std::string> at) {
    return writer_.Declare(LaneType(source_.step.reads[static_cast<size_t>(read)].type),
                           WriteLoad(writer_, source_.step, read, at));
  }

  // A read's element in the widest type of its class.
  std::string WideRead(int read, std::span<const std::string> at) {
    const ElementType type = source_.step.reads[static_cast<size_t>(read)].type;
    return writer_.Declare(LaneType(WideType(type)),
                           WriteCast(writer_, type, WideType(type), Read(read, at)));
  }

  // What the write's buffer holds at some coordinates.
  std::string ReadBack(std::span<const std::string> at) {
    const program::View& view = source_.step.writes[0];
    const std::string buffer = writer_.UseBuffer(/*is_write=*/true, 0, view.type);
    std::string element = writer_.Use({Number::Kind::kWriteOffset, 0, 0, 0, {}});
    for (size_t axis = 0; axis < at.size(); ++axis) {
      element +=
          Text(" + ",
               writer_.UseStride(/*is_write=*/true, 0, static_cast<int>(axis), view.strides.size()),
               " * ", at[axis]);
    }
    element = writer_.Declare("idx", element);
    const std::string_view lane = LaneType(view.type);
    if (tensor::IsPacked(view.type)) {
      const int bits = tensor::BitWidth(view.type);
      const int per_word = 32 / bits;
      return writer_.Declare(
          lane, Text("AS(u8, LOAD(", buffer, ", ", element, " / ", per_word, ") >> (", element,
                     " % ", per_word, " * ", bits, ") & ", (1 << bits) - 1, ")"));
    }
    const std::string loaded = Text("LOAD(", buffer, ", ", element, ")");
    return writer_.Declare(lane,
                           tensor::IsBool(view.type) ? Text("AS(u8, ", loaded, " != 0)") : loaded);
  }

  std::string Combine(const std::string& before, const std::string& update) {
    const ElementType type = source_.step.writes[0].type;
    const ElementType wide = WideType(type);
    const std::string_view lane = LaneType(wide);
    const std::string a = writer_.Declare(lane, WriteCast(writer_, type, wide, before));
    const std::string b = writer_.Declare(lane, WriteCast(writer_, type, wide, update));
    const bool is_float = tensor::IsFloat(wide);
    const auto arithmetic = [&](std::string_view op) {
      if (is_float) return Text(a, op, b);
      return Text("AS(", lane, ", AS(u64, ", a, ")", op, "AS(u64, ", b, "))");
    };
    const std::string or_nan = is_float ? Text(" || ", a, " != ", a) : "";
    std::string combined = b;
    switch (index_.combine) {
      case Index::Combine::kNone:
        break;
      case Index::Combine::kAdd:
        combined = arithmetic(" + ");
        break;
      case Index::Combine::kMul:
        combined = arithmetic(" * ");
        break;
      case Index::Combine::kMin:
        combined = Text(a, " < ", b, or_nan, " ? ", a, " : ", b);
        break;
      case Index::Combine::kMax:
        combined = Text(b, " < ", a, or_nan, " ? ", a, " : ", b);
        break;
    }
    const std::string result = writer_.Declare(lane, combined);
    return writer_.Declare(LaneType(type), WriteCast(writer_, wide, type, result));
  }

  Launch Scatter() {
    writer_.Open("if (ITEM < count)");
    const std::vector<std::string> at = OpenAll();
    std::vector<std::string> target;
    std::string is_inside;
    for (size_t axis = 0; axis < index_.target.size(); ++axis) {
      target.push_back(Read(static_cast<int>(axis) + 1, at));
      is_inside += Text(axis == 0 ? "" : " && ", target.back(), " >= 0 && ", target.back(), " < ",
                        writer_.UseDim(index_.target[axis]));
    }
    if (!is_inside.empty()) writer_.Open("if (", is_inside, ")");
    const std::string update = Read(0, at);
    const std::string value =
        index_.combine == Index::Combine::kNone ? update : Combine(ReadBack(target), update);
    WriteStore(writer_, source_.step, 0, target, value);
    if (!is_inside.empty()) writer_.Close();
    CloseAll();
    writer_.Close();
    return {};
  }

  // Whether `a` comes before `b` among the largest: NaN counts as the largest of all.
  static std::string IsGreater(ElementType wide, const std::string& a, const std::string& b) {
    if (!tensor::IsFloat(wide)) return Text("(", a, " > ", b, ")");
    return Text("(", a, " > ", b, " || (", a, " != ", a, " && ", b, " == ", b, "))");
  }

  Launch TopK() {
    const int rank = source_.form.rank;
    const ElementType wide = WideType(source_.step.reads[0].type);
    std::vector<std::string> at = OpenItems(writer_, rank);
    const std::string element = at.back();
    const std::string value = WideRead(0, at);
    const std::string before = writer_.NewName("s");
    const std::string other = writer_.NewName("j");
    writer_.Line("idx ", before, " = 0;");
    writer_.Open("for (idx ", other, " = 0; ", other, " < ", Extent(writer_, rank - 1), "; ++",
                 other, ")");
    std::vector<std::string> other_at = at;
    other_at.back() = other;
    const std::string rival = WideRead(0, other_at);
    const std::string& high = index_.largest ? rival : value;
    const std::string& low = index_.largest ? value : rival;
    writer_.Line("if (", IsGreater(wide, high, low), " || (!", IsGreater(wide, low, high), " && ",
                 other, " < ", element, ")) ++", before, ";");
    writer_.Close();
    writer_.Open("if (", before, " < ", writer_.UseDim(index_.k), ")");
    std::vector<std::string> slot = at;
    slot.back() = before;
    const std::vector<program::View>& writes = source_.step.writes;
    if (writes[0].buffer != program::kNoBuffer) {
      WriteStore(writer_, source_.step, 0, slot, Read(0, at));
    }
    if (writes.size() > 1 && writes[1].buffer != program::kNoBuffer) {
      WriteStore(writer_, source_.step, 1, slot, Text("AS(i64, ", element, ")"));
    }
    writer_.Close();
    writer_.Close();
    return {.item_axes = rank};
  }

  // Whether the element of the first read is not 0.
  std::string IsNonZero(std::span<const std::string> at) {
    const ElementType type = source_.step.reads[0].type;
    const std::string value = Read(0, at);
    // Every bit but those of the signs: a zero may be negative.
    if (type == ElementType::kComplex64)
      return Text("(", value, " & U64(0x7fffffff7fffffff)) != 0");
    if (type == ElementType::kComplex128) {
      return Text("((", value, ".x | ", value, ".y) & U64(0x7fffffffffffffff)) != 0");
    }
    return Text(WriteCast(writer_, type, ElementType::kBool, value), " != 0");
  }

  Launch NonZero() {
    const bool is_count = index_.kind == Index::Kind::kCountNonZero;
    writer_.Open("if (ITEM < count)");
    const std::string found = writer_.NewName("s");
    writer_.Line("idx ", found, " = 0;");
    std::string has_room;
    if (!is_count) {
      // The write has an axis per axis of the domain and one for the elements found; the buffer
      // ends where it ends.
      std::string capacity = "1";
      const program::BufferId buffer = source_.step.writes[0].buffer;
      for (const program::Dim& dim : source_.program.buffers[static_cast<size_t>(buffer)].shape) {
        capacity += Text(" * ", writer_.UseDim(dim));
      }
      const int rank = source_.form.rank;
      const std::string room =
          writer_.Declare("idx", rank == 0 ? "0" : Text(capacity, " / ", rank));
      has_room = Text(" && ", found, " < ", room);
    }
    const std::vector<std::string> at = OpenAll();
    const std::string is_non_zero = IsNonZero(at);
    writer_.Open("if (", is_non_zero, has_room, ")");
    if (!is_count) {
      for (size_t axis = 0; axis < at.size(); ++axis) {
        const std::string slot[] = {std::to_string(axis), found};
        WriteStore(writer_, source_.step, 0, slot, Text("AS(i64, ", at[axis], ")"));
      }
    }
    writer_.Line("++", found, ";");
    writer_.Close();
    CloseAll();
    if (is_count) WriteStore(writer_, source_.step, 0, {}, Text("AS(i64, ", found, ")"));
    writer_.Close();
    return {};
  }

  Launch Suppress() {
    const int last = source_.form.rank - 1;
    std::vector<std::string> at = OpenItems(writer_, last);
    at.push_back("0");
    const std::string length = Extent(writer_, last);
    writer_.Open("if (", length, " > 0)");
    const std::string threshold = Read(5, at);
    const std::string limit = Read(6, at);
    const std::string kept = writer_.NewName("s");
    const std::string box = writer_.NewName("j");
    writer_.Line("i64 ", kept, " = 0;");
    writer_.Open("for (idx ", box, " = 0; ", box, " < ", length, "; ++", box, ")");
    at.back() = box;
    const std::vector<std::string> edges = Edges(at);
    const std::string is_kept = writer_.NewName("s");
    writer_.Line("int ", is_kept, " = ", Read(0, at), " != 0 && ", kept, " < ", limit, ";");
    const std::string before = writer_.NewName("j");
    writer_.Open("for (idx ", before, " = 0; ", is_kept, " != 0 && ", before, " < ", box, "; ++",
                 before, ")");
    std::vector<std::string> before_at = at;
    before_at.back() = before;
    writer_.Open("if (", ReadBack(before_at), " != 0)");
    const std::vector<std::string> others = Edges(before_at);
    const auto difference = [&](const std::string& high_a, const std::string& high_b,
                                const std::string& low_a, const std::string& low_b) {
      return writer_.Declare(
          "f32", Text("(", high_b, " < ", high_a, " ? ", high_b, " : ", high_a, ") - (", low_a,
                      " < ", low_b, " ? ", low_b, " : ", low_a, ")"));
    };
    const std::string height = difference(edges[2], others[2], edges[0], others[0]);
    const std::string width = difference(edges[3], others[3], edges[1], others[1]);
    const auto area = [&](const std::vector<std::string>& of) {
      return writer_.Declare("f32",
                             Text("(", of[2], " - ", of[0], ") * (", of[3], " - ", of[1], ")"));
    };
    const std::string shared = writer_.Declare("f32", Text(height, " * ", width));
    const std::string area_a = area(edges);
    const std::string area_b = area(others);
    const std::string joined = writer_.Declare("f32", Text(area_a, " + ", area_b, " - ", shared));
    writer_.Line("if (", height, " > 0 && ", width, " > 0 && ", joined, " > 0 && ", shared, " / ",
                 joined, " > ", threshold, ") ", is_kept, " = 0;");
    writer_.Close();
    writer_.Close();
    WriteStore(writer_, source_.step, 0, at, Text("AS(u8, ", is_kept, ")"));
    writer_.Line(kept, " += ", is_kept, ";");
    writer_.Close();
    writer_.Close();
    writer_.Close();
    return {.item_axes = last};
  }

  std::vector<std::string> Edges(std::span<const std::string> at) {
    std::vector<std::string> edges;
    for (int read = 1; read <= 4; ++read) edges.push_back(Read(read, at));
    return edges;
  }

  Writer& writer_;
  const Source& source_;
  const Index& index_;
};

}  // namespace

Launch WriteIndex(Writer& writer, const Source& source) {
  return IndexWriter(writer, source).Write();
}

}  // namespace onnxifi::codegen
