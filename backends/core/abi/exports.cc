// SPDX-License-Identifier: Apache-2.0
//
// The exported functions of ONNXIFI, for plugins and libonnxifi alike. Each checks its arguments in
// the documented order, finds the object behind the handle and calls the Provider; contracts are in
// <onnx/onnxifi.h> and <onnx/onnxifi_ext.h>.

#include <onnx/onnxifi.h>
#include <onnx/onnxifi_ext.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backends/core/abi/backend_info.h"
#include "backends/core/abi/descriptor_check.h"
#include "backends/core/abi/extension.h"
#include "backends/core/abi/graph_run.h"
#include "backends/core/abi/guard.h"
#include "backends/core/abi/info_value.h"
#include "backends/core/abi/library.h"
#include "backends/core/abi/property_list.h"
#include "backends/core/abi/provider.h"
#include "backends/core/base/result.h"
#include "backends/core/base/status.h"

namespace onnxifi::abi {
namespace {

using base::Code;
using base::Status;

Status UnknownId() {
  return Status(Code::kInvalidId, "The handle is no backend ID of this library.");
}
Status UnknownBackend() {
  return Status(Code::kInvalidBackend, "The handle is no live backend of this library.");
}
Status UnknownGraph() {
  return Status(Code::kInvalidGraph, "The handle is no live graph of this library.");
}
Status UnknownEvent() {
  return Status(Code::kInvalidEvent, "The handle is no live event of this library.");
}
Status NullPointer(std::string_view argument) {
  return Status(Code::kInvalidPointer, "Argument '" + std::string(argument) + "' is NULL.");
}

// The live event behind a handle; null also while its run is not accepted yet.
std::shared_ptr<EventObject> FindEvent(onnxEvent handle) {
  auto object = Library::Get().events().Find(handle);
  return object != nullptr && object->event != nullptr ? object : nullptr;
}

Status GetBackendIds(onnxBackendID* ids, size_t* count) {
  if (count == nullptr) return NullPointer("numBackends");
  Library& library = Library::Get();
  ONNXIFI_ASSIGN_OR_RETURN(const std::vector<const BackendId*> present,
                           library.provider().EnumerateBackendIds());
  std::vector<onnxBackendID> handles;
  handles.reserve(present.size());
  for (const BackendId* id : present) handles.push_back(library.HandleOf(id));
  const bool fits = ids != nullptr && *count >= handles.size();
  *count = handles.size();
  if (!fits) {
    return Status(Code::kFallback, "There are " + std::to_string(handles.size()) + " backend IDs.");
  }
  for (size_t index = 0; index < handles.size(); ++index) ids[index] = handles[index];
  return base::Ok();
}

Status InitBackend(onnxBackendID id_handle, const uint64_t* properties, onnxBackend* backend) {
  if (backend == nullptr) return NullPointer("backend");
  *backend = nullptr;
  Library& library = Library::Get();
  const auto id = library.backend_ids().Find(id_handle);
  if (id == nullptr) return UnknownId();
  auto object = std::make_shared<BackendObject>();
  object->id = id.get();
  ONNXIFI_ASSIGN_OR_RETURN(object->properties, ReadBackendProperties(properties, *id));
  ONNXIFI_ASSIGN_OR_RETURN(object->backend, id->InitBackend(object->properties));
  *backend = library.backends().Add(std::move(object));
  return base::Ok();
}

Status InitEvent(onnxBackend backend_handle, onnxEvent* event) {
  if (event == nullptr) return NullPointer("event");
  *event = nullptr;
  Library& library = Library::Get();
  auto object = std::make_shared<EventObject>();
  object->owner = library.backends().Find(backend_handle);
  if (object->owner == nullptr) return UnknownBackend();
  ONNXIFI_ASSIGN_OR_RETURN(object->event, object->owner->backend->NewEvent());
  *event = library.events().Add(std::move(object));
  return base::Ok();
}

Status WaitEvent(onnxEvent handle) {
  const auto object = FindEvent(handle);
  if (object == nullptr) return UnknownEvent();
  Status status = object->event->Wait();
  // INVALID_EVENT would say that the handle is bad; here the work behind a good one failed.
  if (object->is_of_run() && status.code() == Code::kInvalidEvent) {
    return Status(Code::kInternalError, status.Text());
  }
  return status;
}

struct InitGraphArguments {
  onnxBackend backend;
  const uint64_t* properties;
  size_t model_size_bytes;
  const void* model;
  uint32_t weights_count;
  const onnxTensorDescriptorV1* weights;
};

Status InitGraph(const InitGraphArguments& arguments, onnxGraph* graph) {
  if (graph == nullptr) return NullPointer("graph");
  *graph = nullptr;
  Library& library = Library::Get();
  auto object = std::make_shared<GraphObject>();
  object->owner = library.backends().Find(arguments.backend);
  if (object->owner == nullptr) return UnknownBackend();
  if (arguments.model == nullptr) return NullPointer("onnxModel");
  if (arguments.weights == nullptr && arguments.weights_count > 0) {
    return NullPointer("weightDescriptors");
  }
  if (arguments.model_size_bytes == 0) {
    return Status(Code::kInvalidSize, "The model has 0 bytes.");
  }
  GraphRequest request;
  ONNXIFI_ASSIGN_OR_RETURN(request.properties,
                           ReadGraphProperties(arguments.properties, *object->owner->id));
  ONNXIFI_ASSIGN_OR_RETURN(
      const std::vector<TensorDescriptor> weights,
      CopyDescriptors(DescriptorRole::kWeight, arguments.weights_count, arguments.weights,
                      *object->owner->backend, /*declared=*/nullptr));
  ONNXIFI_RETURN_IF_ERROR(CheckNames(DescriptorRole::kWeight, weights, /*declared=*/nullptr));
  request.model = {static_cast<const std::byte*>(arguments.model), arguments.model_size_bytes};
  request.weights = weights;
  request.optimization = object->owner->properties.optimization;
  request.log_level = object->owner->properties.log_level;
  ONNXIFI_ASSIGN_OR_RETURN(object->graph, object->owner->backend->InitGraph(request));
  const bool is_emulated = object->graph->is_emulated();
  *graph = library.graphs().Add(std::move(object));
  if (is_emulated) return Status(Code::kFallback, "The graph runs with a substantial loss.");
  return base::Ok();
}

Status SetGraphIo(onnxGraph handle, const IoDescriptors& io) {
  const auto graph = Library::Get().graphs().Find(handle);
  if (graph == nullptr) return UnknownGraph();
  std::lock_guard lock(graph->mutex);
  graph->binding = nullptr;
  ONNXIFI_ASSIGN_OR_RETURN(graph->binding, MakeBinding(*graph, io, BindingUse::kStanding));
  return base::Ok();
}

Status RunGraph(onnxGraph handle, const onnxMemoryFenceV1* input_fence,
                onnxMemoryFenceV1* output_fence) {
  const auto graph = Library::Get().graphs().Find(handle);
  if (graph == nullptr) return UnknownGraph();
  if (input_fence == nullptr) return NullPointer("inputFence");
  if (output_fence == nullptr) return NullPointer("outputFence");
  ONNXIFI_RETURN_IF_ERROR(CheckFenceTag(*input_fence, "input"));
  ONNXIFI_RETURN_IF_ERROR(CheckFenceTag(*output_fence, "output"));
  const Backend& backend = *graph->owner->backend;
  ONNXIFI_RETURN_IF_ERROR(CheckFenceType(*input_fence, "input", backend));
  ONNXIFI_RETURN_IF_ERROR(CheckFenceType(*output_fence, "output", backend));
  const bool has_implicit_input = input_fence->type == ONNXIFI_SYNCHRONIZATION_IMPLICIT;
  const bool has_implicit_output = output_fence->type == ONNXIFI_SYNCHRONIZATION_IMPLICIT;
  if (has_implicit_output && !has_implicit_input) {
    return Status(Code::kUnsupportedFenceType,
                  "The output fence is implicit and the input fence an event; nothing can be put"
                  " into a queue before the event is signalled.");
  }
  RunStart start{.input = nullptr, .is_after_shared_queue = has_implicit_input};
  if (!has_implicit_input) {
    const auto input = FindEvent(input_fence->event);
    if (input == nullptr) {
      return Status(Code::kInvalidEvent, "The event of the input fence is no live event.");
    }
    if (input->owner != graph->owner) {
      return Status(Code::kInvalidEvent,
                    "The event of the input fence belongs to another backend than the graph.");
    }
    start.input = input->event;
  }
  std::shared_ptr<const Binding> binding;
  {
    std::lock_guard lock(graph->mutex);
    binding = graph->binding;
  }
  if (binding == nullptr) {
    return Status(Code::kUnidentifiedName,
                  "The graph has no inputs and outputs: onnxSetGraphIO was not called or failed.");
  }
  if (has_implicit_output) return graph->graph->RunInSharedQueue(std::move(binding));
  return StartRun(*graph, std::move(binding), std::move(start), output_fence);
}

Status SetIoAndRunGraph(onnxGraph handle, const IoDescriptors& io,
                        onnxMemoryFenceV1* output_fence) {
  const auto graph = Library::Get().graphs().Find(handle);
  if (graph == nullptr) return UnknownGraph();
  ONNXIFI_RETURN_IF_ERROR(CheckPointers(io));
  if (output_fence == nullptr) return NullPointer("outputFence");
  ONNXIFI_RETURN_IF_ERROR(CheckFenceTag(*output_fence, "output"));
  ONNXIFI_RETURN_IF_ERROR(CheckFenceType(*output_fence, "output", *graph->owner->backend));
  ONNXIFI_ASSIGN_OR_RETURN(std::shared_ptr<const Binding> binding, BindOneRun(*graph, io));
  if (output_fence->type == ONNXIFI_SYNCHRONIZATION_IMPLICIT) {
    return graph->graph->RunInSharedQueue(std::move(binding));
  }
  return StartRun(*graph, std::move(binding), {.input = nullptr}, output_fence);
}

Status GetExtensionFunctionAddress(onnxBackendID id_handle, const char* name,
                                   onnxExtensionFunctionPointer* function) {
  if (function == nullptr) return NullPointer("function");
  *function = nullptr;
  if (name == nullptr) return NullPointer("name");
  Library& library = Library::Get();
  const auto id = library.backend_ids().Find(id_handle);
  if (id == nullptr && id_handle != nullptr) return UnknownId();
  const std::string_view base_name = ExtensionBaseName(name);
  *function = FindExtension(library.provider(), id.get(), base_name);
  if (*function != nullptr) return base::Ok();
  if (id == nullptr && NeedsBackendId(base_name)) {
    return Status(Code::kInvalidId, "Function '" + std::string(base_name) +
                                        "' belongs to a backend ID, and the ID given is NULL.");
  }
  return Status(Code::kUnidentifiedName,
                "There is no extension function '" + std::string(name) + "' here.");
}

}  // namespace
}  // namespace onnxifi::abi

using onnxifi::abi::Function;
using onnxifi::abi::Guard;
using onnxifi::abi::Library;
using onnxifi::base::Code;
using onnxifi::base::Status;

extern "C" {

onnxStatus ONNXIFI_ABI onnxGetBackendIDs(onnxBackendID* backend_ids, size_t* backend_count) {
  return Guard(Function::kGetBackendIDs,
               [&] { return onnxifi::abi::GetBackendIds(backend_ids, backend_count); });
}

onnxStatus ONNXIFI_ABI onnxReleaseBackendID(onnxBackendID backend_id) {
  // IDs live as long as the process: releasing one only checks it.
  return Guard(Function::kReleaseBackendID, [&]() -> Status {
    if (Library::Get().backend_ids().Find(backend_id) != nullptr) return onnxifi::base::Ok();
    return onnxifi::abi::UnknownId();
  });
}

onnxStatus ONNXIFI_ABI onnxGetBackendInfo(onnxBackendID backend_id, onnxBackendInfo query,
                                          void* value_buffer, size_t* value_size) {
  return Guard(Function::kGetBackendInfo, [&]() -> Status {
    const auto id = Library::Get().backend_ids().Find(backend_id);
    if (id == nullptr) return onnxifi::abi::UnknownId();
    if (value_size == nullptr) return onnxifi::abi::NullPointer("infoValueSize");
    ONNXIFI_ASSIGN_OR_RETURN(const auto value, onnxifi::abi::FindInfoValue(*id, query));
    return onnxifi::abi::StoreInfoValue(value, value_buffer, value_size);
  });
}

onnxStatus ONNXIFI_ABI onnxGetBackendCompatibility(onnxBackendID backend_id, size_t model_size,
                                                   const void* model) {
  return Guard(Function::kGetBackendCompatibility, [&]() -> Status {
    const auto id = Library::Get().backend_ids().Find(backend_id);
    if (id == nullptr) return onnxifi::abi::UnknownId();
    if (model == nullptr) return onnxifi::abi::NullPointer("onnxModel");
    if (model_size == 0) return Status(Code::kInvalidSize, "The model has 0 bytes.");
    return id->CheckCompatibility({static_cast<const std::byte*>(model), model_size});
  });
}

onnxStatus ONNXIFI_ABI onnxInitBackend(onnxBackendID backend_id, const uint64_t* properties,
                                       onnxBackend* backend) {
  return Guard(Function::kInitBackend,
               [&] { return onnxifi::abi::InitBackend(backend_id, properties, backend); });
}

onnxStatus ONNXIFI_ABI onnxReleaseBackend(onnxBackend backend) {
  return Guard(Function::kReleaseBackend, [&]() -> Status {
    const auto object = Library::Get().backends().Take(backend);
    if (object == nullptr) return onnxifi::abi::UnknownBackend();
    object->backend->Release();
    return onnxifi::base::Ok();
  });
}

onnxStatus ONNXIFI_ABI onnxInitEvent(onnxBackend backend, onnxEvent* event) {
  return Guard(Function::kInitEvent, [&] { return onnxifi::abi::InitEvent(backend, event); });
}

onnxStatus ONNXIFI_ABI onnxSignalEvent(onnxEvent event) {
  return Guard(Function::kSignalEvent, [&]() -> Status {
    const auto object = onnxifi::abi::FindEvent(event);
    return object != nullptr ? object->event->Signal() : onnxifi::abi::UnknownEvent();
  });
}

onnxStatus ONNXIFI_ABI onnxGetEventState(onnxEvent event, onnxEventState* state) {
  return Guard(Function::kGetEventState, [&]() -> Status {
    if (state == nullptr) return onnxifi::abi::NullPointer("state");
    *state = ONNXIFI_EVENT_STATE_INVALID;
    const auto object = onnxifi::abi::FindEvent(event);
    if (object == nullptr) return onnxifi::abi::UnknownEvent();
    ONNXIFI_ASSIGN_OR_RETURN(const bool is_signalled, object->event->IsSignalled());
    *state = is_signalled ? ONNXIFI_EVENT_STATE_SIGNALLED : ONNXIFI_EVENT_STATE_NONSIGNALLED;
    return onnxifi::base::Ok();
  });
}

onnxStatus ONNXIFI_ABI onnxWaitEvent(onnxEvent event) {
  return Guard(Function::kWaitEvent, [&] { return onnxifi::abi::WaitEvent(event); });
}

onnxStatus ONNXIFI_ABI onnxReleaseEvent(onnxEvent event) {
  return Guard(Function::kReleaseEvent, [&]() -> Status {
    const auto object = Library::Get().events().Take(event);
    if (object == nullptr) return onnxifi::abi::UnknownEvent();
    if (object->event != nullptr) object->event->Abandon();
    return onnxifi::base::Ok();
  });
}

onnxStatus ONNXIFI_ABI onnxInitGraph(onnxBackend backend, const uint64_t* properties,
                                     size_t model_size, const void* model, uint32_t weights_count,
                                     const onnxTensorDescriptorV1* weights, onnxGraph* graph) {
  return Guard(Function::kInitGraph, [&] {
    return onnxifi::abi::InitGraph({backend, properties, model_size, model, weights_count, weights},
                                   graph);
  });
}

onnxStatus ONNXIFI_ABI onnxSetGraphIO(onnxGraph graph, uint32_t inputs_count,
                                      const onnxTensorDescriptorV1* inputs, uint32_t outputs_count,
                                      const onnxTensorDescriptorV1* outputs) {
  return Guard(Function::kSetGraphIO, [&] {
    return onnxifi::abi::SetGraphIo(graph, {inputs_count, inputs, outputs_count, outputs});
  });
}

onnxStatus ONNXIFI_ABI onnxRunGraph(onnxGraph graph, const onnxMemoryFenceV1* input_fence,
                                    onnxMemoryFenceV1* output_fence) {
  return Guard(Function::kRunGraph,
               [&] { return onnxifi::abi::RunGraph(graph, input_fence, output_fence); });
}

onnxStatus ONNXIFI_ABI onnxReleaseGraph(onnxGraph graph) {
  return Guard(Function::kReleaseGraph, [&]() -> Status {
    const auto object = Library::Get().graphs().Take(graph);
    if (object == nullptr) return onnxifi::abi::UnknownGraph();
    object->graph->Close();
    return onnxifi::base::Ok();
  });
}

onnxStatus ONNXIFI_ABI onnxGetExtensionFunctionAddress(onnxBackendID backend_id, const char* name,
                                                       onnxExtensionFunctionPointer* function) {
  return Guard(Function::kGetExtensionFunctionAddress, [&] {
    return onnxifi::abi::GetExtensionFunctionAddress(backend_id, name, function);
  });
}

onnxStatus ONNXIFI_ABI onnxSetIOAndRunGraph(onnxGraph graph, uint32_t inputs_count,
                                            const onnxTensorDescriptorV1* inputs,
                                            uint32_t outputs_count,
                                            const onnxTensorDescriptorV1* outputs,
                                            onnxMemoryFenceV1* output_fence) {
  return Guard(Function::kSetIOAndRunGraph, [&] {
    return onnxifi::abi::SetIoAndRunGraph(graph, {inputs_count, inputs, outputs_count, outputs},
                                          output_fence);
  });
}

}  // extern "C"
