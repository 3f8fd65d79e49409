// SPDX-License-Identifier: Apache-2.0
//
// Tiled: contractions whose outputs are summed block by block in registers, as a recipe:
// tiled_product.h lays out the operands and writes the results, the device's library sums.
// Constants are laid out once, when the step is bound.

#ifndef ONNXIFI_BACKENDS_CORE_CODEGEN_TILED_H_
#define ONNXIFI_BACKENDS_CORE_CODEGEN_TILED_H_

#include <memory>

#include "backends/core/codegen/recipe.h"
#include "backends/core/codegen/tiled_product.h"
#include "backends/core/codegen/tuning.h"

namespace onnxifi::codegen {

// The tile of `tuning` for a product of so many rows, with what is known of its other extents.
TileShape TileOf(const Tuning& tuning, const TiledProduct& product, int64_t rows);

// UNSUPPORTED_* with the reason, for a step that Check accepts.
base::Result<std::unique_ptr<const Recipe>> SelectTiled(const device::Facts& facts,
                                                        const Capabilities& capabilities,
                                                        const Tuning& tuning);

}  // namespace onnxifi::codegen

#endif  // ONNXIFI_BACKENDS_CORE_CODEGEN_TILED_H_
