// SPDX-License-Identifier: Apache-2.0
//
// LibraryKernels: the libraries in front of our own kernels of products: cuDNN for convolutions,
// then cuBLASLt for matrix products and convolutions that are such. A step's form decides which of
// them may compute it; which of them does is decided with its numbers, when it is bound: the first
// that a rule is for and that takes it, or the fastest where the caller lets kernels be measured.
// All others are computed by the kernel that was selected before, whose report then says why.

#ifndef ONNXIFI_BACKENDS_CUDA_LIBRARIES_LIBRARY_KERNELS_H_
#define ONNXIFI_BACKENDS_CUDA_LIBRARIES_LIBRARY_KERNELS_H_

#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "backends/core/codegen/binary_cache.h"
#include "backends/core/codegen/expression.h"
#include "backends/core/device/device.h"
#include "backends/cuda/libraries/cublaslt.h"
#include "backends/cuda/libraries/cudnn.h"
#include "backends/cuda/libraries/library_host.h"
#include "backends/cuda/libraries/measured_choices.h"
#include "backends/cuda/libraries/rules.h"

namespace onnxifi::cuda {

// Opened when a step first wants it, and again after what may pass, as a lack of memory does.
template <typename T>
class OpenedOnce {
 public:
  // Why there is none, or the library. Any thread.
  base::Result<const T*> Get(const LibraryHost& host) {
    const std::lock_guard lock(mutex_);
    if (!absence_.ok()) return base::Status(absence_);
    if (library_ == nullptr) {
      auto opened = T::Open(host);
      if (!opened.ok()) {
        base::Status status = std::move(opened).status();
        if (status.code() == base::Code::kUnsupportedOperator) absence_ = base::Status(status);
        return status;
      }
      library_ = *std::move(opened);
    }
    return library_.get();
  }

 private:
  std::mutex mutex_;
  std::unique_ptr<T> library_;
  base::Status absence_;  // of what is not installed as it has to be
};

class LibraryKernels {
 public:
  // `host` outlives this, and this all kernels. Measured answers are kept in `files` for a device
  // of this name.
  LibraryKernels(const LibraryHost& host, LibraryRules rules,
                 const codegen::Capabilities& capabilities, std::string device_name,
                 codegen::BinaryCache files)
      : host_(host),
        rules_(std::move(rules)),
        capabilities_(capabilities),
        device_name_(std::move(device_name)),
        choices_(host, std::move(files)) {}

  // What was selected, with libraries in front of it if the step is a Contract, or with the reasons
  // why not.
  base::Result<device::Selection> Prefer(const device::Facts& facts,
                                         base::Result<device::Selection> selected) const;
  // Whether a convolution may be cuDNN's and by tensor cores, whose engines want channels last.
  // Like Prefer it opens the library the first time, which asks the driver.
  bool PrefersChannelsLast(const device::Facts& facts) const;

 private:
  const LibraryHost& host_;
  const LibraryRules rules_;
  const codegen::Capabilities capabilities_;
  const std::string device_name_;
  const MeasuredChoices choices_;
  mutable OpenedOnce<CublasLt> cublaslt_;
  mutable OpenedOnce<Cudnn> cudnn_;
};

}  // namespace onnxifi::cuda

#endif  // ONNXIFI_BACKENDS_CUDA_LIBRARIES_LIBRARY_KERNELS_H_
