// SPDX-License-Identifier: Apache-2.0
//
// Packed: elements narrower than a byte, two or four to a byte, the first in the low bits.

#ifndef ONNXIFI_BACKENDS_CORE_TENSOR_PACKED_H_
#define ONNXIFI_BACKENDS_CORE_TENSOR_PACKED_H_

#include <cstddef>
#include <cstdint>

namespace onnxifi::tensor {

// The bits of element `index`.
template <int kBits>
uint8_t LoadPacked(const std::byte* data, int64_t index) {
  constexpr int kPerByte = 8 / kBits;
  const auto byte = static_cast<uint32_t>(data[index / kPerByte]);
  return static_cast<uint8_t>(byte >> (index % kPerByte * kBits) & ((1u << kBits) - 1));
}

// The low bits of `code` become element `index`; its neighbours stay.
template <int kBits>
void StorePacked(std::byte* data, int64_t index, uint32_t code) {
  constexpr int kPerByte = 8 / kBits;
  constexpr uint32_t kMask = (1u << kBits) - 1;
  const int shift = static_cast<int>(index % kPerByte) * kBits;
  std::byte& byte = data[index / kPerByte];
  const uint32_t others = static_cast<uint32_t>(byte) & ~(kMask << shift);
  byte = static_cast<std::byte>(others | (code & kMask) << shift);
}

}  // namespace onnxifi::tensor

#endif  // ONNXIFI_BACKENDS_CORE_TENSOR_PACKED_H_
