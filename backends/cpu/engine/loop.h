// SPDX-License-Identifier: Apache-2.0
//
// Loop: one node of a scalar expression on the lanes of a tile. The vector loops of this folder
// where there are some, the reference's plain loops for every other pair of operation and type.

#ifndef ONNXIFI_BACKENDS_CPU_ENGINE_LOOP_H_
#define ONNXIFI_BACKENDS_CPU_ENGINE_LOOP_H_

#include <cstdint>

#include "backends/core/program/expr.h"
#include "backends/core/reference/operation.h"

namespace onnxifi::engine {

using LoopOperands = reference::Operands;
// Any number of lanes; reads and writes no byte beyond them. The result may be an input, or overlap
// none.
using Loop = reference::Operation;

enum class LoopSet : uint8_t {
  // Vector approximations of exp, log, tanh and their like, within the bounds of
  // vector_math.
  kFast,
  // Those functions as the reference computes them; every result is then the reference's, bit for
  // bit.
  kReference,
};

// The loop for a node that is not a leaf, or null if there is none for its types.
Loop FindLoop(program::ExprOp op, tensor::ElementType type, tensor::ElementType from_type,
              LoopSet loops);

// The vector loops alone, for the processor that this runs on; null where there is none.
Loop FindArithmeticLoop(program::ExprOp op, tensor::ElementType type,
                        tensor::ElementType from_type);
Loop FindCastLoop(tensor::ElementType from, tensor::ElementType to);
// float32 that is cast to float16 or bfloat16 and back, at once.
Loop FindCastAndBackLoop(tensor::ElementType type);
Loop FindFunctionLoop(program::ExprOp op, tensor::ElementType type);

}  // namespace onnxifi::engine

#endif  // ONNXIFI_BACKENDS_CPU_ENGINE_LOOP_H_
