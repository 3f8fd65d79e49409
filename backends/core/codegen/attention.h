// SPDX-License-Identifier: Apache-2.0
//
// Attention: the kernels for a step and their loops: a group for every block of queries and of
// values of a batch and, where these are few, for every part of the keys; then another kernel joins
// the parts. WriteAttention of family.h writes them.

#ifndef ONNXIFI_BACKENDS_CORE_CODEGEN_ATTENTION_H_
#define ONNXIFI_BACKENDS_CORE_CODEGEN_ATTENTION_H_

#include "backends/core/codegen/expression.h"
#include "backends/core/codegen/kernel_sequence.h"
#include "backends/core/codegen/loop_nest.h"

namespace onnxifi::codegen {

// Whether a GPU does the step faster so than as the steps that it stands for.
bool IsWorthwhileAttention(const program::Step& step);

// `loops` are those of the step.
KernelSequence MakeAttentionKernels(const LoopFacts& facts, const device::BoundStep& step,
                                    LoopNest loops, const Capabilities& capabilities);

}  // namespace onnxifi::codegen

#endif  // ONNXIFI_BACKENDS_CORE_CODEGEN_ATTENTION_H_
