// SPDX-License-Identifier: Apache-2.0
//
// AutoBackend: choose, initialise once, hand over.

#include "onnxifi/dispatch/auto_backend.h"

#include "onnxifi/dispatch/forwarded_graph.h"

namespace onnxifi::dispatch {

base::Result<std::unique_ptr<abi::Graph>> AutoBackend::InitGraph(const abi::GraphRequest& request) {
  ONNXIFI_ASSIGN_OR_RETURN(const ForwardedBackendId* const device,
                           request.properties.takes_values
                               ? id_.ChooseDeviceForValues(request.model)
                               : id_.ChooseDevice(request.model));
  std::shared_ptr<const PluginBackend> backend;
  {
    std::lock_guard lock(mutex_);
    std::shared_ptr<const PluginBackend>& known = backends_[device];
    if (known == nullptr) {
      ONNXIFI_ASSIGN_OR_RETURN(known, PluginBackend::Init(device->calls(), properties_.given));
    }
    backend = known;
  }
  auto graph = ForwardedGraph::Init(std::move(backend), request);
  if (!graph.ok()) {
    return std::move(graph).status().Context("on device '" + device->key() +
                                             "', the first that claims every node");
  }
  return graph;
}

base::Result<std::shared_ptr<abi::Event>> AutoBackend::NewEvent() {
  return std::shared_ptr<abi::Event>(
      std::make_shared<abi::LocalEvent>(abi::LocalEvent::Origin::kCaller));
}

}  // namespace onnxifi::dispatch
