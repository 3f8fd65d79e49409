// SPDX-License-Identifier: Apache-2.0
//
// Product: what the operators on matrices and convolutions share in making a Contract: prologues,
// accumulator types, quantisation parameters, the rounding of a quantised result.

#ifndef ONNXIFI_BACKENDS_CORE_OPS_CONTRACT_PRODUCT_H_
#define ONNXIFI_BACKENDS_CORE_OPS_CONTRACT_PRODUCT_H_

#include "backends/core/ops/lowering.h"

namespace onnxifi::ops {

// Prologue of read 0 or 1: its element as `accumulator`.
Expr PlainPrologue(StepBuilder& step, const Operand& operand, int read, ElementType accumulator);

// Prologue of a quantised operand: its element less the zero point, both as `accumulator`.
// `zero_point` is over the operand's own axes, or missing. Adds a read, so that reads 0 and 1 are
// added before.
Expr ZeroPointPrologue(StepBuilder& step, const Operand& operand, int read,
                       const std::optional<Operand>& zero_point, ElementType accumulator);

// A quantisation parameter of one element (scalar or [1]) or of one per index of `axis`, laid over
// `rank` axes. MISMATCHING_SHAPE for another shape.
Result<Operand> AlignParameter(Lowering& lowering, int input, int rank, int axis, Dim extent);

// A vector with one element per channel (a bias), laid over axis 1 of `rank` axes.
Result<Operand> ChannelVector(Lowering& lowering, int input, int rank, Dim channels);

// One of the 8-bit integers.
bool IsByte(ElementType type);

// The result of a quantised operator: `scaled` plus the zero point, rounded to nearest even,
// clamped to `type`.
Expr Quantized(Expr scaled, Expr zero_point, ElementType type);

}  // namespace onnxifi::ops

#endif  // ONNXIFI_BACKENDS_CORE_OPS_CONTRACT_PRODUCT_H_
