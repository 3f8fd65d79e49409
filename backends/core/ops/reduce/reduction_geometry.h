// SPDX-License-Identifier: Apache-2.0
//
// ReductionGeometry: the geometry that all reducing operators share: which axes are reduced, and
// what shape remains. The axes may be numbers, or known only while the program runs.

#ifndef ONNXIFI_BACKENDS_CORE_OPS_REDUCE_REDUCTION_GEOMETRY_H_
#define ONNXIFI_BACKENDS_CORE_OPS_REDUCE_REDUCTION_GEOMETRY_H_

#include <utility>
#include <vector>

#include "backends/core/ops/lowering.h"
#include "backends/core/ops/shape/axis_list.h"

namespace onnxifi::ops {

struct ReductionGeometry {
  Operand data;  // kept axes first, then the reduced ones
  int axes = 0;  // how many of data's last axes are reduced; at least 1
  Shape shape;   // of the result

  // Extents of the kept axes: as many elements as `shape`.
  Shape Kept() const { return {data.shape.begin(), data.shape.end() - axes}; }
  // Number of elements reduced into one.
  Dim Count() const;
};

// With no axes every element is its own result.
ReductionGeometry ReduceAxes(const Operand& data, const AxisList& axes, bool keepdims);
ReductionGeometry ReduceAxes(const Operand& data, const std::vector<int>& axes, bool keepdims);
// To a scalar.
ReductionGeometry ReduceAllAxes(const Operand& data);

// Ends `reduce`, which is over reduced.data.shape, as a Reduce: one result per root, each cast to
// the type beside it.
std::vector<Operand> WriteReduction(Lowering& lowering, StepBuilder& reduce,
                                    const ReductionGeometry& reduced, program::Reduction reduction,
                                    const std::vector<std::pair<Expr, ElementType>>& roots);

}  // namespace onnxifi::ops

#endif  // ONNXIFI_BACKENDS_CORE_OPS_REDUCE_REDUCTION_GEOMETRY_H_
