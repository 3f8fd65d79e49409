// SPDX-License-Identifier: Apache-2.0
//
// Requantize: a block of sums to bytes or float32, in vector code for the processor at hand.

#ifndef ONNXIFI_BACKENDS_CPU_INTEGER_REQUANTIZE_H_
#define ONNXIFI_BACKENDS_CPU_INTEGER_REQUANTIZE_H_

#include <cstddef>
#include <cstdint>

#include "backends/cpu/integer/requantization.h"

namespace onnxifi::integer {

// Sums that may be read behind the last column of the last row.
inline constexpr int64_t kSumSlack = 16;

// Rows of the result and of added bytes are written and read up to their last column only.
struct SumBlock {
  const int32_t* sums;
  int64_t sum_stride;
  int64_t rows;
  int64_t columns;
  int64_t first_column;  // in the tables
  std::byte* result;
  int64_t result_stride;  // in bytes
  const uint8_t* added;   // null where the requantization adds nothing
  int64_t added_stride;
};

void Requantize(const Requantization& how, const SumBlock& block);

// The function itself, for loops that call it often.
using RequantizeFunction = void (*)(const Requantization& how, const SumBlock& block);
RequantizeFunction FindRequantize();

}  // namespace onnxifi::integer

#endif  // ONNXIFI_BACKENDS_CPU_INTEGER_REQUANTIZE_H_
