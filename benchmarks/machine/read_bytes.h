// SPDX-License-Identifier: Apache-2.0
//
// ReadBytes: reads memory and does nothing else, which no kernel that reads its operands once does
// faster.

#ifndef ONNXIFI_BENCHMARKS_MACHINE_READ_BYTES_H_
#define ONNXIFI_BENCHMARKS_MACHINE_READ_BYTES_H_

#include <cstddef>
#include <cstdint>

namespace onnxifi::machine {

// Returns a number that depends on all of the bytes, whole groups of kReadGroup of them.
inline constexpr int64_t kReadGroup = 4096;
uint64_t ReadBytes(const std::byte* memory, int64_t size_bytes);

}  // namespace onnxifi::machine

#endif  // ONNXIFI_BENCHMARKS_MACHINE_READ_BYTES_H_
