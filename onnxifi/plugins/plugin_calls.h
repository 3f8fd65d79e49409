// SPDX-License-Identifier: Apache-2.0
//
// PluginCalls: one plugin as the dispatcher calls it. The only place where a plugin's status codes
// turn into Status, with the plugin's own sentence where it has one. Every call is guarded, see
// discovery/library/plugin_function.h: a plugin that throws is quarantined and answers
// BACKEND_UNAVAILABLE with the reason from then on.

#ifndef ONNXIFI_ONNXIFI_PLUGINS_PLUGIN_CALLS_H_
#define ONNXIFI_ONNXIFI_PLUGINS_PLUGIN_CALLS_H_

#include <onnx/onnxifi.h>
#include <onnx/onnxifi_ext.h>
#include <onnxifi/sdk.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backends/core/abi/provider.h"
#include "backends/core/abi/tensor_descriptor.h"
#include "backends/core/base/result.h"
#include "backends/core/base/status.h"
#include "discovery/library/plugin_answer.h"
#include "discovery/library/plugin_function.h"
#include "discovery/library/plugin_library.h"

namespace onnxifi::plugins {

// The functions and extensions of a plugin for one of its devices. Plain addresses: copies are
// cheap, and stay valid because plugins are never unloaded.
// Threads: any; all but losses() is constant after construction.
class PluginCalls {
 public:
  // `index` counts the devices of the plugin.
  PluginCalls(std::string plugin_name, size_t index, const library::PluginFunctions& functions,
              onnxBackendID id);

  const std::string& plugin_name() const { return plugin_name_; }
  // How tools select the device, e.g. "cpu:0".
  std::string key() const { return plugin_name_ + ":" + std::to_string(index_); }
  const library::PluginFunctions& functions() const { return functions_; }
  onnxBackendID id() const { return id_; }
  // How often the device has answered so far that it is not there, to whatever copy of this.
  uint64_t losses() const { return *losses_; }

  // Extensions; empty where the plugin does not offer them.
  decltype(library::Guarded(onnxSetIOAndRunGraphFunction())) set_io_and_run_graph;
  decltype(library::Guarded(onnxWaitEventForFunction())) wait_event_for;
  decltype(library::Guarded(onnxExplainModelFunction())) explain_model;
  decltype(library::Guarded(onnxInferOutputShapesFunction())) infer_output_shapes;
  decltype(library::Guarded(onnxGetRunOutputShapesFunction())) get_run_output_shapes;
  decltype(library::Guarded(onnxGetGraphCountersFunction())) get_graph_counters;
  decltype(library::Guarded(onnxGetGraphProfileFunction())) get_graph_profile;
  decltype(library::Guarded(onnxGetGraphLoadProfileFunction())) get_graph_load_profile;
  decltype(library::Guarded(
      onnxGetBackendValueCompatibilityFunction())) get_backend_value_compatibility;
  decltype(library::Guarded(onnxSetGraphValuesFunction())) set_graph_values;
  decltype(library::Guarded(onnxGetRunValuesFunction())) get_run_values;
  decltype(library::Guarded(onnxImportEventFunction())) import_event;
  decltype(library::Guarded(onnxExportEventFunction())) export_event;
  // Both or neither.
  decltype(library::Guarded(onnxAllocateSharedMemoryFunction())) allocate_shared_memory;
  decltype(library::Guarded(onnxReleaseSharedMemoryFunction())) release_shared_memory;

  // Whether it has all three of those for values.
  bool TakesValues() const {
    return get_backend_value_compatibility != nullptr && set_graph_values != nullptr &&
           get_run_values != nullptr;
  }

  // What the plugin's answer to `function` means. Called on the thread that made the call, before
  // another call to the plugin.
  base::Status ToStatus(onnxStatus status, std::string_view function) const;
  // The same for a work status that came with its text.
  base::Status ToStatus(onnxStatus status, std::string_view function, std::string text) const;
  // The same for a function that makes `what`, such as "a backend": with a success it gives a
  // handle. A plugin that gives NULL is quarantined.
  base::Status ToStatus(onnxStatus status, std::string_view function, std::string_view what,
                        const void* handle) const;
  base::Status Missing(std::string_view function) const;
  // Quarantines the plugin for the fault and says so: BACKEND_UNAVAILABLE.
  base::Status Quarantine(std::string fault) const;
  bool is_quarantined() const { return functions_.health->is_quarantined(); }

  // A text of the plugin's: `call(char*, size_t*)` asks `function` for it.
  template <typename Call>
  base::Result<std::string> ReadText(std::string_view function, Call&& call) const {
    library::TextAnswer answer = library::ReadText(*functions_.health, function, call);
    ONNXIFI_RETURN_IF_ERROR(ToStatus(answer.status, function));
    return std::move(answer.text);
  }

  // A function of the plugin beyond the fifteen, or null. Calls through it are the caller's own.
  onnxExtensionFunctionPointer FindFunction(const char* name) const;

 private:
  template <typename... Arguments>
  void Find(const char* name, library::Reach reach,
            library::PluginFunction<Arguments...>* out_function) const;
  base::Status QuarantineStatus() const;

  std::string plugin_name_;
  size_t index_;
  library::PluginFunctions functions_;
  onnxBackendID id_;
  decltype(library::Guarded(onnxGetLastErrorMessageFunction())) get_last_error_message_;
  // Shared by copies, which stand for the same device.
  std::shared_ptr<std::atomic<uint64_t>> losses_ = std::make_shared<std::atomic<uint64_t>>(0);
};

// Descriptors that point into `tensors`, which must outlive them.
std::vector<onnxTensorDescriptorV1> Describe(std::span<const abi::TensorDescriptor> tensors);

// What a plugin tells record by record, through a callback that gets a Told as its context. Nothing
// is thrown through the plugin: what is wrong with a record ends the collecting.
template <typename Item>
struct Told {
  std::vector<Item> items;
  // Of the plugin: a sentence; empty while there is none.
  std::string fault;
  bool is_out_of_memory = false;

  // What the call and its records mean.
  base::Status ToStatus(const PluginCalls& calls, onnxStatus status,
                        std::string_view function) const {
    if (is_out_of_memory) {
      return base::Status(base::Code::kNoSystemMemory,
                          "There is no memory for what plugin '" + calls.plugin_name() +
                              "' tells through " + std::string(function) + ".");
    }
    if (!fault.empty()) {
      return calls.Quarantine("Function " + std::string(function) + " of the plugin " + fault);
    }
    return calls.ToStatus(status, function);
  }
};

// Callbacks: of the shape functions, the profile, the load profile and explanations.
void ONNXIFI_ABI AppendShape(void* told, const onnxTensorShape* shape);  // Told<abi::TensorShape>
void ONNXIFI_ABI AppendStep(void* told, const onnxStepRecord* record);   // Told<abi::StepRecord>
void ONNXIFI_ABI AppendStage(void* told, const onnxLoadRecord* record);  // Told<abi::LoadRecord>
void ONNXIFI_ABI AppendVerdict(void* told,
                               const onnxNodeVerdict* verdict);  // Told<abi::NodeVerdict>

}  // namespace onnxifi::plugins

#endif  // ONNXIFI_ONNXIFI_PLUGINS_PLUGIN_CALLS_H_
