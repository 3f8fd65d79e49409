// SPDX-License-Identifier: Apache-2.0
//
// Compiler: from GLSL to SPIR-V by glslang, which is part of the plugin.

#ifndef ONNXIFI_BACKENDS_VULKAN_COMPILER_H_
#define ONNXIFI_BACKENDS_VULKAN_COMPILER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "backends/core/base/result.h"

namespace onnxifi::vulkan {

// A compute shader for Vulkan 1.2 with the entry point "main". INTERNAL_ERROR with the compiler's
// words if it refuses the source. Any thread.
base::Result<std::vector<uint32_t>> CompileGlsl(const std::string& source);

// Whether it knows GL_KHR_cooperative_matrix: glslang does from version 13 on.
bool KnowsCooperativeMatrices();
// Whether it knows GL_EXT_bfloat16 with them: from version 15.3 on.
bool KnowsBfloat16();

// Names the compiler and its version: what its results depend on beside the source.
std::string CompilerName();

}  // namespace onnxifi::vulkan

#endif  // ONNXIFI_BACKENDS_VULKAN_COMPILER_H_
