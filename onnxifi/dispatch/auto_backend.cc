// SPDX-License-Identifier: Apache-2.0
//
// AutoBackend: choose, initialise once, hand over, or plan.

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
#include "onnxifi/dispatch/auto_planner.h"
#include "onnxifi/dispatch/device_request.h"
#include "onnxifi/dispatch/forwarded_graph.h"
#include "onnxifi/dispatch/plan_measurement.h"
#include "onnxifi/dispatch/planned_graph.h"
#include "onnxifi/split/placement.h"
#include "onnxifi/split/small_tensors.h"

namespace onnxifi::dispatch {

using base::Code;
using base::Status;

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
      AutoPlanner::Ask(id_.devices(), request.graph.model, *std::move(weights), whole));
  ONNXIFI_ASSIGN_OR_RETURN(const partition::Plan plan, planner->Plan());
  const partition::Island& island = plan.islands.front();
  if (!planner->IsClaimedElsewhere(island.device, island.nodes)) {
    return Status(Code::kUnsupportedOperator, "The others do not take all of its nodes.");
  }
  return InitPlanned(*planner, request);
}

base::Result<std::unique_ptr<abi::Graph>> AutoBackend::InitPlanned(AutoPlanner& planner,
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
  if (!request.options.placement.is_empty()) return InitPlaced(request);
  const bool has_choice = id_.devices().size() > 1 && !request.graph.properties.takes_values;
  if (!has_choice) return InitByOrder(request);
  return request.measures() || id_.costs().HasAny() ? InitByCosts(request) : InitByOrder(request);
}

base::Result<std::unique_ptr<abi::Graph>> AutoBackend::InitByCosts(const Request& request) {
  auto weights = GivenWeights(request.graph);
  if (!weights) return InitByOrder(request);
  auto planner = AutoPlanner::Ask(id_.devices(), request.graph.model, *std::move(weights));
  // What cannot be cut or is not claimed is a device's, or explained at length.
  if (!planner.ok()) return InitByOrder(request);
  UseCosts(**planner, request);
  if (!(*planner)->Plan().ok()) return InitByOrder(request);
  return Build(**planner, request);
}

void AutoBackend::UseCosts(AutoPlanner& planner, const Request& request) {
  if (request.measures()) {
    const abi::GraphRequest parts = ForMadeModels(request.graph);
    // As the graph will be run, but for what is behind it.
    const Request alone = {.graph = request.graph, .options = {}};
    PlanMeasurement measurement(planner, id_.costs(), parts);
    measurement.MeasureNodes(
        [this](const ForwardedBackendId& device) { return BackendOf(device); });
    measurement.MeasureCandidates([&] { return Build(planner, alone); });
  }
  planner.UseCosts(id_.costs().Known());
}

base::Result<std::vector<const ForwardedBackendId*>> AutoBackend::OrderOf(
    const PlacementRequest& placement) const {
  using Kind = PlacementRequest::Kind;
  std::vector<const ForwardedBackendId*> left = id_.devices();
  std::vector<std::string> keys = placement.devices;
  if (placement.kind == Kind::kPlan) {
    for (const PlacementRequest::Group& island : placement.groups) keys.push_back(island.device);
  }
  std::vector<const ForwardedBackendId*> order;
  for (const std::string& key : keys) {
    const auto has_key = [&](const ForwardedBackendId* device) { return device->key() == key; };
    if (std::ranges::any_of(order, has_key)) continue;
    const auto found = std::ranges::find_if(left, has_key);
    if (found == left.end()) {
      Status refusal(Code::kInvalidProperty, "There is no device '" + key + "' here.");
      for (const ForwardedBackendId* device : id_.devices()) {
        refusal.Context("There is " + device->key() + ".");
      }
      return refusal;
    }
    order.push_back(*found);
    left.erase(found);
  }
  const bool takes_others = placement.kind == Kind::kPrefer || placement.kind == Kind::kAuto;
  if (takes_others) order.insert(order.end(), left.begin(), left.end());
  return order;
}

base::Result<std::unique_ptr<abi::Graph>> AutoBackend::InitPlaced(const Request& request) {
  using Kind = PlacementRequest::Kind;
  const PlacementRequest& placement = request.options.placement;
  const bool model_places = !split::PlacementsOf(request.graph.model).empty();
  const bool is_whole = placement.kind == Kind::kPlan && placement.groups.size() == 1 &&
                        placement.groups.front().nodes.empty();
  const bool places_nodes = model_places || (!placement.groups.empty() && !is_whole);
  if (!places_nodes) {
    ONNXIFI_ASSIGN_OR_RETURN(const auto order, OrderOf(placement));
    if (order.size() == 1 || request.graph.properties.takes_values)
      return InitWhole(request, order);
  }
  if (request.graph.properties.takes_values) {
    return Status(
        Code::kInvalidProperty,
        "A graph whose inputs and outputs are values stays whole; none of its nodes can be"
        " placed.");
  }
  auto weights = GivenWeights(request.graph);
  if (!weights) {
    return Status(Code::kUnsupportedDatatype,
                  "A weight is of an element type that cannot be handed from device to device.");
  }
  auto planner =
      AutoPlanner::Ask(id_.devices(), request.graph.model, *std::move(weights), placement);
  if (!planner.ok()) {
    if (places_nodes || planner.status().code() == Code::kInvalidProperty) {
      return std::move(planner).status();
    }
    return InitWholeOr(request, std::move(planner).status());
  }
  AutoPlanner& planned = **planner;
  // What is given is not weighed.
  if (!planned.has_given_plan()) UseCosts(planned, request);
  if (auto plan = planned.Plan(); !plan.ok()) {
    if (places_nodes) return std::move(plan).status();
    return InitWholeOr(request, std::move(plan).status());
  }
  return Build(planned, request);
}

base::Result<std::unique_ptr<abi::Graph>> AutoBackend::InitWholeOr(const Request& request,
                                                                   Status refusal) {
  ONNXIFI_ASSIGN_OR_RETURN(const auto order, OrderOf(request.options.placement));
  auto graph = InitWhole(request, order);
  if (graph.ok()) return graph;
  return std::move(graph).status().Context("Nor do several together: " + refusal.Text());
}

base::Result<std::unique_ptr<abi::Graph>> AutoBackend::InitWhole(
    const Request& request, std::span<const ForwardedBackendId* const> order) {
  Status refusal;
  for (const ForwardedBackendId* device : order) {
    auto graph = InitOn(*device, request);
    if (graph.ok()) return graph;
    const Status reason = std::move(graph).status();
    if (refusal.ok()) {
      refusal = Status(reason.code(), order.size() == 1
                                          ? "Device '" + device->key() +
                                                "', where the graph is wanted, does not run it."
                                          : "No device that may have the graph runs all of it.");
    }
    refusal.Context(device->key() + ": " + reason.Text());
    const auto explanation = device->Explain(request.graph.model);
    if (!explanation.ok()) continue;
    for (const abi::NodeVerdict& node : explanation->nodes) {
      if (node.code == Code::kOk) continue;
      refusal.Context(device->key() + ", node " + std::to_string(node.node_index) +
                      (node.node_name.empty() ? "" : " '" + node.node_name + "'") + " (" +
                      node.operator_type + "): " + node.sentence);
    }
  }
  return refusal;
}

base::Result<std::unique_ptr<abi::Graph>> AutoBackend::Build(AutoPlanner& planner,
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
    planner.Withdraw(island.device, island.nodes, refusal);
  }
  return InitPlanned(planner, request);
}

base::Result<std::unique_ptr<abi::Graph>> AutoBackend::InitByOrder(const Request& request) {
  auto chosen = request.graph.properties.takes_values
                    ? id_.ChooseDeviceForValues(request.graph.model)
                    : id_.ChooseDevice(request.graph.model);
  if (!chosen.ok()) {
    if (request.graph.properties.takes_values) return std::move(chosen).status();
    return InitTogether(request, std::move(chosen).status());
  }
  const ForwardedBackendId& device = **chosen;
  auto graph = InitOn(device, request);
  if (!graph.ok()) {
    Status refusal = std::move(graph).status();
    refusal.Context("on device '" + device.key() + "', the first that claims every node");
    // A device that does not keep its claim leaves the graph to the others.
    if (request.graph.properties.takes_values) return refusal;
    return InitTogether(request, std::move(refusal));
  }
  return graph;
}

base::Result<std::unique_ptr<abi::Graph>> AutoBackend::InitTogether(const Request& request,
                                                                    Status refusal) {
  auto weights = GivenWeights(request.graph);
  // What no plan can carry is the refusal's to explain.
  if (!weights) return refusal;
  ONNXIFI_ASSIGN_OR_RETURN(
      const std::unique_ptr<AutoPlanner> planner,
      id_.PlanTogether(request.graph.model, *std::move(weights), std::move(refusal)));
  return InitPlanned(*planner, request);
}

base::Result<std::shared_ptr<abi::Event>> AutoBackend::NewEvent() {
  return std::shared_ptr<abi::Event>(
      std::make_shared<abi::LocalEvent>(abi::LocalEvent::Origin::kCaller));
}

}  // namespace onnxifi::dispatch
