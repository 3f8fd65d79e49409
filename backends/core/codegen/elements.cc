// SPDX-License-Identifier: Apache-2.0
//
// Elements: an item per reduction, which takes its elements in ascending order; or, for long
// reductions, parts that are merged at the end: of a group of items, each of which takes one, or,
// where items compute runs, of one item that takes all of them in turns.

#include "backends/core/codegen/elements.h"

#include <algorithm>

#include "backends/core/codegen/reduce_kernels.h"

namespace onnxifi::codegen {
std::string ToWord(tensor::ElementType type, const std::string& value) {
  const std::string_view name = FloatName(type);
  return name.empty() ? Text("AS(u64, ", value, ")")
                      : Text("AS(u64, BITS_", name, "(", value, "))");
}

std::string FromWord(tensor::ElementType type, const std::string& word) {
  if (type == tensor::ElementType::kFloat32) return Text("FROM_BITS_f32(AS(u32, ", word, "))");
  if (type == tensor::ElementType::kFloat64) return Text("FROM_BITS_f64(", word, ")");
  return Text("AS(", LaneType(type), ", ", word, ")");
}

Scope Elements::Open(const std::string& parts, const std::string& length) {
  const int outer = source_.form.outer_rank;
  Scope scope;
  if (is_grouped_) {
    // All items of all groups meet at every barrier: PoCL 3.1 loses variables across one within a
    // condition. A group behind the last one does what the first one does, and stores nothing.
    is_inside_ = writer_.Declare("bool", "GROUP < count");
    group_ = writer_.Declare("idx", Text(is_inside_, " ? AS(idx, GROUP) : AS(idx, 0)"));
    std::string total = "1";
    for (int axis = outer; axis < source_.form.rank; ++axis) {
      total += Text(" * ", Extent(writer_, axis));
    }
    first_ = "0";
    end_ = total_ = writer_.Declare("idx", total);
    reduction_ = group_;
    if (!parts.empty()) {
      const Writer::Division division = writer_.DeclareDivision(group_, parts);
      reduction_ = division.quotient;
      part_ = division.rest;
      first_ = writer_.Declare("idx", Text(part_, " * ", length));
      const std::string rest = writer_.Declare("idx", Text(total_, " - ", first_));
      total_ = writer_.Declare("idx", Text(rest, " < ", length, " ? ", rest, " : ", length));
      end_ = writer_.Declare("idx", Text(first_, " + ", total_));
    }
    std::vector<std::string> extents;
    for (int axis = 0; axis < outer; ++axis) extents.push_back(Extent(writer_, axis));
    scope.coordinates = WriteCoordinates(writer_, reduction_, extents);
  } else {
    scope.coordinates = OpenItems(writer_, outer);
  }
  scope.coordinates.resize(static_cast<size_t>(source_.form.rank), "0");
  NameIndices(source_, scope);
  return scope;
}

int Elements::GroupSizeOf(const Source& source) {
  return source.form.row_capacity > kMaxShortRow ? source.capabilities.row_group_size
                                                 : Launch().group_size;
}

void Elements::KeepReads(const std::set<int>& reads, int64_t merged_bytes) {
  int64_t left = source_.capabilities.row_shared_bytes - merged_bytes * group_size_;
  for (const int read : reads) {
    const tensor::ElementType type = source_.step.reads[static_cast<size_t>(read)].type;
    const int64_t bytes =
        std::max(1, tensor::BitWidth(type) / 8) * int64_t{source_.form.row_capacity};
    if (bytes > left) continue;
    left -= bytes;
    const std::string name = writer_.NewName("g");
    writer_.Share(Text(LaneType(type), " ", name, "[", source_.form.row_capacity, "]"));
    kept_.push_back({read, name});
  }
}

int Elements::OpenLoops(Scope& inner, const std::set<int>& reads) {
  const int outer = source_.form.outer_rank;
  inner.coordinates.resize(static_cast<size_t>(outer));
  int blocks = 0;
  if (is_grouped_) {
    // Every item goes round as often as the others, so that they can go side by side.
    const std::string base = writer_.NewName("j");
    writer_.Open("for (idx ", base, " = ", first_, "; ", base, " < ", end_, "; ", base,
                 " += ", group_size_, ")");
    const std::string element = writer_.Declare("idx", Text(base, " + AS(idx, LANE)"));
    writer_.Open("if (", element, " < ", end_, ")");
    blocks = 2;
    std::vector<std::string> extents;
    for (int axis = outer; axis < source_.form.rank; ++axis) {
      extents.push_back(Extent(writer_, axis));
    }
    for (std::string& name : WriteCoordinates(writer_, element, extents)) {
      inner.coordinates.push_back(std::move(name));
    }
    NameKept(inner, reads, element);
  } else {
    for (int axis = outer; axis < source_.form.rank; ++axis) {
      const std::string name = writer_.NewName("j");
      if (is_in_parts_ && axis + 1 == source_.form.rank) writer_.Line("INDEPENDENT");
      writer_.Open("for (idx ", name, " = 0; ", name, " < ", Extent(writer_, axis), "; ++", name,
                   ")");
      inner.coordinates.push_back(name);
      ++blocks;
    }
  }
  NameIndices(source_, inner);
  return blocks;
}

std::vector<std::string> Elements::Reduce(const Scope& scope, const program::Reduction& reduction,
                                          const std::set<int>& reads) {
  if (is_in_parts_) return ReduceByPartialSums(scope, reduction);
  ReductionWriter state(writer_, source_, reduction);
  std::vector<std::string> names = state.Begin(scope);
  ForEach(
      scope, [&](const Scope& inner) { state.Update(inner); }, reads);
  if (is_grouped_) state.Merge(group_size_, total_);
  return names;
}

std::vector<std::string> Elements::ReduceParts(const program::Reduction& reduction,
                                               const std::string& parts, const std::string& used) {
  ReductionWriter state(writer_, source_, reduction);
  const std::string words = writer_.UseScratch(/*is_write=*/false, 0, "u64");
  const auto load = [&](const std::string& part) {
    std::vector<std::string> states;
    const size_t count = reduction.states.size();
    const std::string at =
        writer_.Declare("idx", Text("(", reduction_, " * ", parts, " + ", part, ") * ", count));
    for (size_t k = 0; k < count; ++k) {
      const std::string word =
          writer_.Declare("u64", Text("LOAD(", words, ", ", at, " + ", k, ")"));
      const tensor::ElementType type = reduction.states[k].type;
      states.push_back(writer_.Declare(LaneType(type), FromWord(type, word)));
    }
    return states;
  };
  // An item that has no part of its own is joined with nobody.
  const std::string lane = writer_.Declare("idx", "AS(idx, LANE)");
  std::vector<std::string> names = state.BeginAt(
      load(writer_.Declare("idx", Text(lane, " < ", used, " ? ", lane, " : AS(idx, 0)"))));
  const std::string part = writer_.NewName("j");
  writer_.Open("for (idx ", part, " = ", lane, " + ", group_size_, "; ", part, " < ", used, "; ",
               part, " += ", group_size_, ")");
  state.Join(load(part));
  writer_.Close();
  state.Merge(group_size_, used);
  return names;
}

void Elements::StoreParts(const program::Reduction& reduction,
                          const std::vector<std::string>& names) {
  const std::string words = writer_.UseScratch(/*is_write=*/true, 0, "u64");
  OpenFirst();
  for (size_t k = 0; k < names.size(); ++k) {
    writer_.Line("STORE(", words, ", ", group_, " * ", names.size(), " + ", k, ", ",
                 ToWord(reduction.states[k].type, names[k]), ");");
  }
  CloseFirst();
}

Launch Elements::Close() {
  if (!is_grouped_) writer_.Close();
  Launch launch{.item_axes = source_.form.outer_rank, .has_group_per_item = is_grouped_};
  if (is_grouped_) launch.group_size = group_size_;
  if (is_in_parts_) launch.group_size = source_.capabilities.long_item_group_size;
  return launch;
}

std::vector<std::string> Elements::ReduceByPartialSums(const Scope& scope,
                                                       const program::Reduction& reduction) {
  ReductionWriter state(writer_, source_, reduction);
  state.BeginParts(scope);
  Scope inner = scope;
  inner.coordinates.resize(static_cast<size_t>(source_.form.outer_rank));
  const int last = source_.form.rank - 1;
  for (int axis = source_.form.outer_rank; axis < last; ++axis) {
    inner.coordinates.push_back(writer_.NewName("j"));
    writer_.Open("for (idx ", inner.coordinates.back(), " = 0; ", inner.coordinates.back(), " < ",
                 Extent(writer_, axis), "; ++", inner.coordinates.back(), ")");
  }
  const int parts = source_.capabilities.row_parts;
  const std::string extent = Extent(writer_, last);
  const std::string round = writer_.NewName("j");
  const auto write_round = [&](const std::string& count) {
    const std::string part = writer_.NewName("l");
    writer_.Line("INDEPENDENT");
    writer_.Open("for (int ", part, " = 0; ", part, " < ", count, "; ++", part, ")");
    Scope element = inner;
    element.coordinates.push_back(writer_.Declare("idx", Text(round, " + ", part)));
    NameIndices(source_, element);
    state.UpdatePart(element, part);
    writer_.Close();
  };
  writer_.Line("idx ", round, " = 0;");
  writer_.Open("for (; ", round, " + ", parts, " <= ", extent, "; ", round, " += ", parts, ")");
  write_round(std::to_string(parts));
  writer_.Close();
  write_round(writer_.Declare("int", Text("AS(int, ", extent, " - ", round, ")")));
  for (int axis = source_.form.outer_rank; axis < last; ++axis) writer_.Close();
  state.MergeParts(
      writer_.Declare("int", Text(extent, " < ", parts, " ? AS(int, ", extent, ") : ", parts)));
  return state.names();
}

void Elements::NameKept(Scope& scope, const std::set<int>& reads, const std::string& element) {
  for (Kept& kept : kept_) {
    if (!reads.contains(kept.read)) continue;
    const tensor::ElementType type = source_.step.reads[static_cast<size_t>(kept.read)].type;
    const std::string place = Text(kept.array, "[AS(int, ", element, ")]");
    const std::string value = writer_.Declare(
        LaneType(type),
        kept.is_filled ? place : WriteLoad(writer_, source_.step, kept.read, scope.coordinates));
    if (!kept.is_filled) writer_.Line(place, " = ", value, ";");
    kept.is_filled = true;
    scope.loaded[kept.read] = value;
  }
}

}  // namespace onnxifi::codegen
