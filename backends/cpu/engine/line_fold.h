// SPDX-License-Identifier: Apache-2.0
//
// LineFold: folds every line of a tile by one operation, elements of a line being lanes of vectors;
// and what a line folded to, spread over its elements again.

#ifndef ONNXIFI_BACKENDS_CPU_ENGINE_LINE_FOLD_H_
#define ONNXIFI_BACKENDS_CPU_ENGINE_LINE_FOLD_H_

#include <cstddef>
#include <cstdint>

#include "backends/core/program/expr.h"

namespace onnxifi::engine {

// elements[lines, count] lie dense, at any address; count is at least 1. states[lines] are those to
// begin with, and then what their lines folded to: element n is folded into part n modulo 128,
// parts are joined in halves, as the reference does it.
using LineFold = void (*)(const std::byte* elements, int64_t lines, int64_t count,
                          std::byte* states);

// For an operation that updates a state (its first operand) and joins two; null where there is
// none.
LineFold FindLineFold(program::ExprOp op, tensor::ElementType type);

// target[lines, count]: every element of a line is the line's value.
void SpreadOverLines(const std::byte* values, int64_t lane_bytes, int64_t lines, int64_t count,
                     std::byte* target);

}  // namespace onnxifi::engine

#endif  // ONNXIFI_BACKENDS_CPU_ENGINE_LINE_FOLD_H_
