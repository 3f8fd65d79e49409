// SPDX-License-Identifier: Apache-2.0
//
// Extension: the functions of <onnxifi/sdk.h> and the table by which all extensions are found.

#include "backends/core/abi/extension.h"

#include <onnxifi/sdk.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "backends/core/abi/descriptor_check.h"
#include "backends/core/abi/graph_run.h"
#include "backends/core/abi/guard.h"
#include "backends/core/abi/info_value.h"
#include "backends/core/abi/last_error.h"
#include "backends/core/abi/library.h"
#include "backends/core/abi/node_verdict.h"

namespace onnxifi::abi {

using base::Code;
using base::Status;

namespace {

Status UnknownGraph() { return Status(Code::kInvalidGraph, "The handle is no live graph."); }
Status UnknownBackend() { return Status(Code::kInvalidBackend, "The handle is no live backend."); }
Status UnknownEvent() { return Status(Code::kInvalidEvent, "The handle is no live event."); }

Status ReportShapes(const std::vector<TensorShape>& shapes, onnxTensorShapeCallback callback,
                    void* context) {
  for (const TensorShape& shape : shapes) {
    onnxTensorShape record = {};
    record.struct_size = sizeof(record);
    record.name = shape.name.c_str();
    record.data_type = shape.data_type;
    record.rank = static_cast<uint32_t>(shape.extents.size());
    record.extents = shape.extents.data();
    record.has_rank = shape.has_rank ? 1 : 0;
    callback(context, &record);
  }
  return base::Ok();
}

onnxStatus ONNXIFI_ABI GetLastErrorMessage(char* message, size_t* message_size) noexcept {
  // Not through the guard: it would replace the text that is asked for.
  if (message_size == nullptr) return ONNXIFI_STATUS_INVALID_POINTER;
  const std::string_view text = LastError::Get();
  const bool fits = message != nullptr && *message_size > text.size();
  *message_size = text.size() + 1;
  if (!fits) return ONNXIFI_STATUS_FALLBACK;
  std::memcpy(message, text.data(), text.size());
  message[text.size()] = '\0';
  return ONNXIFI_STATUS_SUCCESS;
}

onnxStatus ONNXIFI_ABI ExplainModel(onnxBackendID id_handle, size_t size_bytes, const void* model,
                                    onnxNodeVerdictCallback callback, void* context) {
  return Guard(Function::kExplainModel, [&]() -> Status {
    const auto id = Library::Get().backend_ids().Find(id_handle);
    if (id == nullptr) return Status(Code::kInvalidId, "The handle is no backend ID.");
    if (model == nullptr || callback == nullptr) {
      return Status(Code::kInvalidPointer, "The model or the callback is NULL.");
    }
    if (size_bytes == 0) return Status(Code::kInvalidSize, "The model has 0 bytes.");
    ONNXIFI_ASSIGN_OR_RETURN(const Explanation explanation,
                             id->Explain({static_cast<const std::byte*>(model), size_bytes}));
    for (const NodeVerdict& node : explanation.nodes) {
      const onnxNodeVerdict record = ToRecord(node);
      callback(context, &record);
    }
    return explanation.verdict;
  });
}

onnxStatus ONNXIFI_ABI InferOutputShapes(onnxGraph handle, uint32_t inputs_count,
                                         const onnxTensorDescriptorV1* inputs,
                                         onnxTensorShapeCallback callback, void* context) {
  return Guard(Function::kInferOutputShapes, [&]() -> Status {
    const auto graph = Library::Get().graphs().Find(handle);
    if (graph == nullptr) return UnknownGraph();
    if ((inputs == nullptr && inputs_count > 0) || callback == nullptr) {
      return Status(Code::kInvalidPointer, "The input descriptors or the callback is NULL.");
    }
    const Signature* signature = graph->graph->signature();
    const auto* declared = signature != nullptr ? &signature->inputs : nullptr;
    GraphTensors tensors;
    ONNXIFI_ASSIGN_OR_RETURN(
        tensors.inputs, CopyDescriptors(DescriptorRole::kInput, inputs_count, inputs,
                                        *graph->owner->backend, declared, /*needs_buffer=*/false));
    ONNXIFI_RETURN_IF_ERROR(CheckNames(DescriptorRole::kInput, tensors.inputs, declared));
    if (signature != nullptr) {
      ONNXIFI_ASSIGN_OR_RETURN(
          tensors.inputs,
          Arrange(DescriptorRole::kInput, std::move(tensors.inputs), signature->inputs));
      ONNXIFI_RETURN_IF_ERROR(CheckDeclarations(tensors, *signature));
    }
    ONNXIFI_ASSIGN_OR_RETURN(const auto shapes, graph->graph->InferOutputShapes(tensors.inputs));
    return ReportShapes(shapes, callback, context);
  });
}

// The event of a run that has succeeded.
base::Result<std::shared_ptr<EventObject>> FindFinishedRun(onnxEvent handle,
                                                           bool callback_is_null) {
  auto object = Library::Get().events().Find(handle);
  if (object == nullptr || object->event == nullptr) return UnknownEvent();
  if (!object->is_of_run()) {
    return Status(Code::kInvalidEvent, "The event was made by the caller, not by a run.");
  }
  if (callback_is_null) return Status(Code::kInvalidPointer, "The callback is NULL.");
  ONNXIFI_ASSIGN_OR_RETURN(const bool is_signalled, object->event->IsSignalled());
  if (!is_signalled) return Status(Code::kInvalidState, "The run has not finished.");
  ONNXIFI_RETURN_IF_ERROR(object->event->Wait());
  return object;
}

onnxStatus ONNXIFI_ABI GetRunOutputShapes(onnxEvent handle, onnxTensorShapeCallback callback,
                                          void* context) {
  return Guard(Function::kGetRunOutputShapes, [&]() -> Status {
    ONNXIFI_ASSIGN_OR_RETURN(const std::shared_ptr<EventObject> object,
                             FindFinishedRun(handle, callback == nullptr));
    ONNXIFI_ASSIGN_OR_RETURN(auto shapes, object->event->OutputShapes());
    if (shapes.empty()) {
      for (const TensorDescriptor& output : object->binding->tensors().outputs) {
        shapes.push_back({output.name, output.data_type, /*has_rank=*/true,
                          std::vector<int64_t>(output.shape.begin(), output.shape.end())});
      }
    }
    return ReportShapes(shapes, callback, context);
  });
}

onnxStatus ONNXIFI_ABI GetBackendValueCompatibility(onnxBackendID id_handle, size_t size_bytes,
                                                    const void* model) {
  return Guard(Function::kGetBackendValueCompatibility, [&]() -> Status {
    const auto id = Library::Get().backend_ids().Find(id_handle);
    if (id == nullptr) return Status(Code::kInvalidId, "The handle is no backend ID.");
    if (model == nullptr) return Status(Code::kInvalidPointer, "The model is NULL.");
    if (size_bytes == 0) return Status(Code::kInvalidSize, "The model has 0 bytes.");
    return id->CheckValueCompatibility({static_cast<const std::byte*>(model), size_bytes});
  });
}

onnxStatus ONNXIFI_ABI SetGraphValues(onnxGraph handle, uint32_t inputs_count,
                                      const onnxTensorDescriptorV1* inputs, uint32_t values_count,
                                      const onnxValue* const* values, uint32_t outputs_count,
                                      const onnxTensorDescriptorV1* outputs) {
  return Guard(Function::kSetGraphValues, [&]() -> Status {
    const auto graph = Library::Get().graphs().Find(handle);
    if (graph == nullptr) return UnknownGraph();
    std::lock_guard lock(graph->mutex);
    graph->binding = nullptr;
    const IoDescriptors io = {inputs_count, inputs, outputs_count,        outputs,
                              values_count, values, /*keeps_others=*/true};
    ONNXIFI_ASSIGN_OR_RETURN(graph->binding, MakeBinding(*graph, io, BindingUse::kStanding));
    return base::Ok();
  });
}

onnxStatus ONNXIFI_ABI GetRunValues(onnxEvent handle, onnxValueCallback callback, void* context) {
  return Guard(Function::kGetRunValues, [&]() -> Status {
    ONNXIFI_ASSIGN_OR_RETURN(const std::shared_ptr<EventObject> object,
                             FindFinishedRun(handle, callback == nullptr));
    return object->event->VisitOutputValues(
        [callback, context](const onnxValue& record) { callback(context, &record); });
  });
}

onnxStatus ONNXIFI_ABI GetGraphCounters(onnxGraph handle, onnxGraphCounters* out_counters) {
  return Guard(Function::kGetGraphCounters, [&]() -> Status {
    const auto graph = Library::Get().graphs().Find(handle);
    if (graph == nullptr) return UnknownGraph();
    if (out_counters == nullptr) return Status(Code::kInvalidPointer, "The counters are NULL.");
    const size_t capacity = out_counters->struct_size;
    if (capacity < sizeof(out_counters->struct_size)) {
      return Status(Code::kInvalidSize, "The structure of the counters has " +
                                            std::to_string(capacity) +
                                            " bytes; its first field alone takes " +
                                            std::to_string(sizeof(size_t)) + ".");
    }
    ONNXIFI_ASSIGN_OR_RETURN(const GraphCounters counters, graph->graph->Counters());
    onnxGraphCounters record = {};
    record.struct_size = capacity;
    record.lowerings = counters.lowerings;
    record.bindings = counters.bindings;
    record.allocations = counters.allocations;
    record.copies = counters.copies;
    record.kernel_builds = counters.kernel_builds;
    record.runs = counters.runs;
    record.map_steps = counters.map_steps;
    record.reduce_steps = counters.reduce_steps;
    record.row_steps = counters.row_steps;
    record.scan_steps = counters.scan_steps;
    record.contract_steps = counters.contract_steps;
    record.window_steps = counters.window_steps;
    record.index_steps = counters.index_steps;
    record.host_steps = counters.host_steps;
    record.control_steps = counters.control_steps;
    record.waits = counters.waits;
    record.submissions = counters.submissions;
    record.recordings = counters.recordings;
    record.attention_steps = counters.attention_steps;
    record.recurrent_steps = counters.recurrent_steps;
    std::memcpy(out_counters, &record, std::min(capacity, sizeof(record)));
    return base::Ok();
  });
}

onnxStatus ONNXIFI_ABI GetGraphProfile(onnxGraph handle, onnxStepRecordCallback callback,
                                       void* context) {
  return Guard(Function::kGetGraphProfile, [&]() -> Status {
    const auto graph = Library::Get().graphs().Find(handle);
    if (graph == nullptr) return UnknownGraph();
    if (callback == nullptr) return Status(Code::kInvalidPointer, "The callback is NULL.");
    ONNXIFI_ASSIGN_OR_RETURN(const std::vector<StepRecord> steps, graph->graph->Profile());
    std::vector<const char*> rejected;
    for (size_t index = 0; index < steps.size(); ++index) {
      const StepRecord& step = steps[index];
      rejected.clear();
      for (const std::string& sentence : step.rejected) rejected.push_back(sentence.c_str());
      onnxStepRecord record = {};
      record.struct_size = sizeof(record);
      record.step_index = static_cast<uint32_t>(index);
      record.node_index = step.node_index;
      record.family = step.family.c_str();
      record.implementation = step.implementation.c_str();
      record.detail = step.detail.c_str();
      record.data_type = step.data_type;
      record.rank = static_cast<uint32_t>(step.extents.size());
      record.extents = step.extents.data();
      record.rejected_count = static_cast<uint32_t>(rejected.size());
      record.rejected = rejected.data();
      record.start_ns = step.start_ns;
      record.duration_ns = step.duration_ns;
      record.flops = step.flops;
      record.read_bytes = step.read_bytes;
      record.written_bytes = step.written_bytes;
      record.precision = step.precision;
      callback(context, &record);
    }
    return base::Ok();
  });
}

onnxStatus ONNXIFI_ABI GetGraphLoadProfile(onnxGraph handle, onnxLoadRecordCallback callback,
                                           void* context) {
  return Guard(Function::kGetGraphLoadProfile, [&]() -> Status {
    const auto graph = Library::Get().graphs().Find(handle);
    if (graph == nullptr) return UnknownGraph();
    if (callback == nullptr) return Status(Code::kInvalidPointer, "The callback is NULL.");
    ONNXIFI_ASSIGN_OR_RETURN(const std::vector<LoadRecord> stages, graph->graph->LoadProfile());
    for (const LoadRecord& stage : stages) {
      onnxLoadRecord record = {};
      record.struct_size = sizeof(record);
      record.stage = stage.stage.c_str();
      record.count = stage.count;
      record.duration_ns = stage.duration_ns;
      callback(context, &record);
    }
    return base::Ok();
  });
}

onnxStatus ONNXIFI_ABI GetBackendKey(onnxBackendID id_handle, char* key, size_t* key_size) {
  return Guard(Function::kGetBackendKey, [&]() -> Status {
    const auto id = Library::Get().backend_ids().Find(id_handle);
    if (id == nullptr) return Status(Code::kInvalidId, "The handle is no backend ID.");
    if (key_size == nullptr) return Status(Code::kInvalidPointer, "The size of the key is NULL.");
    return StoreInfoValue(id->key(), key, key_size);
  });
}

onnxStatus ONNXIFI_ABI WaitEventFor(onnxEvent handle, uint32_t timeout_ms, onnxEventState* state,
                                    onnxStatus* event_status, char* message,
                                    size_t* message_length) {
  return Guard(Function::kWaitEventFor, [&]() -> Status {
    if (state == nullptr || event_status == nullptr) {
      return Status(Code::kInvalidPointer, "The event state or the event status is NULL.");
    }
    *state = ONNXIFI_EVENT_STATE_INVALID;
    const auto object = Library::Get().events().Find(handle);
    if (object == nullptr || object->event == nullptr) return UnknownEvent();
    std::optional<Status> outcome;
    if (timeout_ms == 0) {
      outcome = object->event->Wait();
    } else {
      outcome = object->event->WaitFor(std::chrono::milliseconds(timeout_ms));
    }
    // A caller's event carries no work; it finishes with an error only when it is abandoned.
    if (outcome && !outcome->ok() && !object->is_of_run()) return *outcome;
    *state = outcome ? ONNXIFI_EVENT_STATE_SIGNALLED : ONNXIFI_EVENT_STATE_NONSIGNALLED;
    *event_status = outcome ? static_cast<onnxStatus>(outcome->code()) : ONNXIFI_STATUS_SUCCESS;
    if (message_length == nullptr) return base::Ok();
    const std::string text = outcome ? outcome->Text() : std::string();
    const size_t capacity = message != nullptr ? *message_length : 0;
    if (text.empty() || capacity == 0) {
      *message_length = 0;
      return base::Ok();
    }
    const size_t length = std::min(text.size(), capacity - 1);
    std::memcpy(message, text.data(), length);
    message[length] = '\0';
    *message_length = length + 1;
    return base::Ok();
  });
}

struct Entry {
  std::string_view name;
  onnxExtensionFunctionPointer function;
  bool is_library_wide;
};

// Whether a caller's structure has a kind and, behind it, a handle.
Status CheckNative(const onnxNativeEvent* native) {
  if (native == nullptr) {
    return Status(Code::kInvalidPointer, "The structure of the driver's event is NULL.");
  }
  constexpr size_t kMin = offsetof(onnxNativeEvent, handle) + sizeof(native->handle);
  if (native->struct_size < kMin) {
    return Status(Code::kInvalidSize,
                  "The structure of the driver's event has " + std::to_string(native->struct_size) +
                      " bytes; its handle ends at " + std::to_string(kMin) + ".");
  }
  if (native->kind != ONNXIFI_SDK_NATIVE_EVENT_OPENCL &&
      native->kind != ONNXIFI_SDK_NATIVE_EVENT_VULKAN &&
      native->kind != ONNXIFI_SDK_NATIVE_EVENT_CUDA) {
    return Status(Code::kInvalidFenceType,
                  "There is no kind " + std::to_string(native->kind) + " of a driver's event.");
  }
  return base::Ok();
}

bool HasValue(const onnxNativeEvent& native) {
  return native.struct_size >= offsetof(onnxNativeEvent, value) + sizeof(native.value);
}

onnxStatus ONNXIFI_ABI ImportEvent(onnxBackend backend_handle, const onnxNativeEvent* native,
                                   onnxEvent* event) {
  return Guard(Function::kImportEvent, [&]() -> Status {
    if (event == nullptr) return Status(Code::kInvalidPointer, "Argument 'event' is NULL.");
    *event = nullptr;
    auto object = std::make_shared<EventObject>();
    object->owner = Library::Get().backends().Find(backend_handle);
    if (object->owner == nullptr) return UnknownBackend();
    ONNXIFI_RETURN_IF_ERROR(CheckNative(native));
    ONNXIFI_ASSIGN_OR_RETURN(
        object->event, object->owner->backend->ImportEvent(
                           {native->kind, native->handle, HasValue(*native) ? native->value : 0}));
    *event = Library::Get().events().Add(std::move(object));
    return base::Ok();
  });
}

onnxStatus ONNXIFI_ABI ExportEvent(onnxEvent handle, onnxNativeEvent* native) {
  return Guard(Function::kExportEvent, [&]() -> Status {
    const auto object = Library::Get().events().Find(handle);
    if (object == nullptr || object->event == nullptr) return UnknownEvent();
    ONNXIFI_RETURN_IF_ERROR(CheckNative(native));
    native->handle = 0;
    ONNXIFI_ASSIGN_OR_RETURN(const NativeEvent made,
                             object->owner->backend->ExportEvent(native->kind, object->event));
    native->handle = made.handle;
    if (HasValue(*native)) native->value = made.value;
    return base::Ok();
  });
}

onnxStatus ONNXIFI_ABI AllocateSharedMemory(onnxBackend handle, uint64_t size_bytes,
                                            onnxSharedMemory* memory) {
  return Guard(Function::kAllocateSharedMemory, [&]() -> Status {
    const auto backend = Library::Get().backends().Find(handle);
    if (backend == nullptr) return UnknownBackend();
    if (memory == nullptr) {
      return Status(Code::kInvalidPointer, "The structure of the shared memory is NULL.");
    }
    constexpr size_t kMin = offsetof(onnxSharedMemory, buffer) + sizeof(memory->buffer);
    if (memory->struct_size < kMin) {
      return Status(Code::kInvalidSize, "The structure of the shared memory has " +
                                            std::to_string(memory->struct_size) +
                                            " bytes; its buffer ends at " + std::to_string(kMin) +
                                            ".");
    }
    memory->address = 0;
    memory->memory_type = ONNXIFI_MEMORY_TYPE_CPU;
    memory->buffer = 0;
    if (size_bytes == 0) return Status(Code::kInvalidSize, "Shared memory of 0 bytes is none.");
    constexpr uint64_t kMaxBytes = INT64_MAX;
    if (size_bytes > kMaxBytes) {
      return Status(Code::kNoDeviceMemory,
                    "No device has " + std::to_string(size_bytes) + " bytes to share.");
    }
    ONNXIFI_ASSIGN_OR_RETURN(SharedMemory made, backend->backend->AllocateSharedMemory(
                                                    static_cast<int64_t>(size_bytes)));
    const std::lock_guard lock(backend->shared_mutex);
    SharedMemory& kept = backend->shared[made.address];
    kept = std::move(made);
    memory->address = kept.address;
    memory->memory_type = kept.memory_type;
    memory->buffer = kept.buffer;
    return base::Ok();
  });
}

onnxStatus ONNXIFI_ABI ReleaseSharedMemory(onnxBackend handle, onnxPointer address) {
  return Guard(Function::kReleaseSharedMemory, [&]() -> Status {
    const auto backend = Library::Get().backends().Find(handle);
    if (backend == nullptr) return UnknownBackend();
    SharedMemory released;
    const std::lock_guard lock(backend->shared_mutex);
    const auto found = backend->shared.find(address);
    if (found == backend->shared.end()) {
      return Status(Code::kInvalidPointer, "No memory that the backend shares lies at address " +
                                               std::to_string(address) + ".");
    }
    released = std::move(found->second);
    backend->shared.erase(found);
    return base::Ok();
  });
}

// By way of void(*)(), which compilers know as the type of any function.
template <typename F>
onnxExtensionFunctionPointer Erase(F function) {
  return reinterpret_cast<onnxExtensionFunctionPointer>(reinterpret_cast<void (*)()>(function));
}

// Initialising a typed pointer first makes the compiler compare with the published prototype.
const std::vector<Entry>& Entries() {
  static const std::vector<Entry> entries = [] {
    const onnxGetExtensionFunctionAddressFunction get_address = onnxGetExtensionFunctionAddress;
    const onnxSetIOAndRunGraphFunction set_io_and_run = onnxSetIOAndRunGraph;
    const onnxWaitEventForFunction wait_for = WaitEventFor;
    const onnxGetLastErrorMessageFunction last_error = GetLastErrorMessage;
    const onnxExplainModelFunction explain = ExplainModel;
    const onnxInferOutputShapesFunction infer = InferOutputShapes;
    const onnxGetRunOutputShapesFunction run_shapes = GetRunOutputShapes;
    const onnxGetGraphCountersFunction counters = GetGraphCounters;
    const onnxGetGraphProfileFunction profile = GetGraphProfile;
    const onnxGetGraphLoadProfileFunction load_profile = GetGraphLoadProfile;
    const onnxGetBackendKeyFunction key = GetBackendKey;
    const onnxGetBackendValueCompatibilityFunction value_compatibility =
        GetBackendValueCompatibility;
    const onnxSetGraphValuesFunction set_values = SetGraphValues;
    const onnxGetRunValuesFunction run_values = GetRunValues;
    const onnxImportEventFunction import_event = ImportEvent;
    const onnxExportEventFunction export_event = ExportEvent;
    const onnxAllocateSharedMemoryFunction allocate_shared = AllocateSharedMemory;
    const onnxReleaseSharedMemoryFunction release_shared = ReleaseSharedMemory;
    return std::vector<Entry>{
        {"onnxGetExtensionFunctionAddress", Erase(get_address), /*is_library_wide=*/true},
        {"onnxSetIOAndRunGraph", Erase(set_io_and_run), /*is_library_wide=*/false},
        {"onnxWaitEventFor", Erase(wait_for), /*is_library_wide=*/false},
        {"onnxGetLastErrorMessage", Erase(last_error), /*is_library_wide=*/true},
        {"onnxExplainModel", Erase(explain), /*is_library_wide=*/false},
        {"onnxInferOutputShapes", Erase(infer), /*is_library_wide=*/false},
        {"onnxGetRunOutputShapes", Erase(run_shapes), /*is_library_wide=*/false},
        {"onnxGetGraphCounters", Erase(counters), /*is_library_wide=*/false},
        {"onnxGetGraphProfile", Erase(profile), /*is_library_wide=*/false},
        {"onnxGetGraphLoadProfile", Erase(load_profile), /*is_library_wide=*/false},
        {"onnxGetBackendKey", Erase(key), /*is_library_wide=*/false},
        {"onnxGetBackendValueCompatibility", Erase(value_compatibility), /*is_library_wide=*/false},
        {"onnxSetGraphValues", Erase(set_values), /*is_library_wide=*/false},
        {"onnxGetRunValues", Erase(run_values), /*is_library_wide=*/false},
        {"onnxImportEvent", Erase(import_event), /*is_library_wide=*/false},
        {"onnxExportEvent", Erase(export_event), /*is_library_wide=*/false},
        {"onnxAllocateSharedMemory", Erase(allocate_shared), /*is_library_wide=*/false},
        {"onnxReleaseSharedMemory", Erase(release_shared), /*is_library_wide=*/false},
    };
  }();
  return entries;
}

const Entry* FindEntry(std::string_view base_name) {
  for (const Entry& entry : Entries()) {
    if (entry.name == base_name) return &entry;
  }
  return nullptr;
}

}  // namespace

std::string_view ExtensionBaseName(std::string_view name) {
  constexpr std::string_view kSuffix = "Function";
  if (name.ends_with(kSuffix)) name.remove_suffix(kSuffix.size());
  return name;
}

onnxExtensionFunctionPointer FindExtension(Provider& provider, const BackendId* id,
                                           std::string_view base_name) {
  const Entry* entry = FindEntry(base_name);
  if (entry != nullptr && (id != nullptr || entry->is_library_wide)) return entry->function;
  if (entry == nullptr) {
    if (const auto function = provider.FindFunction(base_name)) return function;
    if (id != nullptr) return id->FindFunction(base_name);
  }
  return nullptr;
}

bool NeedsBackendId(std::string_view base_name) {
  const Entry* entry = FindEntry(base_name);
  return entry != nullptr && !entry->is_library_wide;
}

std::string ExtensionNames(std::string_view others) {
  std::string names =
      "onnx_extension_function "
      "onnxGetExtensionFunctionAddress onnxGetExtensionFunctionAddressFunction "
      "onnxSetIOAndRunGraph onnxSetIOAndRunGraphFunction "
      "onnxWaitEventFor onnxWaitEventForFunction " ONNXIFI_SDK_EXTENSION_NAME;
  std::set<std::string, std::less<>> known;
  for (size_t begin = 0, end = 0; begin < names.size(); begin = end + 1) {
    end = std::min(names.find(' ', begin), names.size());
    known.insert(names.substr(begin, end - begin));
  }
  while (!others.empty()) {
    const size_t end = std::min(others.find(' '), others.size());
    const std::string_view name = others.substr(0, end);
    if (!name.empty() && known.insert(std::string(name)).second) names.append(" ").append(name);
    others.remove_prefix(std::min(end + 1, others.size()));
  }
  return names;
}

}  // namespace onnxifi::abi
