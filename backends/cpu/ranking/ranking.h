// SPDX-License-Identifier: Apache-2.0
//
// Ranking: steps of the family Index that order the elements of rows.

#ifndef ONNXIFI_BACKENDS_CPU_RANKING_RANKING_H_
#define ONNXIFI_BACKENDS_CPU_RANKING_RANKING_H_

#include "backends/cpu/engine/recipe.h"

namespace onnxifi::ranking {

// kTopK of elements that have lanes, kSuppress. UNSUPPORTED_* for others.
runtime::RecipeResult SelectRanking(const device::Facts& facts);

}  // namespace onnxifi::ranking

#endif  // ONNXIFI_BACKENDS_CPU_RANKING_RANKING_H_
