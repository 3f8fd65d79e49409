// SPDX-License-Identifier: Apache-2.0
//
// Generated: the kernels that generate.h writes, as a recipe: every family, right for every step,
// and what the faster ones fall back to.

#ifndef ONNXIFI_BACKENDS_CORE_CODEGEN_GENERATED_H_
#define ONNXIFI_BACKENDS_CORE_CODEGEN_GENERATED_H_

#include <memory>

#include "backends/core/codegen/generate.h"
#include "backends/core/codegen/recipe.h"

namespace onnxifi::codegen {

// UNSUPPORTED_* as Check has it.
base::Result<std::unique_ptr<const Recipe>> SelectGenerated(const device::Facts& facts,
                                                            const Capabilities& capabilities);

}  // namespace onnxifi::codegen

#endif  // ONNXIFI_BACKENDS_CORE_CODEGEN_GENERATED_H_
