// SPDX-License-Identifier: Apache-2.0
//
// OperandExtents: what the operands of a step are over. A view has no extents of its own; most are
// over the step's domain, but A and B of a Contract, X of a Window, Q, K and V of Attention and all
// reads of a Recurrent are over axes that follow from the definition of the step.

#ifndef ONNXIFI_BACKENDS_CORE_PROGRAM_OPERAND_EXTENTS_H_
#define ONNXIFI_BACKENDS_CORE_PROGRAM_OPERAND_EXTENTS_H_

#include <cstdint>
#include <span>

#include "backends/core/program/step.h"
#include "backends/core/tensor/tensor.h"

namespace onnxifi::program {

// How many of the step's reads, the first ones, are such operands: A and B of a Contract, X of a
// Window, Q, K and V of Attention, all of a Recurrent, none of any other family.
int OperandCount(const Step& step);

// Extents of the axes of an operand, which are those of all that its prologue reads: [batch, m, k]
// and [batch, k, n] of a matrix product; [N, C, spatial] of a Window and of a convolution's A;
// [M, C / group, kernel] of a convolution's B, [C, M / group, kernel] of a transposed one's;
// those of Attention and Recurrent as they say.
// `operand` < OperandCount(step). May make new Dims.
Shape OperandShape(const Step& step, int operand);

// The same in numbers: `dims` gives that of every Dim of the program, as in device::BoundStep.
tensor::Extents OperandExtents(const Step& step, int operand, std::span<const int64_t> dims);

}  // namespace onnxifi::program

#endif  // ONNXIFI_BACKENDS_CORE_PROGRAM_OPERAND_EXTENTS_H_
