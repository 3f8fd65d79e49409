// SPDX-License-Identifier: Apache-2.0
//
// Cudnn: the table of functions, and the kinds of faults.

#include "backends/cuda/libraries/cudnn.h"

#include <string>

#include "backends/cuda/libraries/shared_library.h"

namespace onnxifi::cuda {

using base::Code;
using base::Result;
using base::Status;

Result<std::unique_ptr<Cudnn>> Cudnn::Open(const LibraryHost& host) {
  ONNXIFI_ASSIGN_OR_RETURN(SharedLibrary library,
                           SharedLibrary::Open("cuDNN, version 9,", {"libcudnn.so.9"}));
  Functions functions;
#define ONNXIFI_CUDNN_FIND(name, parameters) library.Find("cudnn" #name, functions.name);
  ONNXIFI_CUDNN_FUNCTIONS(ONNXIFI_CUDNN_FIND)
#undef ONNXIFI_CUDNN_FIND
  library.Find("cudnnGetVersion", functions.GetVersion);
  ONNXIFI_RETURN_IF_ERROR(library.CheckFound("cuDNN"));
  std::unique_ptr<Cudnn> opened(new Cudnn(host, functions));
  constexpr std::string_view kDoing = "be opened";
  ONNXIFI_RETURN_IF_ERROR(
      host.Do(kDoing, [&] { return ToStatus(functions.Create(&opened->handle_), kDoing); }));
  return opened;
}

Cudnn::~Cudnn() {
  if (handle_ == nullptr) return;
  static_cast<void>(host_.Do("close cuDNN", [&] {
    static_cast<void>(functions_.Destroy(handle_));
    return base::Ok();
  }));
}

void Cudnn::Destroy(dnn::Descriptor descriptor) const {
  const std::lock_guard lock(mutex_);
  static_cast<void>(host_.Do("let a descriptor of cuDNN's go", [&] {
    static_cast<void>(functions_.BackendDestroyDescriptor(descriptor));
    return base::Ok();
  }));
}

Status Cudnn::ToStatus(int result, std::string_view doing) {
  if (result == dnn::kSuccess) return base::Ok();
  const std::string attempt =
      "cuDNN cannot " + std::string(doing) + " (status " + std::to_string(result) + "): ";
  if (result == dnn::kHostAllocationFailed) {
    return Status(Code::kNoSystemMemory, attempt + "out of the host's memory.");
  }
  if (result == dnn::kDeviceAllocationFailed) {
    return Status(Code::kNoDeviceMemory, attempt + "out of memory.");
  }
  if (result == dnn::kOtherVersionOfAPart || result == dnn::kPartNotLoaded) {
    return Status(Code::kUnsupportedOperator,
                  attempt + "one of its libraries is missing or has another version.");
  }
  if (result == dnn::kCompilationFailed) {
    return Status(Code::kUnsupportedOperator, attempt + "its kernel cannot be compiled.");
  }
  constexpr int kPerKind = 1000;
  switch (result / kPerKind * kPerKind) {
    case dnn::kNotInitialized / kPerKind* kPerKind:
      return Status(Code::kBackendUnavailable, attempt + "it is not initialised.");
    case dnn::kNotSupported:
      return Status(Code::kUnsupportedOperator, attempt + "it has no such convolution.");
    case dnn::kExecutionFailed:
      return Status(Code::kBackendUnavailable, attempt + "the launch failed.");
    case dnn::kBadParameter:
      return Status(Code::kInternalError, attempt + "invalid value.");
    default:
      return Status(Code::kInternalError, attempt + "internal error.");
  }
}

Result<CudnnDescriptor> CudnnDescriptor::Create(const Cudnn& library, dnn::Kind kind) {
  dnn::Descriptor made = nullptr;
  ONNXIFI_RETURN_IF_ERROR(Cudnn::ToStatus(library.functions().BackendCreateDescriptor(kind, &made),
                                          "make a descriptor"));
  return CudnnDescriptor(library, made);
}

Status CudnnDescriptor::Set(dnn::Attribute attribute, dnn::AttributeType type, int64_t count,
                            const void* elements) {
  return Cudnn::ToStatus(
      library_->functions().BackendSetAttribute(get(), attribute, type, count, elements),
      "describe a convolution");
}

Result<int64_t> CudnnDescriptor::Get(dnn::Attribute attribute, dnn::AttributeType type,
                                     int64_t wanted, void* elements) const {
  int64_t count = 0;
  ONNXIFI_RETURN_IF_ERROR(Cudnn::ToStatus(
      library_->functions().BackendGetAttribute(get(), attribute, type, wanted, &count, elements),
      "tell of an engine"));
  return count;
}

Status CudnnDescriptor::Finalize() {
  return Cudnn::ToStatus(library_->functions().BackendFinalize(get()), "compute a convolution");
}

}  // namespace onnxifi::cuda
