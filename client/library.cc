// SPDX-License-Identifier: Apache-2.0
//
// Opening a library and finding its functions with the system's linker.

#include "client/library.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <array>

namespace onnxifi::client {
namespace {

std::string LinkerMessage() {
  const char* message = dlerror();
  return message != nullptr ? message : "no reason given";
}

// The function of this name, or nullptr.
template <typename Function>
void FindExtension(const Library& library, onnxBackendID id, const char* name, Function& function) {
  if (library.onnxGetExtensionFunctionAddress == nullptr) return;
  onnxExtensionFunctionPointer found = nullptr;
  const onnxStatus status = library.onnxGetExtensionFunctionAddress(id, name, &found);
  if (status == ONNXIFI_STATUS_SUCCESS) {
    // Through the one function type that may stand for any other.
    function = reinterpret_cast<Function>(reinterpret_cast<void (*)()>(found));
  }
}

}  // namespace

base::Result<std::unique_ptr<Library>> Library::Open(const std::filesystem::path& path) {
  std::error_code error;
  // An absolute path, so that the linker does not look for a bare file name in folders of its own.
  const std::filesystem::path absolute = std::filesystem::absolute(path, error);
  void* handle = dlopen((error ? path : absolute).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    return base::Status(base::Code::kInvalidName, fmt::format("Library '{}' does not open: {}.",
                                                              path.string(), LinkerMessage()));
  }
  std::unique_ptr<Library> library(new Library(handle, path));
  ONNXIFI_RETURN_IF_ERROR(library->BindAll());
  return library;
}

Library::~Library() { dlclose(handle_); }

void* Library::FindSymbol(const char* name) const { return dlsym(handle_, name); }

base::Status Library::BindAll() {
  std::array<void*, kFunctionCount> addresses;
  for (size_t index = 0; index < addresses.size(); ++index) {
    const std::string_view name = base::kFunctionNames[index];
    addresses[index] = FindSymbol(name.data());
    if (addresses[index] == nullptr) {
      return base::Status(base::Code::kInvalidName,
                          fmt::format("Library '{}' has no function '{}'.", path_.string(), name));
    }
  }
  const auto bind = [&](auto& function, Function index) {
    function.Bind(addresses[static_cast<size_t>(index)], index, &log_);
  };
  bind(onnxGetBackendIDs, Function::kGetBackendIDs);
  bind(onnxReleaseBackendID, Function::kReleaseBackendID);
  bind(onnxGetBackendInfo, Function::kGetBackendInfo);
  bind(onnxGetBackendCompatibility, Function::kGetBackendCompatibility);
  bind(onnxInitBackend, Function::kInitBackend);
  bind(onnxReleaseBackend, Function::kReleaseBackend);
  bind(onnxInitEvent, Function::kInitEvent);
  bind(onnxSignalEvent, Function::kSignalEvent);
  bind(onnxGetEventState, Function::kGetEventState);
  bind(onnxWaitEvent, Function::kWaitEvent);
  bind(onnxReleaseEvent, Function::kReleaseEvent);
  bind(onnxInitGraph, Function::kInitGraph);
  bind(onnxSetGraphIO, Function::kSetGraphIO);
  bind(onnxRunGraph, Function::kRunGraph);
  bind(onnxReleaseGraph, Function::kReleaseGraph);
  onnxGetExtensionFunctionAddress = reinterpret_cast<onnxGetExtensionFunctionAddressFunction>(
      FindSymbol("onnxGetExtensionFunctionAddress"));
  FindExtension(*this, nullptr, "onnxGetLastErrorMessage", get_last_error_message_);
  return base::Ok();
}

std::string Library::LastError() const {
  if (get_last_error_message_ == nullptr) return {};
  size_t size_bytes = 0;
  if (!IsAcceptance(get_last_error_message_(nullptr, &size_bytes)) || size_bytes == 0) return {};
  std::string message(size_bytes, '\0');
  if (get_last_error_message_(message.data(), &size_bytes) != ONNXIFI_STATUS_SUCCESS) return {};
  message.resize(message.find('\0') == std::string::npos ? message.size() : message.find('\0'));
  return message;
}

Extensions Library::FindExtensions(onnxBackendID id) const {
  Extensions extensions;
  FindExtension(*this, id, "onnxSetIOAndRunGraph", extensions.set_io_and_run_graph);
  FindExtension(*this, id, "onnxWaitEventFor", extensions.wait_event_for);
  FindExtension(*this, id, "onnxGetLastErrorMessage", extensions.get_last_error_message);
  FindExtension(*this, id, "onnxExplainModel", extensions.explain_model);
  FindExtension(*this, id, "onnxInferOutputShapes", extensions.infer_output_shapes);
  FindExtension(*this, id, "onnxGetRunOutputShapes", extensions.get_run_output_shapes);
  FindExtension(*this, id, "onnxGetGraphCounters", extensions.get_graph_counters);
  FindExtension(*this, id, "onnxGetGraphProfile", extensions.get_graph_profile);
  FindExtension(*this, id, "onnxGetGraphLoadProfile", extensions.get_graph_load_profile);
  FindExtension(*this, id, "onnxGetBackendKey", extensions.get_backend_key);
  FindExtension(*this, id, "onnxGetGraphPlan", extensions.get_graph_plan);
  FindExtension(*this, id, "onnxGetBackendValueCompatibility",
                extensions.get_backend_value_compatibility);
  FindExtension(*this, id, "onnxSetGraphValues", extensions.set_graph_values);
  FindExtension(*this, id, "onnxGetRunValues", extensions.get_run_values);
  return extensions;
}

}  // namespace onnxifi::client
