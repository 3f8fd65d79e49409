// SPDX-License-Identifier: Apache-2.0
//
// HostBlock: aligned memory of the host, for tensors and for devices that compute there. Large
// blocks come from the system and go back to it one by one, so that weights which are read, folded
// and packed while a graph is made ready leave no holes that count as memory in use.

#ifndef ONNXIFI_BACKENDS_CORE_TENSOR_HOST_BLOCK_H_
#define ONNXIFI_BACKENDS_CORE_TENSOR_HOST_BLOCK_H_

#include <cstddef>
#include <memory>

namespace onnxifi::tensor {

struct HostBlockDeleter {
  size_t size_bytes = 0;
  void operator()(std::byte* data) const;
};
using HostBlock = std::unique_ptr<std::byte, HostBlockDeleter>;

// A cache line, and the widest vector load of any CPU kernel.
inline constexpr size_t kBlockAlignment = 64;
// Blocks of at least one huge page begin at one, and the system is asked for huge pages: the first
// touch of large weights then costs a tenth, and walking through them no page table.
inline constexpr size_t kHugePageBytes = size_t{1} << 21;

enum class Fill { kNothing, kZeros };

// `size_bytes` may be 0. Null if the memory cannot be had. Zeros of large blocks cost nothing until
// they are touched.
HostBlock AllocateHostBlock(size_t size_bytes, Fill fill);

}  // namespace onnxifi::tensor

#endif  // ONNXIFI_BACKENDS_CORE_TENSOR_HOST_BLOCK_H_
