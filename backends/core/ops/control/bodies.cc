// SPDX-License-Identifier: Apache-2.0
//
// What If, Loop and Scan share.

#include "backends/core/ops/control/bodies.h"

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

void ControlBuilder::AddOutput(ElementType type, const std::vector<std::optional<Dim>>& extents) {
  tensor::DimTable& dims = *lowering_.program().dims;
  control_.first_symbol.push_back(dims.symbol_count());
  int output = static_cast<int>(writes_.size());
  Shape shape;
  for (size_t axis = 0; axis < extents.size(); ++axis) {
    Dim symbol = dims.NewSymbol(lowering_.node().op_type + std::to_string(lowering_.node().index) +
                                    ".output" + std::to_string(output) + "." + std::to_string(axis),
                                /*is_data=*/true);
    shape.push_back(extents[axis] ? *extents[axis] : symbol);
  }
  program::Buffer buffer;
  buffer.kind = program::Buffer::Kind::kDynamic;
  buffer.type = type;
  buffer.shape = shape;
  program::BufferId id = lowering_.program().AddBuffer(std::move(buffer));
  View view = program::DenseView(id, type, shape);
  writes_.push_back(view);
  if (lowering_.Wants(output)) lowering_.Set(output, {view, shape});
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

Result<BodyLowering::Body> LowerCarryingBody(Lowering& lowering, const graph::Graph& body,
                                             std::vector<BodyLowering::Input>& inputs,
                                             int first_input, int first_output, int carried) {
  while (true) {
    ONNXIFI_ASSIGN_OR_RETURN(BodyLowering::Body lowered, lowering.bodies().LowerBody(body, inputs));
    bool is_stable = true;
    for (int k = 0; k < carried; ++k) {
      BodyLowering::Input& input = inputs[first_input + k];
      const program::Port& port = lowered.program->outputs[first_output + k];
      ElementType type = lowered.program->buffers[port.buffer].type;
      if (type != input.type) {
        return Status(Code::kMismatchingDatatype,
                      lowering.node().op_type + ": Carried value " + std::to_string(k) +
                          " enters as " + std::string(Name(input.type)) + " and leaves as " +
                          std::string(Name(type)) + ".");
      }
      if (port.shape.size() != input.extents.size()) {
        return lowering.UnsupportedShape("Carried value " + std::to_string(k) + " enters with " +
                                         std::to_string(input.extents.size()) +
                                         " axes and leaves with " +
                                         std::to_string(port.shape.size()) + ".");
      }
      const auto& leaves = lowered.output_extents[first_output + k];
      for (size_t axis = 0; axis < leaves.size(); ++axis) {
        if (input.extents[axis] && leaves[axis] != input.extents[axis]) {
          input.extents[axis].reset();
          is_stable = false;
        }
      }
    }
    if (is_stable) return lowered;
  }
}

}  // namespace onnxifi::ops
