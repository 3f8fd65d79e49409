// SPDX-License-Identifier: Apache-2.0
//
// Loop: the choice among the loops for a node, fastest first.

#include "backends/cpu/engine/loop.h"

namespace onnxifi::engine {

Loop FindLoop(program::ExprOp op, tensor::ElementType type, tensor::ElementType from_type,
              LoopSet loops) {
  Loop loop = nullptr;
  if (op == program::ExprOp::kCast) {
    loop = FindCastLoop(from_type, type);
  } else {
    loop = FindArithmeticLoop(op, type, from_type);
    if (loop == nullptr && loops == LoopSet::kFast) loop = FindFunctionLoop(op, from_type);
  }
  return loop != nullptr ? loop : reference::FindOperation(op, type, from_type);
}

}  // namespace onnxifi::engine
