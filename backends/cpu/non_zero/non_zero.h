// SPDX-License-Identifier: Apache-2.0
//
// NonZero: steps of the family Index that count or list the elements that are not zero.

#ifndef ONNXIFI_BACKENDS_CPU_NON_ZERO_NON_ZERO_H_
#define ONNXIFI_BACKENDS_CPU_NON_ZERO_NON_ZERO_H_

#include "backends/cpu/engine/recipe.h"

namespace onnxifi::non_zero {

// kCountNonZero and kNonZero of elements whose bits tell. UNSUPPORTED_* for others.
runtime::RecipeResult SelectNonZero(const device::Facts& facts);

}  // namespace onnxifi::non_zero

#endif  // ONNXIFI_BACKENDS_CPU_NON_ZERO_NON_ZERO_H_
