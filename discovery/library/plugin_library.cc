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

template <typename... Arguments>
bool Bind(const Image& image, const char* name, Reach reach, PluginHealth* health,
          PluginFunction<Arguments...>* out_function, OpenVerdict* out_verdict) {
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
  using Pointer = typename PluginFunction<Arguments...>::Pointer;
  *out_function = {reinterpret_cast<Pointer>(address), name, health, reach};
  return true;
}

bool BindAll(const Image& image, PluginFunctions* functions, OpenVerdict* out_verdict) {
  const auto bind = [&](const char* name, Reach reach, auto* out_function) {
    return Bind(image, name, reach, functions->health.get(), out_function, out_verdict);
  };
  return bind("onnxGetBackendIDs", Reach::kUntilQuarantine, &functions->get_backend_ids) &&
         bind("onnxReleaseBackendID", Reach::kAlways, &functions->release_backend_id) &&
         bind("onnxGetBackendInfo", Reach::kUntilQuarantine, &functions->get_backend_info) &&
         bind("onnxGetBackendCompatibility", Reach::kUntilQuarantine,
              &functions->get_backend_compatibility) &&
         bind("onnxInitBackend", Reach::kUntilQuarantine, &functions->init_backend) &&
         bind("onnxReleaseBackend", Reach::kAlways, &functions->release_backend) &&
         bind("onnxInitEvent", Reach::kAlways, &functions->init_event) &&
         bind("onnxSignalEvent", Reach::kAlways, &functions->signal_event) &&
         bind("onnxGetEventState", Reach::kAlways, &functions->get_event_state) &&
         bind("onnxWaitEvent", Reach::kAlways, &functions->wait_event) &&
         bind("onnxReleaseEvent", Reach::kAlways, &functions->release_event) &&
         bind("onnxInitGraph", Reach::kUntilQuarantine, &functions->init_graph) &&
         bind("onnxSetGraphIO", Reach::kAlways, &functions->set_graph_io) &&
         bind("onnxRunGraph", Reach::kAlways, &functions->run_graph) &&
         bind("onnxReleaseGraph", Reach::kAlways, &functions->release_graph);
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
                                  OpenVerdict* out_verdict, std::shared_ptr<PluginHealth> health) {
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
  functions.health = std::move(health);
  if (!BindAll(image, &functions, out_verdict)) return library;
  void* address = image.Find("onnxGetExtensionFunctionAddress");
  if (address != nullptr && image.Contains(address)) {
    functions.get_extension_function_address = {
        reinterpret_cast<onnxGetExtensionFunctionAddressFunction>(address),
        "onnxGetExtensionFunctionAddress", functions.health.get(), Reach::kUntilQuarantine};
  }
  if (IsLoader(functions)) {
    *out_verdict = {ONNXIFI_SDK_VERDICT_IS_LOADER,
                    "The library is a copy of libonnxifi, not a plugin.", ""};
    return library;
  }
  if (functions.health->is_quarantined()) {
    *out_verdict = {ONNXIFI_SDK_VERDICT_QUARANTINED, functions.health->reason(), ""};
    // It has run, and may have started threads.
    image.Keep();
    return library;
  }
  library.image_ = std::move(image);
  library.functions_ = functions;
  return library;
}

}  // namespace onnxifi::library
