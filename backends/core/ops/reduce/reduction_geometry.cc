// SPDX-License-Identifier: Apache-2.0
//
// ReductionGeometry: kept axes are moved to the front, reduced ones to the back. Axes that are
// known only while the program runs are each present twice, once as kept and once as reduced, with
// the extent 1 on the side that they turn out not to be on.

#include "backends/core/ops/reduce/reduction_geometry.h"

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

ReductionGeometry ReduceRunTimeAxes(const Operand& data, const AxisList& axes, bool keepdims) {
  const int rank = data.rank();
  ReductionGeometry reduced;
  reduced.axes = rank;
  reduced.data = data;
  // The same strides and coefficients for the reduced axes as for the kept ones.
  auto repeat = [](Dims& form) {
    const Dims once = form;
    form.insert(form.end(), once.begin(), once.end());
  };
  repeat(reduced.data.shape);
  repeat(reduced.data.view.strides);
  for (program::Guard& guard : reduced.data.view.guards) repeat(guard.coefficients);
  for (int k = 0; k < rank; ++k) {
    const Dim is_reduced = axes.Contains(k);
    reduced.data.shape[k] = Select(is_reduced, Dim(1), data.shape[k]);
    reduced.data.shape[rank + k] = Select(is_reduced, data.shape[k], Dim(1));
  }
  reduced.shape = keepdims ? reduced.Kept() : KeptExtents(data.shape, axes);
  return reduced;
}

}  // namespace

Dim ReductionGeometry::Count() const {
  return tensor::Product(std::span(data.shape).last(static_cast<size_t>(axes)));
}

ReductionGeometry ReduceAxes(const Operand& data, const AxisList& axes, bool keepdims) {
  return axes.is_known() ? ReduceAxes(data, axes.Known(), keepdims)
                         : ReduceRunTimeAxes(data, axes, keepdims);
}

ReductionGeometry ReduceAxes(const Operand& data, const std::vector<int>& axes, bool keepdims) {
  ReductionGeometry reduced;
  std::vector<int> order;
  for (int axis = 0; axis < data.rank(); ++axis) {
    const bool is_reduced = std::find(axes.begin(), axes.end(), axis) != axes.end();
    if (!is_reduced) order.push_back(axis);
    if (!is_reduced) reduced.shape.push_back(data.shape[axis]);
    if (is_reduced && keepdims) reduced.shape.push_back(Dim(1));
  }
  // In ascending order, whatever order the axes were given in: memory is walked forwards.
  for (int axis = 0; axis < data.rank(); ++axis) {
    if (std::find(axes.begin(), axes.end(), axis) != axes.end()) order.push_back(axis);
  }
  reduced.data = program::Permute(data, order);
  reduced.axes = static_cast<int>(axes.size());
  if (reduced.axes == 0) {
    reduced.data = program::InsertAxis(reduced.data, reduced.data.rank());
    reduced.axes = 1;
  }
  return reduced;
}

ReductionGeometry ReduceAllAxes(const Operand& data) {
  std::vector<int> axes(data.rank());
  std::iota(axes.begin(), axes.end(), 0);
  return ReduceAxes(data, axes, /*keepdims=*/false);
}

std::vector<Operand> WriteReduction(Lowering& lowering, StepBuilder& reduce,
                                    const ReductionGeometry& reduced, program::Reduction reduction,
                                    const std::vector<std::pair<Expr, ElementType>>& roots) {
  program::Reduce body;
  body.axes = reduced.axes;
  body.reduction = std::move(reduction);
  std::vector<Operand> results;
  std::vector<View> writes;
  for (const auto& [root, type] : roots) {
    body.roots.push_back(Cast(root, type).id());
    results.push_back(lowering.Temporary(type, reduced.shape));
    writes.push_back(program::DenseView(results.back().view.buffer, type, reduced.Kept()));
  }
  reduce.Finish(std::move(body), std::move(writes));
  return results;
}

}  // namespace onnxifi::ops
