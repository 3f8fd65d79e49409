// SPDX-License-Identifier: Apache-2.0
//
// HostStep: puts a Host step together: reads in the function's order, then writes in its order.

#ifndef ONNXIFI_BACKENDS_CORE_OPS_HOST_STEP_H_
#define ONNXIFI_BACKENDS_CORE_OPS_HOST_STEP_H_

#include <memory>
#include <utility>
#include <vector>

#include "backends/core/ops/lowering.h"
#include "backends/core/program/host_function.h"

namespace onnxifi::ops {

class HostStep {
 public:
  HostStep(Lowering& lowering, program::HostFunction function);

  void Read(const Operand& operand);  // made dense
  void Read(const NonTensorValue& value);
  void ReadNothing();  // an omitted input
  // Input `input` of the node, whatever it is, as that; nothing if it is omitted.
  Status ReadInput(int input);

  // An extent that is nothing is whatever the function produces; the others are checked then.
  Operand WriteTensor(ElementType type, const std::vector<std::optional<Dim>>& extents);
  NonTensorValue WriteNonTensorValue(program::ValueType type);
  // As a tensor where the type is of one that is surely there, else as a non-tensor value; set as
  // the node's output. UNSUPPORTED_SHAPE for a tensor of unknown rank.
  Status WriteOutput(int output, const program::ValueType& type);

  void Emit();

 private:
  Lowering& lowering_;
  program::Host host_;
  std::vector<View> reads_;
  std::vector<View> writes_;
};

// Input `input` of the node as a non-tensor value, whatever it is; a step makes one of a tensor or
// of a sequence of known length. INVALID_MODEL where the node leaves it out.
Result<NonTensorValue> AsNonTensorValue(Lowering& lowering, int input);

}  // namespace onnxifi::ops

#endif  // ONNXIFI_BACKENDS_CORE_OPS_HOST_STEP_H_
