// SPDX-License-Identifier: Apache-2.0
//
// HostStep.

#include "backends/core/ops/host_step.h"

namespace onnxifi::ops {

HostStep::HostStep(Lowering& lowering, program::HostFunction function) : lowering_(lowering) {
  host_.function = std::make_shared<const program::HostFunction>(std::move(function));
  host_.context = "while running " + graph::Describe(lowering.node());
}

void HostStep::Read(const Operand& operand) {
  Operand dense = lowering_.Dense(operand);
  reads_.push_back(dense.view);
  host_.read_shapes.push_back(dense.shape);
}

void HostStep::Read(const NonTensorValue& value) {
  reads_.push_back(value.operand().view);
  host_.read_shapes.emplace_back();
}

void HostStep::ReadNothing() {
  reads_.emplace_back();
  host_.read_shapes.emplace_back();
}

Status HostStep::ReadInput(int input) {
  if (!lowering_.HasAny(input)) {
    ReadNothing();
  } else if (lowering_.Has(input)) {
    Read(lowering_.In(input));
  } else {
    ONNXIFI_ASSIGN_OR_RETURN(const NonTensorValue value, AsNonTensorValue(lowering_, input));
    Read(value);
  }
  return base::Ok();
}

Operand HostStep::WriteTensor(ElementType type, const std::vector<std::optional<Dim>>& extents) {
  Operand operand = lowering_.Dynamic(type, extents, "output" + std::to_string(writes_.size()),
                                      host_.first_symbol.emplace_back());
  writes_.push_back(operand.view);
  return operand;
}

NonTensorValue HostStep::WriteNonTensorValue(program::ValueType type) {
  NonTensorValue value = lowering_.DynamicNonTensorValue(std::move(type));
  host_.first_symbol.push_back(0);
  writes_.push_back(value.operand().view);
  return value;
}

Status HostStep::WriteOutput(int output, const program::ValueType& type) {
  if (!type.is_tensor() || type.may_be_missing) {
    lowering_.SetNonTensorValue(output, WriteNonTensorValue(type));
    return base::Ok();
  }
  std::optional<int> rank = type.rank >= 0 ? type.rank : lowering_.DeclaredRank(output);
  if (!rank) {
    return lowering_.UnsupportedShape("The number of axes of output " + std::to_string(output) +
                                      " is not known before the graph runs.");
  }
  if (type.element == ElementType::kUndefined) {
    return Status(Code::kUnsupportedDatatype,
                  lowering_.node().op_type + ": The element type of output " +
                      std::to_string(output) + " is not known before the graph runs.");
  }
  std::vector<std::optional<Dim>> extents(static_cast<size_t>(*rank));
  for (size_t axis = 0; axis < type.extents.size(); ++axis) {
    if (type.extents[axis] != program::ValueType::kAnyExtent) extents[axis] = type.extents[axis];
  }
  lowering_.Set(output, WriteTensor(type.element, extents));
  return base::Ok();
}

void HostStep::Emit() {
  program::Step step;
  step.reads = std::move(reads_);
  step.writes = std::move(writes_);
  step.body = std::move(host_);
  lowering_.Emit(std::move(step));
}

Result<NonTensorValue> AsNonTensorValue(Lowering& lowering, int input) {
  if (const NonTensorValue* value = lowering.InNonTensorValue(input)) return *value;
  if (const Sequence* sequence = lowering.InSequence(input)) {
    HostStep step(lowering, program::MakeSequence());
    for (const Operand& tensor : sequence->tensors) step.Read(tensor);
    const NonTensorValue value = step.WriteNonTensorValue(sequence->type());
    step.Emit();
    return value;
  }
  if (!lowering.Has(input)) {
    return lowering.InvalidModel("Input " + std::to_string(input) + " is missing.");
  }
  HostStep step(lowering, program::PassValue());
  step.Read(lowering.In(input));
  const NonTensorValue value = step.WriteNonTensorValue(lowering.InType(input));
  step.Emit();
  return value;
}

}  // namespace onnxifi::ops
