// SPDX-License-Identifier: Apache-2.0
//
// PluginLibrary: an opened plugin and its functions, each proven to be the plugin's own. The last
// step before anything of a plugin is called.

#ifndef ONNXIFI_DISCOVERY_LIBRARY_PLUGIN_LIBRARY_H_
#define ONNXIFI_DISCOVERY_LIBRARY_PLUGIN_LIBRARY_H_

#include <onnx/onnxifi.h>
#include <onnx/onnxifi_ext.h>

#include <cstdint>
#include <filesystem>
#include <string>

#include "discovery/library/image.h"

namespace onnxifi::library {

struct PluginFunctions {
  onnxGetBackendIDsFunction get_backend_ids = nullptr;
  onnxReleaseBackendIDFunction release_backend_id = nullptr;
  onnxGetBackendInfoFunction get_backend_info = nullptr;
  onnxGetBackendCompatibilityFunction get_backend_compatibility = nullptr;
  onnxInitBackendFunction init_backend = nullptr;
  onnxReleaseBackendFunction release_backend = nullptr;
  onnxInitEventFunction init_event = nullptr;
  onnxSignalEventFunction signal_event = nullptr;
  onnxGetEventStateFunction get_event_state = nullptr;
  onnxWaitEventFunction wait_event = nullptr;
  onnxReleaseEventFunction release_event = nullptr;
  onnxInitGraphFunction init_graph = nullptr;
  onnxSetGraphIOFunction set_graph_io = nullptr;
  onnxRunGraphFunction run_graph = nullptr;
  onnxReleaseGraphFunction release_graph = nullptr;
  // Null in a plugin that has no extensions.
  onnxGetExtensionFunctionAddressFunction get_extension_function_address = nullptr;
};

// How the opening of a plugin ended.
struct OpenVerdict {
  // ONNXIFI_SDK_VERDICT_*.
  uint32_t verdict = 0;
  std::string sentence;
  // The system linker's own words.
  std::string detail;
};

class PluginLibrary {
 public:
  // Opens the file and finds its functions. Not open unless the verdict is LOADED; `own_function`
  // is any function of this libonnxifi, by which it recognises itself.
  static PluginLibrary Open(const std::filesystem::path& path, const void* own_function,
                            OpenVerdict* out_verdict);

  bool is_open() const { return image_.is_open(); }
  const PluginFunctions& functions() const { return functions_; }
  // Never unloads the plugin: its threads may outlive every object we know of.
  void Keep() { image_.Keep(); }

 private:
  Image image_;
  PluginFunctions functions_;
};

}  // namespace onnxifi::library

#endif  // ONNXIFI_DISCOVERY_LIBRARY_PLUGIN_LIBRARY_H_
