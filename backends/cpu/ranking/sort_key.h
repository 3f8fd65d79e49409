// SPDX-License-Identifier: Apache-2.0
//
// Sort keys: unsigned integers that are ordered as the elements that they are made of. NaN is the
// largest of all, and both zeros are one.

#ifndef ONNXIFI_BACKENDS_CPU_RANKING_SORT_KEY_H_
#define ONNXIFI_BACKENDS_CPU_RANKING_SORT_KEY_H_

#include <cstdint>
#include <limits>

#include "backends/core/tensor/element_type.h"

namespace onnxifi::ranking {

// Whether elements of the type have keys of 8, 16, 32 or 64 bits.
inline bool HasSortKey(tensor::ElementType type) {
  using enum tensor::ElementType;
  switch (type) {
    case kFloat16:
    case kBfloat16:
    case kFloat32:
    case kFloat64:
    case kBool:
      return true;
    default: {
      const int bits = tensor::BitWidth(type);
      return tensor::IsInteger(type) && bits >= 8 && bits <= 64;
    }
  }
}

// What makes keys of the bits of a type's elements.
template <typename Bits>
struct KeyMaker {
  bool is_float = false;
  Bits infinity = 0;  // of floats
  Bits sign = 0;      // of floats and signed integers

  static KeyMaker For(tensor::ElementType type) {
    KeyMaker maker;
    constexpr auto kTop = static_cast<Bits>(Bits{1} << (std::numeric_limits<Bits>::digits - 1));
    maker.is_float = tensor::IsFloat(type);
    if (maker.is_float || tensor::IsSigned(type)) maker.sign = kTop;
    using enum tensor::ElementType;
    if (type == kFloat16) maker.infinity = static_cast<Bits>(0x7C00);
    if (type == kBfloat16) maker.infinity = static_cast<Bits>(0x7F80);
    if (type == kFloat32) maker.infinity = static_cast<Bits>(0x7F800000);
    if (type == kFloat64) maker.infinity = static_cast<Bits>(0x7FF0000000000000);
    return maker;
  }

  Bits operator()(Bits bits) const {
    if (!is_float) return bits ^ sign;
    const Bits magnitude = bits & static_cast<Bits>(~sign);
    if (magnitude > infinity) return static_cast<Bits>(~Bits{0});
    if (magnitude == 0) return sign;
    return (bits & sign) != 0 ? static_cast<Bits>(~bits) : static_cast<Bits>(bits | sign);
  }
};

}  // namespace onnxifi::ranking

#endif  // ONNXIFI_BACKENDS_CPU_RANKING_SORT_KEY_H_
