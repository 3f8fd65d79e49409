// SPDX-License-Identifier: Apache-2.0
//
// MapLanes: an item has arrays of what it reads and writes, filled and emptied by words, and one
// unrolled loop over its elements between them. The item behind whose first element fewer are left
// loads and stores element by element. No element that is none is loaded: the first one stands in
// its place.

#include "backends/core/codegen/map_lanes.h"

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "backends/core/program/expr.h"

namespace onnxifi::codegen {
namespace {

using tensor::ElementType;

constexpr int kWordBytes = 16;
// What an item loads and stores lies in registers at once, and its loop is unrolled.
constexpr int kMaxWords = 20;
constexpr size_t kMaxOperations = 256;

int BytesOf(ElementType type) { return tensor::BitWidth(type) / 8; }

// Whether every row of a view begins at a multiple of a word.
bool IsAligned(const device::BoundView& view) {
  const int64_t per_word = kWordBytes / BytesOf(view.type);
  return view.offset % per_word == 0 &&
         std::all_of(view.strides.begin(), view.strides.end() - 1,
                     [&](int64_t stride) { return stride % per_word == 0; });
}

bool HasFixedGuards(const device::BoundView& view, size_t last_axis) {
  return std::all_of(view.guards.begin(), view.guards.end(), [&](const device::BoundGuard& guard) {
    return guard.coefficients.size() <= last_axis || guard.coefficients[last_axis] == 0;
  });
}

// Component `part` of the word `word`.
std::string Part(const std::string& word, int part) {
  return word + "." + std::string_view("xyzw")[static_cast<size_t>(part)];
}

// The element whose first byte is byte `at` of a word.
std::string FromWord(ElementType type, const std::string& word, int at) {
  const std::string_view lane = LaneType(type);
  const std::string bits = Part(word, at / 4);
  switch (BytesOf(type)) {
    case 8: {
      const std::string both = Text("U64(", Part(word, at / 4 + 1), ", ", bits, ")");
      return type == ElementType::kFloat64 ? Text("FROM_BITS_f64(", both, ")")
                                           : Text("AS(", lane, ", ", both, ")");
    }
    case 4:
      return type == ElementType::kFloat32 ? Text("FROM_BITS_f32(", bits, ")")
                                           : Text("AS(", lane, ", ", bits, ")");
    case 2:
      return Text("AS(", lane, ", AS(u16, ", bits, " >> ", at % 4 * 8, " & 0xffffu))");
    default:
      break;
  }
  const std::string byte = Text(bits, " >> ", at % 4 * 8, " & 0xffu");
  return tensor::IsBool(type) ? Text("AS(u8, (", byte, ") != 0u)")
                              : Text("AS(", lane, ", AS(u8, ", byte, "))");
}

// The component of a word that element `lane` of an array begins.
std::string ToPart(ElementType type, const std::string& array, int lane, int half) {
  const auto element = [&](int k) { return Text(array, "[", lane + k, "]"); };
  switch (BytesOf(type)) {
    case 8: {
      const std::string bits = type == ElementType::kFloat64 ? Text("BITS_f64(", element(0), ")")
                                                             : Text("AS(u64, ", element(0), ")");
      return half == 0 ? Text("AS(u32, ", bits, ")") : Text("AS(u32, ", bits, " >> 32)");
    }
    case 4:
      return type == ElementType::kFloat32 ? Text("BITS_f32(", element(0), ")")
                                           : Text("AS(u32, ", element(0), ")");
    case 2:
      return Text("AS(u32, AS(u16, ", element(0), ")) | AS(u32, AS(u16, ", element(1), ")) << 16");
    default:
      break;
  }
  std::string bits;
  for (int k = 0; k < 4; ++k) {
    bits += Text(k == 0 ? "" : " | ", "AS(u32, AS(u8, ", element(k), "))",
                 k == 0 ? "" : Text(" << ", 8 * k));
  }
  return bits;
}

class LaneWriter {
 public:
  LaneWriter(Writer& writer, const Source& source)
      : writer_(writer), source_(source), lanes_(source.form.lanes) {}

  Launch Write() {
    const program::Map& map = *source_.step.As<program::Map>();
    const int rank = source_.form.rank;
    writer_.Open("if (ITEM < count)");
    const std::string item = writer_.Declare("idx", "AS(idx, ITEM)");
    std::vector<std::string> extents;
    for (int axis = 0; axis + 1 < rank; ++axis) extents.push_back(Extent(writer_, axis));
    extents.push_back(writer_.UseGiven(kRunsPerRow));
    Scope scope;
    scope.coordinates = WriteCoordinates(writer_, item, extents);
    scope.coordinates.back() =
        writer_.Declare("idx", Text(scope.coordinates.back(), " * ", lanes_));
    const std::string first = scope.coordinates.back();
    left_ = writer_.Declare("idx", Text(Extent(writer_, rank - 1), " - ", first));
    is_whole_ = writer_.Declare("bool", Text(left_, " >= ", lanes_));
    for (const int read : Reads(map)) Load(scope, read);
    std::vector<Array> results;
    for (size_t k = 0; k < map.roots.size(); ++k) {
      const program::View& view = source_.step.writes[k];
      results.push_back({view.type, DeclareArray(view.type)});
      results.back().at = WriteIndex(writer_, source_.step, /*is_write=*/true, static_cast<int>(k),
                                     scope.coordinates);
    }
    const std::string lane = OpenLanes();
    scope.coordinates.back() = writer_.Declare("idx", Text(first, " + ", lane));
    NameIndices(source_, scope);
    for (const auto& [read, array] : arrays_) scope.loaded[read] = Text(array, "[", lane, "]");
    const std::vector<std::string> values =
        WriteExpressions(writer_, source_.program, source_.step, scope, map.roots);
    for (size_t k = 0; k < values.size(); ++k) {
      writer_.Line(results[k].name, "[", lane, "] = ", values[k], ";");
    }
    writer_.Close();
    for (size_t k = 0; k < results.size(); ++k) Store(static_cast<int>(k), results[k]);
    writer_.Close();
    return {.item_axes = rank, .run_length = lanes_, .group_size = GroupSizeOfItems(source_)};
  }

 private:
  struct Array {
    ElementType type;
    std::string name;
    std::string at;  // the place of its first element in its buffer
  };

  std::vector<int> Reads(const program::Map& map) const {
    std::vector<int> reads;
    for (const program::ExprId id : program::Reachable(source_.program.exprs, map.roots)) {
      const program::ExprNode& node = source_.program.exprs[id];
      const auto read = static_cast<int>(node.payload);
      if (node.op == program::ExprOp::kLoad && std::ranges::count(reads, read) == 0) {
        reads.push_back(read);
      }
    }
    return reads;
  }

  std::string DeclareArray(ElementType type) {
    std::string name = writer_.NewName("s");
    writer_.Line(LaneType(type), " ", name, "[", lanes_, "];");
    return name;
  }
  std::string OpenLanes() {
    std::string lane = writer_.NewName("l");
    writer_.Open("UNROLL for (int ", lane, " = 0; ", lane, " < ", lanes_, "; ++", lane, ")");
    return lane;
  }

  // Gives a read an array of its elements or, where all are one, a variable.
  void Load(Scope& scope, int read) {
    const program::View& view = source_.step.reads[static_cast<size_t>(read)];
    if (source_.form.read_steps[static_cast<size_t>(read)] == LastStep::kNone) {
      scope.loaded[read] = writer_.Declare(
          LaneType(view.type), WriteLoad(writer_, source_.step, read, scope.coordinates));
      return;
    }
    const std::string buffer = writer_.UseBuffer(/*is_write=*/false, read, view.type);
    const std::string at =
        WriteIndex(writer_, source_.step, /*is_write=*/false, read, scope.coordinates);
    const std::string array = DeclareArray(view.type);
    arrays_[read] = array;
    const int bytes = BytesOf(view.type);
    const int per_word = kWordBytes / bytes;
    writer_.Open("if (", is_whole_, ")");
    for (int first = 0; first < lanes_; first += per_word) {
      const std::string word =
          writer_.Declare("u32x4", Text("LOAD_WORD(", buffer, ", ", at, " + ", first, ")"));
      for (int k = 0; k < per_word; ++k) {
        writer_.Line(array, "[", first + k, "] = ", FromWord(view.type, word, k * bytes), ";");
      }
    }
    writer_.Close();
    writer_.Open("else");
    const std::string lane = OpenLanes();
    const std::string element =
        Text("LOAD(", buffer, ", ", at, " + (", lane, " < ", left_, " ? ", lane, " : 0))");
    writer_.Line(array, "[", lane,
                 "] = ", tensor::IsBool(view.type) ? Text("AS(u8, ", element, " != 0)") : element,
                 ";");
    writer_.Close();
    writer_.Close();
  }

  void Store(int write, const Array& array) {
    const std::string buffer = writer_.UseBuffer(/*is_write=*/true, write, array.type);
    const int bytes = BytesOf(array.type);
    writer_.Open("if (", is_whole_, ")");
    for (int first = 0; first < lanes_; first += kWordBytes / bytes) {
      std::string parts;
      for (int part = 0; part < 4; ++part) {
        const int lane = first + part * 4 / bytes;
        parts += ", " + ToPart(array.type, array.name, lane, /*half=*/bytes == 8 ? part % 2 : 0);
      }
      writer_.Line("STORE_WORD(", buffer, ", ", array.at, " + ", first, parts, ");");
    }
    writer_.Close();
    writer_.Open("else");
    const std::string lane = OpenLanes();
    writer_.Open("if (", lane, " < ", left_, ")");
    writer_.Line("STORE(", buffer, ", ", array.at, " + ", lane, ", ", array.name, "[", lane, "]);");
    writer_.Close();
    writer_.Close();
    writer_.Close();
  }

  Writer& writer_;
  const Source& source_;
  const int lanes_;
  std::string left_;                   // elements from the item's first one on
  std::string is_whole_;               // they are as many as an item takes
  std::map<int, std::string> arrays_;  // by read
};

}  // namespace

int MapLanes(const LoopFacts& facts, const device::BoundStep& step, const LoopNest& loops) {
  const auto* map = step.step->As<program::Map>();
  if (map == nullptr || loops.form.rank == 0) return 1;
  if (std::ranges::count(facts.is_indexed, true) > 0) return 1;
  const auto last_axis = static_cast<size_t>(loops.form.rank - 1);
  std::vector<ElementType> types;  // of views that step along the last axis
  const auto add = [&](const device::BoundView& view, LastStep last_step) {
    if (tensor::BitWidth(view.type) % 8 != 0 || !HasFixedGuards(view, last_axis)) return false;
    if (last_step == LastStep::kNone) return true;
    types.push_back(view.type);
    return last_step == LastStep::kOne && view.strides.size() == last_axis + 1 &&
           view.guards.empty() && IsAligned(view);
  };
  for (size_t k = 0; k < loops.reads.size(); ++k) {
    if (!add(loops.reads[k], loops.form.read_steps[k])) return 1;
  }
  for (size_t k = 0; k < loops.writes.size(); ++k) {
    if (!add(loops.writes[k], loops.form.write_steps[k])) return 1;
    if (loops.form.write_steps[k] != LastStep::kOne) return 1;
  }
  int narrowest = kWordBytes;
  for (const ElementType type : types) narrowest = std::min(narrowest, BytesOf(type));
  const int lanes = kWordBytes / narrowest;
  int words = 0;
  for (const ElementType type : types) words += lanes * BytesOf(type) / kWordBytes;
  const size_t operations = program::Reachable(step.program->exprs, map->roots).size();
  if (words > kMaxWords || static_cast<size_t>(lanes) * operations > kMaxOperations) return 1;
  return lanes;
}

Launch WriteMapOfLanes(Writer& writer, const Source& source) {
  return LaneWriter(writer, source).Write();
}

}  // namespace onnxifi::codegen
