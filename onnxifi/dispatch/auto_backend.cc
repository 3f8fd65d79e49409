// SPDX-License-Identifier: Apache-2.0
//
// AutoBackend: the outcomes of a decision, one after the other.

#include "onnxifi/dispatch/auto_backend.h"

#include <onnxifi/sdk.h>

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "backends/core/base/log.h"
#include "backends/core/tensor/element_type.h"
#include "onnxifi/measurement/plan_measurement.h"
#include "onnxifi/partitioned/planned_graph.h"
#include "onnxifi/planner/auto_planner.h"
#include "onnxifi/plugins/device_request.h"
#include "onnxifi/plugins/forwarded_graph.h"
#include "onnxifi/split/small_tensors.h"

namespace onnxifi::dispatch {

using base::Code;
using base::Status;
using measurement::PlanMeasurement;
using partitioned::PlannedGraph;
using planner::AutoOptions;
using planner::AutoPlanner;
using planner::CostSource;
using planner::Decide;
using planner::DecideByOrder;
using planner::DecideTogether;
using planner::DeviceList;
using planner::GraphDecision;
using planner::GraphQuestion;
using planner::IsOfDevice;
using planner::PlacementRequest;
using planner::RefusalOf;
using plugins::ForwardedBackendId;
using plugins::ForwardedGraph;
using plugins::PluginBackend;
using plugins::RequestFor;
using plugins::Without;

namespace {

// The request for devices that get models made of parts of this one, which are no mapped files and
// do not last.
abi::GraphRequest ForMadeModels(const abi::GraphRequest& request) {
  return Without(Without(request, ONNXIFI_SDK_GRAPH_PROPERTY_MAPPED_MODEL),
                 ONNXIFI_SDK_GRAPH_PROPERTY_LASTING_MODEL);
}

// What the planner knows of the caller's weights; nothing where no plan can carry one.
std::optional<std::vector<split::GivenWeight>> GivenWeights(const abi::GraphRequest& request) {
  std::vector<split::GivenWeight> weights;
  for (const abi::TensorDescriptor& weight : request.weights) {
    const auto type = tensor::ElementTypeFromOnnx(static_cast<int64_t>(weight.data_type));
    if (!type) return std::nullopt;
    weights.push_back({weight.name,
                       *type,
                       {weight.shape.begin(), weight.shape.end()},
                       static_cast<const std::byte*>(weight.cpu_data())});
  }
  return weights;
}

// Adds a line for each node that the device refuses.
void AddRefusedNodes(const ForwardedBackendId& device, std::span<const std::byte> model,
                     Status& answer) {
  const auto explanation = device.Explain(model);
  if (!explanation.ok()) return;
  for (const abi::NodeVerdict& node : explanation->nodes) {
    if (node.code == Code::kOk || node.code == Code::kFallback) continue;
    answer.Context(device.key() + ", node " + std::to_string(node.node_index) +
                   (node.node_name.empty() ? "" : " '" + node.node_name + "'") + " (" +
                   node.operator_type + "): " + node.sentence);
  }
}

}  // namespace

base::Result<std::shared_ptr<const PluginBackend>> AutoBackend::BackendOf(
    const ForwardedBackendId& device) {
  std::lock_guard lock(mutex_);
  std::shared_ptr<const PluginBackend>& known = backends_[&device];
  if (known == nullptr) {
    ONNXIFI_ASSIGN_OR_RETURN(known, PluginBackend::Init(device.calls(), properties_.given));
  }
  return known;
}

base::Result<std::unique_ptr<abi::Graph>> AutoBackend::InitOn(const ForwardedBackendId& device,
                                                              const Request& request) {
  if (request.options.has_fallback) {
    auto graph = InitWithFallback(device, request);
    if (graph.ok()) return graph;
    base::Log(request.graph.log_level)
        .Write(base::LogLevel::kWarning, "partition",
               "Nothing goes on with the graph if device '" + device.key() + "' fails. " +
                   graph.status().Text());
  }
  ONNXIFI_ASSIGN_OR_RETURN(std::shared_ptr<const PluginBackend> backend, BackendOf(device));
  return ForwardedGraph::Init(std::move(backend), RequestFor(device, request.graph));
}

base::Result<std::unique_ptr<abi::Graph>> AutoBackend::InitWithFallback(
    const ForwardedBackendId& device, const Request& request) {
  auto weights = GivenWeights(request.graph);
  if (!weights || request.graph.properties.takes_values) {
    return Status(Code::kUnsupportedDatatype,
                  "Some of its inputs, outputs or weights cannot be handed to another device.");
  }
  PlacementRequest whole;
  whole.kind = PlacementRequest::Kind::kPlan;
  whole.groups.push_back({device.key(), /*nodes=*/{}});
  ONNXIFI_ASSIGN_OR_RETURN(
      const std::unique_ptr<AutoPlanner> planner,
      AutoPlanner::Ask(devices_, request.graph.model, *std::move(weights), whole));
  ONNXIFI_ASSIGN_OR_RETURN(const partition::Plan plan, planner->Plan());
  const partition::Island& island = plan.islands.front();
  if (!planner->IsClaimedElsewhere(island.device, island.nodes)) {
    return Status(Code::kUnsupportedOperator, "The others do not take all of its nodes.");
  }
  return InitIslands(*planner, request);
}

base::Result<std::unique_ptr<abi::Graph>> AutoBackend::InitIslands(AutoPlanner& planner,
                                                                   const Request& request) {
  return PlannedGraph::Create(
      planner, [this](const ForwardedBackendId& device) { return BackendOf(device); },
      ForMadeModels(request.graph), pool_);
}

base::Result<std::unique_ptr<abi::Graph>> AutoBackend::InitGraph(const abi::GraphRequest& given) {
  // Devices are asked by the bytes of the model alone: what lies beside them and may decide shapes
  // comes with them. Where it does, nothing is left to bring.
  if (const std::optional<std::string>& folder = given.properties.base_folder) {
    ONNXIFI_ASSIGN_OR_RETURN(const std::optional<std::string> completed,
                             split::WithSmallTensors(given.model, *folder));
    if (completed) {
      abi::GraphRequest with_them = ForMadeModels(given);
      with_them.model = std::as_bytes(std::span(*completed));
      return InitGraph(with_them);
    }
  }
  Request request = {.graph = given, .options = {}};
  ONNXIFI_ASSIGN_OR_RETURN(request.options, AutoOptions::Take(request.graph.properties.given));
  GraphQuestion question;
  question.model = request.graph.model;
  question.weights = GivenWeights(request.graph);
  question.takes_values = request.graph.properties.takes_values;
  question.placement = request.options.placement;
  CostSource costs;
  costs.is_used = [&] { return request.measures() || costs_.HasAny(); };
  costs.teach = [&](AutoPlanner& planner) { UseCosts(planner, request); };
  return Init(Decide(devices_, question, costs), request, question, devices_);
}

base::Result<std::unique_ptr<abi::Graph>> AutoBackend::Init(GraphDecision decision,
                                                            const Request& request,
                                                            const GraphQuestion& question,
                                                            DeviceList asked) {
  using Outcome = GraphDecision::Outcome;
  switch (decision.outcome) {
    case Outcome::kRefused:
      break;
    case Outcome::kClaimant:
      return InitOnClaimant(*decision.devices.front(), request, question, asked);
    case Outcome::kEmulated:
      return InitOn(*decision.devices.front(), request);
    case Outcome::kWhole:
      return InitWhole(decision.devices, decision.refusal, request);
    case Outcome::kPlan:
      return InitByPlan(*decision.planner, request);
    case Outcome::kIslands:
      return InitIslands(*decision.planner, request);
  }
  return std::move(decision.refusal);
}

base::Result<std::unique_ptr<abi::Graph>> AutoBackend::InitOnClaimant(
    const ForwardedBackendId& device, const Request& request, const GraphQuestion& question,
    DeviceList asked) {
  auto graph = InitOn(device, request);
  if (graph.ok()) return graph;
  Status refusal = std::move(graph).status();
  refusal.Context("on device '" + device.key() + "', the first that claims every node");
  if (IsOfDevice(refusal.code()) && asked.size() > 1) {
    return InitOnOthers(device, std::move(refusal), request, question, asked);
  }
  // No other claimant is looked for, so that this ends.
  return Init(DecideTogether(asked, question, std::move(refusal), RefusalOf::kWithWeights), request,
              question, asked);
}

base::Result<std::unique_ptr<abi::Graph>> AutoBackend::InitOnOthers(
    const ForwardedBackendId& claimant, Status refusal, const Request& request,
    const GraphQuestion& question, DeviceList asked) {
  // Ends: each round has a device less.
  std::vector<const ForwardedBackendId*> others(asked.begin(), asked.end());
  std::erase(others, &claimant);
  auto graph = Init(DecideByOrder(others, question), request, question, others);
  if (!graph.ok()) {
    refusal.Context("Nor does another: " + graph.status().Text());
    // A part of the graph may still be the claimant's.
    return Init(DecideTogether(asked, question, std::move(refusal), RefusalOf::kWithWeights),
                request, question, asked);
  }
  base::Log(request.graph.log_level)
      .Write(base::LogLevel::kWarning, "auto",
             "Another device has the graph, for '" + claimant.key() +
                 "' claims it and does not take it. " + refusal.Text());
  return graph;
}

void AutoBackend::UseCosts(AutoPlanner& planner, const Request& request) {
  if (request.measures()) {
    // Cost tables have times in float32. A trial is gone before a device's search for its fastest
    // implementations pays: the graph itself has that.
    abi::GraphRequest trial = request.graph;
    for (const uint64_t property :
         {ONNXIFI_SDK_GRAPH_PROPERTY_PRECISION, ONNXIFI_SDK_GRAPH_PROPERTY_DYNAMIC_QUANTIZATION,
          ONNXIFI_SDK_GRAPH_PROPERTY_MEASURE}) {
      trial = Without(std::move(trial), property);
    }
    const abi::GraphRequest parts = ForMadeModels(trial);
    // As the graph will be run, but for that and what is behind it.
    const Request alone = {.graph = trial, .options = {}};
    PlanMeasurement measurement(planner, costs_, parts);
    measurement.MeasureNodes(
        [this](const ForwardedBackendId& device) { return BackendOf(device); });
    measurement.MeasureCandidates([&] { return InitByPlan(planner, alone); });
  }
  planner.UseCosts(costs_.Known());
}

base::Result<std::unique_ptr<abi::Graph>> AutoBackend::InitWhole(
    std::span<const ForwardedBackendId* const> order, const Status& refusal,
    const Request& request) {
  Status answer;
  for (const ForwardedBackendId* device : order) {
    auto graph = InitOn(*device, request);
    if (graph.ok()) return graph;
    const Status reason = std::move(graph).status();
    if (answer.ok()) {
      answer = Status(reason.code(), order.size() == 1
                                         ? "Device '" + device->key() +
                                               "', where the graph is wanted, does not run it."
                                         : "No device that may have the graph runs all of it.");
    }
    answer.Context(device->key() + ": " + reason.Text());
    AddRefusedNodes(*device, request.graph.model, answer);
  }
  if (!refusal.ok()) answer.Context("Nor do several together: " + refusal.Text());
  return answer;
}

base::Result<std::unique_ptr<abi::Graph>> AutoBackend::InitByPlan(AutoPlanner& planner,
                                                                  const Request& request) {
  // Ends: each round takes back the claims of a device.
  while (true) {
    ONNXIFI_ASSIGN_OR_RETURN(const partition::Plan plan, planner.Plan());
    if (plan.islands.size() > 1) break;
    // What one device has whole, it gets as it is.
    const partition::Island& island = plan.islands.front();
    const ForwardedBackendId& device = planner.device(island.device);
    auto graph = InitOn(device, request);
    if (graph.ok()) return graph;
    Status refusal = std::move(graph).status();
    if (planner.has_given_plan()) {
      return refusal.Context("on device '" + device.key() +
                             "', to which the plan gives every node");
    }
    refusal.Context("on device '" + device.key() + "', which claims every node");
    if (devices_.size() == 1) return refusal;
    planner.Withdraw(island.device, island.nodes, refusal);
  }
  return InitIslands(planner, request);
}

base::Result<std::shared_ptr<abi::Event>> AutoBackend::NewEvent() {
  return std::shared_ptr<abi::Event>(
      std::make_shared<abi::LocalEvent>(abi::LocalEvent::Origin::kCaller));
}

}  // namespace onnxifi::dispatch
