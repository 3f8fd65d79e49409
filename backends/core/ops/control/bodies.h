// SPDX-License-Identifier: Apache-2.0
//
// What If, Loop and Scan share: captured values as reads of the step, and outputs whose extents the
// step may decide.

#ifndef ONNXIFI_BACKENDS_CORE_OPS_CONTROL_BODIES_H_
#define ONNXIFI_BACKENDS_CORE_OPS_CONTROL_BODIES_H_

#include <memory>
#include <vector>

#include "backends/core/ops/lowering.h"

namespace onnxifi::ops {

// Puts a control step together. Reads are added first, then bodies, then outputs.
class ControlBuilder {
 public:
  ControlBuilder(Lowering& lowering, program::Control::Kind kind);

  program::Control& control() { return control_; }
  // A read of the step, made dense; `operand` may be null for a missing optional input.
  int AddRead(const Operand* operand);
  void AddBody(BodyLowering::Body body);
  // Output k of the node, in order. An extent that is nothing is bound to what the step produced.
  void AddOutput(ElementType type, const std::vector<std::optional<Dim>>& extents);
  void Emit();

 private:
  Lowering& lowering_;
  program::Control control_;
  std::vector<View> reads_;
  std::vector<View> writes_;
};

// The body's output types must be those of the node's declared rank and of `expected`:
// MISMATCHING_DATATYPE otherwise.
Status CheckBodyArity(const Lowering& lowering, const graph::Graph& body, size_t inputs,
                      size_t outputs);

// Lowers a body whose input k carries the value of output `first_output` + k to the next iteration,
// for carried inputs `first_input`...; extents that an iteration changes are made free until the
// body keeps the rest. `inputs` ends as what the body was lowered for.
Result<BodyLowering::Body> LowerCarryingBody(Lowering& lowering, const graph::Graph& body,
                                             std::vector<BodyLowering::Input>& inputs,
                                             int first_input, int first_output, int carried);

}  // namespace onnxifi::ops

#endif  // ONNXIFI_BACKENDS_CORE_OPS_CONTROL_BODIES_H_
