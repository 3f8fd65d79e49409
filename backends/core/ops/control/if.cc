// SPDX-License-Identifier: Apache-2.0
//
// If: both branches become sub-programs; the condition is read when the program runs. Where they
// give different ranks, the result has the greater one, with leading axes of extent 1, and is only
// for who broadcasts it to as many axes. Where others read it, lower_graph chooses a branch if
// extents tell the condition (branch_choices.h), and else moves them into the branches
// (sunk_readers.h).

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "backends/core/ops/control/bodies.h"
#include "backends/core/ops/registry.h"

namespace onnxifi::ops {
namespace {

using GraphAttribute = std::shared_ptr<const graph::Graph>;

// Puts axes of extent 1 before those of a body's output.
void PadRank(BodyLowering::Body& body, size_t output, size_t rank) {
  Shape& shape = body.program->outputs[output].shape;
  const size_t missing = rank - shape.size();
  shape.insert(shape.begin(), missing, Dim(1));
  std::vector<std::optional<Dim>>& extents = body.output_extents[output];
  extents.insert(extents.begin(), missing, Dim(1));
}

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
  // A tensor in one branch is an optional that has it where the other gives an optional.
  std::vector<bool> is_whole;
  bool differs = false;
  for (size_t k = 0; k < outputs; ++k) {
    const bool is_first = OutputOfBody(bodies[0], k).value.has_value();
    const bool is_second = OutputOfBody(bodies[1], k).value.has_value();
    is_whole.push_back(is_first || is_second);
    differs = differs || is_first != is_second;
  }
  for (size_t b = 0; differs && b < bodies.size(); ++b) {
    ONNXIFI_ASSIGN_OR_RETURN(bodies[b], lowering.bodies().LowerBody(**branches[b], {}, is_whole));
  }

  ControlBuilder builder(lowering, program::Control::Kind::kIf);
  builder.AddRead(&lowering.In(0));
  std::vector<BodyLowering::Input> results;
  for (size_t k = 0; k < outputs; ++k) {
    BodyLowering::Input common = OutputOfBody(bodies[0], k);
    BodyLowering::Input other = OutputOfBody(bodies[1], k);
    if (common.value) {
      ONNXIFI_ASSIGN_OR_RETURN(common.value, program::Join(*common.value, *other.value,
                                                           "If: Output " + std::to_string(k)));
      results.push_back(std::move(common));
      continue;
    }
    if (common.type != other.type) {
      return Status(Code::kMismatchingDatatype,
                    "If: The branches give output " + std::to_string(k) + " different types.");
    }
    if (common.extents.size() != other.extents.size()) {
      const size_t rank = std::max(common.extents.size(), other.extents.size());
      const auto then_rank = static_cast<int>(common.extents.size());
      const bool is_declared = lowering.DeclaredRank(static_cast<int>(k)) == then_rank;
      for (BodyLowering::Body& body : bodies) PadRank(body, k, rank);
      common = OutputOfBody(bodies[0], k);
      other = OutputOfBody(bodies[1], k);
      // The condition of a squeeze holds for one extent; that of its other branch for all others.
      lowering.SetOpenRank(static_cast<int>(k), is_declared ? Branch::kThen : Branch::kElse);
    }
    for (size_t axis = 0; axis < common.extents.size(); ++axis) {
      if (common.extents[axis] != other.extents[axis]) common.extents[axis].reset();
    }
    results.push_back(std::move(common));
  }
  for (BodyLowering::Body& body : bodies) builder.AddBody(std::move(body));
  for (const BodyLowering::Input& result : results) builder.AddOutput(result);
  builder.Emit();
  return base::Ok();
}

constexpr Operator kOperators[] = {{"If", 25, LowerIf, "", InputKinds::kValues}};

}  // namespace

std::span<const Operator> IfOperators() { return kOperators; }

}  // namespace onnxifi::ops
