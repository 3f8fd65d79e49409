// SPDX-License-Identifier: Apache-2.0
//
// CompiledStep: a step as the reference runs it, before extents are known: its expressions
// compiled, its family's loops chosen. Select makes it (and says why it cannot), Build wraps it,
// Bind gives it numbers.

#ifndef ONNXIFI_BACKENDS_CORE_REFERENCE_COMPILED_STEP_H_
#define ONNXIFI_BACKENDS_CORE_REFERENCE_COMPILED_STEP_H_

#include <memory>

#include "backends/core/base/result.h"
#include "backends/core/device/device.h"
#include "backends/core/device/parallel.h"

namespace onnxifi::reference {

// Immutable; kept alive by the kernels bound from it.
class CompiledStep : public std::enable_shared_from_this<CompiledStep> {
 public:
  virtual ~CompiledStep() = default;
  // `parallel` outlives the kernel.
  virtual std::unique_ptr<device::BoundKernel> Bind(const device::BoundStep& step,
                                                    device::Parallel& parallel) const = 0;
};

using CompileResult = base::Result<std::shared_ptr<const CompiledStep>>;

// The families. Each refuses with an UNSUPPORTED_* status what it has no loops for.
CompileResult CompileMap(const program::Program& program, const program::Step& step);
CompileResult CompileReduce(const program::Program& program, const program::Step& step);
CompileResult CompileRow(const program::Program& program, const program::Step& step);
CompileResult CompileScan(const program::Program& program, const program::Step& step);
CompileResult CompileContract(const program::Program& program, const program::Step& step);
CompileResult CompileWindow(const program::Program& program, const program::Step& step);
CompileResult CompileAttention(const program::Program& program, const program::Step& step);
CompileResult CompileRecurrent(const program::Program& program, const program::Step& step);
CompileResult CompileIndex(const program::Program& program, const program::Step& step);
// Any family; UNSUPPORTED_OPERATOR for those that run on no device (Cut, Control).
CompileResult CompileStep(const program::Program& program, const program::Step& step);

// Indices per range that make a range worth handing to another thread, given the elements behind
// each index. All of them in one range where writes of a packed type could meet in a byte.
int64_t Grain(const device::BoundStep& step, int64_t count, int64_t elements_per_index);

}  // namespace onnxifi::reference

#endif  // ONNXIFI_BACKENDS_CORE_REFERENCE_COMPILED_STEP_H_
