// SPDX-License-Identifier: Apache-2.0
//
// What the kernels of a recurrence agree on. For recurrent_kernels.cc and recurrent.cc alone.

#ifndef ONNXIFI_BACKENDS_CORE_CODEGEN_RECURRENT_NUMBERS_H_
#define ONNXIFI_BACKENDS_CORE_CODEGEN_RECURRENT_NUMBERS_H_

#include <cstdint>

namespace onnxifi::codegen {

// As every device has them.
inline constexpr int kRecurrentGroupSize = 128;

// LoopNest::given: items or groups, the batch, all time steps, and those of one launch: from one,
// counted in the direction's order, up to another.
enum RecurrentNumber { kRecurrentItems, kRecurrentBatch, kRecurrentTime, kFirstStep, kEndStep };

}  // namespace onnxifi::codegen

#endif  // ONNXIFI_BACKENDS_CORE_CODEGEN_RECURRENT_NUMBERS_H_
