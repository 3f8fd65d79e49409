// SPDX-License-Identifier: Apache-2.0
//
// View: the algebra of strided views. Addresses and guards are both linear in the coordinates, so
// every rewrite of coordinates (permute, slice, pad, merge, split) is applied to the strides and to
// each guard's coefficients alike.

#include "backends/core/program/view.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace onnxifi::program {
namespace {

// A guard that holds for all coordinates of `shape` says nothing. Only what the bounds of the
// expressions prove is dropped.
bool IsImplied(const Guard& guard, const Shape& shape) {
  Dim lowest = guard.offset;
  Dim highest = guard.offset;
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    const Dim& coefficient = guard.coefficients[axis];
    if (coefficient == Dim(0) || shape[axis] == Dim(1)) continue;
    const Dim reach = coefficient * (shape[axis] - 1);
    if (coefficient.LowerBound() >= 0) {
      highest = highest + reach;
    } else if (coefficient.UpperBound() <= 0) {
      lowest = lowest + reach;
    } else {
      return false;
    }
  }
  return lowest.LowerBound() >= 0 && (guard.extent - 1 - highest).LowerBound() >= 0;
}

void DropImpliedGuards(Operand& operand) {
  std::erase_if(operand.view.guards,
                [&](const Guard& guard) { return IsImplied(guard, operand.shape); });
}

// One linear form of the coordinates: the strides of a view or the coefficients of a guard. The new
// form after the axes [old_begin, old_end) become [new_begin, new_end), or nothing where the old
// axes do not merge into one. Axes of extent 1 do not count.
bool Regroup(const Dims& old_form, const Shape& old_shape, size_t old_begin, size_t old_end,
             const Shape& new_shape, size_t new_begin, size_t new_end, Dims& new_form) {
  Dim step = 0;
  const Dim* extent_below = nullptr;
  Dim form_below = 0;
  for (size_t axis = old_end; axis-- > old_begin;) {
    if (old_shape[axis] == Dim(1)) continue;
    if (extent_below == nullptr) {
      step = old_form[axis];
    } else if (!(old_form[axis] == form_below * *extent_below)) {
      return false;
    }
    extent_below = &old_shape[axis];
    form_below = old_form[axis];
  }
  for (size_t axis = new_end; axis-- > new_begin;) {
    if (new_shape[axis] == Dim(1)) continue;
    new_form[axis] = step;
    step = step * new_shape[axis];
  }
  return true;
}

// Whether every coordinate that passes `inner` passes `outer`.
bool Implies(const Guard& inner, const Guard& outer) {
  return inner.coefficients == outer.coefficients &&
         (outer.offset - inner.offset).LowerBound() >= 0 &&
         (outer.extent - outer.offset - inner.extent + inner.offset).LowerBound() >= 0;
}

}  // namespace

bool View::operator==(const View& other) const {
  return buffer == other.buffer && type == other.type && offset == other.offset &&
         strides == other.strides && guards == other.guards &&
         (guards.empty() || fill.u == other.fill.u);
}

bool SameOver(const Shape& domain, View a, const View& b) {
  if (a.rank() != b.rank() || a.guards.size() != b.guards.size()) return false;
  for (size_t axis = 0; axis < domain.size(); ++axis) {
    if (!(domain[axis] == Dim(1))) continue;
    a.strides[axis] = b.strides[axis];
    for (size_t g = 0; g < a.guards.size(); ++g) {
      a.guards[g].coefficients[axis] = b.guards[g].coefficients[axis];
    }
  }
  return a == b;
}

Dims DenseStrides(const Shape& shape) {
  Dims strides(shape.size());
  Dim stride = 1;
  for (size_t axis = shape.size(); axis-- > 0;) {
    strides[axis] = stride;
    stride = stride * shape[axis];
  }
  return strides;
}

View DenseView(BufferId buffer, ElementType type, const Shape& shape) {
  return {buffer, type, 0, DenseStrides(shape), {}, {}};
}

bool IsDense(const Operand& operand) {
  const View& view = operand.view;
  if (!(view.offset == Dim(0)) || !view.guards.empty()) return false;
  if (std::find(operand.shape.begin(), operand.shape.end(), Dim(0)) != operand.shape.end()) {
    return true;
  }
  Dim expected = 1;
  for (size_t axis = operand.shape.size(); axis-- > 0;) {
    if (operand.shape[axis] == Dim(1)) continue;
    if (!(view.strides[axis] == expected)) return false;
    expected = expected * operand.shape[axis];
  }
  return true;
}

Operand Permute(const Operand& operand, const std::vector<int>& axes) {
  assert(axes.size() == operand.shape.size());
  Operand result = operand;
  for (size_t axis = 0; axis < axes.size(); ++axis) {
    result.shape[axis] = operand.shape[axes[axis]];
    result.view.strides[axis] = operand.view.strides[axes[axis]];
    for (size_t g = 0; g < result.view.guards.size(); ++g) {
      result.view.guards[g].coefficients[axis] = operand.view.guards[g].coefficients[axes[axis]];
    }
  }
  return result;
}

Operand Slice(const Operand& operand, int axis, Dim start, Dim step, Dim extent) {
  Operand result = operand;
  View& view = result.view;
  view.offset = view.offset + start * view.strides[axis];
  view.strides[axis] = view.strides[axis] * step;
  for (Guard& guard : view.guards) {
    guard.offset = guard.offset + start * guard.coefficients[axis];
    guard.coefficients[axis] = guard.coefficients[axis] * step;
  }
  result.shape[axis] = extent;
  DropImpliedGuards(result);
  return result;
}

Operand InsertAxis(const Operand& operand, int axis) {
  Operand result = operand;
  result.shape.insert(result.shape.begin() + axis, 1);
  result.view.strides.insert(result.view.strides.begin() + axis, 0);
  for (Guard& guard : result.view.guards) {
    guard.coefficients.insert(guard.coefficients.begin() + axis, 0);
  }
  return result;
}

Operand RemoveAxis(const Operand& operand, int axis) {
  Operand result = operand;
  result.shape.erase(result.shape.begin() + axis);
  result.view.strides.erase(result.view.strides.begin() + axis);
  for (Guard& guard : result.view.guards) {
    guard.coefficients.erase(guard.coefficients.begin() + axis);
  }
  return result;
}

View BroadcastTo(const Operand& operand, const Shape& shape) {
  assert(operand.shape.size() <= shape.size());
  const size_t missing = shape.size() - operand.shape.size();
  View view = operand.view;
  view.strides.assign(shape.size(), 0);
  for (Guard& guard : view.guards) guard.coefficients.assign(shape.size(), 0);
  for (size_t axis = 0; axis < operand.shape.size(); ++axis) {
    const Dim& extent = operand.shape[axis];
    const bool is_kept = extent == shape[missing + axis];
    if (!is_kept && extent == Dim(1)) continue;
    // An extent known only when bound decides then: 1 is repeated, anything else equals the target.
    auto broadcast = [&](const Dim& step) {
      return is_kept ? step : tensor::Select(tensor::Equal(extent, 1), 0, step);
    };
    view.strides[missing + axis] = broadcast(operand.view.strides[axis]);
    for (size_t g = 0; g < view.guards.size(); ++g) {
      view.guards[g].coefficients[missing + axis] =
          broadcast(operand.view.guards[g].coefficients[axis]);
    }
  }
  return view;
}

std::optional<Operand> Pad(const Operand& operand, const Dims& before, const Dims& after,
                           tensor::Scalar fill) {
  assert(before.size() == operand.shape.size() && after.size() == operand.shape.size());
  Operand result = operand;
  View& view = result.view;
  std::vector<Guard> added;
  for (size_t axis = 0; axis < before.size(); ++axis) {
    // The element at the new coordinate c is the one that was at c - before.
    view.offset = view.offset - before[axis] * view.strides[axis];
    for (Guard& guard : view.guards) {
      guard.offset = guard.offset - before[axis] * guard.coefficients[axis];
    }
    result.shape[axis] = operand.shape[axis] + before[axis] + after[axis];
    if (before[axis].UpperBound() <= 0 && after[axis].UpperBound() <= 0) continue;
    Guard guard{Dims(before.size(), 0), Dim(0) - before[axis], operand.shape[axis]};
    guard.coefficients[axis] = 1;
    added.push_back(std::move(guard));
  }
  DropImpliedGuards(result);
  if (added.empty()) return result;
  if (!view.guards.empty() && view.fill.u != fill.u) return std::nullopt;
  view.fill = fill;
  // What was padded before stays guarded: a chain of paddings has a guard per axis, not per node.
  std::erase_if(added, [&](const Guard& guard) {
    return std::ranges::any_of(view.guards,
                               [&](const Guard& known) { return Implies(known, guard); });
  });
  view.guards.insert(view.guards.end(), added.begin(), added.end());
  return result;
}

std::optional<Operand> Reshape(const Operand& operand, const Shape& shape) {
  if (shape == operand.shape) return operand;
  Operand result{operand.view, shape};
  View& view = result.view;
  if (std::find(shape.begin(), shape.end(), Dim(0)) != shape.end() ||
      std::find(operand.shape.begin(), operand.shape.end(), Dim(0)) != operand.shape.end()) {
    view.guards.clear();
    view.strides = DenseStrides(shape);
    return result;
  }
  view.strides.assign(shape.size(), 0);
  for (Guard& guard : view.guards) guard.coefficients.assign(shape.size(), 0);

  // Both lists of axes are cut into groups of equal product, as early as the products are the same
  // expression; what remains at the end is one group, its products being equal by contract.
  const Shape& old_shape = operand.shape;
  size_t old_begin = 0;
  size_t new_begin = 0;
  while (old_begin < old_shape.size() || new_begin < shape.size()) {
    size_t old_end = old_shape.size();
    size_t new_end = shape.size();
    Dim old_product = 1;
    for (size_t i = old_begin; i < old_shape.size() && old_end == old_shape.size(); ++i) {
      old_product = old_product * old_shape[i];
      Dim new_product = 1;
      for (size_t k = new_begin; k < shape.size(); ++k) {
        new_product = new_product * shape[k];
        if (!(new_product == old_product)) continue;
        old_end = i + 1;
        new_end = k + 1;
        break;
      }
      if (new_end != shape.size()) break;
    }
    // Trailing ones belong to the last group.
    auto is_one = [](const Dim& extent) { return extent == Dim(1); };
    if (std::all_of(old_shape.begin() + old_end, old_shape.end(), is_one) &&
        std::all_of(shape.begin() + new_end, shape.end(), is_one)) {
      old_end = old_shape.size();
      new_end = shape.size();
    }
    if (!Regroup(operand.view.strides, old_shape, old_begin, old_end, shape, new_begin, new_end,
                 view.strides)) {
      return std::nullopt;
    }
    for (size_t g = 0; g < view.guards.size(); ++g) {
      if (!Regroup(operand.view.guards[g].coefficients, old_shape, old_begin, old_end, shape,
                   new_begin, new_end, view.guards[g].coefficients)) {
        return std::nullopt;
      }
    }
    old_begin = old_end;
    new_begin = new_end;
  }
  // A view of extent 1 along an axis may say any stride there; the dense one makes equal views
  // compare equal.
  for (size_t axis = shape.size(); axis-- > 0;) {
    if (!(shape[axis] == Dim(1))) continue;
    view.strides[axis] =
        axis + 1 < shape.size() ? view.strides[axis + 1] * shape[axis + 1] : Dim(1);
  }
  return result;
}

}  // namespace onnxifi::program
