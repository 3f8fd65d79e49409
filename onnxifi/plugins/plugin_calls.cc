// SPDX-License-Identifier: Apache-2.0
//
// PluginCalls: looks the extensions up once; asks for the sentence only after a failure.

#include "onnxifi/plugins/plugin_calls.h"

#include <cstddef>
#include <new>
#include <utility>

namespace onnxifi::plugins {

using base::Code;
using base::Status;

namespace {

bool IsKnown(onnxStatus status) {
  return base::CodeName(static_cast<Code>(status)) != base::CodeName(static_cast<Code>(-1));
}

}  // namespace

PluginCalls::PluginCalls(std::string plugin_name, size_t index,
                         const library::PluginFunctions& functions, onnxBackendID id)
    : plugin_name_(std::move(plugin_name)), index_(index), functions_(functions), id_(id) {
  using library::Reach;
  Find("onnxSetIOAndRunGraph", Reach::kAlways, &set_io_and_run_graph);
  Find("onnxWaitEventFor", Reach::kAlways, &wait_event_for);
  Find("onnxExplainModel", Reach::kUntilQuarantine, &explain_model);
  Find("onnxInferOutputShapes", Reach::kAlways, &infer_output_shapes);
  Find("onnxGetRunOutputShapes", Reach::kAlways, &get_run_output_shapes);
  Find("onnxGetGraphCounters", Reach::kAlways, &get_graph_counters);
  Find("onnxGetGraphProfile", Reach::kAlways, &get_graph_profile);
  Find("onnxGetGraphLoadProfile", Reach::kAlways, &get_graph_load_profile);
  Find("onnxGetBackendValueCompatibility", Reach::kUntilQuarantine,
       &get_backend_value_compatibility);
  Find("onnxSetGraphValues", Reach::kAlways, &set_graph_values);
  Find("onnxGetRunValues", Reach::kAlways, &get_run_values);
  Find("onnxImportEvent", Reach::kAlways, &import_event);
  Find("onnxExportEvent", Reach::kAlways, &export_event);
  Find("onnxAllocateSharedMemory", Reach::kAlways, &allocate_shared_memory);
  Find("onnxReleaseSharedMemory", Reach::kAlways, &release_shared_memory);
  if (release_shared_memory == nullptr) allocate_shared_memory = {};
  Find("onnxGetLastErrorMessage", Reach::kAlways, &get_last_error_message_);
}

template <typename... Arguments>
void PluginCalls::Find(const char* name, library::Reach reach,
                       library::PluginFunction<Arguments...>* out_function) const {
  const onnxExtensionFunctionPointer function = FindFunction(name);
  if (function == nullptr) return;
  using Pointer = typename library::PluginFunction<Arguments...>::Pointer;
  *out_function = {reinterpret_cast<Pointer>(reinterpret_cast<void (*)()>(function)), name,
                   functions_.health.get(), reach};
}

onnxExtensionFunctionPointer PluginCalls::FindFunction(const char* name) const {
  onnxExtensionFunctionPointer function = nullptr;
  if (functions_.get_extension_function_address == nullptr ||
      functions_.get_extension_function_address(id_, name, &function) != ONNXIFI_STATUS_SUCCESS) {
    return nullptr;
  }
  return function;
}

Status PluginCalls::ToStatus(onnxStatus status, std::string_view function) const {
  if (status == ONNXIFI_STATUS_SUCCESS) return base::Ok();
  if (status == ONNXIFI_STATUS_FALLBACK) {
    return Status(Code::kFallback, "Plugin '" + plugin_name_ + "' answers FALLBACK.");
  }
  if (status == ONNXIFI_STATUS_BACKEND_UNAVAILABLE && is_quarantined()) return QuarantineStatus();
  std::string text;
  if (get_last_error_message_ != nullptr) {
    text = library::ReadText(*functions_.health, "onnxGetLastErrorMessage", get_last_error_message_)
               .text;
  }
  return ToStatus(status, function, std::move(text));
}

Status PluginCalls::ToStatus(onnxStatus status, std::string_view function, std::string text) const {
  if (status == ONNXIFI_STATUS_SUCCESS) return base::Ok();
  const Code code = static_cast<Code>(status);
  if (code == Code::kBackendUnavailable) ++*losses_;
  if (!IsKnown(status)) {
    return Status(Code::kInternalError,
                  "Plugin '" + plugin_name_ + "' answers " + std::to_string(status) + " to " +
                      std::string(function) + ", which is no status of the interface.");
  }
  if (text.empty()) {
    text = "Plugin '" + plugin_name_ + "' answers " + std::string(CodeName(code)) + " to " +
           std::string(function) + " and gives no reason.";
  }
  return Status(code, std::move(text));
}

Status PluginCalls::ToStatus(onnxStatus status, std::string_view function, std::string_view what,
                             const void* handle) const {
  ONNXIFI_RETURN_IF_ERROR(ToStatus(status, function));
  if (handle != nullptr) return base::Ok();
  return Quarantine("Function " + std::string(function) + " of the plugin gives NULL for " +
                    std::string(what) + ".");
}

Status PluginCalls::Quarantine(std::string fault) const {
  functions_.health->Quarantine(std::move(fault));
  return QuarantineStatus();
}

Status PluginCalls::QuarantineStatus() const {
  ++*losses_;
  return Status(Code::kBackendUnavailable,
                "Plugin '" + plugin_name_ + "' is quarantined. " + functions_.health->reason());
}

Status PluginCalls::Missing(std::string_view function) const {
  return Status(Code::kInternalError,
                "Plugin '" + plugin_name_ + "' does not offer " + std::string(function) + ".");
}

std::vector<onnxTensorDescriptorV1> Describe(std::span<const abi::TensorDescriptor> tensors) {
  std::vector<onnxTensorDescriptorV1> descriptors;
  descriptors.reserve(tensors.size());
  for (const abi::TensorDescriptor& tensor : tensors) {
    onnxTensorDescriptorV1 descriptor = {};
    descriptor.tag = ONNXIFI_TAG_TENSOR_DESCRIPTOR_V1;
    descriptor.name = tensor.name.c_str();
    descriptor.dataType = tensor.data_type;
    descriptor.memoryType = tensor.memory_type;
    descriptor.dimensions = static_cast<uint32_t>(tensor.shape.size());
    descriptor.shape = tensor.shape.data();
    descriptor.buffer = tensor.buffer;
    descriptors.push_back(descriptor);
  }
  return descriptors;
}

namespace {

// Far above what the nodes and steps of a model are.
constexpr size_t kMaxRecords = size_t{1} << 24;
// As for descriptors.
constexpr uint64_t kMaxRank = 64;
// Implementations that a step passed over.
constexpr uint64_t kMaxRejected = 4096;

std::string TextOf(const char* text) { return text != nullptr ? text : ""; }

// What is wrong with an array of a record; empty where nothing is.
std::string FaultOf(std::string_view what, uint64_t count, uint64_t limit, const void* elements) {
  if (count > limit) {
    return "tells " + std::to_string(count) + " " + std::string(what) + "; the limit is " +
           std::to_string(limit) + ".";
  }
  if (count > 0 && elements == nullptr) {
    return "tells " + std::to_string(count) + " " + std::string(what) + " and no address of them.";
  }
  return std::string();
}

// Appends what `make` makes of a record, unless `fault` says that it is wrong.
template <typename Item, typename Make>
void Append(void* context, std::string (*find_fault)(const void* record), const void* record,
            Make make) noexcept {
  auto& told = *static_cast<Told<Item>*>(context);
  if (!told.fault.empty() || told.is_out_of_memory) return;
  try {
    if (record == nullptr) {
      told.fault = "gives NULL for a record.";
    } else if (told.items.size() == kMaxRecords) {
      told.fault = "tells more than " + std::to_string(kMaxRecords) + " records.";
    } else if (find_fault != nullptr) {
      told.fault = find_fault(record);
    }
    if (told.fault.empty()) told.items.push_back(make());
  } catch (const std::bad_alloc&) {
    told.is_out_of_memory = true;
  }
}

}  // namespace

void ONNXIFI_ABI AppendShape(void* told, const onnxTensorShape* shape) {
  const auto find_fault = [](const void* record) {
    const auto& shape = *static_cast<const onnxTensorShape*>(record);
    return FaultOf("extents of an output", shape.rank, kMaxRank, shape.extents);
  };
  Append<abi::TensorShape>(told, find_fault, shape, [shape] {
    return abi::TensorShape{TextOf(shape->name), shape->data_type, shape->has_rank != 0,
                            std::vector<int64_t>(shape->extents, shape->extents + shape->rank)};
  });
}

void ONNXIFI_ABI AppendStep(void* told, const onnxStepRecord* step) {
  const auto find_fault = [](const void* record) {
    const auto& step = *static_cast<const onnxStepRecord*>(record);
    std::string fault = FaultOf("extents of a step", step.rank, kMaxRank, step.extents);
    if (!fault.empty()) return fault;
    return FaultOf("reasons of a step", step.rejected_count, kMaxRejected, step.rejected);
  };
  Append<abi::StepRecord>(told, find_fault, step, [step] {
    abi::StepRecord record;
    record.node_index = step->node_index;
    record.family = TextOf(step->family);
    record.implementation = TextOf(step->implementation);
    record.detail = TextOf(step->detail);
    record.data_type = step->data_type;
    record.extents.assign(step->extents, step->extents + step->rank);
    for (uint64_t index = 0; index < step->rejected_count; ++index) {
      record.rejected.push_back(TextOf(step->rejected[index]));
    }
    record.start_ns = step->start_ns;
    record.duration_ns = step->duration_ns;
    record.flops = step->flops;
    record.read_bytes = step->read_bytes;
    record.written_bytes = step->written_bytes;
    // Plugins that know no precisions have shorter records.
    if (step->struct_size >= offsetof(onnxStepRecord, precision) + sizeof(step->precision)) {
      record.precision = step->precision;
    }
    return record;
  });
}

void ONNXIFI_ABI AppendStage(void* told, const onnxLoadRecord* stage) {
  Append<abi::LoadRecord>(told, nullptr, stage, [stage] {
    return abi::LoadRecord{TextOf(stage->stage), stage->count, stage->duration_ns};
  });
}

void ONNXIFI_ABI AppendVerdict(void* told, const onnxNodeVerdict* verdict) {
  Append<abi::NodeVerdict>(told, nullptr, verdict, [verdict] {
    return abi::NodeVerdict{
        verdict->node_index,     static_cast<Code>(verdict->status), TextOf(verdict->node_name),
        TextOf(verdict->domain), TextOf(verdict->operator_type),     verdict->opset_version,
        verdict->subject_kind,   TextOf(verdict->subject),           TextOf(verdict->sentence),
        verdict->limit};
  });
}

}  // namespace onnxifi::plugins
