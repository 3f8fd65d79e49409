// SPDX-License-Identifier: Apache-2.0
//
// EvenPositions: two neighbours along each axis tell the steps, and every position is compared with
// what follows from them.

#include "backends/core/program/even_positions.h"

#include <cstddef>
#include <utility>

#include "backends/core/program/entry_positions.h"
#include "backends/core/tensor/convert.h"

namespace onnxifi::program {
namespace {

// How many entries a guard lets positions along `axis` be of; nothing where it says something else.
std::optional<Dim> EntriesOf(const Guard& guard, size_t axis) {
  for (size_t k = 0; k < guard.coefficients.size(); ++k) {
    if (!(guard.coefficients[k] == Dim(k == axis ? 1 : 0))) return std::nullopt;
  }
  return guard.offset == Dim(0) ? std::optional<Dim>(guard.extent) : std::nullopt;
}

// The coordinate along an axis of the view that a load reads; nothing where it is none of the
// domain's and no even positions either. Of the latter, the guard that bounds them goes.
std::optional<EvenPositions> FindCoordinate(const Program& program, const Step& step,
                                            const ExprNode& load, size_t axis, View& view) {
  const ExprNode& coordinate = program.exprs[load.operands[axis]];
  if (coordinate.op == ExprOp::kIndex) {
    EvenPositions even{0, std::vector<int64_t>(step.domain.size(), 0)};
    even.steps[static_cast<size_t>(coordinate.payload)] = 1;
    return even;
  }
  for (auto guard = view.guards.begin(); guard != view.guards.end(); ++guard) {
    const std::optional<Dim> entries = EntriesOf(*guard, axis);
    if (!entries) continue;
    const int read = FindPositions(program.exprs, load.operands[axis], *entries);
    if (read < 0) continue;
    view.guards.erase(guard);
    return FindEvenPositions(program, step.reads[static_cast<size_t>(read)], step.domain, *entries);
  }
  return std::nullopt;
}

// What the load at the root of a Map reads, as a view of the domain.
std::optional<View> FindView(const Program& program, const Step& step) {
  const Map* map = step.As<Map>();
  if (map == nullptr || map->roots.size() != 1) return std::nullopt;
  const ExprNode& load = program.exprs[map->roots[0]];
  if (load.op != ExprOp::kLoad || load.operands.empty()) return std::nullopt;
  View view = step.reads[static_cast<size_t>(load.payload)];
  std::vector<EvenPositions> coordinates;
  for (size_t axis = 0; axis < load.operands.size(); ++axis) {
    std::optional<EvenPositions> even = FindCoordinate(program, step, load, axis, view);
    if (!even) return std::nullopt;
    coordinates.push_back(*std::move(even));
  }
  // A linear form of the view's coordinates becomes one of the domain's.
  const auto follow = [&](Dims& form, Dim& offset) {
    Dims followed(step.domain.size(), Dim(0));
    for (size_t axis = 0; axis < coordinates.size(); ++axis) {
      offset = offset + form[axis] * coordinates[axis].first;
      for (size_t k = 0; k < followed.size(); ++k) {
        followed[k] = followed[k] + form[axis] * coordinates[axis].steps[k];
      }
    }
    form = std::move(followed);
  };
  follow(view.strides, view.offset);
  for (Guard& guard : view.guards) follow(guard.coefficients, guard.offset);
  return view;
}

}  // namespace

std::optional<EvenPositions> FindEvenPositions(const Program& program, const View& positions,
                                               const Shape& domain, const Dim& entries) {
  const Buffer& buffer = program.buffers[static_cast<size_t>(positions.buffer)];
  if (buffer.kind != Buffer::Kind::kConstant || !positions.guards.empty() ||
      !tensor::IsInteger(positions.type) || !positions.offset.is_constant() ||
      !entries.is_constant()) {
    return std::nullopt;
  }
  const tensor::Tensor& constant = program.constants[static_cast<size_t>(buffer.index)];
  if (constant.data() == nullptr) return std::nullopt;
  const int64_t extent = entries.constant();
  const auto position_at = [&](int64_t element) {
    const tensor::Scalar scalar = tensor::LoadScalar(positions.type, constant.data(), element);
    if (tensor::IsUnsigned(positions.type)) return static_cast<int64_t>(scalar.u);
    return scalar.i < 0 ? scalar.i + extent : scalar.i;
  };
  const auto is_inside = [&](int64_t position) { return position >= 0 && position < extent; };
  // The axes along which there are several.
  struct Axis {
    size_t number;
    int64_t extent, stride, step, at;
  };
  std::vector<Axis> axes;
  for (size_t axis = 0; axis < domain.size(); ++axis) {
    const Dim& stride = positions.strides[axis];
    if (stride == Dim(0) || domain[axis] == Dim(1)) continue;
    if (!domain[axis].is_constant() || !stride.is_constant()) return std::nullopt;
    if (domain[axis].constant() == 0) return std::nullopt;
    axes.push_back({axis, domain[axis].constant(), stride.constant(), 0, 0});
  }
  const int64_t first = positions.offset.constant();
  EvenPositions even{0, std::vector<int64_t>(domain.size(), 0)};
  if (first < 0 || first >= constant.element_count()) return std::nullopt;
  even.first = position_at(first);
  if (!is_inside(even.first)) return std::nullopt;
  for (Axis& axis : axes) {
    const int64_t next = position_at(first + axis.stride);
    if (!is_inside(next)) return std::nullopt;
    even.steps[axis.number] = axis.step = next - even.first;
  }
  int64_t element = first, expected = even.first;
  while (true) {
    if (!is_inside(expected) || position_at(element) != expected) return std::nullopt;
    size_t k = axes.size();
    for (; k > 0; --k) {
      Axis& axis = axes[k - 1];
      element += axis.stride;
      expected += axis.step;
      if (++axis.at < axis.extent) break;
      element -= axis.stride * axis.extent;
      expected -= axis.step * axis.extent;
      axis.at = 0;
    }
    if (k == 0) return even;
  }
}

void ReadAtEvenPositions(Program& program) {
  for (Step& step : program.steps) {
    std::optional<View> view = FindView(program, step);
    if (!view) continue;
    const ElementType type = program.exprs[step.As<Map>()->roots[0]].type;
    step.reads = {*std::move(view)};
    step.body = Map{{Load(program.exprs, type, 0).id()}};
  }
}

}  // namespace onnxifi::program
