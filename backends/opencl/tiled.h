// SPDX-License-Identifier: Apache-2.0
//
// Tiled: contractions whose outputs are summed block by block in registers: core/codegen lays out
// the operands and writes the results, kernels/product.cl sums. Constants are laid out once, when
// the step is bound.

#ifndef ONNXIFI_BACKENDS_OPENCL_TILED_H_
#define ONNXIFI_BACKENDS_OPENCL_TILED_H_

#include <memory>

#include "backends/core/codegen/tiled_product.h"
#include "backends/core/codegen/tuning.h"
#include "backends/opencl/recipe.h"

namespace onnxifi::opencl {

// UNSUPPORTED_* with the reason, for a step that codegen::Check accepts.
base::Result<std::unique_ptr<const Recipe>> SelectTiled(const device::Facts& facts,
                                                        const codegen::Capabilities& capabilities,
                                                        const codegen::Tuning& tuning);

}  // namespace onnxifi::opencl

#endif  // ONNXIFI_BACKENDS_OPENCL_TILED_H_
