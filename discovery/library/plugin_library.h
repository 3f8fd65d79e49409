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
#include <memory>
#include <string>

#include "discovery/library/image.h"
#include "discovery/library/plugin_function.h"
#include "discovery/library/plugin_health.h"

namespace onnxifi::library {

// Each call through these is guarded.
struct PluginFunctions {
  decltype(Guarded(onnxGetBackendIDsFunction())) get_backend_ids;
  decltype(Guarded(onnxReleaseBackendIDFunction())) release_backend_id;
  decltype(Guarded(onnxGetBackendInfoFunction())) get_backend_info;
  decltype(Guarded(onnxGetBackendCompatibilityFunction())) get_backend_compatibility;
  decltype(Guarded(onnxInitBackendFunction())) init_backend;
  decltype(Guarded(onnxReleaseBackendFunction())) release_backend;
  decltype(Guarded(onnxInitEventFunction())) init_event;
  decltype(Guarded(onnxSignalEventFunction())) signal_event;
  decltype(Guarded(onnxGetEventStateFunction())) get_event_state;
  decltype(Guarded(onnxWaitEventFunction())) wait_event;
  decltype(Guarded(onnxReleaseEventFunction())) release_event;
  decltype(Guarded(onnxInitGraphFunction())) init_graph;
  decltype(Guarded(onnxSetGraphIOFunction())) set_graph_io;
  decltype(Guarded(onnxRunGraphFunction())) run_graph;
  decltype(Guarded(onnxReleaseGraphFunction())) release_graph;
  // Empty in a plugin that has no extensions.
  decltype(Guarded(onnxGetExtensionFunctionAddressFunction())) get_extension_function_address;
  // What these find out about the plugin; never null in an opened one.
  std::shared_ptr<PluginHealth> health;
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
  // is any function of this libonnxifi, by which it recognises itself. `health` gets what calls
  // find out about the plugin.
  static PluginLibrary Open(
      const std::filesystem::path& path, const void* own_function, OpenVerdict* out_verdict,
      std::shared_ptr<PluginHealth> health = std::make_shared<PluginHealth>());

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
