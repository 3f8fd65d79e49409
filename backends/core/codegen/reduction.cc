// SPDX-License-Identifier: Apache-2.0
//
// Reduce, Row and Scan: an item per reduction, which takes its elements in ascending order; or, for
// long reductions of Reduce and Row, parts that are merged at the end: of a group of items, each of
// which takes one, or, where items compute runs, of one item that takes all of them in turns.

#include "backends/core/codegen/family.h"

namespace onnxifi::codegen {
namespace {

using program::ExprId;

// Parts of a reduction in one item: enough to fill a vector of any processor with floats.
constexpr int kParts = 16;
// PoCL 3.1 with LLVM 15 makes zeros of an array of 16 bytes that two loops in vectors change; an
// array of 17 stays what it is.
constexpr int kSpare = 1;
// Reductions in parts are long.
constexpr int kReductionsPerGroup = 4;

// A reduction in one item: its state is variables of the kernel.
class ReductionWriter {
 public:
  ReductionWriter(Writer& writer, const Source& source, const program::Reduction& reduction)
      : writer_(writer), source_(source), reduction_(reduction) {}

  // Joins the states of the group's items, of which the first `parts` have seen elements, and gives
  // the result to all of them.
  void Merge(int group_size, const std::string& parts) {
    std::vector<std::string> shared;
    for (size_t k = 0; k < names_.size(); ++k) {
      shared.push_back(writer_.NewName("g"));
      writer_.Share(
          Text(LaneType(reduction_.states[k].type), " ", shared[k], "[", group_size, "]"));
      writer_.Line(shared[k], "[LANE] = ", names_[k], ";");
    }
    writer_.Line("BARRIER;");
    const std::string half = writer_.NewName("j");
    writer_.Open("for (int ", half, " = ", group_size / 2, "; ", half, " > 0; ", half, " /= 2)");
    writer_.Open("if (LANE < ", half, " && LANE + ", half, " < ", parts, ")");
    Scope scope;
    scope.state = names_;
    std::vector<ExprId> merge;
    for (size_t k = 0; k < names_.size(); ++k) {
      merge.push_back(reduction_.states[k].merge);
      scope.other.push_back(writer_.Declare(LaneType(reduction_.states[k].type),
                                            Text(shared[k], "[LANE + ", half, "]")));
    }
    Replace(WriteExpressions(writer_, source_.program, source_.step, scope, merge));
    for (size_t k = 0; k < names_.size(); ++k) {
      writer_.Line(shared[k], "[LANE] = ", names_[k], ";");
    }
    writer_.Close();
    writer_.Line("BARRIER;");
    writer_.Close();
    for (size_t k = 0; k < names_.size(); ++k) {
      writer_.Line(names_[k], " = ", shared[k], "[0];");
    }
    writer_.Line("BARRIER;");
  }

  // Declares the state as it begins; gives the names of its variables. `scope` has the coordinates
  // of the first element.
  std::vector<std::string> Begin(const Scope& scope) {
    std::vector<ExprId> init;
    for (const program::Reduction::State& state : reduction_.states) init.push_back(state.init);
    const std::vector<std::string> values =
        WriteExpressions(writer_, source_.program, source_.step, scope, init);
    for (size_t k = 0; k < values.size(); ++k) {
      names_.push_back(writer_.NewName("s"));
      writer_.Line(LaneType(reduction_.states[k].type), " ", names_[k], " = ", values[k], ";");
    }
    return names_;
  }

  // Declares the states of kParts parts as they begin.
  void BeginParts(const Scope& scope) {
    const std::vector<std::string> values = Begin(scope);
    for (size_t k = 0; k < values.size(); ++k) {
      parts_.push_back(writer_.NewName("g"));
      writer_.Line(LaneType(reduction_.states[k].type), " ", parts_[k], "[",
                   kParts + (tensor::BitWidth(reduction_.states[k].type) <= 8 ? kSpare : 0), "];");
    }
    const std::string part = writer_.NewName("l");
    writer_.Open("for (int ", part, " = 0; ", part, " < ", kParts, "; ++", part, ")");
    for (size_t k = 0; k < values.size(); ++k) {
      writer_.Line(parts_[k], "[", part, "] = ", values[k], ";");
    }
    writer_.Close();
  }
  // Reduces the element at the scope's coordinates into part `part`.
  void UpdatePart(Scope scope, const std::string& part) {
    std::vector<ExprId> update;
    scope.state.clear();
    for (size_t k = 0; k < parts_.size(); ++k) {
      update.push_back(reduction_.states[k].update);
      scope.state.push_back(
          writer_.Declare(LaneType(reduction_.states[k].type), Text(parts_[k], "[", part, "]")));
    }
    const std::vector<std::string> values =
        WriteExpressions(writer_, source_.program, source_.step, scope, update);
    for (size_t k = 0; k < parts_.size(); ++k) {
      writer_.Line(parts_[k], "[", part, "] = ", values[k], ";");
    }
  }
  // Joins the states of the first `parts` parts, at least one, all of which have seen elements.
  void MergeParts(const std::string& parts) {
    for (size_t k = 0; k < names_.size(); ++k) {
      writer_.Line(names_[k], " = ", parts_[k], "[0];");
    }
    const std::string part = writer_.NewName("l");
    writer_.Open("for (int ", part, " = 1; ", part, " < ", parts, "; ++", part, ")");
    Scope scope;
    scope.state = names_;
    std::vector<ExprId> merge;
    for (size_t k = 0; k < names_.size(); ++k) {
      merge.push_back(reduction_.states[k].merge);
      scope.other.push_back(
          writer_.Declare(LaneType(reduction_.states[k].type), Text(parts_[k], "[", part, "]")));
    }
    Replace(WriteExpressions(writer_, source_.program, source_.step, scope, merge));
    writer_.Close();
  }

  const std::vector<std::string>& names() const { return names_; }

  // Reduces the element at the scope's coordinates into the state.
  void Update(Scope scope) {
    scope.state = names_;
    std::vector<ExprId> update;
    for (const program::Reduction::State& state : reduction_.states) update.push_back(state.update);
    Replace(WriteExpressions(writer_, source_.program, source_.step, scope, update));
  }

 private:
  void Replace(std::vector<std::string> values) {
    // All new values are computed before any is replaced; a value may be another state itself.
    for (size_t k = 0; k < values.size(); ++k) {
      values[k] = writer_.Declare(LaneType(reduction_.states[k].type), values[k]);
    }
    for (size_t k = 0; k < values.size(); ++k) writer_.Line(names_[k], " = ", values[k], ";");
  }

  Writer& writer_;
  const Source& source_;
  const program::Reduction& reduction_;
  std::vector<std::string> names_;
  std::vector<std::string> parts_;
};

// The elements of one reduction and who takes which.
class Elements {
 public:
  Elements(Writer& writer, const Source& source)
      : writer_(writer),
        source_(source),
        is_in_parts_(source.form.is_grouped && source.capabilities.run_length > 1),
        is_grouped_(source.form.is_grouped && !is_in_parts_) {}

  // Opens the block of one item, or of one group, and gives its scope: the reduced axes stand at
  // coordinate 0.
  Scope Open() {
    const int outer = source_.form.outer_rank;
    Scope scope;
    if (is_grouped_) {
      // All items of a group go the same way, so that they meet at every barrier.
      writer_.Open("if (GROUP < count)");
      std::vector<std::string> extents;
      for (int axis = 0; axis < outer; ++axis) extents.push_back(Extent(writer_, axis));
      scope.coordinates =
          WriteCoordinates(writer_, writer_.Declare("idx", "AS(idx, GROUP)"), extents);
      std::string total = "1";
      for (int axis = outer; axis < source_.form.rank; ++axis) {
        total += Text(" * ", Extent(writer_, axis));
      }
      total_ = writer_.Declare("idx", total);
    } else {
      scope.coordinates = OpenItems(writer_, outer);
    }
    scope.coordinates.resize(static_cast<size_t>(source_.form.rank), "0");
    NameIndices(source_, scope);
    return scope;
  }

  // What `body` writes, around it the loops over the elements of this item.
  template <typename Body>
  void ForEach(const Scope& scope, const Body& body) {
    const int outer = source_.form.outer_rank;
    Scope inner = scope;
    inner.coordinates.resize(static_cast<size_t>(outer));
    int blocks = 0;
    if (is_grouped_) {
      // Every item goes round as often as the others, so that they can go side by side.
      const std::string base = writer_.NewName("j");
      writer_.Open("for (idx ", base, " = 0; ", base, " < ", total_, "; ", base,
                   " += ", Launch().group_size, ")");
      const std::string element = writer_.Declare("idx", Text(base, " + AS(idx, LANE)"));
      writer_.Open("if (", element, " < ", total_, ")");
      blocks = 2;
      std::vector<std::string> extents;
      for (int axis = outer; axis < source_.form.rank; ++axis) {
        extents.push_back(Extent(writer_, axis));
      }
      for (std::string& name : WriteCoordinates(writer_, element, extents)) {
        inner.coordinates.push_back(std::move(name));
      }
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
  std::vector<std::string> Reduce(const Scope& scope, const program::Reduction& reduction) {
    if (is_in_parts_) return ReduceByPartialSums(scope, reduction);
    ReductionWriter state(writer_, source_, reduction);
    std::vector<std::string> names = state.Begin(scope);
    ForEach(scope, [&](const Scope& inner) { state.Update(inner); });
    if (is_grouped_) state.Merge(Launch().group_size, total_);
    return names;
  }

  // What one item alone writes for all of its group.
  void OpenFirst() {
    if (is_grouped_) writer_.Open("if (LANE == 0)");
  }
  void CloseFirst() {
    if (is_grouped_) writer_.Close();
  }

  Launch Close() {
    writer_.Close();
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
    writer_.Open("for (; ", round, " + ", kParts, " <= ", extent, "; ", round, " += ", kParts, ")");
    write_round(std::to_string(kParts));
    writer_.Close();
    write_round(writer_.Declare("int", Text("AS(int, ", extent, " - ", round, ")")));
    for (int axis = source_.form.outer_rank; axis < last; ++axis) writer_.Close();
    state.MergeParts(
        writer_.Declare("int", Text(extent, " < ", kParts, " ? AS(int, ", extent, ") : ", kParts)));
    return state.names();
  }

  Writer& writer_;
  const Source& source_;
  const bool is_in_parts_;
  const bool is_grouped_;
  std::string total_;  // how many elements a reduction has
};

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

Launch WriteReduce(Writer& writer, const Source& source) {
  const program::Reduce& reduce = *source.step.As<program::Reduce>();
  Elements elements(writer, source);
  Scope scope = elements.Open();
  scope.state = elements.Reduce(scope, reduce.reduction);
  scope.coordinates.resize(static_cast<size_t>(source.form.outer_rank));
  elements.OpenFirst();
  WriteRoots(writer, source, scope, reduce.roots);
  elements.CloseFirst();
  return elements.Close();
}

Launch WriteRow(Writer& writer, const Source& source) {
  const program::Row& row = *source.step.As<program::Row>();
  Elements elements(writer, source);
  Scope scope = elements.Open();
  for (const program::Row::Pass& pass : row.passes) {
    scope.state = elements.Reduce(scope, pass.reduction);
    std::vector<std::string> results =
        WriteExpressions(writer, source.program, source.step, scope, pass.results);
    // A result may be a state, whose name a later pass does not touch.
    scope.rows.push_back(std::move(results));
  }
  scope.state.clear();
  program::ExprIds per_row = row.roots;
  program::ExprIds per_element = row.roots;
  bool has_per_row = false;
  bool has_per_element = false;
  for (size_t k = 0; k < row.roots.size(); ++k) {
    const bool is_per_row = source.form.is_per_row[k];
    (is_per_row ? per_element : per_row)[k] = program::kNoExpr;
    (is_per_row ? has_per_row : has_per_element) = true;
  }
  if (has_per_element) {
    elements.ForEach(scope,
                     [&](const Scope& inner) { WriteRoots(writer, source, inner, per_element); });
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
