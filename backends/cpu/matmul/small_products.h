// SPDX-License-Identifier: Apache-2.0
//
// SmallProducts: a batch of products of small matrices that are both computed at run time, as
// attention has them, each read where it lies and done by one thread; another kernel does those
// that turn out to be large.

#ifndef ONNXIFI_BACKENDS_CPU_MATMUL_SMALL_PRODUCTS_H_
#define ONNXIFI_BACKENDS_CPU_MATMUL_SMALL_PRODUCTS_H_

#include <memory>
#include <string>
#include <string_view>

#include "backends/core/base/result.h"
#include "backends/core/device/device.h"
#include "backends/cpu/threads/thread_pool.h"

namespace onnxifi::matmul {

// Ok for products that may be small once extents are known; else UNSUPPORTED_* with what is in the
// way.
base::Status CheckSmallProducts(const device::Facts& facts);

class SmallProductsRecipe final : public device::Recipe {
 public:
  // For a step that CheckSmallProducts lets pass; `otherwise` is for any extents.
  SmallProductsRecipe(const device::Facts& facts, std::unique_ptr<const device::Recipe> otherwise);

  std::string_view implementation() const override { return implementation_; }
  const device::Recipe& otherwise() const { return *otherwise_; }
  // `pool` outlives the kernel; `otherwise` is built from otherwise().
  std::unique_ptr<device::Kernel> BuildKernel(threads::ThreadPool& pool,
                                              std::unique_ptr<device::Kernel> otherwise) const;

 private:
  const device::Facts facts_;
  const std::unique_ptr<const device::Recipe> otherwise_;
  const std::string implementation_;
};

}  // namespace onnxifi::matmul

#endif  // ONNXIFI_BACKENDS_CPU_MATMUL_SMALL_PRODUCTS_H_
