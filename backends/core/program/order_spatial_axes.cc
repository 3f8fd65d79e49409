// SPDX-License-Identifier: Apache-2.0
//
// OrderSpatialAxes: an axis along which an image, a kernel and the result have one element says
// nothing. It goes outward, or away, so that kernels run along an axis that says something. Where
// only kernels along two axes are fast, it is added.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "backends/core/program/body_exprs.h"
#include "backends/core/program/passes.h"

namespace onnxifi::program {
namespace {

constexpr size_t kFirstSpatialAxis = 2;  // behind N and C
constexpr size_t kMaxAxesWithIdle = 2;

using Order = std::vector<size_t>;

template <typename Values>
Values InOrder(const Values& values, const Order& order) {
  Values ordered;
  for (const size_t from : order) ordered.push_back(values[from]);
  return ordered;
}

// The spatial axes in their new order: idle ones first, and none of these beyond two axes.
Order OrderOf(const std::vector<bool>& is_idle) {
  Order idle, used;
  for (size_t axis = 0; axis < is_idle.size(); ++axis) {
    (is_idle[axis] ? idle : used).push_back(axis);
  }
  const size_t wanted = std::max(kMaxAxesWithIdle, used.size());
  if (idle.size() + used.size() > wanted) idle.resize(wanted - used.size());
  idle.insert(idle.end(), used.begin(), used.end());
  return idle;
}

// The same order for axes of which the first `leading` stay where they are.
Order Behind(size_t leading, const Order& spatial) {
  Order order;
  for (size_t axis = 0; axis < leading; ++axis) order.push_back(axis);
  for (const size_t axis : spatial) order.push_back(leading + axis);
  return order;
}

// Whether nothing that the step computes knows a coordinate, and each of its views has the axes of
// the result.
bool IsAlongItsAxes(const ExprPool& exprs, const Step& step) {
  const auto has_its_axes = [&step](const View& view) {
    return view.strides.size() == step.domain.size();
  };
  const auto knows_coordinates = [&exprs](ExprId id) {
    const ExprNode& node = exprs[id];
    return node.op == ExprOp::kIndex || (node.op == ExprOp::kLoad && !node.operands.empty());
  };
  return std::ranges::all_of(step.reads, has_its_axes) &&
         std::ranges::all_of(step.writes, has_its_axes) &&
         std::ranges::none_of(Reachable(exprs, BodyExprs(step)), knows_coordinates);
}

void Reorder(View& view, const Order& order) {
  view.strides = InOrder(view.strides, order);
  for (Guard& guard : view.guards) guard.coefficients = InOrder(guard.coefficients, order);
}

// What a step says of its spatial axes.
struct SpatialAxes {
  Shape& in;
  Dims kernel;
  std::vector<int64_t>& strides;
  std::vector<int64_t>& dilations;
  Dims& pads_begin;
};

// Reorders the axes of the step and its views. Returns the order; empty where all stays as it is.
Order ReorderStep(const ExprPool& exprs, Step& step, const SpatialAxes& axes) {
  std::vector<bool> is_idle;
  for (size_t axis = 0; axis < axes.in.size(); ++axis) {
    const Dim one(1);
    is_idle.push_back(axes.in[axis] == one && axes.kernel[axis] == one &&
                      step.domain[kFirstSpatialAxis + axis] == one &&
                      axes.pads_begin[axis] == Dim(0));
  }
  const Order order = OrderOf(is_idle);
  if (order == OrderOf(std::vector<bool>(is_idle.size(), false)) || !IsAlongItsAxes(exprs, step)) {
    return {};
  }
  axes.in = InOrder(axes.in, order);
  axes.strides = InOrder(axes.strides, order);
  axes.dilations = InOrder(axes.dilations, order);
  axes.pads_begin = InOrder(axes.pads_begin, order);
  const Order of_views = Behind(kFirstSpatialAxis, order);
  step.domain = InOrder(step.domain, of_views);
  for (View& view : step.reads) Reorder(view, of_views);
  for (View& view : step.writes) Reorder(view, of_views);
  return order;
}

template <typename Values, typename Value>
void Insert(Values& values, size_t at, Value value) {
  values.insert(values.begin() + static_cast<std::ptrdiff_t>(at), std::move(value));
}

// A first spatial axis, idle.
void InsertIdleAxis(Step& step, Contract& contract) {
  Insert(contract.a_spatial, 0, Dim(1));
  Insert(contract.inner, 1, Dim(1));
  Insert(contract.strides, 0, 1);
  Insert(contract.dilations, 0, 1);
  Insert(contract.pads_begin, 0, Dim(0));
  Insert(step.domain, kFirstSpatialAxis, Dim(1));
  for (std::vector<View>* views : {&step.reads, &step.writes}) {
    for (View& view : *views) {
      Insert(view.strides, kFirstSpatialAxis, Dim(0));
      for (Guard& guard : view.guards) Insert(guard.coefficients, kFirstSpatialAxis, Dim(0));
    }
  }
}

bool IsDepthwiseAlongOneAxis(const Contract& contract) {
  return contract.form == Contract::Form::kConv && contract.a_spatial.size() == 1 &&
         contract.group > 1 && contract.inner[0] == Dim(1);
}

void OrderAxesOf(const ExprPool& exprs, Step& step, Contract& contract) {
  if (contract.form == Contract::Form::kMatMul) return;
  if (IsDepthwiseAlongOneAxis(contract)) {
    if (IsAlongItsAxes(exprs, step)) InsertIdleAxis(step, contract);
    return;
  }
  const Order order =
      ReorderStep(exprs, step,
                  {contract.a_spatial, Dims(contract.inner.begin() + 1, contract.inner.end()),
                   contract.strides, contract.dilations, contract.pads_begin});
  if (!order.empty()) contract.inner = InOrder(contract.inner, Behind(1, order));
}

void OrderAxesOf(const ExprPool& exprs, Step& step, Window& window) {
  if (window.kind == Window::Kind::kLrn) return;
  const Order order = ReorderStep(
      exprs, step,
      {window.in_spatial, window.kernel, window.strides, window.dilations, window.pads_begin});
  if (order.empty()) return;
  window.kernel = InOrder(window.kernel, order);
  window.pads_end = InOrder(window.pads_end, order);
}

}  // namespace

void OrderSpatialAxes(Program& program) {
  for (Step& step : program.steps) {
    if (auto* contract = step.As<Contract>()) OrderAxesOf(program.exprs, step, *contract);
    if (auto* window = step.As<Window>()) OrderAxesOf(program.exprs, step, *window);
  }
}

}  // namespace onnxifi::program
