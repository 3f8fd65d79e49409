// SPDX-License-Identifier: Apache-2.0
//
// Product: matrix products and convolutions of bytes with 32-bit sums, whatever follows these. Zero
// points are taken care of by the sums of rows and columns, and the epilogue runs over each block
// of sums while that is in a cache, on the tile engine.

#ifndef ONNXIFI_BACKENDS_CPU_INTEGER_PRODUCT_H_
#define ONNXIFI_BACKENDS_CPU_INTEGER_PRODUCT_H_

#include "backends/core/device/device.h"
#include "backends/cpu/runtime/recipe.h"

namespace onnxifi::integer {

// UNSUPPORTED_* for other steps, with what is in the way.
runtime::RecipeResult SelectProduct(const device::Facts& facts);

// Whether a convolution has groups of few outputs that fill vectors together (grouped.h).
bool WalksInGroups(const device::Facts& facts);

}  // namespace onnxifi::integer

#endif  // ONNXIFI_BACKENDS_CPU_INTEGER_PRODUCT_H_
