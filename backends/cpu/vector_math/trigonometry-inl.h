// SPDX-License-Identifier: Apache-2.0
//
// Trigonometric functions of float32 and their inverses, from polynomials fitted to least relative
// error. Bounds on the error in units in the last place, as in vector_math-inl.h:
//
//   Sin, Cos   2 (arguments up to 2^20)      Tan   4 (the same)
//   Asin   2.5      Acos, Atan   2

#if defined(ONNXIFI_BACKENDS_CPU_VECTOR_MATH_TRIGONOMETRY_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ONNXIFI_BACKENDS_CPU_VECTOR_MATH_TRIGONOMETRY_INL_H_
#undef ONNXIFI_BACKENDS_CPU_VECTOR_MATH_TRIGONOMETRY_INL_H_
#else
#define ONNXIFI_BACKENDS_CPU_VECTOR_MATH_TRIGONOMETRY_INL_H_
#endif

#include <hwy/highway.h>

#include "backends/cpu/vector_math/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace onnxifi::vector_math {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// pi / 2 and what float32 loses of it.
inline constexpr float kHalfPi = 0x1.921fb6p+0f;
inline constexpr float kHalfPiRest = -0x1.777a5cp-25f;

// Beyond this the quotient by pi / 2 leaves no bits for what follows.
inline constexpr float kMaxAngle = 0x1p20f;

// x = turns * pi / 2 + r with |r| <= pi / 4, for |x| <= kMaxAngle. Computed in float64, where the
// high part of pi / 2 has 32 bits, so its product with the number of quarter turns is exact.
template <class D, class V>
HWY_INLINE V ReduceByHalfPi(D d, V x, V& turns) {
  const HalfOf<D> half;
  const hn::Rebind<double, decltype(half)> wide;
  const auto origin = hn::Set(wide, 0x1.8p52);  // sums with it are rounded to integers
  const auto reduce = [&](auto x_half, auto& turns_half) HWY_ATTR {
    const auto angle = hn::PromoteTo(wide, x_half);
    const auto count =
        hn::Sub(hn::MulAdd(angle, hn::Set(wide, 0.63661977236758134308), origin), origin);
    turns_half = hn::DemoteTo(half, count);
    const auto high = hn::NegMulAdd(count, hn::Set(wide, 0x1.921fb544p+0), angle);
    return hn::DemoteTo(half, hn::NegMulAdd(count, hn::Set(wide, 0x1.0b4611a626331p-34), high));
  };
  hn::Vec<HalfOf<D>> low_turns, high_turns;
  const auto low = reduce(LowerOf(half, x), low_turns);
  const auto high = reduce(UpperOf(half, x), high_turns);
  turns = Join(d, high_turns, low_turns);
  return Join(d, high, low);
}

// For |r| <= pi / 4.
template <class D, class V>
HWY_INLINE V SinOfReduced(D d, V r, V squared) {
  const V tail = Polynomial(d, squared, -0.166666552f, 0.008332178f, -0.000195172193f);
  return hn::MulAdd(hn::Mul(r, squared), tail, r);
}
template <class D, class V>
HWY_INLINE V CosOfReduced(D d, V squared) {
  const V tail = Polynomial(d, squared, 0.0416666456f, -0.00138873665f, 2.44383627e-05f);
  return hn::MulAdd(hn::Mul(squared, squared), tail,
                    hn::NegMulAdd(squared, hn::Set(d, 0.5f), hn::Set(d, 1.0f)));
}

// The sine of x + shift * pi / 2, |x| <= kMaxAngle.
template <class D, class V>
HWY_INLINE V SinShifted(D d, V x, int shift) {
  const hn::RebindToSigned<D> integer;
  V turns;
  const V r = ReduceByHalfPi(d, x, turns);
  const V squared = hn::Mul(r, r);
  const auto quarter = hn::Add(hn::ConvertTo(integer, turns), hn::Set(integer, shift));
  const auto is_odd =
      hn::MaskFromVec(hn::BitCast(d, hn::Neg(hn::And(quarter, hn::Set(integer, 1)))));
  const V size = hn::IfThenElse(is_odd, CosOfReduced(d, squared), SinOfReduced(d, r, squared));
  const auto sign = hn::ShiftLeft<30>(hn::And(quarter, hn::Set(integer, 2)));
  return hn::Xor(size, hn::BitCast(d, sign));
}

template <class D, class V>
HWY_INLINE V Sin(D d, V x) {
  // Zeros keep their sign.
  return hn::IfThenElse(hn::Eq(x, hn::Zero(d)), x, SinShifted(d, x, 0));
}

template <class D, class V>
HWY_INLINE V Cos(D d, V x) {
  return SinShifted(d, x, 1);
}

template <class D, class V>
HWY_INLINE V Tan(D d, V x) {
  const hn::RebindToSigned<D> integer;
  V turns;
  const V r = ReduceByHalfPi(d, x, turns);
  const V squared = hn::Mul(r, r);
  const V sine = SinOfReduced(d, r, squared);
  const V cosine = CosOfReduced(d, squared);
  const auto quarter = hn::ConvertTo(integer, turns);
  const auto is_odd =
      hn::MaskFromVec(hn::BitCast(d, hn::Neg(hn::And(quarter, hn::Set(integer, 1)))));
  const V quotient =
      hn::Div(hn::IfThenElse(is_odd, hn::Neg(cosine), sine), hn::IfThenElse(is_odd, sine, cosine));
  return hn::IfThenElse(hn::Lt(hn::Abs(x), hn::Set(d, 0x1p-13f)), x, quotient);
}

// atan(x) = pi / 2 - atan(1 / x) for x > 1.
template <class D, class V>
HWY_INLINE V Atan(D d, V x) {
  const V size = hn::Abs(x);
  const auto is_large = hn::Gt(size, hn::Set(d, 1.0f));
  const V t = hn::IfThenElse(is_large, hn::Div(hn::Set(d, -1.0f), size), size);
  const V squared = hn::Mul(t, t);
  const V tail =
      Polynomial(d, squared, -0.333333015f, 0.199986383f, -0.142652452f, 0.109575719f,
                 -0.084194459f, 0.0582343191f, -0.0314554684f, 0.0110643152f, -0.00182718469f);
  const V rest = hn::IfThenElseZero(is_large, hn::Set(d, kHalfPiRest));
  const V angle = hn::MulAdd(hn::Mul(t, squared), tail, hn::Add(t, rest));
  return hn::CopySign(hn::Add(angle, hn::IfThenElseZero(is_large, hn::Set(d, kHalfPi))), x);
}

// asin(s) - s for s^2 = squared <= 1 / 4.
template <class D, class V>
HWY_INLINE V AsinTail(D d, V s, V squared) {
  return hn::Mul(hn::Mul(s, squared), Polynomial(d, squared, 0.166667536f, 0.0749524161f,
                                                 0.045477096f, 0.0241476111f, 0.0422185473f));
}

// asin(x) = pi / 2 - 2 asin(sqrt((1 - x) / 2)) for x > 1 / 2.
template <class D, class V>
HWY_INLINE V Asin(D d, V x) {
  const V size = hn::Abs(x);
  const V half = hn::Set(d, 0.5f);
  const auto is_large = hn::Gt(size, half);
  const V squared =
      hn::IfThenElse(is_large, hn::Mul(hn::Sub(hn::Set(d, 1.0f), size), half), hn::Mul(size, size));
  const V s = hn::IfThenElse(is_large, hn::Sqrt(squared), size);
  const V angle = hn::Add(s, AsinTail(d, s, squared));
  const V large =
      hn::Sub(hn::Set(d, kHalfPi), hn::Sub(hn::Add(angle, angle), hn::Set(d, kHalfPiRest)));
  return hn::CopySign(hn::IfThenElse(is_large, large, angle), x);
}

// acos(x) = 2 asin(sqrt((1 - x) / 2)) for x > 1 / 2, pi less that of -x below -1 / 2, and between
// them pi / 2 - asin(x).
template <class D, class V>
HWY_INLINE V Acos(D d, V x) {
  const V size = hn::Abs(x);
  const V half = hn::Set(d, 0.5f);
  const auto is_large = hn::Gt(size, half);
  const V squared =
      hn::IfThenElse(is_large, hn::Mul(hn::Sub(hn::Set(d, 1.0f), size), half), hn::Mul(size, size));
  const V s = hn::IfThenElse(is_large, hn::Sqrt(squared), x);
  const V tail = AsinTail(d, s, squared);
  const V twice = hn::Add(hn::Add(s, tail), hn::Add(s, tail));
  const V pi = hn::Set(d, 2 * kHalfPi);
  const V rest = hn::Set(d, kHalfPiRest);
  const V of_negative = hn::Sub(pi, hn::Sub(twice, hn::Add(rest, rest)));
  const V large = hn::IfThenElse(hn::Lt(x, hn::Zero(d)), of_negative, twice);
  const V small = hn::Sub(hn::Set(d, kHalfPi), hn::Add(s, hn::Sub(tail, rest)));
  return hn::IfThenElse(is_large, large, small);
}

}  // namespace HWY_NAMESPACE
}  // namespace onnxifi::vector_math
HWY_AFTER_NAMESPACE();

#endif  // ONNXIFI_BACKENDS_CPU_VECTOR_MATH_TRIGONOMETRY_INL_H_
