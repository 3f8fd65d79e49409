// SPDX-License-Identifier: Apache-2.0
//
// Plain operands: those of a Contract or Window step that are tensors in memory, which kernels read
// as they lie.

#ifndef ONNXIFI_BACKENDS_CPU_RUNTIME_PLAIN_OPERAND_H_
#define ONNXIFI_BACKENDS_CPU_RUNTIME_PLAIN_OPERAND_H_

#include "backends/core/base/status.h"
#include "backends/core/program/program.h"

namespace onnxifi::runtime {

// Ok for a plain operand of `type`, which may be widened to the type of the sum; else UNSUPPORTED_*
// with the reason: another type, padded by its view, or computed while it is read.
base::Status CheckPlain(const program::Program& program, const program::Step& step, int operand,
                        tensor::ElementType type = tensor::ElementType::kFloat32);

}  // namespace onnxifi::runtime

#endif  // ONNXIFI_BACKENDS_CPU_RUNTIME_PLAIN_OPERAND_H_
