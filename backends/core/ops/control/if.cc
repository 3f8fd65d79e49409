// SPDX-License-Identifier: Apache-2.0
//
// If: both branches become sub-programs; the condition is read when the program runs.

#include "backends/core/ops/control/bodies.h"
#include "backends/core/ops/registry.h"

namespace onnxifi::ops {
namespace {

using GraphAttribute = std::shared_ptr<const graph::Graph>;

Status LowerIf(Lowering& lowering) {
  ONNXIFI_RETURN_IF_ERROR(lowering.NeedInputs(1));
  const GraphAttribute* branches[] = {lowering.node().FindAttribute<GraphAttribute>("then_branch"),
                                      lowering.node().FindAttribute<GraphAttribute>("else_branch")};
  if (branches[0] == nullptr || branches[1] == nullptr) {
    return lowering.InvalidModel("A branch is missing; then_branch and else_branch are required.");
  }
  if (lowering.In(0).type() != ElementType::kBool) return lowering.UnsupportedType(0);
  ONNXIFI_RETURN_IF_ERROR(lowering.RequireEqual(tensor::Product(lowering.In(0).shape), 1,
                                                "The condition's element count and 1"));
  size_t outputs = static_cast<size_t>(lowering.output_count());
  std::vector<BodyLowering::Body> bodies;
  for (const GraphAttribute* branch : branches) {
    ONNXIFI_RETURN_IF_ERROR(CheckBodyArity(lowering, **branch, 0, outputs));
    ONNXIFI_ASSIGN_OR_RETURN(BodyLowering::Body body, lowering.bodies().LowerBody(**branch, {}));
    bodies.push_back(std::move(body));
  }

  ControlBuilder builder(lowering, program::Control::Kind::kIf);
  builder.AddRead(&lowering.In(0));
  std::vector<ElementType> types;
  std::vector<std::vector<std::optional<Dim>>> extents;
  for (size_t k = 0; k < outputs; ++k) {
    const program::Program& then_program = *bodies[0].program;
    const program::Program& else_program = *bodies[1].program;
    ElementType type = then_program.buffers[then_program.outputs[k].buffer].type;
    if (type != else_program.buffers[else_program.outputs[k].buffer].type) {
      return Status(Code::kMismatchingDatatype,
                    "If: The branches give output " + std::to_string(k) + " different types.");
    }
    std::vector<std::optional<Dim>> common = bodies[0].output_extents[k];
    const std::vector<std::optional<Dim>>& other = bodies[1].output_extents[k];
    if (common.size() != other.size()) {
      return lowering.UnsupportedShape("The branches give output " + std::to_string(k) + " " +
                                       std::to_string(common.size()) + " and " +
                                       std::to_string(other.size()) + " axes.");
    }
    for (size_t axis = 0; axis < common.size(); ++axis) {
      if (common[axis] != other[axis]) common[axis].reset();
    }
    types.push_back(type);
    extents.push_back(std::move(common));
  }
  for (BodyLowering::Body& body : bodies) builder.AddBody(std::move(body));
  for (size_t k = 0; k < outputs; ++k) builder.AddOutput(types[k], extents[k]);
  builder.Emit();
  return base::Ok();
}

constexpr Operator kOperators[] = {{"If", 25, LowerIf}};

}  // namespace

std::span<const Operator> IfOperators() { return kOperators; }

}  // namespace onnxifi::ops
