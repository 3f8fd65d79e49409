// SPDX-License-Identifier: Apache-2.0
//
// Loop: the body becomes a sub-program that runs until the trip count or its condition ends it.
// Values it carries keep the extents they enter with, or have free ones where an iteration changes
// them.

#include "backends/core/ops/control/bodies.h"
#include "backends/core/ops/registry.h"

namespace onnxifi::ops {
namespace {

using GraphAttribute = std::shared_ptr<const graph::Graph>;

Status LowerLoop(Lowering& lowering) {
  const GraphAttribute* attribute = lowering.node().FindAttribute<GraphAttribute>("body");
  if (attribute == nullptr) return lowering.InvalidModel("The attribute body is missing.");
  const graph::Graph& body = **attribute;
  int carried = std::max(0, lowering.input_count() - 2);
  int stacked = lowering.output_count() - carried;
  if (stacked < 0) {
    return lowering.InvalidModel("It has " + std::to_string(lowering.output_count()) +
                                 " outputs for " + std::to_string(carried) + " carried values.");
  }
  ONNXIFI_RETURN_IF_ERROR(CheckBodyArity(lowering, body, static_cast<size_t>(carried) + 2,
                                         static_cast<size_t>(carried + stacked) + 1));
  if (lowering.Has(0) && lowering.In(0).type() != ElementType::kInt64) {
    return lowering.UnsupportedType(0);
  }
  if (lowering.Has(1) && lowering.In(1).type() != ElementType::kBool) {
    return lowering.UnsupportedType(1);
  }
  std::vector<BodyLowering::Input> inputs = {{ElementType::kInt64, {}}, {ElementType::kBool, {}}};
  for (int k = 0; k < carried; ++k) {
    if (!lowering.Has(2 + k)) {
      return lowering.InvalidModel("Carried value " + std::to_string(k) + " is missing.");
    }
    const Operand& initial = lowering.In(2 + k);
    inputs.push_back({initial.type(), {initial.shape.begin(), initial.shape.end()}});
  }
  ONNXIFI_ASSIGN_OR_RETURN(BodyLowering::Body lowered,
                           LowerCarryingBody(lowering, body, inputs, /*first_input=*/2,
                                             /*first_output=*/1, carried));
  const program::Program& program = *lowered.program;
  if (program.buffers[program.outputs[0].buffer].type != ElementType::kBool) {
    return Status(Code::kMismatchingDatatype,
                  "Loop: The condition that its body gives is no bool.");
  }

  ControlBuilder builder(lowering, program::Control::Kind::kLoop);
  builder.control().carried = carried;
  for (int k = 0; k < 2 + carried; ++k) {
    builder.AddRead(lowering.Has(k) ? &lowering.In(k) : nullptr);
  }
  std::vector<ElementType> types;
  std::vector<std::vector<std::optional<Dim>>> extents;
  for (int k = 0; k < carried; ++k) {
    types.push_back(inputs[2 + k].type);
    extents.push_back(inputs[2 + k].extents);
  }
  for (int k = 0; k < stacked; ++k) {
    const int output = 1 + carried + k;
    types.push_back(program.buffers[program.outputs[output].buffer].type);
    std::vector<std::optional<Dim>> stack = {std::nullopt};
    const std::vector<std::optional<Dim>>& slice = lowered.output_extents[output];
    stack.insert(stack.end(), slice.begin(), slice.end());
    extents.push_back(std::move(stack));
    builder.control().stacked.push_back({});
  }
  builder.AddBody(std::move(lowered));
  for (size_t k = 0; k < types.size(); ++k) builder.AddOutput(types[k], extents[k]);
  builder.Emit();
  return base::Ok();
}

constexpr Operator kOperators[] = {{"Loop", 25, LowerLoop}};

}  // namespace

std::span<const Operator> LoopOperators() { return kOperators; }

}  // namespace onnxifi::ops
