// SPDX-License-Identifier: Apache-2.0
//
// Pooling: Window steps that take maxima or averages of a float32 tensor whose channels, or whose
// pixels of a row, lie side by side, with any padding, dilation and epilogue.

#ifndef ONNXIFI_BACKENDS_CPU_POOLING_POOLING_H_
#define ONNXIFI_BACKENDS_CPU_POOLING_POOLING_H_

#include "backends/cpu/engine/recipe.h"

namespace onnxifi::pooling {

// For the engine's runtime. UNSUPPORTED_* for other windows, and where neither lie side by side.
runtime::RecipeResult SelectPooling(const device::Facts& facts);

}  // namespace onnxifi::pooling

#endif  // ONNXIFI_BACKENDS_CPU_POOLING_POOLING_H_
