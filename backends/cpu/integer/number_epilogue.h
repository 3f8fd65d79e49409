// SPDX-License-Identifier: Apache-2.0
//
// CompileNumberEpilogue, CopyNumber: the epilogue of a product with its constants as numbers.

#ifndef ONNXIFI_BACKENDS_CPU_INTEGER_NUMBER_EPILOGUE_H_
#define ONNXIFI_BACKENDS_CPU_INTEGER_NUMBER_EPILOGUE_H_

#include <optional>

#include "backends/core/device/device.h"
#include "backends/cpu/engine/code.h"

namespace onnxifi::integer {

// The epilogue of a Contract with constants of one element, such as a scale, as the numbers that
// they are: a division by a number is faster than one by what is loaded, and what follows from
// numbers alone is computed once.
engine::Code CompileNumberEpilogue(const device::BoundStep& step, device::Addresses constants,
                                   engine::LoopSet loops);

// In `own` the number that a node is which reads a constant of one element; nothing for others.
std::optional<program::ExprId> CopyNumber(const program::ExprNode& node,
                                          const device::BoundStep& step,
                                          device::Addresses constants, program::ExprPool& own);

}  // namespace onnxifi::integer

#endif  // ONNXIFI_BACKENDS_CPU_INTEGER_NUMBER_EPILOGUE_H_
