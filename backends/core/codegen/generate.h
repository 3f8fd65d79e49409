// SPDX-License-Identifier: Apache-2.0
//
// Generate: from a step to the source of kernels that do it, for every family that devices have.
// The general kernels of a device: right for every step, shape and type. Where they are slow, a
// device has kernels of its own in front of them.

#ifndef ONNXIFI_BACKENDS_CORE_CODEGEN_GENERATE_H_
#define ONNXIFI_BACKENDS_CORE_CODEGEN_GENERATE_H_

#include <string_view>

#include "backends/core/base/status.h"
#include "backends/core/codegen/dialect.h"
#include "backends/core/codegen/expression.h"
#include "backends/core/codegen/kernel_sequence.h"
#include "backends/core/codegen/kernel_text.h"
#include "backends/core/codegen/loop_nest.h"
#include "backends/core/program/program.h"

namespace onnxifi::codegen {

// Whether Generate has a kernel for the step: UNSUPPORTED_DATATYPE or UNSUPPORTED_OPERATOR. Pure
// and without text, for Select.
base::Status Check(const program::Program& program, const program::Step& step,
                   const Capabilities& capabilities);

// `facts` are those of the step, which lives as long as what is returned.
KernelSequence MakeKernelSequence(const LoopFacts& facts, const device::BoundStep& step,
                                  const Capabilities& capabilities);

// Kernel `kernel` of a step that passed Check and was bound to loops of this form. `library` has
// the functions of matrix units, if the device has these.
KernelText Generate(const program::Program& program, const program::Step& step, int kernel,
                    const LoopForm& form, const Capabilities& capabilities, const Dialect& dialect,
                    std::string_view library = {});

}  // namespace onnxifi::codegen

#endif  // ONNXIFI_BACKENDS_CORE_CODEGEN_GENERATE_H_
