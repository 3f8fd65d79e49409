// SPDX-License-Identifier: Apache-2.0
//
// What If, Loop and Scan share.

#include "backends/core/ops/control/bodies.h"

#include "backends/core/ops/host_step.h"

namespace onnxifi::ops {

ControlBuilder::ControlBuilder(Lowering& lowering, program::Control::Kind kind)
    : lowering_(lowering) {
  control_.kind = kind;
}

int ControlBuilder::AddRead(const Operand* operand) {
  if (operand == nullptr) {
    reads_.emplace_back();
    control_.read_shapes.emplace_back();
  } else {
    Operand dense = lowering_.Dense(*operand);
    reads_.push_back(dense.view);
    control_.read_shapes.push_back(dense.shape);
  }
  return static_cast<int>(reads_.size()) - 1;
}

void ControlBuilder::AddBody(BodyLowering::Body body) {
  std::vector<int>& captures = control_.captures.emplace_back();
  for (const Operand& capture : body.captures) captures.push_back(AddRead(&capture));
  control_.bodies.push_back(std::move(body.program));
}

Status ControlBuilder::AddInput(int input, const BodyLowering::Input& as) {
  if (!as.value) {
    AddRead(lowering_.Has(input) ? &lowering_.In(input) : nullptr);
    return base::Ok();
  }
  ONNXIFI_ASSIGN_OR_RETURN(const NonTensorValue whole, AsNonTensorValue(lowering_, input));
  const Operand operand = whole.operand();
  AddRead(&operand);
  return base::Ok();
}

void ControlBuilder::AddOutput(const BodyLowering::Input& as) {
  int& first_symbol = control_.first_symbol.emplace_back();
  const auto output = static_cast<int>(writes_.size());
  if (as.value) {
    NonTensorValue whole = lowering_.DynamicNonTensorValue(*as.value);
    writes_.push_back(whole.operand().view);
    if (lowering_.Wants(output)) lowering_.SetNonTensorValue(output, std::move(whole));
    return;
  }
  Operand operand =
      lowering_.Dynamic(as.type, as.extents, "output" + std::to_string(output), first_symbol);
  writes_.push_back(operand.view);
  if (lowering_.Wants(output)) lowering_.Set(output, std::move(operand));
}

Operand ControlBuilder::AddTensor(ElementType type, const Shape& extents) {
  int& first_symbol = control_.first_symbol.emplace_back();
  Operand operand = lowering_.Dynamic(type, {extents.begin(), extents.end()},
                                      "output" + std::to_string(writes_.size()) + "." +
                                          std::to_string(lowering_.program().steps.size()),
                                      first_symbol);
  writes_.push_back(operand.view);
  return operand;
}

void ControlBuilder::Emit() {
  program::Step step;
  step.reads = std::move(reads_);
  step.writes = std::move(writes_);
  step.body = std::move(control_);
  lowering_.Emit(std::move(step));
}

Status CheckBodyArity(const Lowering& lowering, const graph::Graph& body, size_t inputs,
                      size_t outputs) {
  if (body.inputs.size() != inputs || body.outputs.size() != outputs) {
    return lowering.InvalidModel("Its body has " + std::to_string(body.inputs.size()) +
                                 " inputs and " + std::to_string(body.outputs.size()) +
                                 " outputs where " + std::to_string(inputs) + " and " +
                                 std::to_string(outputs) + " are required.");
  }
  return base::Ok();
}

BodyLowering::Input InputOfBody(const Lowering& lowering, int input) {
  if (!lowering.Has(input)) return {.value = lowering.InType(input)};
  const Operand& operand = lowering.In(input);
  return {operand.type(), {operand.shape.begin(), operand.shape.end()}};
}

BodyLowering::Input OutputOfBody(const BodyLowering::Body& body, size_t output) {
  const program::Buffer& buffer = body.program->buffers[body.program->outputs[output].buffer];
  if (buffer.value) return {.value = buffer.value};
  return {buffer.element_type(), body.output_extents[output]};
}

Status NeedTensor(const Lowering& lowering, const BodyLowering::Input& output, size_t position) {
  if (!output.value) return base::Ok();
  return lowering.InvalidModel("Output " + std::to_string(position) + " of its body is " +
                               ToString(*output.value) + " where a tensor is required.");
}

Result<BodyLowering::Body> LowerCarryingBody(Lowering& lowering, const graph::Graph& body,
                                             std::vector<BodyLowering::Input>& inputs,
                                             int first_input, int first_output, int carried) {
  std::vector<bool> is_whole(static_cast<size_t>(first_output + carried), false);
  for (int k = 0; k < carried; ++k) {
    is_whole[first_output + k] = inputs[first_input + k].value.has_value();
  }
  while (true) {
    ONNXIFI_ASSIGN_OR_RETURN(BodyLowering::Body lowered,
                             lowering.bodies().LowerBody(body, inputs, is_whole));
    bool is_stable = true;
    for (int k = 0; k < carried; ++k) {
      BodyLowering::Input& input = inputs[first_input + k];
      const BodyLowering::Input leaves = OutputOfBody(lowered, first_output + k);
      const std::string what = lowering.node().op_type + ": Carried value " + std::to_string(k);
      if (input.value) {
        ONNXIFI_ASSIGN_OR_RETURN(program::ValueType joined,
                                 program::Join(*input.value, *leaves.value, what));
        is_stable = is_stable && joined == *input.value;
        input.value = std::move(joined);
        continue;
      }
      if (leaves.value || leaves.type != input.type) {
        return Status(
            Code::kMismatchingDatatype,
            what + " enters as " + std::string(Name(input.type)) + " and leaves as " +
                (leaves.value ? ToString(*leaves.value) : std::string(Name(leaves.type))) + ".");
      }
      if (leaves.extents.size() != input.extents.size()) {
        return lowering.UnsupportedShape("Carried value " + std::to_string(k) + " enters with " +
                                         std::to_string(input.extents.size()) +
                                         " axes and leaves with " +
                                         std::to_string(leaves.extents.size()) + ".");
      }
      for (size_t axis = 0; axis < leaves.extents.size(); ++axis) {
        if (input.extents[axis] && leaves.extents[axis] != input.extents[axis]) {
          input.extents[axis].reset();
          is_stable = false;
        }
      }
    }
    if (is_stable) return lowered;
  }
}

Result<std::vector<Operand>> MakeLoop(Lowering& lowering, const Operand& trips,
                                      const std::vector<Operand>& carried,
                                      const std::vector<Operand>& captures,
                                      const BodyLowering::WriteBody& write) {
  std::vector<BodyLowering::Input> inputs = {{ElementType::kInt64, {}}, {ElementType::kBool, {}}};
  for (const Operand& operand : carried) {
    inputs.push_back({operand.type(), {operand.shape.begin(), operand.shape.end()}});
  }
  ONNXIFI_ASSIGN_OR_RETURN(
      BodyLowering::Body body,
      lowering.bodies().MakeBody(lowering.node(), inputs, captures,
                                 /*output_count=*/1 + static_cast<int>(carried.size()), write));
  ControlBuilder builder(lowering, program::Control::Kind::kLoop);
  builder.control().carried = static_cast<int>(carried.size());
  builder.AddRead(&trips);
  builder.AddRead(nullptr);
  for (const Operand& operand : carried) builder.AddRead(&operand);
  builder.AddBody(std::move(body));
  std::vector<Operand> results;
  for (const Operand& operand : carried) {
    results.push_back(builder.AddTensor(operand.type(), operand.shape));
  }
  builder.Emit();
  return results;
}

}  // namespace onnxifi::ops
