// SPDX-License-Identifier: Apache-2.0
//
// Vector functions of float64, derived here from their series. Bounds on the error, against the
// exact value, in units in the last place of the result (engine/float64_functions_test.cc measures
// them over all exponents):
//
//   Exp64, Log64   1      Sin64, Cos64   1.5      ExpMinusOne64, LogOnePlus64   2      Tanh64   3
//
// Special values are those of C's functions. Results below the normal numbers are rounded twice.

#if defined(ONNXIFI_BACKENDS_CPU_VECTOR_MATH_FLOAT64_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ONNXIFI_BACKENDS_CPU_VECTOR_MATH_FLOAT64_INL_H_
#undef ONNXIFI_BACKENDS_CPU_VECTOR_MATH_FLOAT64_INL_H_
#else
#define ONNXIFI_BACKENDS_CPU_VECTOR_MATH_FLOAT64_INL_H_
#endif

#include <hwy/highway.h>

#include <limits>

#include "backends/cpu/vector_math/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace onnxifi::vector_math {
namespace HWY_NAMESPACE {

inline constexpr double kInfinity64 = std::numeric_limits<double>::infinity();

// A sum with it has the nearest integer in its lowest bits, in two's complement.
inline constexpr double kRounding64 = 0x1.8p52;

// log(2) in two parts: the first has 32 bits, so its product with an exponent is exact.
inline constexpr double kLog2High = 0x1.62e42feep-1;
inline constexpr double kLog2Low = 0x1.a39ef35793c76p-33;

// 2^n for the integer n whose sum with kRounding64 is `sum`, n in [-1022, 1023].
template <class D, class V>
HWY_INLINE V PowerOfTwo64(D d, V sum) {
  const hn::RebindToUnsigned<D> bits;
  const auto exponent = hn::ShiftLeft<52>(hn::BitCast(bits, sum));
  return hn::BitCast(d, hn::Add(exponent, hn::BitCast(bits, hn::Set(d, 1.0))));
}

// x = n * log(2) + r with |r| <= log(2) / 2; exp(r) - 1 by its series, of which the first term that
// is left out is below 2^-57. `sum` is n + kRounding64.
template <class D, class V>
HWY_INLINE V ExpMinusOneOfRest(D d, V x, V& n, V& sum) {
  const V origin = hn::Set(d, kRounding64);
  sum = hn::MulAdd(x, hn::Set(d, 0x1.71547652b82fep0), origin);
  n = hn::Sub(sum, origin);
  const V high = hn::NegMulAdd(n, hn::Set(d, kLog2High), x);
  const V r = hn::NegMulAdd(n, hn::Set(d, kLog2Low), high);
  const V tail =
      Polynomial64(d, r, 1.0 / 2, 1.0 / 6, 1.0 / 24, 1.0 / 120, 1.0 / 720, 1.0 / 5040, 1.0 / 40320,
                   1.0 / 362880, 1.0 / 3628800, 1.0 / 39916800, 1.0 / 479001600, 1.0 / 6227020800);
  return hn::MulAdd(hn::Mul(r, r), tail, r);
}

template <class D, class V>
HWY_INLINE V Exp64(D d, V x) {
  // Beyond these the result is 0 or infinity; NaN stays.
  const V bounded =
      hn::IfThenElse(hn::Gt(hn::Abs(x), hn::Set(d, 750.0)), hn::CopySign(hn::Set(d, 750.0), x), x);
  V n, sum;
  const V result = hn::Add(ExpMinusOneOfRest(d, bounded, n, sum), hn::Set(d, 1.0));
  // In two steps: neither leaves the exponents that there are.
  const V origin = hn::Set(d, kRounding64);
  const V half = hn::MulAdd(n, hn::Set(d, 0.5), origin);
  const V other = hn::Add(hn::Sub(n, hn::Sub(half, origin)), origin);
  return hn::Mul(hn::Mul(result, PowerOfTwo64(d, half)), PowerOfTwo64(d, other));
}

// exp(x) - 1 for x from -700 to 700.
template <class D, class V>
HWY_INLINE V ExpMinusOneOfModerate(D d, V x) {
  V n, sum;
  const V rest = ExpMinusOneOfRest(d, x, n, sum);
  const V scale = PowerOfTwo64(d, sum);
  return hn::MulAdd(rest, scale, hn::Sub(scale, hn::Set(d, 1.0)));
}

template <class D, class V>
HWY_INLINE V ExpMinusOne64(D d, V x) {
  // Below, the result is -1; above, what is subtracted is lost.
  const V bounded = hn::IfThenElse(hn::Lt(x, hn::Set(d, -50.0)), hn::Set(d, -50.0), x);
  const auto is_large = hn::Gt(x, hn::Set(d, 60.0));
  const V moderate = ExpMinusOneOfModerate(d, hn::IfThenElse(is_large, hn::Zero(d), bounded));
  const V result = hn::IfThenElse(is_large, Exp64(d, x), moderate);
  // A zero with its sign.
  return hn::IfThenElse(hn::Eq(x, hn::Zero(d)), x, result);
}

template <class D, class V>
HWY_INLINE V Tanh64(D d, V x) {
  // tanh(x) = -e / (e + 2) for e = exp(-2 |x|) - 1.
  const V size = hn::Abs(x);
  const V bounded = hn::IfThenElse(hn::Gt(size, hn::Set(d, 25.0)), hn::Set(d, 25.0), size);
  const V e = ExpMinusOneOfModerate(d, hn::Mul(bounded, hn::Set(d, -2.0)));
  return hn::CopySign(hn::Div(e, hn::Add(e, hn::Set(d, 2.0))), x);
}

// log(x) for positive, finite x, and `low` added to it in the end.
template <class D, class V>
HWY_INLINE V LogOfPositive64(D d, V x, V low) {
  const hn::RebindToUnsigned<D> bits;
  // Numbers below the normal ones are scaled to be normal.
  const auto is_small = hn::Lt(x, hn::Set(d, std::numeric_limits<double>::min()));
  const V normal = hn::IfThenElse(is_small, hn::Mul(x, hn::Set(d, 0x1p54)), x);
  const auto code = hn::BitCast(bits, normal);
  // The exponent's bits as a float64: those of 2^52 and a small integer.
  const V origin = hn::Set(d, 0x1p52);
  const auto exponent = hn::Or(hn::ShiftRight<52>(code), hn::BitCast(bits, origin));
  V e = hn::Sub(hn::Sub(hn::BitCast(d, exponent), origin), hn::Set(d, 1023.0));
  e = hn::Sub(e, hn::IfThenElseZero(is_small, hn::Set(d, 54.0)));
  const auto mantissa = hn::And(code, hn::Set(bits, 0x000f'ffff'ffff'ffffULL));
  V m = hn::BitCast(d, hn::Or(mantissa, hn::BitCast(bits, hn::Set(d, 1.0))));
  // From sqrt(1/2) to sqrt(2).
  const auto is_upper = hn::Gt(m, hn::Set(d, 1.4142135623730951));
  m = hn::IfThenElse(is_upper, hn::Mul(m, hn::Set(d, 0.5)), m);
  e = hn::Add(e, hn::IfThenElseZero(is_upper, hn::Set(d, 1.0)));
  // log(1 + f) = 2 artanh(s) for s = f / (2 + f), and 2 s = f - f^2 / 2 + s f^2 / 2.
  const V f = hn::Sub(m, hn::Set(d, 1.0));
  const V s = hn::Div(f, hn::Add(f, hn::Set(d, 2.0)));
  const V squared = hn::Mul(s, s);
  const V series = Polynomial64(d, squared, 2.0 / 3, 2.0 / 5, 2.0 / 7, 2.0 / 9, 2.0 / 11, 2.0 / 13,
                                2.0 / 15, 2.0 / 17, 2.0 / 19, 2.0 / 21);
  const V half_square = hn::Mul(hn::Mul(f, f), hn::Set(d, 0.5));
  const V correction = hn::Mul(s, hn::MulAdd(squared, series, half_square));
  const V small = hn::Add(hn::MulAdd(e, hn::Set(d, kLog2Low), correction), low);
  const V rest = hn::Sub(f, hn::Sub(half_square, small));
  return hn::MulAdd(e, hn::Set(d, kLog2High), rest);
}

// What C's log gives of numbers that have no finite logarithm, else `result`.
template <class D, class V>
HWY_INLINE V WithSpecialLogs(D d, V x, V result) {
  const V zero = hn::Zero(d);
  const V infinity = hn::Set(d, kInfinity64);
  V y = hn::IfThenElse(hn::Eq(x, infinity), infinity, result);
  y = hn::IfThenElse(hn::Eq(x, zero), hn::Neg(infinity), y);
  // Below 0, and NaN.
  const V nan = hn::Set(d, std::numeric_limits<double>::quiet_NaN());
  return hn::IfThenElse(hn::Ge(x, zero), y, nan);
}

template <class D, class V>
HWY_INLINE V Log64(D d, V x) {
  return WithSpecialLogs(d, x, LogOfPositive64(d, x, hn::Zero(d)));
}

template <class D, class V>
HWY_INLINE V LogOnePlus64(D d, V x) {
  // What the sum lost, as a part of it.
  const V one = hn::Set(d, 1.0);
  const V sum = hn::Add(x, one);
  const auto is_large = hn::Ge(x, one);
  const V lost =
      hn::IfThenElse(is_large, hn::Sub(one, hn::Sub(sum, x)), hn::Sub(x, hn::Sub(sum, one)));
  const V result = WithSpecialLogs(d, sum, LogOfPositive64(d, sum, hn::Div(lost, sum)));
  // Also a zero with its sign.
  return hn::IfThenElse(hn::Lt(hn::Abs(x), hn::Set(d, 0x1p-54)), x, result);
}

// Angles up to here are reduced in vectors.
inline constexpr double kMaxAngle64 = 0x1p20;

// x = turns * pi / 2 + r with |r| <= pi / 4, for |x| <= kMaxAngle64; `sum` is turns + kRounding64.
// The first two parts of pi / 2 have 33 bits each, so their products are exact.
template <class D, class V>
HWY_INLINE V ReduceByHalfPi64(D d, V x, V& sum) {
  const V origin = hn::Set(d, kRounding64);
  sum = hn::MulAdd(x, hn::Set(d, 0x1.45f306dc9c883p-1), origin);
  const V turns = hn::Sub(sum, origin);
  const V high = hn::NegMulAdd(turns, hn::Set(d, 0x1.921fb544p0), x);
  const V part = hn::Mul(turns, hn::Set(d, 0x1.0b4611a6p-34));
  const V r = hn::Sub(high, part);
  // What the rounding of r lost, and the third part.
  const V lost = hn::Sub(hn::Sub(high, r), part);
  return hn::Add(r, hn::NegMulAdd(turns, hn::Set(d, 0x1.3198a2e037073p-69), lost));
}

// sin(x + shift * pi / 2) for |x| <= kMaxAngle64.
template <class D, class V>
HWY_INLINE V SinShifted64(D d, V x, int shift) {
  const hn::RebindToUnsigned<D> bits;
  V sum;
  const V r = ReduceByHalfPi64(d, x, sum);
  const V squared = hn::Mul(r, r);
  const V sine_tail =
      Polynomial64(d, squared, -1.0 / 6, 1.0 / 120, -1.0 / 5040, 1.0 / 362880, -1.0 / 39916800,
                   1.0 / 6227020800, -1.0 / 1307674368000, 1.0 / 355687428096000);
  const V sine = hn::MulAdd(hn::Mul(r, squared), sine_tail, r);
  // 1 - r^2 / 2 as a number and what its rounding lost.
  const V cosine_tail = Polynomial64(d, squared, 1.0 / 24, -1.0 / 720, 1.0 / 40320, -1.0 / 3628800,
                                     1.0 / 479001600, -1.0 / 87178291200, 1.0 / 20922789888000);
  const V one = hn::Set(d, 1.0);
  const V half_square = hn::Mul(squared, hn::Set(d, 0.5));
  const V near = hn::Sub(one, half_square);
  const V lost = hn::Sub(hn::Sub(one, near), half_square);
  const V cosine = hn::Add(near, hn::MulAdd(hn::Mul(squared, squared), cosine_tail, lost));
  const auto turns = hn::Add(hn::BitCast(bits, sum), hn::Set(bits, static_cast<uint64_t>(shift)));
  const auto is_odd = hn::Eq(hn::And(turns, hn::Set(bits, 1U)), hn::Set(bits, 1U));
  const V chosen = hn::IfThenElse(hn::RebindMask(d, is_odd), cosine, sine);
  const auto sign = hn::ShiftLeft<62>(hn::And(turns, hn::Set(bits, 2U)));
  return hn::BitCast(d, hn::Xor(hn::BitCast(bits, chosen), sign));
}

template <class D, class V>
HWY_INLINE V Sin64(D d, V x) {
  // A zero with its sign.
  return hn::IfThenElse(hn::Eq(x, hn::Zero(d)), x, SinShifted64(d, x, 0));
}
template <class D, class V>
HWY_INLINE V Cos64(D d, V x) {
  return SinShifted64(d, x, 1);
}

}  // namespace HWY_NAMESPACE
}  // namespace onnxifi::vector_math
HWY_AFTER_NAMESPACE();

#endif  // ONNXIFI_BACKENDS_CPU_VECTOR_MATH_FLOAT64_INL_H_
