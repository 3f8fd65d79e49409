// SPDX-License-Identifier: Apache-2.0
//
// Reduce, Row and Scan: an item per reduction, which takes its elements in ascending order; or, for
// long reductions of Reduce and Row, parts that are merged at the end: of a group of items, each of
// which takes one, or, where items compute runs, of one item that takes all of them in turns. Very
// long reductions are shared out to several groups, whose states a second kernel merges.

#include <algorithm>
#include <set>
#include <utility>

#include "backends/core/codegen/family.h"
#include "backends/core/codegen/reduce_kernels.h"
#include "backends/core/codegen/reduction_writer.h"
#include "backends/core/program/expr.h"

namespace onnxifi::codegen {
namespace {

using program::ExprId;

// Reductions in parts are long.
constexpr int kReductionsPerGroup = 4;

// A state as 64 bits in working memory.
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

// The elements of one reduction and who takes which.
class Elements {
 public:
  Elements(Writer& writer, const Source& source)
      : writer_(writer),
        source_(source),
        is_in_parts_(source.form.is_grouped && source.capabilities.run_length > 1),
        is_grouped_(source.form.is_grouped && !is_in_parts_) {}

  // Opens the block of one item, or begins that of a group, and gives its scope: the reduced axes
  // stand at coordinate 0. With `parts` a reduction is that many groups', each of which takes
  // `length` elements in a row.
  Scope Open(const std::string& parts = {}, const std::string& length = {}) {
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
      std::string reduction = group_;
      if (!parts.empty()) {
        reduction = writer_.Declare("idx", Text(group_, " / ", parts));
        first_ = writer_.Declare("idx",
                                 Text("(", group_, " - ", reduction, " * ", parts, ") * ", length));
        const std::string rest = writer_.Declare("idx", Text(total_, " - ", first_));
        total_ = writer_.Declare("idx", Text(rest, " < ", length, " ? ", rest, " : ", length));
        end_ = writer_.Declare("idx", Text(first_, " + ", total_));
      }
      std::vector<std::string> extents;
      for (int axis = 0; axis < outer; ++axis) extents.push_back(Extent(writer_, axis));
      scope.coordinates = WriteCoordinates(writer_, reduction, extents);
    } else {
      scope.coordinates = OpenItems(writer_, outer);
    }
    scope.coordinates.resize(static_cast<size_t>(source_.form.rank), "0");
    NameIndices(source_, scope);
    return scope;
  }

  // Of a row that fits: reads that several loops over it look at come from memory in the first of
  // them, and from shared memory in the others. An item has the same elements in each loop, so
  // that it waits for nobody.
  void KeepReads(const std::set<int>& reads) {
    int64_t bytes = 0;
    for (const int read : reads) {
      const tensor::ElementType type = source_.step.reads[static_cast<size_t>(read)].type;
      bytes += std::max(1, tensor::BitWidth(type) / 8) * int64_t{source_.form.row_capacity};
      if (bytes > kMaxKeptBytes) return;
      const std::string name = writer_.NewName("g");
      writer_.Share(Text(LaneType(type), " ", name, "[", source_.form.row_capacity, "]"));
      kept_.push_back({read, name});
    }
  }

  // What `body` writes, around it the loops over the elements of this item; `reads` are those that
  // it looks at.
  template <typename Body>
  void ForEach(const Scope& scope, const Body& body, const std::set<int>& reads = {}) {
    const int outer = source_.form.outer_rank;
    Scope inner = scope;
    inner.coordinates.resize(static_cast<size_t>(outer));
    int blocks = 0;
    if (is_grouped_) {
      // Every item goes round as often as the others, so that they can go side by side.
      const std::string base = writer_.NewName("j");
      writer_.Open("for (idx ", base, " = ", first_, "; ", base, " < ", end_, "; ", base,
                   " += ", Launch().group_size, ")");
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
    body(inner);
    for (; blocks > 0; --blocks) writer_.Close();
  }

  // The whole reduction: gives the names of its state at the end.
  std::vector<std::string> Reduce(const Scope& scope, const program::Reduction& reduction,
                                  const std::set<int>& reads = {}) {
    if (is_in_parts_) return ReduceByPartialSums(scope, reduction);
    ReductionWriter state(writer_, source_, reduction);
    std::vector<std::string> names = state.Begin(scope);
    ForEach(
        scope, [&](const Scope& inner) { state.Update(inner); }, reads);
    if (is_grouped_) state.Merge(Launch().group_size, total_);
    return names;
  }

  // The same, of states that other groups have left in working memory: `parts` for each reduction.
  std::vector<std::string> ReduceParts(const program::Reduction& reduction,
                                       const std::string& parts) {
    ReductionWriter state(writer_, source_, reduction);
    const std::string words = writer_.UseScratch(/*is_write=*/false, 0, "u64");
    const auto load = [&](const std::string& part) {
      std::vector<std::string> states;
      const size_t count = reduction.states.size();
      const std::string at =
          writer_.Declare("idx", Text("(", group_, " * ", parts, " + ", part, ") * ", count));
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
        load(writer_.Declare("idx", Text(lane, " < ", parts, " ? ", lane, " : AS(idx, 0)"))));
    const std::string part = writer_.NewName("j");
    writer_.Open("for (idx ", part, " = ", lane, " + ", Launch().group_size, "; ", part, " < ",
                 parts, "; ", part, " += ", Launch().group_size, ")");
    state.Join(load(part));
    writer_.Close();
    state.Merge(Launch().group_size, parts);
    return names;
  }
  // Leaves the states of a group for ReduceParts.
  void StoreParts(const program::Reduction& reduction, const std::vector<std::string>& names) {
    const std::string words = writer_.UseScratch(/*is_write=*/true, 0, "u64");
    OpenFirst();
    for (size_t k = 0; k < names.size(); ++k) {
      writer_.Line("STORE(", words, ", ", group_, " * ", names.size(), " + ", k, ", ",
                   ToWord(reduction.states[k].type, names[k]), ");");
    }
    CloseFirst();
  }

  // What one item alone writes for all of its group.
  void OpenFirst() {
    if (is_grouped_) writer_.Open("if (LANE == 0 && ", is_inside_, ")");
  }
  void CloseFirst() {
    if (is_grouped_) writer_.Close();
  }
  // What each item writes.
  void OpenStores() {
    if (is_grouped_) writer_.Open("if (", is_inside_, ")");
  }
  void CloseStores() {
    if (is_grouped_) writer_.Close();
  }

  Launch Close() {
    if (!is_grouped_) writer_.Close();
    Launch launch{.item_axes = source_.form.outer_rank, .has_group_per_item = is_grouped_};
    if (is_in_parts_) launch.group_size = kReductionsPerGroup;
    return launch;
  }

 private:
  // A round takes an element into each part.
  std::vector<std::string> ReduceByPartialSums(const Scope& scope,
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
    const std::string extent = Extent(writer_, last);
    const std::string round = writer_.NewName("j");
    const auto write_round = [&](const std::string& parts) {
      const std::string part = writer_.NewName("l");
      writer_.Line("INDEPENDENT");
      writer_.Open("for (int ", part, " = 0; ", part, " < ", parts, "; ++", part, ")");
      Scope element = inner;
      element.coordinates.push_back(writer_.Declare("idx", Text(round, " + ", part)));
      NameIndices(source_, element);
      state.UpdatePart(element, part);
      writer_.Close();
    };
    writer_.Line("idx ", round, " = 0;");
    writer_.Open("for (; ", round, " + ", ReductionWriter::kParts, " <= ", extent, "; ", round,
                 " += ", ReductionWriter::kParts, ")");
    write_round(std::to_string(ReductionWriter::kParts));
    writer_.Close();
    write_round(writer_.Declare("int", Text("AS(int, ", extent, " - ", round, ")")));
    for (int axis = source_.form.outer_rank; axis < last; ++axis) writer_.Close();
    state.MergeParts(
        writer_.Declare("int", Text(extent, " < ", ReductionWriter::kParts, " ? AS(int, ", extent,
                                    ") : ", ReductionWriter::kParts)));
    return state.names();
  }

  // Gives the reads that are kept names for the element of `scope`.
  void NameKept(Scope& scope, const std::set<int>& reads, const std::string& element) {
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

  // Of the 16 KiB that every device has for a group, Merge takes some for itself elsewhere.
  static constexpr int64_t kMaxKeptBytes = int64_t{16} << 10;
  struct Kept {
    int read;
    std::string array;
    bool is_filled = false;
  };

  Writer& writer_;
  const Source& source_;
  const bool is_in_parts_;
  const bool is_grouped_;
  std::string is_inside_;  // the group is one of those that were asked for
  std::string group_;      // its number
  std::string total_;      // how many elements the group takes
  std::string first_;      // of them, as numbers of the reduction's elements
  std::string end_;        // behind the last one
  std::vector<Kept> kept_;
};

// The reads that expressions look at where they are written.
std::set<int> DirectReads(const Source& source, std::vector<ExprId> roots) {
  std::erase(roots, program::kNoExpr);
  std::set<int> reads;
  for (const ExprId id : program::Reachable(source.program.exprs, roots)) {
    const program::ExprNode& node = source.program.exprs[id];
    if (node.op == program::ExprOp::kLoad && node.operands.empty()) {
      reads.insert(static_cast<int>(node.payload));
    }
  }
  return reads;
}

void WriteRoots(Writer& writer, const Source& source, const Scope& scope,
                std::span<const ExprId> roots) {
  const std::vector<std::string> values =
      WriteExpressions(writer, source.program, source.step, scope, roots);
  for (size_t k = 0; k < values.size(); ++k) {
    if (values[k].empty()) continue;
    WriteStore(writer, source.step, static_cast<int>(k), scope.coordinates, values[k]);
  }
}

}  // namespace

Launch WriteReduce(Writer& writer, const Source& source, int kernel) {
  const program::Reduce& reduce = *source.step.As<program::Reduce>();
  Elements elements(writer, source);
  if (kernel == kReduceParts) {
    const std::string parts = writer.UseGiven(kPartCount);
    const Scope scope = elements.Open(parts, writer.UseGiven(kPartLength));
    elements.StoreParts(reduce.reduction, elements.Reduce(scope, reduce.reduction));
    Launch launch = elements.Close();
    launch.given_items = kPartGroups;
    return launch;
  }
  Scope scope = elements.Open();
  scope.state = kernel == kMergeParts
                    ? elements.ReduceParts(reduce.reduction, writer.UseGiven(kPartCount))
                    : elements.Reduce(scope, reduce.reduction);
  scope.coordinates.resize(static_cast<size_t>(source.form.outer_rank));
  elements.OpenFirst();
  WriteRoots(writer, source, scope, reduce.roots);
  elements.CloseFirst();
  return elements.Close();
}

Launch WriteRow(Writer& writer, const Source& source) {
  const program::Row& row = *source.step.As<program::Row>();
  program::ExprIds per_row = row.roots;
  program::ExprIds per_element = row.roots;
  bool has_per_row = false;
  bool has_per_element = false;
  for (size_t k = 0; k < row.roots.size(); ++k) {
    const bool is_per_row = source.form.is_per_row[k];
    (is_per_row ? per_element : per_row)[k] = program::kNoExpr;
    (is_per_row ? has_per_row : has_per_element) = true;
  }
  Elements elements(writer, source);
  // By loop over the elements: a pass, or in the end the roots.
  std::vector<std::set<int>> reads;
  if (source.form.row_capacity > 0) {
    for (const program::Row::Pass& pass : row.passes) {
      std::vector<ExprId> updates;
      for (const auto& state : pass.reduction.states) updates.push_back(state.update);
      reads.push_back(DirectReads(source, std::move(updates)));
    }
    reads.push_back(DirectReads(source, {per_element.begin(), per_element.end()}));
    std::set<int> seen, repeated;
    for (const std::set<int>& of_loop : reads) {
      for (const int read : of_loop) {
        if (!seen.insert(read).second) repeated.insert(read);
      }
    }
    elements.KeepReads(repeated);
  }
  reads.resize(row.passes.size() + 1);
  Scope scope = elements.Open();
  for (size_t k = 0; k < row.passes.size(); ++k) {
    const program::Row::Pass& pass = row.passes[k];
    scope.state = elements.Reduce(scope, pass.reduction, reads[k]);
    std::vector<std::string> results =
        WriteExpressions(writer, source.program, source.step, scope, pass.results);
    // A result may be a state, whose name a later pass does not touch.
    scope.rows.push_back(std::move(results));
  }
  scope.state.clear();
  if (has_per_element) {
    elements.OpenStores();
    elements.ForEach(
        scope, [&](const Scope& inner) { WriteRoots(writer, source, inner, per_element); },
        reads.back());
    elements.CloseStores();
  }
  if (has_per_row) {
    elements.OpenFirst();
    WriteRoots(writer, source, scope, per_row);
    elements.CloseFirst();
  }
  return elements.Close();
}

Launch WriteScan(Writer& writer, const Source& source) {
  const program::Scan& scan = *source.step.As<program::Scan>();
  Elements elements(writer, source);
  Scope scope = elements.Open();
  ReductionWriter reduction(writer, source, scan.reduction);
  scope.state = reduction.Begin(scope);
  elements.ForEach(scope, [&](const Scope& inner) {
    if (!scan.exclusive) reduction.Update(inner);
    WriteRoots(writer, source, inner, scan.roots);
    if (scan.exclusive) reduction.Update(inner);
  });
  return elements.Close();
}

}  // namespace onnxifi::codegen
