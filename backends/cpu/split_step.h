// SPDX-License-Identifier: Apache-2.0
//
// SplitEpilogue, SplitPadding: a step of which no kernel takes all, as two kernels with work memory
// between them, one of which is the tile engine's.

#ifndef ONNXIFI_BACKENDS_CPU_SPLIT_STEP_H_
#define ONNXIFI_BACKENDS_CPU_SPLIT_STEP_H_

#include <functional>
#include <string_view>

#include "backends/core/device/device.h"
#include "backends/cpu/runtime/recipe.h"

namespace onnxifi::cpu {

// What takes the other part.
using SelectPart = std::function<runtime::RecipeResult(const device::Facts&)>;

// A product or convolution: its sums alone, to which the engine does then what the step asks.
// UNSUPPORTED_* where the sums are refused, too, or there is no epilogue.
runtime::RecipeResult SplitEpilogue(const device::Facts& facts, std::string_view implementation,
                                    const SelectPart& select_sums);

// A window over a tensor that is padded by its view: the engine makes the padded tensor.
// UNSUPPORTED_* where the window over that is refused, too, or nothing is padded.
runtime::RecipeResult SplitPadding(const device::Facts& facts, std::string_view implementation,
                                   const SelectPart& select_window);

}  // namespace onnxifi::cpu

#endif  // ONNXIFI_BACKENDS_CPU_SPLIT_STEP_H_
