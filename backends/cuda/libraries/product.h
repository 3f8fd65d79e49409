// SPDX-License-Identifier: Apache-2.0
//
// LibraryProducts: matrix products, and convolutions that are such, by cuBLASLt. A step's form
// decides whether they may be the library's; which of them are is decided with its numbers, when it
// is bound: those that a rule is for and that the library has an algorithm for. All others are
// computed by the kernel that was selected before, whose report then says why.

#ifndef ONNXIFI_BACKENDS_CUDA_LIBRARIES_PRODUCT_H_
#define ONNXIFI_BACKENDS_CUDA_LIBRARIES_PRODUCT_H_

#include <memory>
#include <mutex>
#include <utility>

#include "backends/core/codegen/expression.h"
#include "backends/core/device/device.h"
#include "backends/cuda/libraries/cublaslt.h"
#include "backends/cuda/libraries/library_host.h"
#include "backends/cuda/libraries/rules.h"

namespace onnxifi::cuda {

class LibraryProducts {
 public:
  // `host` outlives this, and this all kernels.
  LibraryProducts(const LibraryHost& host, LibraryRules rules,
                  const codegen::Capabilities& capabilities)
      : host_(host), rules_(std::move(rules)), capabilities_(capabilities) {}

  // What was selected, with the library in front of it if the step is a Contract, or with the
  // reason why not.
  base::Result<device::Selection> Prefer(const device::Facts& facts,
                                         base::Result<device::Selection> selected) const;

 private:
  // Opened when a step first wants it.
  base::Result<const CublasLt*> Library() const;

  const LibraryHost& host_;
  const LibraryRules rules_;
  const codegen::Capabilities capabilities_;
  mutable std::once_flag is_opened_;
  mutable std::unique_ptr<CublasLt> library_;
  mutable base::Status absence_;  // why there is none
};

}  // namespace onnxifi::cuda

#endif  // ONNXIFI_BACKENDS_CUDA_LIBRARIES_PRODUCT_H_
