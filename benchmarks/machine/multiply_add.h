// SPDX-License-Identifier: Apache-2.0
//
// MultiplyAdd: the most multiply-adds of float32 that a core does, in registers, with the widest
// vectors that it has.

#ifndef ONNXIFI_BENCHMARKS_MACHINE_MULTIPLY_ADD_H_
#define ONNXIFI_BENCHMARKS_MACHINE_MULTIPLY_ADD_H_

#include <cstdint>

namespace onnxifi::machine {

// Returns the floating-point operations that were done, two per multiply-add and lane. `sink` gets
// a value that depends on all of them.
int64_t MultiplyAdd(int64_t rounds, float* sink);

// The instruction set that MultiplyAdd uses here, as Highway calls it.
const char* InstructionsUsed();

}  // namespace onnxifi::machine

#endif  // ONNXIFI_BENCHMARKS_MACHINE_MULTIPLY_ADD_H_
