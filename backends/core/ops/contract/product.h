// SPDX-License-Identifier: Apache-2.0
//
// Product: what the operators on matrices and convolutions share in making a Contract: factors and
// result, quantisation parameters, the rounding of a quantised result.

#ifndef ONNXIFI_BACKENDS_CORE_OPS_CONTRACT_PRODUCT_H_
#define ONNXIFI_BACKENDS_CORE_OPS_CONTRACT_PRODUCT_H_

#include "backends/core/ops/lowering.h"

namespace onnxifi::ops {

// A factor over the axes that the Contract sees it with. The zero point of a quantised one is over
// the same axes or stretches over them.
struct Factor {
  Operand operand;
  std::optional<Operand> zero_point = std::nullopt;
};

// The operand itself, or a dense copy where it is padded by its view: kernels of matrix products
// read matrices that lie in memory.
Operand Unpadded(Lowering& lowering, const Operand& operand);

// Makes the factors reads 0 and 1 of `step`, which has none yet, and gives the contract their
// prologues: the elements less the zero points, as `accumulator`. Returns the sum of the products,
// for the epilogue to go on from.
Expr SumOfProducts(StepBuilder& step, const Factor& a, const Factor& b, ElementType accumulator,
                   program::Contract& contract);

// Ends `step`: output 0 is `value`, an epilogue, over its domain.
void FinishProduct(Lowering& lowering, StepBuilder& step, program::Contract contract, Expr value);

// A quantisation parameter of one element (scalar or [1]) or of one per index of `axis`, laid over
// `rank` axes. MISMATCHING_SHAPE for another shape.
Result<Operand> AlignParameter(Lowering& lowering, int input, int rank, int axis, Dim extent);

// A vector with one element per channel (a bias), laid over axis 1 of `rank` axes.
Result<Operand> ChannelVector(Lowering& lowering, int input, int rank, Dim channels);

// One of the 8-bit integers.
bool IsByte(ElementType type);

// The result of a quantised operator: `scaled` rounded to nearest even, plus the zero point,
// clamped to `type`.
Expr Quantized(Expr scaled, Expr zero_point, ElementType type);

}  // namespace onnxifi::ops

#endif  // ONNXIFI_BACKENDS_CORE_OPS_CONTRACT_PRODUCT_H_
