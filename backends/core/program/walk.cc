// SPDX-License-Identifier: Apache-2.0
//
// Walk: each stride is a whole number of steps along the outermost axis that it is a multiple of.

#include "backends/core/program/walk.h"

#include <utility>

namespace onnxifi::program {
namespace {

// Nothing where `divisor` is not known to divide `dim`.
std::optional<Dim> ExactQuotient(const Dim& dim, const Dim& divisor) {
  if (divisor == Dim(1)) return dim;
  const Dim quotient = FloorDiv(dim, divisor);
  if (!(quotient * divisor == dim)) return std::nullopt;
  return quotient;
}

// The coordinates of the element at `offset`. A guess where not all is numbers: what is left after
// the other axes lies along an axis of stride 1.
std::optional<Dims> CoordinatesOf(Dim offset, std::span<const MemoryAxis> axes) {
  Dims coordinates;
  for (const MemoryAxis& axis : axes) {
    const bool is_known = (offset.is_constant() && axis.stride.is_constant()) || axis.stride == 1;
    coordinates.push_back(is_known ? FloorDiv(offset, axis.stride) : Dim(0));
    offset = offset - coordinates.back() * axis.stride;
  }
  if (!(offset == Dim(0))) return std::nullopt;
  return coordinates;
}

std::optional<Walk::Step> FindStep(const Dim& stride, std::span<const MemoryAxis> axes) {
  for (size_t axis = 0; axis < axes.size(); ++axis) {
    if (axes[axis].extent && *axes[axis].extent == Dim(1)) continue;
    if (const std::optional<Dim> count = ExactQuotient(stride, axes[axis].stride)) {
      return Walk::Step{static_cast<int>(axis), *count};
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<Walk> FindWalk(const View& view, const Shape& extents,
                             std::span<const MemoryAxis> axes) {
  if (!view.guards.empty() || extents.size() != view.strides.size()) return std::nullopt;
  std::optional<Dims> start = CoordinatesOf(view.offset, axes);
  if (!start) return std::nullopt;
  Walk walk;
  walk.last = *start;
  walk.first = *std::move(start);
  for (size_t k = 0; k < extents.size(); ++k) {
    if (extents[k] == Dim(1) || view.strides[k] == Dim(0)) {
      walk.steps.emplace_back();
      continue;
    }
    const std::optional<Walk::Step> step = FindStep(view.strides[k], axes);
    if (!step || step->count.LowerBound() < 0) return std::nullopt;
    Dim& last = walk.last[static_cast<size_t>(step->axis)];
    last = last + step->count * (extents[k] - 1);
    walk.steps.push_back(*step);
  }
  for (size_t axis = 0; axis < axes.size(); ++axis) {
    if (walk.first[axis].LowerBound() < 0) return std::nullopt;
    if (axes[axis].extent && (*axes[axis].extent - walk.last[axis]).LowerBound() < 1) {
      return std::nullopt;
    }
  }
  return walk;
}

View FollowWalk(View view, const Walk& walk, const Dim& offset, std::span<const Dim> strides) {
  view.offset = offset;
  for (size_t axis = 0; axis < strides.size(); ++axis) {
    view.offset = view.offset + walk.first[axis] * strides[axis];
  }
  for (size_t k = 0; k < walk.steps.size(); ++k) {
    const Walk::Step& step = walk.steps[k];
    if (step.axis >= 0) view.strides[k] = step.count * strides[static_cast<size_t>(step.axis)];
  }
  return view;
}

}  // namespace onnxifi::program
