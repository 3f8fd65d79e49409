// SPDX-License-Identifier: Apache-2.0
//
// CublasLt: NVIDIA's library of matrix products, opened at run time where it is installed; the one
// place where its results become statuses.

#ifndef ONNXIFI_BACKENDS_CUDA_LIBRARIES_CUBLASLT_H_
#define ONNXIFI_BACKENDS_CUDA_LIBRARIES_CUBLASLT_H_

#include <memory>
#include <string_view>

#include "backends/core/base/result.h"
#include "backends/cuda/libraries/cublaslt_functions.h"
#include "backends/cuda/libraries/library_host.h"

namespace onnxifi::cuda {

class CublasLt {
 public:
  struct Functions {
#define ONNXIFI_CUBLASLT_MEMBER(name, parameters) int(*name) parameters = nullptr;
    ONNXIFI_CUBLASLT_FUNCTIONS(ONNXIFI_CUBLASLT_MEMBER)
#undef ONNXIFI_CUBLASLT_MEMBER
    size_t (*GetVersion)() = nullptr;
  };

  // libcublasLt.so.13, else .12; `host` outlives it. UNSUPPORTED_OPERATOR with the linker's words
  // where it is not installed, or as ToStatus. Once opened a library stays.
  static base::Result<std::unique_ptr<CublasLt>> Open(const LibraryHost& host);
  ~CublasLt();
  CublasLt(const CublasLt&) = delete;
  CublasLt& operator=(const CublasLt&) = delete;

  const Functions& functions() const { return functions_; }
  lt::Handle handle() const { return handle_; }
  const LibraryHost& host() const { return host_; }
  size_t version() const { return functions_.GetVersion(); }

  // Ok for success; else a status with what was being done. `doing` reads like "lay out a matrix".
  // UNSUPPORTED_OPERATOR: the library has no such product.
  static base::Status ToStatus(int result, std::string_view doing);

 private:
  CublasLt(const LibraryHost& host, const Functions& functions)
      : host_(host), functions_(functions) {}

  const LibraryHost& host_;
  const Functions functions_;
  lt::Handle handle_ = nullptr;
};

}  // namespace onnxifi::cuda

#endif  // ONNXIFI_BACKENDS_CUDA_LIBRARIES_CUBLASLT_H_
