// SPDX-License-Identifier: Apache-2.0
//
// SummedProducts: a matrix product as the tile engine's Reduce over the products of its elements.

#ifndef ONNXIFI_BACKENDS_CPU_SUMMED_PRODUCTS_H_
#define ONNXIFI_BACKENDS_CPU_SUMMED_PRODUCTS_H_

#include <string_view>

#include "backends/core/device/device.h"
#include "backends/cpu/runtime/recipe.h"

namespace onnxifi::cpu {

// Takes products of float32 of which each has one row and one column: sums of products, which
// libraries compute a batch at a time. UNSUPPORTED_* for others, and for what the engine refuses.
runtime::RecipeResult SelectSummedProducts(const device::Facts& facts,
                                           std::string_view implementation);

}  // namespace onnxifi::cpu

#endif  // ONNXIFI_BACKENDS_CPU_SUMMED_PRODUCTS_H_
