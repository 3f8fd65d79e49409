// SPDX-License-Identifier: Apache-2.0
//
// FloatFormat: the bit formats of the floats narrower than 32 bits, as templates that a kernel can
// inline. convert.h is the same by run-time element type.

#ifndef ONNXIFI_BACKENDS_CORE_TENSOR_FLOAT_FORMAT_H_
#define ONNXIFI_BACKENDS_CORE_TENSOR_FLOAT_FORMAT_H_

#include <algorithm>
#include <bit>
#include <cstdint>

namespace onnxifi::tensor {

// What a format does with the codes that IEEE 754 gives to infinities and NaNs.
enum class FloatSpecials : uint8_t {
  kIeee,  // all-ones exponent: infinity, NaN
  kFn,    // no infinity; only the all-ones code is NaN
  kFnuz,  // no infinity, no negative zero; its code is the one NaN
  kNone,  // every code is a finite number
};

// A format of one sign bit, `kExponentBits`, `kMantissaBits` and an exponent bias.
template <int kExponentBits, int kMantissaBits, int kBias, FloatSpecials kSpecials>
struct FloatFormat {
  static constexpr uint32_t kSignBit = 1u << (kExponentBits + kMantissaBits);
  static constexpr uint32_t kMantissaMask = (1u << kMantissaBits) - 1;
  static constexpr uint32_t kExponentMask = (1u << kExponentBits) - 1;
  static constexpr int kMinExponent = 1 - kBias;  // of the smallest normal number

  static constexpr uint32_t LargestCode() {
    switch (kSpecials) {
      case FloatSpecials::kIeee:
        return (kExponentMask << kMantissaBits) - 1;
      case FloatSpecials::kFn:
        return kSignBit - 2;
      default:
        return kSignBit - 1;
    }
  }

  // Value of a code; exact.
  static constexpr float Decode(uint32_t code) {
    const uint32_t sign = (code & kSignBit) != 0 ? 0x80000000u : 0;
    const uint32_t magnitude = code & (kSignBit - 1);
    constexpr uint32_t kNan = 0x7fc00000u;
    if constexpr (kSpecials == FloatSpecials::kFnuz) {
      if (code == kSignBit) return std::bit_cast<float>(kNan);
    } else if constexpr (kSpecials != FloatSpecials::kNone) {
      if (magnitude > LargestCode()) {
        const bool is_infinity =
            kSpecials == FloatSpecials::kIeee && (magnitude & kMantissaMask) == 0;
        return std::bit_cast<float>(sign | (is_infinity ? 0x7f800000u : kNan));
      }
    }
    const uint32_t exponent = magnitude >> kMantissaBits;
    if (exponent == 0) {
      constexpr float kUnit =
          std::bit_cast<float>(static_cast<uint32_t>(kMinExponent - kMantissaBits + 127) << 23);
      const float value = static_cast<float>(magnitude) * kUnit;
      return sign != 0 ? -value : value;
    }
    const uint32_t bits = (exponent + static_cast<uint32_t>(127 - kBias)) << 23 |
                          (magnitude & kMantissaMask) << (23 - kMantissaBits);
    return std::bit_cast<float>(sign | bits);
  }

  // Code of the nearest value, ties to even. Beyond the range: the largest finite code when
  // `saturate`, else the format's infinity or NaN; a format without either always saturates, and
  // reads NaN as a zero.
  static constexpr uint32_t Encode(float value, bool saturate) {
    const uint32_t bits = std::bit_cast<uint32_t>(value);
    const uint32_t sign = (bits >> 31) != 0 ? kSignBit : 0;
    const uint32_t magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u) return EncodeNan(sign);
    if (magnitude == 0x7f800000u) return EncodeOverflow(sign, saturate);
    uint32_t code = 0;
    // A float32 subnormal is below half of every format's smallest number: it rounds to zero.
    if (magnitude >= 0x00800000u) {
      const int exponent = static_cast<int>(magnitude >> 23) - 127;
      const uint32_t significand = (magnitude & 0x7fffffu) | 0x800000u;
      const int shift = 23 - kMantissaBits + std::max(0, kMinExponent - exponent);
      if (shift <= 25) {
        const uint32_t kept = significand >> shift;
        const uint32_t dropped = significand & ((1u << shift) - 1);
        const uint32_t half = 1u << (shift - 1);
        const uint32_t round = dropped > half || (dropped == half && (kept & 1) != 0) ? 1 : 0;
        // `kept` holds the implicit one of a normal number, so a carry moves into the exponent by
        // itself.
        const auto base = static_cast<uint32_t>(std::max(exponent, kMinExponent) + kBias - 1);
        // Exponents far beyond the format would overflow the field before the comparison below.
        if (base > kExponentMask + 1) return EncodeOverflow(sign, saturate);
        code = (base << kMantissaBits) + kept + round;
      }
    }
    if (code > LargestCode()) return EncodeOverflow(sign, saturate);
    if (kSpecials == FloatSpecials::kFnuz && code == 0) return 0;
    return sign | code;
  }

 private:
  static constexpr uint32_t EncodeNan(uint32_t sign) {
    switch (kSpecials) {
      case FloatSpecials::kIeee:
        return sign | kExponentMask << kMantissaBits | 1u << (kMantissaBits - 1);
      case FloatSpecials::kFn:
        return sign | (kSignBit - 1);
      case FloatSpecials::kFnuz:
        return kSignBit;
      // What ONNX's own conversion gives: a zero with the opposite sign.
      default:
        return sign ^ kSignBit;
    }
  }

  static constexpr uint32_t EncodeOverflow(uint32_t sign, bool saturate) {
    if (saturate || kSpecials == FloatSpecials::kNone) return sign | LargestCode();
    switch (kSpecials) {
      case FloatSpecials::kIeee:
        return sign | kExponentMask << kMantissaBits;
      case FloatSpecials::kFn:
        return sign | (kSignBit - 1);
      default:
        return kSignBit;
    }
  }
};

using Float16Format = FloatFormat<5, 10, 15, FloatSpecials::kIeee>;
using Float8E4M3FnFormat = FloatFormat<4, 3, 7, FloatSpecials::kFn>;
using Float8E4M3FnuzFormat = FloatFormat<4, 3, 8, FloatSpecials::kFnuz>;
using Float8E5M2Format = FloatFormat<5, 2, 15, FloatSpecials::kIeee>;
using Float8E5M2FnuzFormat = FloatFormat<5, 2, 16, FloatSpecials::kFnuz>;
using Float6E2M3Format = FloatFormat<2, 3, 1, FloatSpecials::kNone>;
using Float6E3M2Format = FloatFormat<3, 2, 3, FloatSpecials::kNone>;
using Float4E2M1Format = FloatFormat<2, 1, 1, FloatSpecials::kNone>;

// bfloat16 is the upper half of a float32, subnormals included. Without branches, so that loops
// over it become vector code.
struct Bfloat16Format {
  static constexpr float Decode(uint32_t code) { return std::bit_cast<float>(code << 16); }
  static constexpr uint32_t Encode(float value) {
    const uint32_t bits = std::bit_cast<uint32_t>(value);
    const uint32_t rounded = (bits + 0x7fffu + (bits >> 16 & 1)) >> 16;
    const uint32_t nan = (bits >> 16 & 0x8000u) | 0x7fc0u;
    return (bits & 0x7fffffffu) > 0x7f800000u ? nan : rounded;
  }
};

}  // namespace onnxifi::tensor

#endif  // ONNXIFI_BACKENDS_CORE_TENSOR_FLOAT_FORMAT_H_
