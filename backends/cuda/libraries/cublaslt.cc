// SPDX-License-Identifier: Apache-2.0
//
// CublasLt: the table of functions, and the table of faults.

#include "backends/cuda/libraries/cublaslt.h"

#include <string>

#include "backends/cuda/libraries/shared_library.h"

namespace onnxifi::cuda {
namespace {

using base::Code;
using base::Result;
using base::Status;

struct Fault {
  int result;
  const char* name;
  Code code;
};

constexpr Fault kFaults[] = {
    {lt::kNotInitialized, "it is not initialised", Code::kBackendUnavailable},
    {lt::kAllocFailed, "out of memory", Code::kNoDeviceMemory},
    {lt::kArchitectureMismatch, "the device's architecture lacks it", Code::kUnsupportedOperator},
    {lt::kNotSupported, "it has no such product", Code::kUnsupportedOperator},
    {lt::kExecutionFailed, "the launch failed", Code::kBackendUnavailable},
    {lt::kInvalidValue, "invalid value", Code::kInternalError},
    {lt::kMappingError, "mapping error", Code::kInternalError},
    {lt::kInternalError, "internal error", Code::kInternalError},
};

}  // namespace

Result<std::unique_ptr<CublasLt>> CublasLt::Open(const LibraryHost& host) {
  ONNXIFI_ASSIGN_OR_RETURN(SharedLibrary library,
                           SharedLibrary::Open("cuBLASLt, version 13 or 12,",
                                               {"libcublasLt.so.13", "libcublasLt.so.12"}));
  Functions functions;
#define ONNXIFI_CUBLASLT_FIND(name, parameters) library.Find("cublasLt" #name, functions.name);
  ONNXIFI_CUBLASLT_FUNCTIONS(ONNXIFI_CUBLASLT_FIND)
#undef ONNXIFI_CUBLASLT_FIND
  library.Find("cublasLtGetVersion", functions.GetVersion);
  ONNXIFI_RETURN_IF_ERROR(library.CheckFound("cuBLASLt"));
  std::unique_ptr<CublasLt> opened(new CublasLt(host, functions));
  constexpr std::string_view kDoing = "be opened";
  ONNXIFI_RETURN_IF_ERROR(
      host.Do(kDoing, [&] { return ToStatus(functions.Create(&opened->handle_), kDoing); }));
  return opened;
}

CublasLt::~CublasLt() {
  if (handle_ == nullptr) return;
  static_cast<void>(host_.Do("close cuBLASLt", [&] {
    static_cast<void>(functions_.Destroy(handle_));
    return base::Ok();
  }));
}

Status CublasLt::ToStatus(int result, std::string_view doing) {
  if (result == lt::kSuccess) return base::Ok();
  const std::string attempt = "cuBLASLt cannot " + std::string(doing) + ": ";
  for (const Fault& fault : kFaults) {
    if (fault.result == result) return Status(fault.code, attempt + fault.name + ".");
  }
  return Status(Code::kInternalError, attempt + "status " + std::to_string(result) + ".");
}

}  // namespace onnxifi::cuda
