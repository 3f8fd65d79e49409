// SPDX-License-Identifier: Apache-2.0
//
// RoundingSpread by experiment: the reference runs the step some times more with every
// floating-point result a little off, each element by an amount of its own, as another right
// implementation might have it. What comes of that is how well the step determines its results.

#ifndef ONNXIFI_BACKENDS_CORE_REFERENCE_ROUNDING_SPREAD_H_
#define ONNXIFI_BACKENDS_CORE_REFERENCE_ROUNDING_SPREAD_H_

#include <functional>
#include <span>

#include "backends/core/base/result.h"
#include "backends/core/reference/random_step.h"

namespace onnxifi::reference {

// `make` makes the step anew each time; `expected` is what the reference makes of it.
base::Result<RoundingSpread> FindRoundingSpread(const std::function<RandomStep()>& make,
                                                std::span<const tensor::Tensor> expected);

}  // namespace onnxifi::reference

#endif  // ONNXIFI_BACKENDS_CORE_REFERENCE_ROUNDING_SPREAD_H_
