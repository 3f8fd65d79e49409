// SPDX-License-Identifier: Apache-2.0
//
// Generated: the kernels that core/codegen writes, on this device: every family, right for every
// step, and what the faster ones fall back to.

#ifndef ONNXIFI_BACKENDS_OPENCL_GENERATED_H_
#define ONNXIFI_BACKENDS_OPENCL_GENERATED_H_

#include <memory>

#include "backends/core/codegen/generate.h"
#include "backends/core/device/device.h"
#include "backends/opencl/memory.h"
#include "backends/opencl/program_cache.h"
#include "backends/opencl/runtime.h"

namespace onnxifi::opencl {

// What kernels of this device need; all of it outlives them.
struct Services {
  Runtime& runtime;
  Memory& memory;
  ProgramCache& programs;
};

// UNSUPPORTED_* as codegen::Check has it.
base::Result<std::unique_ptr<const device::Recipe>> SelectGenerated(
    const device::Facts& facts, const codegen::Capabilities& capabilities);

// For a recipe of SelectGenerated.
std::unique_ptr<device::Kernel> BuildGenerated(const device::Recipe& recipe, Services& services);

}  // namespace onnxifi::opencl

#endif  // ONNXIFI_BACKENDS_OPENCL_GENERATED_H_
