// SPDX-License-Identifier: Apache-2.0
//
// The plain plugin with one fault that no plugin may have. The name of its file says which: a copy
// called libonnxifi-throws-query.so throws in onnxGetBackendInfo. The names are in FaultIs'
// callers.

#include <dlfcn.h>
#include <onnx/onnxifi.h>
#include <onnx/onnxifi_ext.h>
#include <onnxifi/sdk.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <string_view>

// The functions that may fail go by another name there.
#define onnxGetBackendIDs PlainGetBackendIDs
#define onnxGetBackendInfo PlainGetBackendInfo
#define onnxGetBackendCompatibility PlainGetBackendCompatibility
#define onnxInitBackend PlainInitBackend
#define onnxInitEvent PlainInitEvent
#define onnxInitGraph PlainInitGraph
#define onnxRunGraph PlainRunGraph
extern "C" {
static onnxStatus ONNXIFI_ABI onnxGetBackendIDs(onnxBackendID*, size_t*);
static onnxStatus ONNXIFI_ABI onnxGetBackendInfo(onnxBackendID, onnxBackendInfo, void*, size_t*);
static onnxStatus ONNXIFI_ABI onnxGetBackendCompatibility(onnxBackendID, size_t, const void*);
static onnxStatus ONNXIFI_ABI onnxInitBackend(onnxBackendID, const uint64_t*, onnxBackend*);
static onnxStatus ONNXIFI_ABI onnxInitEvent(onnxBackend, onnxEvent*);
static onnxStatus ONNXIFI_ABI onnxInitGraph(onnxBackend, const uint64_t*, size_t, const void*,
                                            uint32_t, const onnxTensorDescriptorV1*, onnxGraph*);
static onnxStatus ONNXIFI_ABI onnxRunGraph(onnxGraph, const onnxMemoryFenceV1*, onnxMemoryFenceV1*);
#include "onnxifi/testing/fakes/plain_plugin.c"
}
#undef onnxGetBackendIDs
#undef onnxGetBackendInfo
#undef onnxGetBackendCompatibility
#undef onnxInitBackend
#undef onnxInitEvent
#undef onnxInitGraph
#undef onnxRunGraph

namespace {

bool FaultIs(std::string_view fault) {
  Dl_info info = {};
  dladdr(reinterpret_cast<const void*>(&FaultIs), &info);
  return std::filesystem::path(info.dli_fname).stem() == "libonnxifi-" + std::string(fault);
}

[[noreturn]] void Hang() {
  while (true) pause();
}

// What ends or holds the process, in `where`.
void EndProcessIn(const std::string& where) {
  if (FaultIs("aborts-" + where)) std::abort();
  if (FaultIs("exits-" + where)) std::exit(0);
  if (FaultIs("hangs-" + where)) Hang();
  if (FaultIs("crashes-" + where)) {
    signal(SIGSEGV, SIG_DFL);  // sanitizers have a handler of their own
    raise(SIGSEGV);
  }
}

struct Opening {
  Opening() { EndProcessIn("opening"); }
} opening;

onnxStatus ONNXIFI_ABI TellNothing(onnxBackendID /*id*/, size_t /*size*/, const void* /*model*/,
                                   onnxNodeVerdictCallback callback, void* context) {
  callback(context, nullptr);
  return ONNXIFI_STATUS_SUCCESS;
}

// The outputs of a run, each wrong in one way.
onnxStatus ONNXIFI_ABI TellValue(onnxEvent /*event*/, onnxValueCallback callback, void* context) {
  const int64_t extent = int64_t{1} << 40;
  const float element = 0;
  onnxValue value = {};
  value.struct_size = sizeof(value);
  value.name = "y";
  value.kind = ONNXIFI_SDK_VALUE_TENSOR;
  value.data_type = ONNXIFI_DATATYPE_FLOAT32;
  value.rank = 1;
  value.extents = &extent;
  value.data = &element;
  value.data_size_bytes = sizeof(element);
  if (FaultIs("short-value")) {
    // Only its size may be read.
    const auto size = static_cast<uint64_t*>(std::malloc(sizeof(uint64_t)));
    *size = sizeof(uint64_t);
    callback(context, reinterpret_cast<const onnxValue*>(size));
    std::free(size);
  } else {
    callback(context, FaultIs("null-value") ? nullptr : &value);
  }
  return ONNXIFI_STATUS_SUCCESS;
}

}  // namespace

extern "C" {

onnxStatus ONNXIFI_ABI onnxGetBackendIDs(onnxBackendID* ids, size_t* count) {
  EndProcessIn("listing");
  if (FaultIs("throws-listing")) throw std::runtime_error("the driver is upset.");
  if (FaultIs("prints-listing")) {
    std::puts("ok\ndone\n{\"devices\": 3}");
    std::fflush(stdout);
  }
  if (FaultIs("endless-listing")) {
    *count = SIZE_MAX;
    return ONNXIFI_STATUS_FALLBACK;
  }
  const size_t capacity = *count;
  const onnxStatus status = PlainGetBackendIDs(ids, count);
  if (status != ONNXIFI_STATUS_SUCCESS) return status;
  if (FaultIs("null-listing")) ids[0] = nullptr;
  if (FaultIs("overfull-listing")) *count = capacity + 1;
  return status;
}

onnxStatus ONNXIFI_ABI onnxGetBackendInfo(onnxBackendID id, onnxBackendInfo query, void* value,
                                          size_t* size) {
  EndProcessIn("query");
  if (FaultIs("throws-query")) throw 42;
  if (query == ONNXIFI_BACKEND_NAME) {
    if (FaultIs("throws-name")) throw std::runtime_error("the name is lost.");
    if (FaultIs("tebibyte-name")) {
      *size = size_t{1} << 40;
      return ONNXIFI_STATUS_FALLBACK;
    }
    if (FaultIs("growing-name")) {
      ++*size;
      return ONNXIFI_STATUS_FALLBACK;
    }
  }
  return PlainGetBackendInfo(id, query, value, size);
}

onnxStatus ONNXIFI_ABI onnxGetBackendCompatibility(onnxBackendID id, size_t size,
                                                   const void* model) {
  if (FaultIs("throws-claim")) throw std::runtime_error("the compiler gives up.");
  return PlainGetBackendCompatibility(id, size, model);
}

onnxStatus ONNXIFI_ABI onnxInitBackend(onnxBackendID id, const uint64_t* properties,
                                       onnxBackend* backend) {
  EndProcessIn("initialisation");
  if (FaultIs("throws-initialisation")) throw std::runtime_error("the device is gone.");
  const onnxStatus status = PlainInitBackend(id, properties, backend);
  if (FaultIs("null-backend")) *backend = nullptr;
  return status;
}

onnxStatus ONNXIFI_ABI onnxInitEvent(onnxBackend backend, onnxEvent* event) {
  const onnxStatus status = PlainInitEvent(backend, event);
  if (FaultIs("null-event")) *event = nullptr;
  return status;
}

onnxStatus ONNXIFI_ABI onnxInitGraph(onnxBackend backend, const uint64_t* properties, size_t size,
                                     const void* model, uint32_t weights_count,
                                     const onnxTensorDescriptorV1* weights, onnxGraph* graph) {
  const onnxStatus status =
      PlainInitGraph(backend, properties, size, model, weights_count, weights, graph);
  if (FaultIs("null-graph")) *graph = nullptr;
  return status;
}

onnxStatus ONNXIFI_ABI onnxRunGraph(onnxGraph graph, const onnxMemoryFenceV1* input,
                                    onnxMemoryFenceV1* output) {
  const onnxStatus status = PlainRunGraph(graph, input, output);
  if (FaultIs("null-run")) output->event = nullptr;
  return status;
}

onnxStatus ONNXIFI_ABI onnxGetExtensionFunctionAddress(onnxBackendID /*id*/, const char* name,
                                                       onnxExtensionFunctionPointer* function) {
  if (FaultIs("throws-lookup")) throw std::runtime_error("there is no table.");
  if (FaultIs("null-explanation") && std::string_view(name) == "onnxExplainModel") {
    *function =
        reinterpret_cast<onnxExtensionFunctionPointer>(reinterpret_cast<void (*)()>(&TellNothing));
    return ONNXIFI_STATUS_SUCCESS;
  }
  if (FaultIs("null-value") || FaultIs("short-value") || FaultIs("huge-value")) {
    if (std::string_view(name) == "onnxGetRunValues") {
      *function =
          reinterpret_cast<onnxExtensionFunctionPointer>(reinterpret_cast<void (*)()>(&TellValue));
      return ONNXIFI_STATUS_SUCCESS;
    }
  }
  return ONNXIFI_STATUS_UNIDENTIFIED_NAME;
}

}  // extern "C"
