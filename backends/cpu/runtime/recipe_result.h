// SPDX-License-Identifier: Apache-2.0
//
// RecipeResult: what each implementation of the CPU device answers when it is asked for a step.

#ifndef ONNXIFI_BACKENDS_CPU_RUNTIME_RECIPE_RESULT_H_
#define ONNXIFI_BACKENDS_CPU_RUNTIME_RECIPE_RESULT_H_

#include <memory>

#include "backends/core/base/result.h"
#include "backends/core/device/device.h"

namespace onnxifi::runtime {

// A refusal is an UNSUPPORTED_* code with a sentence.
using RecipeResult = base::Result<std::unique_ptr<const device::Recipe>>;

}  // namespace onnxifi::runtime

#endif  // ONNXIFI_BACKENDS_CPU_RUNTIME_RECIPE_RESULT_H_
