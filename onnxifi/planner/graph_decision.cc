// SPDX-License-Identifier: Apache-2.0
//
// GraphDecision: a placement that the caller wants comes first, then known costs, then the order of
// the devices.

#include "onnxifi/planner/graph_decision.h"

#include <utility>

#include "onnxifi/split/placement.h"

namespace onnxifi::planner {

using base::Code;
using base::Status;
using plugins::ForwardedBackendId;
using Outcome = GraphDecision::Outcome;

namespace {

GraphDecision Refuse(Status refusal) {
  GraphDecision decision;
  decision.refusal = std::move(refusal);
  return decision;
}

GraphDecision GoBy(Outcome outcome, std::unique_ptr<AutoPlanner> planner) {
  GraphDecision decision;
  decision.outcome = outcome;
  decision.planner = std::move(planner);
  return decision;
}

// `refusal`: why the model is not cut.
GraphDecision StayWhole(std::vector<const ForwardedBackendId*> order, Status refusal = {}) {
  GraphDecision decision;
  decision.outcome = Outcome::kWhole;
  decision.devices = std::move(order);
  decision.refusal = std::move(refusal);
  return decision;
}

GraphDecision Emulate(const ForwardedBackendId& device) {
  GraphDecision decision = StayWhole({&device});
  decision.outcome = Outcome::kEmulated;
  return decision;
}

// Whether the model or the caller says of single nodes where they run.
bool PlacesNodes(const GraphQuestion& question) {
  const PlacementRequest& placement = question.placement;
  const bool is_whole = placement.kind == PlacementRequest::Kind::kPlan &&
                        placement.groups.size() == 1 && placement.groups.front().nodes.empty();
  return (!placement.groups.empty() && !is_whole) || !split::PlacementsOf(question.model).empty();
}

// A plan that keeps to what the caller and the model want, or nothing.
GraphDecision DecideWantedPlan(DeviceList devices, const GraphQuestion& question,
                               const CostSource& costs) {
  if (question.takes_values) {
    return Refuse(
        Status(Code::kInvalidProperty,
               "A graph whose inputs and outputs are values stays whole; none of its nodes can be"
               " placed."));
  }
  if (!question.weights) {
    return Refuse(
        Status(Code::kUnsupportedDatatype,
               "A weight is of an element type that cannot be handed from device to device."));
  }
  auto planner = AutoPlanner::Ask(devices, question.model, *question.weights, question.placement);
  if (!planner.ok()) return Refuse(std::move(planner).status());
  // What is given is not weighed.
  if (!(*planner)->has_given_plan()) costs.teach(**planner);
  if (auto plan = (*planner)->Plan(); !plan.ok()) return Refuse(std::move(plan).status());
  return GoBy(Outcome::kPlan, *std::move(planner));
}

// For a caller who prefers devices, or wants no others: where there is no plan, one of them may
// still take the whole model.
GraphDecision DecidePlaced(DeviceList devices, const GraphQuestion& question,
                           const CostSource& costs) {
  if (PlacesNodes(question)) return DecideWantedPlan(devices, question, costs);
  auto order = OrderDevices(devices, question.placement);
  if (!order.ok()) return Refuse(std::move(order).status());
  if (order->size() == 1 || question.takes_values) return StayWhole(*std::move(order));
  GraphDecision decision = DecideWantedPlan(devices, question, costs);
  const bool is_final = decision.outcome != Outcome::kRefused || !question.weights ||
                        decision.refusal.code() == Code::kInvalidProperty;
  return is_final ? std::move(decision) : StayWhole(*std::move(order), std::move(decision.refusal));
}

}  // namespace

GraphDecision Decide(DeviceList devices, const GraphQuestion& question, const CostSource& costs) {
  if (!question.placement.is_empty()) return DecidePlaced(devices, question, costs);
  const bool has_choice = devices.size() > 1 && !question.takes_values && question.weights;
  if (!has_choice || !costs.is_used()) return DecideByOrder(devices, question);
  auto planner = AutoPlanner::Ask(devices, question.model, *question.weights);
  // What cannot be cut or is not claimed is a device's, or explained at length.
  if (!planner.ok()) return DecideByOrder(devices, question);
  costs.teach(**planner);
  if (!(*planner)->Plan().ok()) return DecideByOrder(devices, question);
  return GoBy(Outcome::kPlan, *std::move(planner));
}

Status GraphDecision::Verdict() const {
  if (outcome == Outcome::kRefused) return refusal;
  bool is_emulated = outcome == Outcome::kEmulated;
  if (planner != nullptr) {
    const auto plan = planner->Plan();
    is_emulated = plan.ok() && planner->Emulates(*plan);
  }
  if (!is_emulated) return base::Ok();
  return {Code::kFallback, "Some of the nodes are emulated: no device has kernels for them."};
}

GraphDecision DecideByOrder(DeviceList devices, const GraphQuestion& question) {
  GraphDecision decision;
  decision.outcome = Outcome::kClaimant;
  if (question.takes_values) {
    DeviceChoice choice = ChooseDeviceForValues(devices, question.model);
    if (choice.device == nullptr && choice.emulating != nullptr) {
      return Emulate(*choice.emulating);
    }
    if (choice.device == nullptr) {
      // What devices answer goes by the types that the model declares for weights; they go by the
      // caller's.
      const bool has_weights = question.weights && !question.weights->empty();
      return has_weights ? StayWhole({devices.begin(), devices.end()})
                         : Refuse(std::move(choice.refusal));
    }
    decision.devices = {choice.device};
    return decision;
  }
  DeviceChoice choice = ChooseDevice(devices, question.model);
  if (choice.device == nullptr) {
    return DecideTogether(devices, question, std::move(choice.refusal), RefusalOf::kModelAlone);
  }
  decision.devices = {choice.device};
  return decision;
}

GraphDecision DecideTogether(DeviceList devices, const GraphQuestion& question, Status refusal,
                             RefusalOf refused) {
  // A graph of values stays whole, and what no plan can carry is the refusal's to explain.
  if (question.takes_values) return Refuse(std::move(refusal));
  if (question.weights) {
    auto planner =
        PlanTogether(devices, question.model, *question.weights, std::move(refusal), refused);
    if (planner.ok()) {
      // One device after all, by emulation or now that it knows the weights, has it as it is.
      const bool is_whole =
          refused == RefusalOf::kModelAlone && (*planner)->Plan()->islands.size() == 1;
      return GoBy(is_whole ? Outcome::kPlan : Outcome::kIslands, *std::move(planner));
    }
    refusal = std::move(planner).status();
  }
  const ForwardedBackendId* const emulating =
      refused == RefusalOf::kModelAlone ? ChooseDevice(devices, question.model).emulating : nullptr;
  return emulating == nullptr ? Refuse(std::move(refusal)) : Emulate(*emulating);
}

}  // namespace onnxifi::planner
