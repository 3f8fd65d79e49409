// SPDX-License-Identifier: Apache-2.0
//
// AxisList: the axes that an operator names, as numbers or as symbols that are read when the
// program runs. Spreads the values given per named axis over all axes of a tensor.

#ifndef ONNXIFI_BACKENDS_CORE_OPS_SHAPE_AXIS_LIST_H_
#define ONNXIFI_BACKENDS_CORE_OPS_SHAPE_AXIS_LIST_H_

#include <vector>

#include "backends/core/ops/lowering.h"

namespace onnxifi::ops {

class AxisList {
 public:
  // `axes` in [-rank, rank), distinct; otherwise INVALID_MODEL, now or when the program runs.
  static Result<AxisList> Make(Lowering& lowering, Dims axes, int rank);
  // Input `input`, or where it is missing every axis below `default_count`. `count` as
  // Lowering::IntegersOrRuntime has it.
  static Result<AxisList> FromInput(Lowering& lowering, int input, int rank, int default_count,
                                    std::optional<int64_t> count = std::nullopt);
  // Attribute `name`, or where it is missing every axis below `default_count`.
  static Result<AxisList> FromAttribute(Lowering& lowering, std::string_view name, int rank,
                                        int default_count);

  int size() const { return static_cast<int>(axes_.size()); }
  bool is_known() const;
  // Only where is_known().
  std::vector<int> Known() const;
  // 1 if `axis` is named, else 0.
  Dim Contains(int axis) const;
  // The value given for `axis`, or `otherwise` where it is not named.
  Dim ValueAt(int axis, const Dims& values, Dim otherwise) const;

 private:
  Dims axes_;  // in [0, rank)
};

// Lowering::IntegersOrRuntime of an input that opset 1 gives in the type of the data.
Result<Dims> WholeNumbers(Lowering& lowering, int input);

// An extent from a tensor, as one: refused where negative.
Result<Dim> AsExtent(Lowering& lowering, Dim number);

// Numbers from an attribute as Dims.
Dims ToDims(const std::vector<int64_t>& numbers);

}  // namespace onnxifi::ops

#endif  // ONNXIFI_BACKENDS_CORE_OPS_SHAPE_AXIS_LIST_H_
