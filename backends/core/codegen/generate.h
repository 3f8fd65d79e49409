// SPDX-License-Identifier: Apache-2.0
//
// Generate: from a step to the source of kernels that do it, for every family that devices have.
// The general kernels of a device: right for every step, shape and type. Where they are slow, a
// device has kernels of its own in front of them.

#ifndef ONNXIFI_BACKENDS_CORE_CODEGEN_GENERATE_H_
#define ONNXIFI_BACKENDS_CORE_CODEGEN_GENERATE_H_

#include <array>
#include <cstdint>
#include <vector>

#include "backends/core/base/status.h"
#include "backends/core/codegen/dialect.h"
#include "backends/core/codegen/expression.h"
#include "backends/core/codegen/kernel_text.h"
#include "backends/core/codegen/loop_nest.h"
#include "backends/core/program/program.h"

namespace onnxifi::codegen {

// Whether Generate has a kernel for the step: UNSUPPORTED_DATATYPE or UNSUPPORTED_OPERATOR. Pure
// and without text, for Select.
base::Status Check(const program::Program& program, const program::Step& step,
                   const Capabilities& capabilities);

// The kernels that do a step, one after the other, one for most steps. What one leaves for the next
// lies in up to two pieces of working memory.
struct Parts {
  struct Part {
    int kernel = 0;              // number `kernel` of the step's kernels
    bool swaps_scratch = false;  // it sees the two pieces the other way round
    LoopNest loops;
  };
  std::vector<Part> parts;
  std::array<int64_t, 2> scratch_bytes = {0, 0};
};
inline constexpr int kMostKernels = 3;

// `facts` are those of the step, which lives as long as what is returned.
Parts MakeParts(const LoopFacts& facts, const device::BoundStep& step);

// Kernel `kernel` of a step that passed Check and was bound to loops of this form.
KernelText Generate(const program::Program& program, const program::Step& step, int kernel,
                    const LoopForm& form, const Capabilities& capabilities, const Dialect& dialect);

}  // namespace onnxifi::codegen

#endif  // ONNXIFI_BACKENDS_CORE_CODEGEN_GENERATE_H_
