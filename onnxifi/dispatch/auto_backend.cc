// SPDX-License-Identifier: Apache-2.0
//
// AutoBackend: choose, initialise once, hand over, or plan.

#include "onnxifi/dispatch/auto_backend.h"

#include <utility>
#include <vector>

#include "backends/core/tensor/element_type.h"
#include "onnxifi/dispatch/auto_planner.h"
#include "onnxifi/dispatch/forwarded_graph.h"
#include "onnxifi/dispatch/planned_graph.h"

namespace onnxifi::dispatch {
namespace {

// The request for a device that is not to take the model for a mapped file: that is about memory
// alone, so it may be dropped.
abi::GraphRequest WithoutMapping(abi::GraphRequest request) {
  request.properties.is_mapped_model = false;
  std::erase_if(request.properties.given, [](const abi::Property& property) {
    return property.key == ONNXIFI_SDK_GRAPH_PROPERTY_MAPPED_MODEL;
  });
  return request;
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

base::Result<std::unique_ptr<abi::Graph>> AutoBackend::InitGraph(const abi::GraphRequest& request) {
  auto chosen = request.properties.takes_values ? id_.ChooseDeviceForValues(request.model)
                                                : id_.ChooseDevice(request.model);
  if (!chosen.ok()) {
    if (request.properties.takes_values) return std::move(chosen).status();
    return InitTogether(request, std::move(chosen).status());
  }
  const ForwardedBackendId& device = **chosen;
  ONNXIFI_ASSIGN_OR_RETURN(std::shared_ptr<const PluginBackend> backend, BackendOf(device));
  auto graph = device.TakesGraphProperty(ONNXIFI_SDK_GRAPH_PROPERTY_MAPPED_MODEL)
                   ? ForwardedGraph::Init(std::move(backend), request)
                   : ForwardedGraph::Init(std::move(backend), WithoutMapping(request));
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
  std::vector<split::GivenWeight> weights;
  for (const abi::TensorDescriptor& weight : request.weights) {
    const auto type = tensor::ElementTypeFromOnnx(static_cast<int64_t>(weight.data_type));
    // What no plan can carry is the refusal's to explain.
    if (!type) return refusal;
    weights.push_back({weight.name,
                       *type,
                       {weight.shape.begin(), weight.shape.end()},
                       static_cast<const std::byte*>(weight.cpu_data())});
  }
  ONNXIFI_ASSIGN_OR_RETURN(const std::unique_ptr<AutoPlanner> planner,
                           id_.PlanTogether(request.model, std::move(weights), std::move(refusal)));
  // Devices get models made of parts of this one, which are no mapped files.
  return PlannedGraph::Create(
      *planner, [this](const ForwardedBackendId& device) { return BackendOf(device); },
      WithoutMapping(request), pool_);
}

base::Result<std::shared_ptr<abi::Event>> AutoBackend::NewEvent() {
  return std::shared_ptr<abi::Event>(
      std::make_shared<abi::LocalEvent>(abi::LocalEvent::Origin::kCaller));
}

}  // namespace onnxifi::dispatch
