// SPDX-License-Identifier: Apache-2.0
//
// PluginLibrary: dlsym finds a missing function in the plugin's dependencies too, libonnxifi among
// them, and the calls would then come back to us. So each address is checked to lie in the plugin.

#include "discovery/library/plugin_library.h"

#include <onnxifi/sdk.h>

#include <string_view>
#include <system_error>
#include <utility>

namespace onnxifi::library {

namespace {

// Entry libraries that forward to plugins: this one and the wrapper published with ONNX share a
// name, the fork's has its own.
bool HasLoaderName(const std::filesystem::path& path) {
  const std::string name = path.filename().string();
  return name.starts_with("libonnxifi.so") || name.starts_with("libfoxi.so");
}

template <typename F>
bool Bind(const Image& image, const char* name, F* out_function, OpenVerdict* out_verdict) {
  void* address = image.Find(name);
  if (address == nullptr) {
    *out_verdict = {ONNXIFI_SDK_VERDICT_MISSING_FUNCTION,
                    "The library lacks function " + std::string(name) + ".", ""};
    return false;
  }
  if (!image.Contains(address)) {
    *out_verdict = {ONNXIFI_SDK_VERDICT_FOREIGN_FUNCTION,
                    "Function " + std::string(name) + " of the library lies in another one, '" +
                        Image::FileOf(address).string() + "'.",
                    ""};
    return false;
  }
  *out_function = reinterpret_cast<F>(address);
  return true;
}

bool BindAll(const Image& image, PluginFunctions* functions, OpenVerdict* out_verdict) {
  return Bind(image, "onnxGetBackendIDs", &functions->get_backend_ids, out_verdict) &&
         Bind(image, "onnxReleaseBackendID", &functions->release_backend_id, out_verdict) &&
         Bind(image, "onnxGetBackendInfo", &functions->get_backend_info, out_verdict) &&
         Bind(image, "onnxGetBackendCompatibility", &functions->get_backend_compatibility,
              out_verdict) &&
         Bind(image, "onnxInitBackend", &functions->init_backend, out_verdict) &&
         Bind(image, "onnxReleaseBackend", &functions->release_backend, out_verdict) &&
         Bind(image, "onnxInitEvent", &functions->init_event, out_verdict) &&
         Bind(image, "onnxSignalEvent", &functions->signal_event, out_verdict) &&
         Bind(image, "onnxGetEventState", &functions->get_event_state, out_verdict) &&
         Bind(image, "onnxWaitEvent", &functions->wait_event, out_verdict) &&
         Bind(image, "onnxReleaseEvent", &functions->release_event, out_verdict) &&
         Bind(image, "onnxInitGraph", &functions->init_graph, out_verdict) &&
         Bind(image, "onnxSetGraphIO", &functions->set_graph_io, out_verdict) &&
         Bind(image, "onnxRunGraph", &functions->run_graph, out_verdict) &&
         Bind(image, "onnxReleaseGraph", &functions->release_graph, out_verdict);
}

// Another copy of libonnxifi under a plugin's name would list our devices a second time.
bool IsLoader(const PluginFunctions& functions) {
  if (functions.get_extension_function_address == nullptr) return false;
  onnxExtensionFunctionPointer report = nullptr;
  return functions.get_extension_function_address(nullptr, "onnxGetDiscoveryReport", &report) ==
         ONNXIFI_STATUS_SUCCESS;
}

}  // namespace

PluginLibrary PluginLibrary::Open(const std::filesystem::path& path, const void* own_function,
                                  OpenVerdict* out_verdict) {
  PluginLibrary library;
  *out_verdict = {ONNXIFI_SDK_VERDICT_LOADED, "", ""};
  std::error_code error;
  if (HasLoaderName(path) ||
      std::filesystem::equivalent(path, Image::FileOf(own_function), error)) {
    *out_verdict = {ONNXIFI_SDK_VERDICT_IS_LOADER,
                    "The file is an entry library that forwards to plugins, not a plugin.", ""};
    return library;
  }
  std::string reason;
  Image image = Image::Open(path, &reason);
  if (!image.is_open()) {
    *out_verdict = {ONNXIFI_SDK_VERDICT_NOT_LOADABLE,
                    "The system's linker does not load the library.", std::move(reason)};
    return library;
  }
  PluginFunctions functions;
  if (!BindAll(image, &functions, out_verdict)) return library;
  void* address = image.Find("onnxGetExtensionFunctionAddress");
  if (address != nullptr && image.Contains(address)) {
    functions.get_extension_function_address =
        reinterpret_cast<onnxGetExtensionFunctionAddressFunction>(address);
  }
  if (IsLoader(functions)) {
    *out_verdict = {ONNXIFI_SDK_VERDICT_IS_LOADER,
                    "The library is a copy of libonnxifi, not a plugin.", ""};
    return library;
  }
  library.image_ = std::move(image);
  library.functions_ = functions;
  return library;
}

}  // namespace onnxifi::library
