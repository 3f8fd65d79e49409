// SPDX-License-Identifier: Apache-2.0
//
// PluginCalls: looks the extensions up once; asks for the sentence only after a failure.

#include "onnxifi/plugins/plugin_calls.h"

#include <cstddef>
#include <utility>

namespace onnxifi::plugins {

using base::Code;
using base::Status;

namespace {

template <typename F>
F Cast(onnxExtensionFunctionPointer function) {
  return reinterpret_cast<F>(reinterpret_cast<void (*)()>(function));
}

bool IsKnown(onnxStatus status) {
  return base::CodeName(static_cast<Code>(status)) != base::CodeName(static_cast<Code>(-1));
}

}  // namespace

PluginCalls::PluginCalls(std::string plugin_name, size_t index,
                         const library::PluginFunctions& functions, onnxBackendID id)
    : plugin_name_(std::move(plugin_name)), index_(index), functions_(functions), id_(id) {
  set_io_and_run_graph = Cast<onnxSetIOAndRunGraphFunction>(FindFunction("onnxSetIOAndRunGraph"));
  wait_event_for = Cast<onnxWaitEventForFunction>(FindFunction("onnxWaitEventFor"));
  explain_model = Cast<onnxExplainModelFunction>(FindFunction("onnxExplainModel"));
  infer_output_shapes = Cast<onnxInferOutputShapesFunction>(FindFunction("onnxInferOutputShapes"));
  get_run_output_shapes =
      Cast<onnxGetRunOutputShapesFunction>(FindFunction("onnxGetRunOutputShapes"));
  get_graph_counters = Cast<onnxGetGraphCountersFunction>(FindFunction("onnxGetGraphCounters"));
  get_graph_profile = Cast<onnxGetGraphProfileFunction>(FindFunction("onnxGetGraphProfile"));
  get_graph_load_profile =
      Cast<onnxGetGraphLoadProfileFunction>(FindFunction("onnxGetGraphLoadProfile"));
  get_backend_value_compatibility = Cast<onnxGetBackendValueCompatibilityFunction>(
      FindFunction("onnxGetBackendValueCompatibility"));
  set_graph_values = Cast<onnxSetGraphValuesFunction>(FindFunction("onnxSetGraphValues"));
  get_run_values = Cast<onnxGetRunValuesFunction>(FindFunction("onnxGetRunValues"));
  import_event = Cast<onnxImportEventFunction>(FindFunction("onnxImportEvent"));
  export_event = Cast<onnxExportEventFunction>(FindFunction("onnxExportEvent"));
  allocate_shared_memory =
      Cast<onnxAllocateSharedMemoryFunction>(FindFunction("onnxAllocateSharedMemory"));
  release_shared_memory =
      Cast<onnxReleaseSharedMemoryFunction>(FindFunction("onnxReleaseSharedMemory"));
  if (release_shared_memory == nullptr) allocate_shared_memory = nullptr;
  get_last_error_message_ =
      Cast<onnxGetLastErrorMessageFunction>(FindFunction("onnxGetLastErrorMessage"));
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
  std::string text;
  size_t size_bytes = 0;
  if (get_last_error_message_ != nullptr &&
      get_last_error_message_(nullptr, &size_bytes) == ONNXIFI_STATUS_FALLBACK) {
    text.resize(size_bytes);
    if (get_last_error_message_(text.data(), &size_bytes) == ONNXIFI_STATUS_SUCCESS) {
      text.resize(size_bytes - 1);
    } else {
      text.clear();
    }
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

void ONNXIFI_ABI AppendShape(void* shapes, const onnxTensorShape* shape) {
  static_cast<std::vector<abi::TensorShape>*>(shapes)->push_back(
      {shape->name, shape->data_type, shape->has_rank != 0,
       std::vector<int64_t>(shape->extents, shape->extents + shape->rank)});
}

void ONNXIFI_ABI AppendStep(void* steps, const onnxStepRecord* record) {
  abi::StepRecord& step = static_cast<std::vector<abi::StepRecord>*>(steps)->emplace_back();
  step.node_index = record->node_index;
  step.family = record->family;
  step.implementation = record->implementation;
  step.detail = record->detail;
  step.data_type = record->data_type;
  step.extents.assign(record->extents, record->extents + record->rank);
  step.rejected.assign(record->rejected, record->rejected + record->rejected_count);
  step.start_ns = record->start_ns;
  step.duration_ns = record->duration_ns;
  step.flops = record->flops;
  step.read_bytes = record->read_bytes;
  step.written_bytes = record->written_bytes;
}

void ONNXIFI_ABI AppendStage(void* stages, const onnxLoadRecord* record) {
  static_cast<std::vector<abi::LoadRecord>*>(stages)->push_back(
      {record->stage, record->count, record->duration_ns});
}

}  // namespace onnxifi::plugins
