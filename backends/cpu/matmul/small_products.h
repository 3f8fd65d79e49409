// SPDX-License-Identifier: Apache-2.0
//
// SmallProducts: a batch of products of small matrices that are both computed at run time, as
// attention has them, each read where it lies and done by one thread.

#ifndef ONNXIFI_BACKENDS_CPU_MATMUL_SMALL_PRODUCTS_H_
#define ONNXIFI_BACKENDS_CPU_MATMUL_SMALL_PRODUCTS_H_

#include <memory>

#include "backends/core/base/result.h"
#include "backends/cpu/matmul/recipe.h"

namespace onnxifi::matmul {

// For products that may be small once extents are known; else UNSUPPORTED_* with what is in the
// way.
base::Result<std::shared_ptr<const Method>> DescribeSmallProducts(const device::Facts& facts);

}  // namespace onnxifi::matmul

#endif  // ONNXIFI_BACKENDS_CPU_MATMUL_SMALL_PRODUCTS_H_
