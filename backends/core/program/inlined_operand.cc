// SPDX-License-Identifier: Apache-2.0
//
// InlinedOperand: axes are found by their strides.

#include "backends/core/program/inlined_operand.h"

#include <utility>

namespace onnxifi::program {

std::optional<std::vector<int>> MatchAxes(const View& view, const Shape& operand,
                                          const Shape& made) {
  if (!(view.offset == Dim(0)) || !view.guards.empty() || view.type != ElementType::kFloat32)
    return std::nullopt;
  const Dims strides = DenseStrides(made);
  std::vector<int> axes(made.size(), -1);
  for (int axis = 0; axis < view.rank(); ++axis) {
    if (operand[static_cast<size_t>(axis)] == Dim(1) || view.strides[axis] == Dim(0)) continue;
    bool is_met = false;
    for (size_t k = 0; k < made.size() && !is_met; ++k) {
      if (axes[k] >= 0 || made[k] == Dim(1) || !(strides[k] == view.strides[axis]) ||
          !(made[k] == operand[static_cast<size_t>(axis)])) {
        continue;
      }
      axes[k] = axis;
      is_met = true;
    }
    if (!is_met) return std::nullopt;
  }
  for (size_t k = 0; k < made.size(); ++k) {
    if (axes[k] < 0 && !(made[k] == Dim(1))) return std::nullopt;
  }
  return axes;
}

View OverOperand(View view, const Shape& operand, const Shape& made, const std::vector<int>& axes) {
  Dims strides(operand.size(), Dim(0));
  for (size_t k = 0; k < made.size(); ++k) {
    if (axes[k] >= 0) strides[static_cast<size_t>(axes[k])] = view.strides[k];
  }
  view.strides = std::move(strides);
  return view;
}

}  // namespace onnxifi::program
