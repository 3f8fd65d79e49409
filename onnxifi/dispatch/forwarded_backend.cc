// SPDX-License-Identifier: Apache-2.0
//
// ForwardedBackend: graphs and events of one plugin.

#include "onnxifi/dispatch/forwarded_backend.h"

#include "onnxifi/dispatch/forwarded_event.h"
#include "onnxifi/dispatch/forwarded_graph.h"

namespace onnxifi::dispatch {

base::Result<std::unique_ptr<abi::Graph>> ForwardedBackend::InitGraph(
    const abi::GraphRequest& request) {
  return ForwardedGraph::Init(backend_, request);
}

base::Result<std::shared_ptr<abi::Event>> ForwardedBackend::NewEvent() {
  const PluginCalls& calls = backend_->calls();
  onnxEvent handle = nullptr;
  ONNXIFI_RETURN_IF_ERROR(
      calls.ToStatus(calls.functions().init_event(backend_->handle(), &handle), "onnxInitEvent"));
  return std::shared_ptr<abi::Event>(std::make_shared<ForwardedEvent>(backend_, handle));
}

}  // namespace onnxifi::dispatch
