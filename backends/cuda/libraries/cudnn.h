// SPDX-License-Identifier: Apache-2.0
//
// Cudnn: NVIDIA's library of convolutions, opened at run time where it is installed, and its
// descriptors; the one place where its results become statuses.

#ifndef ONNXIFI_BACKENDS_CUDA_LIBRARIES_CUDNN_H_
#define ONNXIFI_BACKENDS_CUDA_LIBRARIES_CUDNN_H_

#include <memory>
#include <mutex>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "backends/core/base/result.h"
#include "backends/cuda/libraries/cudnn_functions.h"
#include "backends/cuda/libraries/library_host.h"

namespace onnxifi::cuda {

class Cudnn {
 public:
  struct Functions {
#define ONNXIFI_CUDNN_MEMBER(name, parameters) int(*name) parameters = nullptr;
    ONNXIFI_CUDNN_FUNCTIONS(ONNXIFI_CUDNN_MEMBER)
#undef ONNXIFI_CUDNN_MEMBER
    size_t (*GetVersion)() = nullptr;
  };

  // libcudnn.so.9; `host` outlives it. UNSUPPORTED_OPERATOR with the linker's words where it is not
  // installed, or as ToStatus. Once opened a library stays.
  static base::Result<std::unique_ptr<Cudnn>> Open(const LibraryHost& host);
  ~Cudnn();
  Cudnn(const Cudnn&) = delete;
  Cudnn& operator=(const Cudnn&) = delete;

  const Functions& functions() const { return functions_; }
  dnn::Handle handle() const { return handle_; }
  const LibraryHost& host() const { return host_; }
  size_t version() const { return functions_.GetVersion(); }
  // Held by whoever uses the handle, also by way of a descriptor, and while one is destroyed, which
  // may be in between.
  std::recursive_mutex& mutex() const { return mutex_; }
  void Destroy(dnn::Descriptor descriptor) const;

  // Ok for success; else a status with what was being done. `doing` reads like "describe a tensor".
  // UNSUPPORTED_OPERATOR: the library has no such convolution, or not as it is installed.
  static base::Status ToStatus(int result, std::string_view doing);

 private:
  Cudnn(const LibraryHost& host, const Functions& functions) : host_(host), functions_(functions) {}

  const LibraryHost& host_;
  const Functions functions_;
  dnn::Handle handle_ = nullptr;
  mutable std::recursive_mutex mutex_;
};

// A descriptor of the library's, owned. The library outlives it. A plan holds what is in the
// device's context, so any thread may let a descriptor go, whichever context is current there.
class CudnnDescriptor {
 public:
  static base::Result<CudnnDescriptor> Create(const Cudnn& library, dnn::Kind kind);

  CudnnDescriptor() = default;
  dnn::Descriptor get() const { return descriptor_.get(); }

  base::Status Set(dnn::Attribute attribute, dnn::AttributeType type, int64_t count,
                   const void* elements);
  template <typename T>
  base::Status Set(dnn::Attribute attribute, dnn::AttributeType type, const T& value) {
    return Set(attribute, type, 1, &value);
  }
  template <typename T>
  base::Status Set(dnn::Attribute attribute, dnn::AttributeType type,
                   const std::vector<T>& values) {
    return Set(attribute, type, static_cast<int64_t>(values.size()), values.data());
  }
  base::Status SetDescriptor(dnn::Attribute attribute, const CudnnDescriptor& value) {
    return Set(attribute, dnn::kOfDescriptor, value.get());
  }
  // How many there are of at most `wanted` elements.
  base::Result<int64_t> Get(dnn::Attribute attribute, dnn::AttributeType type, int64_t wanted,
                            void* elements) const;
  base::Status Finalize();

 private:
  struct Destroyer {
    const Cudnn* library;
    void operator()(dnn::Descriptor descriptor) const { library->Destroy(descriptor); }
  };
  CudnnDescriptor(const Cudnn& library, dnn::Descriptor made)
      : library_(&library), descriptor_(made, Destroyer{&library}) {}

  const Cudnn* library_ = nullptr;
  std::unique_ptr<dnn::DescriptorObject, Destroyer> descriptor_;
};

}  // namespace onnxifi::cuda

#endif  // ONNXIFI_BACKENDS_CUDA_LIBRARIES_CUDNN_H_
