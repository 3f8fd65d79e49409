// SPDX-License-Identifier: Apache-2.0
//
// SelectRecurrent: the recurrence of LSTM, GRU and RNN in float32 by a kernel of this backend's
// own.

#ifndef ONNXIFI_BACKENDS_CPU_RECURRENT_RECIPE_H_
#define ONNXIFI_BACKENDS_CPU_RECURRENT_RECIPE_H_

#include "backends/core/device/device.h"
#include "backends/cpu/runtime/recipe.h"

namespace onnxifi::recurrent {

// For a step of the family Recurrent.
runtime::RecipeResult SelectRecurrent(const device::Facts& facts);

}  // namespace onnxifi::recurrent

#endif  // ONNXIFI_BACKENDS_CPU_RECURRENT_RECIPE_H_
