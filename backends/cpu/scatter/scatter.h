// SPDX-License-Identifier: Apache-2.0
//
// Scatter: steps of the family Index that combine updates into what an earlier step wrote.

#ifndef ONNXIFI_BACKENDS_CPU_SCATTER_SCATTER_H_
#define ONNXIFI_BACKENDS_CPU_SCATTER_SCATTER_H_

#include "backends/cpu/engine/recipe.h"

namespace onnxifi::scatter {

// kScatter of elements that have lanes. UNSUPPORTED_* for others.
runtime::RecipeResult SelectScatter(const device::Facts& facts);

}  // namespace onnxifi::scatter

#endif  // ONNXIFI_BACKENDS_CPU_SCATTER_SCATTER_H_
