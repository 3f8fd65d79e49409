// SPDX-License-Identifier: Apache-2.0
//
// Integer arithmetic of scalar expressions: what each integer operation gives for every pair of
// operands, without undefined behaviour. Used by constant folding in ExprPool, by the reference and
// by the loops of the CPU's engine that are no vector operation of Highway; code generators print
// the same rules.

#ifndef ONNXIFI_BACKENDS_CORE_PROGRAM_INTEGER_ARITHMETIC_H_
#define ONNXIFI_BACKENDS_CORE_PROGRAM_INTEGER_ARITHMETIC_H_

#include <cstdint>
#include <limits>
#include <type_traits>

namespace onnxifi::program {

// Sums and products of narrow unsigned types would be computed in int, where 65535 * 65535
// overflows.
template <typename T>
using Wrapping = std::conditional_t<(sizeof(T) < 4), uint32_t, std::make_unsigned_t<T>>;

template <typename T>
constexpr T WrapAdd(T a, T b) {
  return static_cast<T>(static_cast<Wrapping<T>>(a) + static_cast<Wrapping<T>>(b));
}

template <typename T>
constexpr T WrapSub(T a, T b) {
  return static_cast<T>(static_cast<Wrapping<T>>(a) - static_cast<Wrapping<T>>(b));
}

template <typename T>
constexpr T WrapMul(T a, T b) {
  return static_cast<T>(static_cast<Wrapping<T>>(a) * static_cast<Wrapping<T>>(b));
}

template <typename T>
constexpr T WrapNeg(T a) {
  return WrapSub<T>(0, a);
}

// Truncates; by zero 0; the smallest number by -1 wraps to itself.
template <typename T>
constexpr T IntegerDiv(T a, T b) {
  if (b == 0) return 0;
  if constexpr (std::is_signed_v<T>) {
    if (b == -1) return WrapNeg(a);
  }
  return static_cast<T>(a / b);
}

// Sign of the dividend; by zero 0.
template <typename T>
constexpr T IntegerFmod(T a, T b) {
  if (b == 0) return 0;
  if constexpr (std::is_signed_v<T>) {
    if (b == -1) return 0;
  }
  return static_cast<T>(a % b);
}

// Sign of the divisor; by zero 0.
template <typename T>
constexpr T IntegerMod(T a, T b) {
  const T rest = IntegerFmod(a, b);
  if constexpr (std::is_signed_v<T>) {
    if (rest != 0 && (rest < 0) != (b < 0)) return static_cast<T>(rest + b);
  }
  return rest;
}

// Wraps; a negative exponent is the truncating division of 1 by the positive power.
template <typename T>
constexpr T IntegerPow(T base, T exponent) {
  if constexpr (std::is_signed_v<T>) {
    if (exponent < 0) {
      if (base == 1) return 1;
      if (base == -1) return exponent % 2 == 0 ? 1 : -1;
      return 0;
    }
  }
  T result = 1;
  for (auto rest = static_cast<std::make_unsigned_t<T>>(exponent); rest != 0;
       rest = static_cast<std::make_unsigned_t<T>>(rest >> 1)) {
    if ((rest & 1) != 0) result = WrapMul(result, base);
    base = WrapMul(base, base);
  }
  return result;
}

// A shift by the width or more, or by a negative number, gives 0.
template <typename T>
constexpr T IntegerShl(T a, T b) {
  const auto count = static_cast<std::make_unsigned_t<T>>(b);
  if (count >= std::numeric_limits<std::make_unsigned_t<T>>::digits) return 0;
  return static_cast<T>(static_cast<Wrapping<T>>(a) << count);
}

// Arithmetic for signed types.
template <typename T>
constexpr T IntegerShr(T a, T b) {
  const auto count = static_cast<std::make_unsigned_t<T>>(b);
  if (count >= std::numeric_limits<std::make_unsigned_t<T>>::digits) return 0;
  return static_cast<T>(a >> count);
}

}  // namespace onnxifi::program

#endif  // ONNXIFI_BACKENDS_CORE_PROGRAM_INTEGER_ARITHMETIC_H_
