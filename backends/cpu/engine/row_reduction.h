// SPDX-License-Identifier: Apache-2.0
//
// RowReduction: reduces every row of a tile by one operation, elements of a row being lanes of
// vectors; ColumnReduction: reduces what lies side by side, lanes being different results; and what
// a row reduced to, spread over its elements again.

#ifndef ONNXIFI_BACKENDS_CPU_ENGINE_ROW_REDUCTION_H_
#define ONNXIFI_BACKENDS_CPU_ENGINE_ROW_REDUCTION_H_

#include <cstddef>
#include <cstdint>

#include "backends/core/program/expr.h"

namespace onnxifi::engine {

// elements[rows, count] lie dense, at any address; count is at least 1. states[rows] are those to
// begin with, and then what their rows reduced to: element n is reduced into part n modulo 128,
// parts are joined in halves, as the reference does it. Of integers, whose order changes nothing,
// the state to begin with counts once.
using RowReduction = void (*)(const std::byte* elements, int64_t rows, int64_t count,
                              std::byte* states);

// For an operation that updates a state (its first operand) and joins two; null where there is
// none.
RowReduction FindRowReduction(program::ExprOp op, tensor::ElementType type);

// states[lanes] are those to begin with, and then what elements[count, lanes], of which those of a
// lane are `step` elements apart, reduce to: one after the other, or in parts as rows are.
using ColumnReduction = void (*)(const std::byte* elements, int64_t step, int64_t count,
                                 int64_t lanes, std::byte* states);
ColumnReduction FindColumnReduction(program::ExprOp op, tensor::ElementType type, bool is_in_parts);

// target[rows, count]: every element of a row is the row's value.
void SpreadOverRows(const std::byte* values, int64_t lane_bytes, int64_t rows, int64_t count,
                    std::byte* target);

}  // namespace onnxifi::engine

#endif  // ONNXIFI_BACKENDS_CPU_ENGINE_ROW_REDUCTION_H_
