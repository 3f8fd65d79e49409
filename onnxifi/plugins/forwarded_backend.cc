// SPDX-License-Identifier: Apache-2.0
//
// ForwardedBackend: graphs and events of one plugin.

#include "onnxifi/plugins/forwarded_backend.h"

#include "onnxifi/plugins/forwarded_event.h"
#include "onnxifi/plugins/forwarded_graph.h"

namespace onnxifi::plugins {

base::Result<std::unique_ptr<abi::Graph>> ForwardedBackend::InitGraph(
    const abi::GraphRequest& request) {
  return ForwardedGraph::Init(backend_, request);
}

base::Result<std::shared_ptr<abi::Event>> ForwardedBackend::NewEvent() {
  const PluginCalls& calls = backend_->calls();
  onnxEvent handle = nullptr;
  const onnxStatus answer = calls.functions().init_event(backend_->handle(), &handle);
  ONNXIFI_RETURN_IF_ERROR(calls.ToStatus(answer, "onnxInitEvent", "an event", handle));
  return std::shared_ptr<abi::Event>(std::make_shared<ForwardedEvent>(backend_, handle));
}

namespace {

onnxNativeEvent MakeNative(const abi::NativeEvent& event) {
  onnxNativeEvent native = {};
  native.struct_size = sizeof(native);
  native.kind = event.kind;
  native.handle = event.handle;
  native.value = event.value;
  return native;
}

}  // namespace

base::Result<std::shared_ptr<abi::Event>> ForwardedBackend::ImportEvent(
    const abi::NativeEvent& native) {
  const PluginCalls& calls = backend_->calls();
  if (calls.import_event == nullptr) return abi::Backend::ImportEvent(native);
  const onnxNativeEvent told = MakeNative(native);
  onnxEvent event = nullptr;
  const onnxStatus answer = calls.import_event(backend_->handle(), &told, &event);
  ONNXIFI_RETURN_IF_ERROR(calls.ToStatus(answer, "onnxImportEvent", "an event", event));
  has_imported_ = true;
  return std::shared_ptr<abi::Event>(std::make_shared<ForwardedEvent>(backend_, event));
}

base::Result<abi::NativeEvent> ForwardedBackend::ExportEvent(uint32_t kind,
                                                             std::shared_ptr<abi::Event> event) {
  const PluginCalls& calls = backend_->calls();
  if (calls.export_event == nullptr) return abi::Backend::ExportEvent(kind, std::move(event));
  onnxNativeEvent native = MakeNative({kind});
  // Events of this backend are forwarded ones: NewEvent, ImportEvent and Run make no others.
  const auto& forwarded = static_cast<const ForwardedEvent&>(*event);
  ONNXIFI_RETURN_IF_ERROR(
      calls.ToStatus(calls.export_event(forwarded.handle(), &native), "onnxExportEvent"));
  return abi::NativeEvent{kind, native.handle, native.value};
}

}  // namespace onnxifi::plugins
