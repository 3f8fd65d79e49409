// SPDX-License-Identifier: Apache-2.0
//
// PluginCalls: one plugin as the dispatcher calls it. The only place where a plugin's status codes
// turn into Status, with the plugin's own sentence where it has one.

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
#include "backends/core/base/status.h"
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

  // Extensions; null where the plugin does not offer them.
  onnxSetIOAndRunGraphFunction set_io_and_run_graph = nullptr;
  onnxWaitEventForFunction wait_event_for = nullptr;
  onnxExplainModelFunction explain_model = nullptr;
  onnxInferOutputShapesFunction infer_output_shapes = nullptr;
  onnxGetRunOutputShapesFunction get_run_output_shapes = nullptr;
  onnxGetGraphCountersFunction get_graph_counters = nullptr;
  onnxGetGraphProfileFunction get_graph_profile = nullptr;
  onnxGetGraphLoadProfileFunction get_graph_load_profile = nullptr;
  onnxGetBackendValueCompatibilityFunction get_backend_value_compatibility = nullptr;
  onnxSetGraphValuesFunction set_graph_values = nullptr;
  onnxGetRunValuesFunction get_run_values = nullptr;
  onnxImportEventFunction import_event = nullptr;
  onnxExportEventFunction export_event = nullptr;
  // Both or neither.
  onnxAllocateSharedMemoryFunction allocate_shared_memory = nullptr;
  onnxReleaseSharedMemoryFunction release_shared_memory = nullptr;

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
  base::Status Missing(std::string_view function) const;

  // A function of the plugin beyond the fifteen, or null.
  onnxExtensionFunctionPointer FindFunction(const char* name) const;

 private:
  std::string plugin_name_;
  size_t index_;
  library::PluginFunctions functions_;
  onnxBackendID id_;
  onnxGetLastErrorMessageFunction get_last_error_message_ = nullptr;
  // Shared by copies, which stand for the same device.
  std::shared_ptr<std::atomic<uint64_t>> losses_ = std::make_shared<std::atomic<uint64_t>>(0);
};

// Descriptors that point into `tensors`, which must outlive them.
std::vector<onnxTensorDescriptorV1> Describe(std::span<const abi::TensorDescriptor> tensors);

// Callback of the shape functions; `shapes` is a std::vector<abi::TensorShape>.
void ONNXIFI_ABI AppendShape(void* shapes, const onnxTensorShape* shape);

// Callback of the profile; `steps` is a std::vector<abi::StepRecord>.
void ONNXIFI_ABI AppendStep(void* steps, const onnxStepRecord* record);

// Callback of the load profile; `stages` is a std::vector<abi::LoadRecord>.
void ONNXIFI_ABI AppendStage(void* stages, const onnxLoadRecord* record);

}  // namespace onnxifi::plugins

#endif  // ONNXIFI_ONNXIFI_PLUGINS_PLUGIN_CALLS_H_
