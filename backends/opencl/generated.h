// SPDX-License-Identifier: Apache-2.0
//
// Generated: the kernels that core/codegen writes, on this device: every family, right for every
// step, and what the faster ones fall back to.

#ifndef ONNXIFI_BACKENDS_OPENCL_GENERATED_H_
#define ONNXIFI_BACKENDS_OPENCL_GENERATED_H_

#include <memory>

#include "backends/core/codegen/generate.h"
#include "backends/opencl/recipe.h"

namespace onnxifi::opencl {

// UNSUPPORTED_* as codegen::Check has it.
base::Result<std::unique_ptr<const Recipe>> SelectGenerated(
    const device::Facts& facts, const codegen::Capabilities& capabilities);

}  // namespace onnxifi::opencl

#endif  // ONNXIFI_BACKENDS_OPENCL_GENERATED_H_
