// SPDX-License-Identifier: Apache-2.0
//
// AutoBackend: choose, initialise once, hand over, or plan.

#include "onnxifi/dispatch/auto_backend.h"

#include <onnxifi/auto_device.h>
#include <onnxifi/sdk.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "backends/core/tensor/element_type.h"
#include "onnxifi/dispatch/auto_planner.h"
#include "onnxifi/dispatch/device_request.h"
#include "onnxifi/dispatch/forwarded_graph.h"
#include "onnxifi/dispatch/plan_measurement.h"
#include "onnxifi/dispatch/planned_graph.h"

namespace onnxifi::dispatch {
namespace {

// The request for devices that get models made of parts of this one, which are no mapped files.
abi::GraphRequest WithoutMapping(const abi::GraphRequest& request) {
  return Without(request, ONNXIFI_SDK_GRAPH_PROPERTY_MAPPED_MODEL);
}

// The value of a property that is 0 or 1, which plugins do not get to see.
base::Result<std::optional<bool>> TakeFlag(std::vector<abi::Property>& properties, uint64_t key) {
  std::optional<bool> flag;
  for (const abi::Property& property : properties) {
    if (property.key != key) continue;
    if (property.value > 1) {
      return base::Status(base::Code::kInvalidProperty,
                          "The property that has graphs measured is " +
                              std::to_string(property.value) + "; it is 0 or 1.");
    }
    flag = property.value == 1;
  }
  std::erase_if(properties, [&](const abi::Property& property) { return property.key == key; });
  return flag;
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

base::Result<std::unique_ptr<abi::Graph>> InitOn(const ForwardedBackendId& device,
                                                 std::shared_ptr<const PluginBackend> backend,
                                                 const abi::GraphRequest& request) {
  return ForwardedGraph::Init(std::move(backend), RequestFor(device, request));
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

base::Result<std::unique_ptr<abi::Graph>> AutoBackend::InitGraph(const abi::GraphRequest& given) {
  abi::GraphRequest request = given;
  ONNXIFI_ASSIGN_OR_RETURN(const std::optional<bool> measures,
                           TakeFlag(request.properties.given, ONNXIFI_SDK_GRAPH_PROPERTY_MEASURE));
  const bool has_choice = id_.devices().size() > 1 && !request.properties.takes_values;
  if (!has_choice) return InitByOrder(request);
  if (measures.value_or(AutoCosts::MeasuresByDefault())) {
    return InitByCosts(request, /*measures=*/true);
  }
  return id_.costs().HasAny() ? InitByCosts(request, /*measures=*/false) : InitByOrder(request);
}

base::Result<std::unique_ptr<abi::Graph>> AutoBackend::InitByCosts(const abi::GraphRequest& request,
                                                                   bool measures) {
  auto weights = GivenWeights(request);
  if (!weights) return InitByOrder(request);
  auto planner = AutoPlanner::Ask(id_.devices(), request.model, *std::move(weights));
  // What cannot be cut or is not claimed is a device's, or explained at length.
  if (!planner.ok()) return InitByOrder(request);
  AutoPlanner& planned = **planner;
  if (measures) {
    const abi::GraphRequest unmapped = WithoutMapping(request);
    PlanMeasurement measurement(planned, id_.costs(), unmapped);
    measurement.MeasureNodes(
        [this](const ForwardedBackendId& device) { return BackendOf(device); });
    measurement.MeasureCandidates([&] { return Build(planned, request); });
  }
  planned.UseCosts(id_.costs().Known());
  if (!planned.Plan().ok()) return InitByOrder(request);
  return Build(planned, request);
}

base::Result<std::unique_ptr<abi::Graph>> AutoBackend::Build(AutoPlanner& planner,
                                                             const abi::GraphRequest& request) {
  // Ends: each round takes back the claims of a device.
  while (true) {
    ONNXIFI_ASSIGN_OR_RETURN(const partition::Plan plan, planner.Plan());
    if (plan.islands.size() > 1) break;
    // What one device has whole, it gets as it is.
    const partition::Island& island = plan.islands.front();
    const ForwardedBackendId& device = planner.device(island.device);
    auto backend = BackendOf(device);
    auto graph = backend.ok() ? InitOn(device, *std::move(backend), request)
                              : base::Result<std::unique_ptr<abi::Graph>>(backend.status());
    if (graph.ok()) return graph;
    base::Status refusal = std::move(graph).status();
    refusal.Context("on device '" + device.key() + "', which claims every node");
    planner.Withdraw(island.device, island.nodes, refusal);
  }
  return PlannedGraph::Create(
      planner, [this](const ForwardedBackendId& device) { return BackendOf(device); },
      WithoutMapping(request), pool_);
}

base::Result<std::unique_ptr<abi::Graph>> AutoBackend::InitByOrder(
    const abi::GraphRequest& request) {
  auto chosen = request.properties.takes_values ? id_.ChooseDeviceForValues(request.model)
                                                : id_.ChooseDevice(request.model);
  if (!chosen.ok()) {
    if (request.properties.takes_values) return std::move(chosen).status();
    return InitTogether(request, std::move(chosen).status());
  }
  const ForwardedBackendId& device = **chosen;
  ONNXIFI_ASSIGN_OR_RETURN(std::shared_ptr<const PluginBackend> backend, BackendOf(device));
  auto graph = InitOn(device, std::move(backend), request);
  if (!graph.ok()) {
    base::Status refusal = std::move(graph).status();
    refusal.Context("on device '" + device.key() + "', the first that claims every node");
    // A device that does not keep its claim leaves the graph to the others.
    if (request.properties.takes_values) return refusal;
    return InitTogether(request, std::move(refusal));
  }
  return graph;
}

base::Result<std::unique_ptr<abi::Graph>> AutoBackend::InitTogether(
    const abi::GraphRequest& request, base::Status refusal) {
  auto weights = GivenWeights(request);
  // What no plan can carry is the refusal's to explain.
  if (!weights) return refusal;
  ONNXIFI_ASSIGN_OR_RETURN(
      const std::unique_ptr<AutoPlanner> planner,
      id_.PlanTogether(request.model, *std::move(weights), std::move(refusal)));
  return PlannedGraph::Create(
      *planner, [this](const ForwardedBackendId& device) { return BackendOf(device); },
      WithoutMapping(request), pool_);
}

base::Result<std::shared_ptr<abi::Event>> AutoBackend::NewEvent() {
  return std::shared_ptr<abi::Event>(
      std::make_shared<abi::LocalEvent>(abi::LocalEvent::Origin::kCaller));
}

}  // namespace onnxifi::dispatch
