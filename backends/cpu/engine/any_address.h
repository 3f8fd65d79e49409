// SPDX-License-Identifier: Apache-2.0
//
// AnyAddress: elements of constants that lie where a model's bytes have them, at any address. A
// plain pointer to their type promises alignment, which compilers may rely on.

#ifndef ONNXIFI_BACKENDS_CPU_ENGINE_ANY_ADDRESS_H_
#define ONNXIFI_BACKENDS_CPU_ENGINE_ANY_ADDRESS_H_

#include <cstddef>
#include <cstdint>

namespace onnxifi::engine {

template <typename T>
struct [[gnu::packed]] AnyAddress {
  T value;
};

// `lane_bytes`: a power of two.
inline bool IsAligned(const std::byte* address, int64_t lane_bytes) {
  return (reinterpret_cast<uintptr_t>(address) & static_cast<uintptr_t>(lane_bytes - 1)) == 0;
}

}  // namespace onnxifi::engine

#endif  // ONNXIFI_BACKENDS_CPU_ENGINE_ANY_ADDRESS_H_
