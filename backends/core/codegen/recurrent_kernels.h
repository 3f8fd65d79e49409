// SPDX-License-Identifier: Apache-2.0
//
// MakeRecurrentKernels: the kernels of a recurrence. A group goes through the time steps of one row
// of the batch in one direction, with the states in shared memory and the weights turned, so that
// neighbouring items read neighbouring weights.

#ifndef ONNXIFI_BACKENDS_CORE_CODEGEN_RECURRENT_KERNELS_H_
#define ONNXIFI_BACKENDS_CORE_CODEGEN_RECURRENT_KERNELS_H_

#include "backends/core/base/status.h"
#include "backends/core/codegen/expression.h"
#include "backends/core/codegen/kernel_sequence.h"
#include "backends/core/program/step.h"

namespace onnxifi::codegen {

// The kernels of a recurrent step, and the working memory by which they know each other.
enum RecurrentKernel { kTurnWeights, kRecur };
enum RecurrentScratch { kTurnedWeights, kHiddenStates, kCellStates };

// Ok where shared memory holds the states of a row; else UNSUPPORTED_SHAPE.
base::Status CheckRecurrent(const program::Step& step);

KernelSequence MakeRecurrentKernels(const device::BoundStep& step, LoopNest loops,
                                    const Capabilities& capabilities);

}  // namespace onnxifi::codegen

#endif  // ONNXIFI_BACKENDS_CORE_CODEGEN_RECURRENT_KERNELS_H_
