// SPDX-License-Identifier: Apache-2.0
//
// Packed: elements narrower than a byte, one behind the other from the low bits of the first byte
// on. Those of 6 bits, four to three bytes, may lie in two bytes.

#ifndef ONNXIFI_BACKENDS_CORE_TENSOR_PACKED_H_
#define ONNXIFI_BACKENDS_CORE_TENSOR_PACKED_H_

#include <cstddef>
#include <cstdint>

namespace onnxifi::tensor {

// The bits of element `index`.
template <int kBits>
uint8_t LoadPacked(const std::byte* data, int64_t index) {
  const int64_t bit = index * kBits;
  uint32_t bits = static_cast<uint32_t>(data[bit / 8]);
  if constexpr (8 % kBits != 0) {
    // Not the next byte as such: behind the last element there may be none.
    bits |= static_cast<uint32_t>(data[(bit + kBits - 1) / 8]) << 8;
  }
  return static_cast<uint8_t>(bits >> bit % 8 & ((1u << kBits) - 1));
}

// The low bits of `code` become element `index`; its neighbours stay.
template <int kBits>
void StorePacked(std::byte* data, int64_t index, uint32_t code) {
  constexpr uint32_t kMask = (1u << kBits) - 1;
  const int64_t bit = index * kBits;
  const uint32_t mask = kMask << bit % 8;
  const uint32_t bits = (code & kMask) << bit % 8;
  std::byte& byte = data[bit / 8];
  byte = static_cast<std::byte>((static_cast<uint32_t>(byte) & ~mask) | bits);
  if constexpr (8 % kBits != 0) {
    if (mask > 0xff) {
      std::byte& next = data[bit / 8 + 1];
      next = static_cast<std::byte>((static_cast<uint32_t>(next) & ~(mask >> 8)) | bits >> 8);
    }
  }
}

}  // namespace onnxifi::tensor

#endif  // ONNXIFI_BACKENDS_CORE_TENSOR_PACKED_H_
