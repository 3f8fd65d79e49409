// SPDX-License-Identifier: Apache-2.0
//
// From CUDA C++ as NVRTC gets it to what the host compiler gets.

#ifndef ONNXIFI_BACKENDS_CUDA_TESTING_EMULATED_KERNEL_TEXT_H_
#define ONNXIFI_BACKENDS_CUDA_TESTING_EMULATED_KERNEL_TEXT_H_

#include <string>
#include <vector>

namespace emulated {

// Of a multiprocessor, and that an item can have.
inline constexpr unsigned kDeviceRegisters = 65536;
inline constexpr unsigned kMaxRegisters = 255;

struct KernelEntry {
  std::string name;
  unsigned most_items = 1024;
  // Of an item: what its arrays take and some for the rest, as far as its launch bounds, its
  // __maxnreg__ and the compiler's --maxrregcount leave that many.
  unsigned registers = 32;
};

// The functions that are __global__, in order. `most_registers`: as of --maxrregcount.
std::vector<KernelEntry> FindKernels(const std::string& source,
                                     unsigned most_registers = kMaxRegisters);

// The source with what C++ has no word for in other words: dynamic shared memory, and PTX between
// asm's parentheses as calls of functions. Lines keep their numbers.
std::string Translate(const std::string& source);

// What stands before a kernel's text, in order.
extern const char* const kHeaders[];
extern const int kHeaderCount;

}  // namespace emulated

#endif  // ONNXIFI_BACKENDS_CUDA_TESTING_EMULATED_KERNEL_TEXT_H_
