// SPDX-License-Identifier: Apache-2.0
//
// LoopNest: axes are joined from the last to the first, while every view agrees.

#include "backends/core/codegen/loop_nest.h"

#include <algorithm>

#include "backends/core/program/expr.h"

namespace onnxifi::codegen {
namespace {

using device::BoundGuard;
using device::BoundView;
using program::ExprId;
using program::ExprNode;
using program::ExprOp;

// Numbers up to here can be multiplied and added a few times in 32 bits less a bit.
constexpr int64_t kNarrow = int64_t{1} << 30;
// A sum of some of these is narrow.
constexpr int64_t kNarrowPosition = kNarrow / 4;

// A reduction of fewer elements is over before a group of items has met.
constexpr int64_t kMinGroupedElements = 64;

// Whether no sum offset + factors * coordinates, nor any part of it, leaves the narrow range.
bool IsNarrow(int64_t offset, std::span<const int64_t> factors, std::span<const int64_t> extents) {
  if (offset < -kNarrow || offset > kNarrow) return false;
  int64_t reach = offset < 0 ? -offset : offset;
  for (size_t axis = 0; axis < factors.size() && axis < extents.size(); ++axis) {
    const int64_t factor = factors[axis];
    if (factor < -kNarrow || factor > kNarrow || extents[axis] > kNarrow) return false;
    reach += (factor < 0 ? -factor : factor) * std::max<int64_t>(0, extents[axis] - 1);
    if (reach > kNarrow) return false;
  }
  return true;
}

// Whether axis `outer` of some factors is `extent` steps of axis `inner`.
bool IsEven(const std::vector<int64_t>& factors, size_t outer, size_t inner, int64_t extent) {
  // A view without axes looks at one element.
  if (inner >= factors.size()) return outer >= factors.size() || factors[outer] == 0;
  int64_t expected = 0;
  return !__builtin_mul_overflow(factors[inner], extent, &expected) && factors[outer] == expected;
}

int64_t FactorAt(const std::vector<int64_t>& factors, int axis) {
  return axis < static_cast<int>(factors.size()) ? factors[static_cast<size_t>(axis)] : 0;
}

// The factors of the axes that were kept: `kept[k]` is the domain's axis that axis k steps along.
std::vector<int64_t> Keep(const std::vector<int64_t>& factors, std::span<const int> kept) {
  std::vector<int64_t> result;
  result.reserve(kept.size());
  for (const int axis : kept) result.push_back(FactorAt(factors, axis));
  return result;
}

bool HasNarrowWindows(const program::Window& window, const device::BoundStep& step) {
  tensor::Extents in(step.domain);
  const bool has_taps = window.kind != program::Window::Kind::kLrn;
  for (size_t axis = 0; has_taps && axis < window.in_spatial.size(); ++axis) {
    const int64_t extent = step.Number(window.in_spatial[axis]);
    const int64_t kernel = step.Number(window.kernel[axis]);
    // Positions under a window reach from before the padding to behind it.
    const int64_t numbers[] = {extent,
                               kernel,
                               window.strides[axis],
                               window.dilations[axis],
                               step.Number(window.pads_begin[axis]),
                               step.Number(window.pads_end[axis])};
    for (const int64_t number : numbers) {
      if (number < -kNarrowPosition || number > kNarrowPosition) return false;
    }
    if (kernel * window.dilations[axis] > kNarrowPosition ||
        step.domain[axis + 2] * window.strides[axis] > kNarrowPosition) {
      return false;
    }
    in[axis + 2] = extent;
  }
  if (tensor::ElementCount(in) > kNarrow) return false;
  for (size_t read = 0; read < step.reads.size(); ++read) {
    if (!codegen::IsNarrow(step.reads[read], read == 0 ? in : step.domain)) return false;
  }
  return std::all_of(step.writes.begin(), step.writes.end(),
                     [&](const BoundView& view) { return codegen::IsNarrow(view, step.domain); });
}

}  // namespace

bool IsNarrow(const BoundView& view, std::span<const int64_t> extents) {
  if (!IsNarrow(view.offset, view.strides, extents)) return false;
  return std::all_of(view.guards.begin(), view.guards.end(), [&](const BoundGuard& guard) {
    return guard.extent >= -kNarrow && guard.extent <= kNarrow &&
           IsNarrow(guard.offset, guard.coefficients, extents);
  });
}

bool IsEven(const BoundView& view, size_t outer, size_t inner, int64_t extent) {
  return IsEven(view.strides, outer, inner, extent) &&
         std::all_of(view.guards.begin(), view.guards.end(), [&](const BoundGuard& guard) {
           return IsEven(guard.coefficients, outer, inner, extent);
         });
}

void KeepAxes(BoundView& view, std::span<const int> kept) {
  view.strides = Keep(view.strides, kept);
  for (BoundGuard& guard : view.guards) guard.coefficients = Keep(guard.coefficients, kept);
}

LastStep LastStepOf(const BoundView& view) {
  if (view.strides.empty() || view.strides.back() == 0) return LastStep::kNone;
  return view.strides.back() == 1 ? LastStep::kOne : LastStep::kAny;
}

LoopFacts FindLoopFacts(const program::Program& program, const program::Step& step) {
  LoopFacts facts;
  std::vector<ExprId> roots;
  const auto add = [&roots](std::span<const ExprId> more) {
    for (const ExprId id : more) {
      if (id != program::kNoExpr) roots.push_back(id);
    }
  };
  const auto add_reduction = [&](const program::Reduction& reduction) {
    for (const program::Reduction::State& state : reduction.states) {
      add(std::vector<ExprId>{state.init, state.update, state.merge});
    }
  };
  if (const auto* map = step.As<program::Map>()) {
    add(map->roots);
    facts.is_over_domain = true;
  } else if (const auto* reduce = step.As<program::Reduce>()) {
    add_reduction(reduce->reduction);
    add(reduce->roots);
    facts.reduced_axes = reduce->axes;
    facts.can_be_grouped = true;
    facts.is_over_domain = true;
  } else if (const auto* row = step.As<program::Row>()) {
    for (const program::Row::Pass& pass : row->passes) {
      add_reduction(pass.reduction);
      add(pass.results);
    }
    add(row->roots);
    facts.reduced_axes = row->axes;
    facts.can_be_grouped = true;
    facts.is_over_domain = true;
  } else if (const auto* scan = step.As<program::Scan>()) {
    add_reduction(scan->reduction);
    add(scan->roots);
    facts.reduced_axes = 1;
    facts.is_over_domain = true;
  } else if (const auto* contract = step.As<program::Contract>()) {
    add(contract->roots);
    const ExprId prologues[] = {contract->a_prologue, contract->b_prologue};
    add(prologues);
  } else if (const auto* window = step.As<program::Window>()) {
    add(window->roots);
  } else if (const auto* attention = step.As<program::Attention>()) {
    const ExprId parts[] = {attention->query_prologue, attention->key_prologue,
                            attention->value_prologue, attention->score};
    add(parts);
    add(attention->roots);
  }
  const size_t rank = step.domain.size();
  facts.is_axis_named.assign(rank, false);
  facts.is_indexed.assign(step.reads.size(), false);
  std::vector<bool> is_direct(step.reads.size(), false);
  for (const ExprId id : program::Reachable(program.exprs, roots)) {
    const ExprNode& node = program.exprs[id];
    if (node.op == ExprOp::kIndex && node.payload < rank) facts.is_axis_named[node.payload] = true;
    if (node.op != ExprOp::kLoad) continue;
    (node.operands.empty() ? is_direct : facts.is_indexed)[node.payload] = true;
  }
  // A view looked at both ways has to keep its axes, so the loops keep theirs.
  for (size_t k = 0; k < is_direct.size(); ++k) {
    if (is_direct[k] && facts.is_indexed[k]) facts.is_axis_named.assign(rank, true);
  }
  if (const auto* row = step.As<program::Row>()) {
    const size_t outer_rank = rank - static_cast<size_t>(row->axes);
    for (const ExprId root : row->roots) {
      bool is_fixed = true;
      const ExprId only[] = {root};
      for (const ExprId id : program::Reachable(program.exprs, only)) {
        const ExprNode& node = program.exprs[id];
        if (node.op == ExprOp::kLoad) is_fixed = false;
        if (node.op == ExprOp::kIndex && node.payload >= outer_rank) is_fixed = false;
      }
      facts.is_root_per_row.push_back(is_fixed);
    }
  }
  return facts;
}

LoopNest MakeLoopNest(const LoopFacts& facts, const device::BoundStep& step) {
  LoopNest loops;
  loops.reads = step.reads;
  loops.writes = step.writes;
  loops.dims = step.dims;
  const int rank = static_cast<int>(step.domain.size());
  const int outer = rank - facts.reduced_axes;
  loops.form.axis_of.assign(static_cast<size_t>(rank), -1);

  // Per axis of the loops: its extent, and the domain's axis that it steps along.
  std::vector<int64_t> extents;
  std::vector<int> kept;
  const auto can_join = [&](int axis, int inner) {
    const auto is_even = [&](const BoundView& view) {
      return IsEven(view, static_cast<size_t>(axis), static_cast<size_t>(inner), extents.back());
    };
    for (size_t k = 0; k < loops.reads.size(); ++k) {
      if (!facts.is_indexed[k] && !is_even(loops.reads[k])) return false;
    }
    return std::all_of(loops.writes.begin(), loops.writes.end(), is_even);
  };
  // From the last axis to the first; a joined axis steps along its innermost one. Axes that are
  // reduced are joined with none that is not, and never go away, so that both parts keep a form.
  bool may_join = false;
  for (int axis = rank; axis-- > 0;) {
    const auto at = static_cast<size_t>(axis);
    const int64_t extent = step.domain[at];
    const bool is_named = facts.is_axis_named[at];
    if (axis == outer - 1) may_join = false;
    if (facts.is_over_domain && !is_named && extent == 1) continue;
    int64_t joined = 0;
    if (facts.is_over_domain && may_join && !is_named && can_join(axis, kept.back()) &&
        !__builtin_mul_overflow(extents.back(), extent, &joined)) {
      extents.back() = joined;
      continue;
    }
    loops.form.axis_of[at] = static_cast<int>(kept.size());
    kept.push_back(axis);
    extents.push_back(extent);
    may_join = !is_named;
  }
  std::reverse(kept.begin(), kept.end());
  loops.extents.assign(extents.rbegin(), extents.rend());
  loops.form.rank = static_cast<int>(kept.size());
  for (int& axis : loops.form.axis_of) {
    if (axis >= 0) axis = loops.form.rank - 1 - axis;
  }
  loops.form.outer_rank = static_cast<int>(
      std::count_if(kept.begin(), kept.end(), [outer](int axis) { return axis < outer; }));
  // An axis that is only stepped along is nobody's by name.
  for (size_t axis = 0; axis < loops.form.axis_of.size(); ++axis) {
    if (!facts.is_axis_named[axis]) loops.form.axis_of[axis] = -1;
  }

  bool is_narrow = tensor::ElementCount(loops.extents) <= kNarrow;
  if (facts.is_over_domain) {
    for (size_t k = 0; k < loops.reads.size(); ++k) {
      if (facts.is_indexed[k]) {
        // Loaded at coordinates of its own; those at the domain's, if any, are long too.
        continue;
      }
      KeepAxes(loops.reads[k], kept);
      is_narrow = is_narrow && IsNarrow(loops.reads[k], loops.extents);
    }
    for (BoundView& view : loops.writes) {
      KeepAxes(view, kept);
      is_narrow = is_narrow && IsNarrow(view, loops.extents);
    }
  }
  loops.form.is_over_domain = facts.is_over_domain;
  if (const auto* window = step.step->As<program::Window>()) {
    loops.form.is_narrow = is_narrow && HasNarrowWindows(*window, step);
  } else {
    loops.form.is_narrow = facts.is_over_domain && is_narrow;
  }

  for (const BoundView& view : loops.reads) loops.form.read_steps.push_back(LastStepOf(view));
  for (const BoundView& view : loops.writes) loops.form.write_steps.push_back(LastStepOf(view));
  const int first_row_axis = loops.form.outer_rank;
  loops.form.is_grouped =
      facts.can_be_grouped &&
      tensor::ElementCount(std::span(loops.extents).subspan(static_cast<size_t>(first_row_axis))) >=
          kMinGroupedElements;
  for (size_t k = 0; k < facts.is_root_per_row.size(); ++k) {
    bool is_fixed = facts.is_root_per_row[k];
    for (int axis = first_row_axis; axis < loops.form.rank; ++axis) {
      is_fixed = is_fixed && FactorAt(loops.writes[k].strides, axis) == 0;
    }
    loops.form.is_per_row.push_back(is_fixed);
  }
  return loops;
}

}  // namespace onnxifi::codegen
