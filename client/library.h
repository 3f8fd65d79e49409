// SPDX-License-Identifier: Apache-2.0
//
// Library: an ONNXIFI library opened from a path, any vendor's. Its fifteen functions are called
// through here, its extensions where it has them.

#ifndef ONNXIFI_CLIENT_LIBRARY_H_
#define ONNXIFI_CLIENT_LIBRARY_H_

#include <onnx/onnxifi.h>
#include <onnx/onnxifi_ext.h>
#include <onnxifi/sdk.h>

#include <filesystem>
#include <memory>
#include <string>

#include "backends/core/base/result.h"
#include "client/call_log.h"

namespace onnxifi::client {

// Extension functions; nullptr where the library does not offer one. The structure of an answer
// that a library does not give is not guessed: callers say what they cannot check.
struct Extensions {
  onnxSetIOAndRunGraphFunction set_io_and_run_graph = nullptr;
  onnxWaitEventForFunction wait_event_for = nullptr;
  onnxGetLastErrorMessageFunction get_last_error_message = nullptr;
  onnxExplainModelFunction explain_model = nullptr;
  onnxInferOutputShapesFunction infer_output_shapes = nullptr;
  onnxGetRunOutputShapesFunction get_run_output_shapes = nullptr;
  onnxGetGraphCountersFunction get_graph_counters = nullptr;
  onnxGetGraphProfileFunction get_graph_profile = nullptr;
  onnxGetGraphLoadProfileFunction get_graph_load_profile = nullptr;
  onnxGetBackendKeyFunction get_backend_key = nullptr;
  onnxGetGraphPlanFunction get_graph_plan = nullptr;
  onnxGetBackendValueCompatibilityFunction get_backend_value_compatibility = nullptr;
  onnxSetGraphValuesFunction set_graph_values = nullptr;
  onnxGetRunValuesFunction get_run_values = nullptr;
};

// Threads: as the library allows; the object itself does not change after Open.
class Library {
 public:
  // Opens `path` RTLD_NOW | RTLD_LOCAL and finds the functions. INVALID_NAME, with the linker's
  // words, when it does not open or lacks one of the fifteen.
  static base::Result<std::unique_ptr<Library>> Open(const std::filesystem::path& path);
  ~Library();
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  const std::filesystem::path& path() const { return path_; }
  const CallLog& log() const { return log_; }

  // The last error's sentence of this thread; empty when the library has no such extension.
  std::string LastError() const;

  // The address of an exported symbol; nullptr if there is none.
  void* FindSymbol(const char* name) const;

  // Looks the extension functions up for a device; a NULL ID finds those of the library as a whole.
  Extensions FindExtensions(onnxBackendID id) const;

  // The library's functions, in the interface's own spelling.
  // NOLINTBEGIN(readability-identifier-naming)
  LoggedFunction<onnxStatus(onnxBackendID*, size_t*)> onnxGetBackendIDs;
  LoggedFunction<onnxStatus(onnxBackendID)> onnxReleaseBackendID;
  LoggedFunction<onnxStatus(onnxBackendID, onnxBackendInfo, void*, size_t*)> onnxGetBackendInfo;
  LoggedFunction<onnxStatus(onnxBackendID, size_t, const void*)> onnxGetBackendCompatibility;
  LoggedFunction<onnxStatus(onnxBackendID, const uint64_t*, onnxBackend*)> onnxInitBackend;
  LoggedFunction<onnxStatus(onnxBackend)> onnxReleaseBackend;
  LoggedFunction<onnxStatus(onnxBackend, onnxEvent*)> onnxInitEvent;
  LoggedFunction<onnxStatus(onnxEvent)> onnxSignalEvent;
  LoggedFunction<onnxStatus(onnxEvent, onnxEventState*)> onnxGetEventState;
  LoggedFunction<onnxStatus(onnxEvent)> onnxWaitEvent;
  LoggedFunction<onnxStatus(onnxEvent)> onnxReleaseEvent;
  LoggedFunction<onnxStatus(onnxBackend, const uint64_t*, size_t, const void*, uint32_t,
                            const onnxTensorDescriptorV1*, onnxGraph*)>
      onnxInitGraph;
  LoggedFunction<onnxStatus(onnxGraph, uint32_t, const onnxTensorDescriptorV1*, uint32_t,
                            const onnxTensorDescriptorV1*)>
      onnxSetGraphIO;
  LoggedFunction<onnxStatus(onnxGraph, const onnxMemoryFenceV1*, onnxMemoryFenceV1*)> onnxRunGraph;
  LoggedFunction<onnxStatus(onnxGraph)> onnxReleaseGraph;
  // nullptr in a plain ONNXIFI 1.0 library.
  onnxGetExtensionFunctionAddressFunction onnxGetExtensionFunctionAddress = nullptr;
  // NOLINTEND(readability-identifier-naming)

 private:
  Library(void* handle, std::filesystem::path path) : handle_(handle), path_(std::move(path)) {}
  base::Status BindAll();

  void* handle_;
  std::filesystem::path path_;
  CallLog log_;
  onnxGetLastErrorMessageFunction get_last_error_message_ = nullptr;
};

}  // namespace onnxifi::client

#endif  // ONNXIFI_CLIENT_LIBRARY_H_
