// SPDX-License-Identifier: Apache-2.0
//
// Recipe: attention without a matrix of scores in memory, as the CPU device lists it.

#ifndef ONNXIFI_BACKENDS_CPU_ATTENTION_RECIPE_H_
#define ONNXIFI_BACKENDS_CPU_ATTENTION_RECIPE_H_

#include "backends/cpu/runtime/recipe.h"

namespace onnxifi::attention {

// UNSUPPORTED_DATATYPE or UNSUPPORTED_SHAPE with what no kernel here does.
runtime::RecipeResult SelectAttention(const device::Facts& facts);

}  // namespace onnxifi::attention

#endif  // ONNXIFI_BACKENDS_CPU_ATTENTION_RECIPE_H_
