// SPDX-License-Identifier: Apache-2.0
//
// Lanes: which of some elements are not zero.

#ifndef ONNXIFI_BACKENDS_CPU_NON_ZERO_LANES_H_
#define ONNXIFI_BACKENDS_CPU_NON_ZERO_LANES_H_

#include <cstddef>
#include <cstdint>
#include <optional>

#include "backends/core/tensor/element_type.h"

namespace onnxifi::non_zero {

// Of an element of a type, the bits of which at least one is set where it is not zero; nothing for
// types of which bits do not tell, or whose elements have no lanes of 1, 2, 4 or 8 bytes.
std::optional<uint64_t> FindDecidingBits(tensor::ElementType type);

// Elements at any address.
struct Lanes {
  const std::byte* elements;
  int64_t count;
  int64_t lane_bytes;
  uint64_t deciding_bits;
};

int64_t CountNonZero(const Lanes& lanes);
// Writes first + k for each element k that is not zero, in order, to `positions`, which has room
// for all. Returns how many there are.
int64_t FindNonZero(const Lanes& lanes, int64_t first, int64_t* positions);

}  // namespace onnxifi::non_zero

#endif  // ONNXIFI_BACKENDS_CPU_NON_ZERO_LANES_H_
