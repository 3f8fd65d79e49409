// SPDX-License-Identifier: Apache-2.0
//
// FoldBehindRounding: a quantized network that keeps its batch normalization quantizes twice behind
// a convolution. From the first of both quantizations on, a column's result depends on at most 256
// integers. One multiply-add per element replaces the operations in between where it gives all of
// these results.

#ifndef ONNXIFI_BACKENDS_CPU_INTEGER_FOLDED_ROUNDING_H_
#define ONNXIFI_BACKENDS_CPU_INTEGER_FOLDED_ROUNDING_H_

#include <cstdint>

#include "backends/cpu/integer/requantization.h"

namespace onnxifi::integer {

// Turns the last LinkKind::kRound of `how`, and the sums and products with numbers behind it, into
// a LinkKind::kRescale. Changes nothing where the result is float32, where something else follows
// that link, or where the results of some column would be others. They are compared with the
// instructions that this processor uses now.
void FoldBehindRounding(int64_t columns, Requantization& how);

}  // namespace onnxifi::integer

#endif  // ONNXIFI_BACKENDS_CPU_INTEGER_FOLDED_ROUNDING_H_
