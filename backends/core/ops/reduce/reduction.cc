// SPDX-License-Identifier: Apache-2.0
//
// Reduction: kept axes are moved to the front, reduced ones to the back. Axes that are known only
// while the program runs are each present twice, once as kept and once as reduced, with the extent
// 1 on the side that they turn out not to be on.

#include "backends/core/ops/reduce/reduction.h"

#include <algorithm>
#include <numeric>

namespace onnxifi::ops {
namespace {

// Extents of the axes not in `axes`, in order. Which they are is an expression: axis k is the j-th
// kept one if it is kept and j kept ones stand before it.
Shape KeptExtents(const Shape& shape, const AxisList& axes) {
  Shape kept(shape.size() - axes.size(), Dim(0));
  Dim before = 0;
  for (size_t k = 0; k < shape.size(); ++k) {
    const Dim is_kept = Dim(1) - axes.Contains(static_cast<int>(k));
    for (size_t j = 0; j < kept.size(); ++j) {
      kept[j] = kept[j] + is_kept * Equal(before, Dim(static_cast<int64_t>(j))) * shape[k];
    }
    before = before + is_kept;
  }
  return kept;
}

Reduction ReduceRunTimeAxes(const Operand& data, const AxisList& axes, bool keepdims) {
  const int rank = data.rank();
  Reduction reduction;
  reduction.axes = rank;
  reduction.data = data;
  // The same strides and coefficients for the reduced axes as for the kept ones.
  auto repeat = [](Dims& form) {
    const Dims once = form;
    form.insert(form.end(), once.begin(), once.end());
  };
  repeat(reduction.data.shape);
  repeat(reduction.data.view.strides);
  for (program::Guard& guard : reduction.data.view.guards) repeat(guard.coefficients);
  for (int k = 0; k < rank; ++k) {
    const Dim is_reduced = axes.Contains(k);
    reduction.data.shape[k] = Select(is_reduced, Dim(1), data.shape[k]);
    reduction.data.shape[rank + k] = Select(is_reduced, data.shape[k], Dim(1));
  }
  reduction.shape = keepdims ? reduction.Kept() : KeptExtents(data.shape, axes);
  return reduction;
}

}  // namespace

Dim Reduction::Count() const {
  return tensor::Product(std::span(data.shape).last(static_cast<size_t>(axes)));
}

Reduction ReduceAxes(const Operand& data, const AxisList& axes, bool keepdims) {
  return axes.is_known() ? ReduceAxes(data, axes.Known(), keepdims)
                         : ReduceRunTimeAxes(data, axes, keepdims);
}

Reduction ReduceAxes(const Operand& data, const std::vector<int>& axes, bool keepdims) {
  Reduction reduction;
  std::vector<int> order;
  for (int axis = 0; axis < data.rank(); ++axis) {
    const bool is_reduced = std::find(axes.begin(), axes.end(), axis) != axes.end();
    if (!is_reduced) order.push_back(axis);
    if (!is_reduced) reduction.shape.push_back(data.shape[axis]);
    if (is_reduced && keepdims) reduction.shape.push_back(Dim(1));
  }
  // In ascending order, whatever order the axes were given in: memory is walked forwards.
  for (int axis = 0; axis < data.rank(); ++axis) {
    if (std::find(axes.begin(), axes.end(), axis) != axes.end()) order.push_back(axis);
  }
  reduction.data = program::Permute(data, order);
  reduction.axes = static_cast<int>(axes.size());
  if (reduction.axes == 0) {
    reduction.data = program::InsertAxis(reduction.data, reduction.data.rank());
    reduction.axes = 1;
  }
  return reduction;
}

Reduction ReduceAllAxes(const Operand& data) {
  std::vector<int> axes(data.rank());
  std::iota(axes.begin(), axes.end(), 0);
  return ReduceAxes(data, axes, /*keepdims=*/false);
}

std::vector<Operand> WriteReduction(Lowering& lowering, StepBuilder& reduce,
                                    const Reduction& reduction, program::Fold fold,
                                    const std::vector<std::pair<Expr, ElementType>>& roots) {
  program::Reduce body;
  body.axes = reduction.axes;
  body.fold = std::move(fold);
  std::vector<Operand> results;
  std::vector<View> writes;
  for (const auto& [root, type] : roots) {
    body.roots.push_back(Cast(root, type).id());
    results.push_back(lowering.Temporary(type, reduction.shape));
    writes.push_back(program::DenseView(results.back().view.buffer, type, reduction.Kept()));
  }
  reduce.Finish(std::move(body), std::move(writes));
  return results;
}

}  // namespace onnxifi::ops
