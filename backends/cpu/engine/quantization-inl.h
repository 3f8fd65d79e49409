// SPDX-License-Identifier: Apache-2.0
//
// Quantization: what QuantizeLinear does to float32, as few operations on vectors, for chains of
// float32 and for those with bytes. Included once per target of Highway.

#if defined(ONNXIFI_BACKENDS_CPU_ENGINE_QUANTIZATION_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ONNXIFI_BACKENDS_CPU_ENGINE_QUANTIZATION_INL_H_
#undef ONNXIFI_BACKENDS_CPU_ENGINE_QUANTIZATION_INL_H_
#else
#define ONNXIFI_BACKENDS_CPU_ENGINE_QUANTIZATION_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "backends/cpu/engine/arithmetic-inl.h"

HWY_BEFORE_NAMESPACE();
namespace onnxifi::engine {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Divides, rounds, adds and bounds. A product with 1 / divisor takes less than a quotient, and
// rounds to the same integer unless it lies so near the middle between two that it may be on the
// wrong side; then divides.
struct Quantization {
  using Tag = hn::ScalableTag<float>;
  using Vec = hn::Vec<Tag>;

  float divisor, inverse, sum, low, high;
  bool is_known;
  // Bounds are those of bytes, or not much wider.
  bool is_bounded;

  Quantization() = default;
  // The operands of the kQuantizeLength operations; the second has none.
  explicit HWY_INLINE Quantization(const std::byte* const* operands) {
    const auto number = [&](int k) { return *reinterpret_cast<const float*>(operands[k]); };
    divisor = number(0);
    inverse = 1 / divisor;
    sum = number(2);
    low = number(3);
    high = number(4);
    constexpr float kMinDivisor = 0x1p-60f;
    constexpr float kMaxDivisor = 0x1p60f;
    const float size = std::fabs(divisor);
    const auto is_plain = [](float x) { return std::isfinite(x) && !(x == 0 && std::signbit(x)); };
    is_known = size >= kMinDivisor && size <= kMaxDivisor && is_plain(sum) && is_plain(low) &&
               is_plain(high);
    const auto is_small = [](float x) { return std::fabs(x) <= kMaxBound && x == std::trunc(x); };
    is_bounded = ONNXIFI_EXTREMA_GIVE_SECOND && is_small(sum) && is_small(low) && is_small(high);
  }

  // False, and `values` are nothing, where one of them is no number.
  template <int kVectors>
  HWY_INLINE bool Run(Vec* values) const {
    if (is_bounded) return RunBounded<kVectors>(values);
    const Tag d;
    const Vec by = hn::Set(d, inverse);
    const Vec half = hn::Set(d, 0.5f);
    // A product is off by less than four units of 2^-24 of itself.
    const Vec off = hn::Set(d, 0x1p-22f);
    Vec rounded[kVectors];
    auto fits = hn::Eq(half, half);
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
      const Vec product = hn::Mul(values[v], by);
      rounded[v] = hn::Round(product);
      // False of what is no number.
      const Vec from_integer = hn::Abs(hn::Sub(product, rounded[v]));
      fits = hn::And(fits, hn::Le(hn::MulAdd(hn::Abs(product), off, from_integer), half));
    }
    if (HWY_UNLIKELY(!hn::AllTrue(d, fits)) && !Divide<kVectors>(values, rounded)) return false;
    const Vec added = hn::Set(d, sum), least = hn::Set(d, low), most = hn::Set(d, high);
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
      values[v] = hn::Min(hn::Max(hn::Add(rounded[v], added), least), most);
    }
    return true;
  }

  // As Run, where `is_bounded`. Bounds come first: what lies beyond them stays there, and of what
  // is left the products are off by so little that one number tells which are near the middle
  // between two integers.
  template <int kVectors>
  HWY_INLINE bool RunBounded(Vec* values) const {
    const Tag d;
    const Vec by = hn::Set(d, inverse);
    const Vec least = hn::Set(d, low - sum), most = hn::Set(d, high - sum);
    // By less than four units of 2^-24, of the larger bound.
    const float largest = std::max(std::fabs(low - sum), std::fabs(high - sum));
    const Vec near = hn::Set(d, 0.5f - largest * 0x1p-22f);
    // As integers, what is no number is farther than any.
    const hn::RebindToUnsigned<Tag> d_bits;
    auto farthest = hn::Zero(d_bits);
    Vec rounded[kVectors];
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
      // What is no number is the second operand, and stays none.
      const Vec bounded = hn::Min(most, hn::Max(least, hn::Mul(values[v], by)));
      rounded[v] = hn::Round(bounded);
      const Vec from_integer = hn::Abs(hn::Sub(bounded, rounded[v]));
      farthest = hn::Max(farthest, hn::BitCast(d_bits, from_integer));
    }
    if (HWY_UNLIKELY(!hn::AllFalse(d_bits, hn::Lt(hn::BitCast(d_bits, near), farthest)))) {
      if (!Divide<kVectors>(values, rounded)) return false;
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) {
        rounded[v] = hn::Min(most, hn::Max(least, rounded[v]));
      }
    }
    const Vec added = hn::Set(d, sum);
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) values[v] = hn::Add(rounded[v], added);
    return true;
  }

 private:
  static constexpr float kMaxBound = 512;

  // Rounded quotients. False where a value is no number.
  template <int kVectors>
  HWY_INLINE bool Divide(const Vec* values, Vec* rounded) const {
    const Tag d;
    const Vec by = hn::Set(d, divisor);
    auto are_numbers = hn::Eq(by, by);
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
      are_numbers = hn::And(are_numbers, hn::Eq(values[v], values[v]));
      rounded[v] = hn::Round(hn::Div(values[v], by));
    }
    return hn::AllTrue(d, are_numbers);
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace onnxifi::engine
HWY_AFTER_NAMESPACE();

#endif  // ONNXIFI_BACKENDS_CPU_ENGINE_QUANTIZATION_INL_H_
