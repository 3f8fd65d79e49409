// SPDX-License-Identifier: Apache-2.0
//
// Loop: the body becomes a sub-program that runs until the trip count or its condition ends it.
// Values it carries keep the extents they enter with, or have free ones where an iteration changes
// them. Of no iteration ONNX leaves open what a scan output's slice is like, and its reference
// fails: here the slice has the extents that the body gives for the values that enter, and 0 for
// those that only data of an iteration tell. ONNX Runtime takes them from what the body declares, 0
// for a symbol.

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
  for (const int k : {0, 1}) {
    if (!lowering.HasAny(k) || lowering.Has(k)) continue;
    return Status(Code::kMismatchingDatatype, "Loop: Input " + std::to_string(k) + " is a " +
                                                  ToString(lowering.InType(k)) +
                                                  "; a tensor is required.");
  }
  if (lowering.Has(0) && lowering.In(0).type() != ElementType::kInt64) {
    return lowering.UnsupportedType(0);
  }
  if (lowering.Has(1) && lowering.In(1).type() != ElementType::kBool) {
    return lowering.UnsupportedType(1);
  }
  std::vector<BodyLowering::Input> inputs = {{ElementType::kInt64, {}}, {ElementType::kBool, {}}};
  for (int k = 0; k < carried; ++k) {
    if (!lowering.HasAny(2 + k)) {
      return lowering.InvalidModel("Carried value " + std::to_string(k) + " is missing.");
    }
    inputs.push_back(InputOfBody(lowering, 2 + k));
  }
  ONNXIFI_ASSIGN_OR_RETURN(BodyLowering::Body lowered,
                           LowerCarryingBody(lowering, body, inputs, /*first_input=*/2,
                                             /*first_output=*/1, carried));
  const BodyLowering::Input condition = OutputOfBody(lowered, 0);
  if (condition.value || condition.type != ElementType::kBool) {
    return Status(Code::kMismatchingDatatype,
                  "Loop: The condition that its body gives is no bool.");
  }

  ControlBuilder builder(lowering, program::Control::Kind::kLoop);
  builder.control().carried = carried;
  for (int k = 0; k < 2 + carried; ++k) {
    ONNXIFI_RETURN_IF_ERROR(builder.AddInput(k, inputs[k]));
  }
  std::vector<BodyLowering::Input> results(inputs.begin() + 2, inputs.end());
  for (int k = 0; k < stacked; ++k) {
    const int output = 1 + carried + k;
    BodyLowering::Input& stack = results.emplace_back(OutputOfBody(lowered, output));
    ONNXIFI_RETURN_IF_ERROR(NeedTensor(lowering, stack, output));
    stack.extents.insert(stack.extents.begin(), std::nullopt);
    builder.control().stacked.push_back({});
  }
  builder.AddBody(std::move(lowered));
  for (const BodyLowering::Input& result : results) builder.AddOutput(result);
  builder.Emit();
  return base::Ok();
}

constexpr Operator kOperators[] = {{"Loop", 25, LowerLoop, "", InputKinds::kValues}};

}  // namespace

std::span<const Operator> LoopOperators() { return kOperators; }

}  // namespace onnxifi::ops
