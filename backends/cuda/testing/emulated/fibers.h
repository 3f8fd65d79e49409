// SPDX-License-Identifier: Apache-2.0
//
// Fibers: a stack for each item of a block, so that an item can stop at a barrier and go on there.
// One thread at a time uses them: the one that carries out a launch.

#ifndef ONNXIFI_BACKENDS_CUDA_TESTING_EMULATED_FIBERS_H_
#define ONNXIFI_BACKENDS_CUDA_TESTING_EMULATED_FIBERS_H_

#include <string>

#include "backends/cuda/testing/emulated/interface.h"

namespace emulated {

inline constexpr unsigned kMaxItems = 1024;
inline constexpr unsigned kWarp = 32;

// What kernels call.
const EmulatedMachine& TheMachine();

// Runs the kernel once, over all blocks. Empty, or a sentence that tells why no device survives it:
// an access outside of memory, a trap, a barrier that some items never reach.
std::string RunKernel(const EmulatedKernel& kernel, const EmulatedLaunch& launch);

// Sentences about what a device may survive, but no kernel should do. Taken once.
std::string TakeComplaint();

}  // namespace emulated

#endif  // ONNXIFI_BACKENDS_CUDA_TESTING_EMULATED_FIBERS_H_
