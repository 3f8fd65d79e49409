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
  // Input `input` of the node, whatever it is, for a body's input of that kind.
  Status AddInput(int input, const BodyLowering::Input& as);
  void AddBody(BodyLowering::Body body);
  // Output k of the node, in order. An extent that is nothing is bound to what the step produced.
  void AddOutput(const BodyLowering::Input& as);
  // An output of the step that the lowering goes on with: a tensor of known extents.
  Operand AddTensor(ElementType type, const Shape& extents);
  void Emit();

 private:
  Lowering& lowering_;
  program::Control control_;
  std::vector<View> reads_;
  std::vector<View> writes_;
};

// INVALID_MODEL unless the body has so many inputs and outputs.
Status CheckBodyArity(const Lowering& lowering, const graph::Graph& body, size_t inputs,
                      size_t outputs);

// Input `input` of the node as a body gets it.
BodyLowering::Input InputOfBody(const Lowering& lowering, int input);
// Output `output` of a body as the step gives it.
BodyLowering::Input OutputOfBody(const BodyLowering::Body& body, size_t output);
// INVALID_MODEL unless the output is a tensor.
Status NeedTensor(const Lowering& lowering, const BodyLowering::Input& output, size_t position);

// Lowers a body whose input k carries the value of output `first_output` + k to the next iteration,
// for carried inputs `first_input`...; extents (and what is known of non-tensor values) that an
// iteration changes are made free until the body keeps the rest. `inputs` ends as what the body was
// lowered for.
Result<BodyLowering::Body> LowerCarryingBody(Lowering& lowering, const graph::Graph& body,
                                             std::vector<BodyLowering::Input>& inputs,
                                             int first_input, int first_output, int carried);

// A loop that an operator writes itself, of at most `trips` iterations (int64, a scalar). Of the
// number of the iteration, a condition, `carried` and `captures` its body gives whether to go on
// and the carried ones, of the same extents; so the result.
Result<std::vector<Operand>> MakeLoop(Lowering& lowering, const Operand& trips,
                                      const std::vector<Operand>& carried,
                                      const std::vector<Operand>& captures,
                                      const BodyLowering::WriteBody& write);

}  // namespace onnxifi::ops

#endif  // ONNXIFI_BACKENDS_CORE_OPS_CONTROL_BODIES_H_
