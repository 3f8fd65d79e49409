// SPDX-License-Identifier: Apache-2.0
//
// InlinedOperand: how the axes of a product's operand follow those of the tensor that it is a view
// of, for passes that compute the tensor in the product's prologue instead.

#ifndef ONNXIFI_BACKENDS_CORE_PROGRAM_INLINED_OPERAND_H_
#define ONNXIFI_BACKENDS_CORE_PROGRAM_INLINED_OPERAND_H_

#include <optional>
#include <vector>

#include "backends/core/program/view.h"

namespace onnxifi::program {

// By axis of `made`, the float32 tensor that operand `view` is a view of: the axis of the operand
// that walks all of it; -1 for axes of one element. Nothing where the operand is anything else than
// the tensor's elements, each once, and repetitions of them.
std::optional<std::vector<int>> MatchAxes(const View& view, const Shape& operand,
                                          const Shape& made);
// `view`, over axes of `made`, as one over the operand's axes.
View OverOperand(View view, const Shape& operand, const Shape& made, const std::vector<int>& axes);

}  // namespace onnxifi::program

#endif  // ONNXIFI_BACKENDS_CORE_PROGRAM_INLINED_OPERAND_H_
