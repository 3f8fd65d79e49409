// SPDX-License-Identifier: Apache-2.0
//
// RowBuilder: puts a Row step together: which axes make a row, the passes that reduce it, the
// outputs. All operators that normalise use it.

#ifndef ONNXIFI_BACKENDS_CORE_OPS_NORMALIZATION_ROW_H_
#define ONNXIFI_BACKENDS_CORE_OPS_NORMALIZATION_ROW_H_

#include <vector>

#include "backends/core/ops/lowering.h"
#include "backends/core/ops/reduce/reduction.h"

namespace onnxifi::ops {

class RowBuilder {
 public:
  // Rows are made of `axes` (at least one, distinct) of a tensor of `shape`, which are moved behind
  // the others.
  RowBuilder(Lowering& lowering, const Shape& shape, const std::vector<int>& axes);

  // The step over the rearranged axes. Its Coordinate(k) belongs to axis order()[k] of the tensor.
  StepBuilder& step() { return step_; }
  const std::vector<int>& order() const { return order_; }
  // Number of elements in a row, int64.
  Expr Count() { return step_.Extent(count_); }
  // Row-major position of an element in its row, int64.
  Expr Position();
  // The element of an operand that broadcasts to the tensor's shape, cast to `type`.
  Expr Read(const Operand& operand, ElementType type);

  // Adds a pass and gives its result, for later passes and for the outputs.
  Expr AddPass(program::Reduction reduction, Expr result);
  // Mean, and mean squared distance from it (population variance), in two passes.
  struct Moments {
    Expr mean, variance;
  };
  Moments AddMoments(Expr element);

  // An output of the tensor's shape, and one that has one element per row: extent 1 (or, without
  // keepdims, nothing) for each axis of the row; `value` is made of pass results alone.
  Operand Write(Expr value, ElementType type);
  Operand WritePerRow(Expr value, ElementType type, bool keepdims);
  // Emits the step.
  void Finish();

 private:
  Lowering& lowering_;
  Shape shape_;
  int axes_;
  std::vector<int> order_;
  StepBuilder step_;
  Dim count_;
  program::Row row_;
  std::vector<View> writes_;
};

}  // namespace onnxifi::ops

#endif  // ONNXIFI_BACKENDS_CORE_OPS_NORMALIZATION_ROW_H_
