// SPDX-License-Identifier: Apache-2.0
//
// Pointwise: convolutions of 1 x 1, which are products of pixels and weights: which they are, and
// how their weights are packed.

#ifndef ONNXIFI_BACKENDS_CPU_CONVOLUTION_POINTWISE_H_
#define ONNXIFI_BACKENDS_CPU_CONVOLUTION_POINTWISE_H_

#include <cstdint>

#include "backends/core/base/status.h"
#include "backends/cpu/convolution/facts.h"
#include "backends/cpu/convolution/window_product.h"

namespace onnxifi::convolution {

// UNSUPPORTED_* with the reason where it is none.
base::Status CheckPointwise(const Convolution& convolution);

using PointwisePacking = WindowPacking<WindowOrder::kRowColumnChannel>;

// Results that come from memory before they are stored. To prefetch their cache lines saves a fifth
// of the time of 38 MB, and nothing of that of 14.
inline constexpr int64_t kCacheExceedingFloats = int64_t{4} << 20;

}  // namespace onnxifi::convolution

#endif  // ONNXIFI_BACKENDS_CPU_CONVOLUTION_POINTWISE_H_
