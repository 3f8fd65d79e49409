// SPDX-License-Identifier: Apache-2.0
//
// Vector functions of float32, derived here from their series and from polynomials fitted to least
// relative error. Bounds on the error, against the exact value, in units in the last place of the
// result (engine/function_loops_test.cc and gemm/activation_test.cc measure them over all
// exponents); power-inl.h, trigonometry-inl.h and hyperbolic-inl.h have further functions:
//
//   Exp, Log   1      Expm1, Log1p   2      Erf   2.5      Tanh   3
//   Logistic   3      Gelu         2   (below 0, of half its argument)
//
// Special values are those of C's functions: NaN gives NaN; infinities, zeros (with their sign) and
// what is out of range give what they give there. Results below the normal numbers are rounded
// twice.

#if defined(ONNXIFI_BACKENDS_CPU_VECTOR_MATH_VECTOR_MATH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ONNXIFI_BACKENDS_CPU_VECTOR_MATH_VECTOR_MATH_INL_H_
#undef ONNXIFI_BACKENDS_CPU_VECTOR_MATH_VECTOR_MATH_INL_H_
#else
#define ONNXIFI_BACKENDS_CPU_VECTOR_MATH_VECTOR_MATH_INL_H_
#endif

#include <hwy/highway.h>

#include <limits>

#include "backends/cpu/vector_math/erf_table.h"

HWY_BEFORE_NAMESPACE();
namespace onnxifi::vector_math {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

inline constexpr float kInfinity = std::numeric_limits<float>::infinity();
inline constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// c0 + x * (c1 + x * (...))
template <class D, class V>
HWY_INLINE V Polynomial(D d, V /*x*/, float c) {
  return hn::Set(d, c);
}
template <class D, class V, typename... Rest>
HWY_INLINE V Polynomial(D d, V x, float c, Rest... rest) {
  return hn::MulAdd(x, Polynomial(d, x, rest...), hn::Set(d, c));
}

// 2^n for integers n in [-126, 127], as a float.
template <class D, class V>
HWY_INLINE V PowerOfTwo(D d, V n) {
  const hn::RebindToSigned<D> integer;
  const auto exponent = hn::Add(hn::ConvertTo(integer, n), hn::Set(integer, 127));
  return hn::BitCast(d, hn::ShiftLeft<23>(exponent));
}

// A sum with it has the nearest integer in its lowest bits, in two's complement.
inline constexpr float kRounding = 0x1.8p23f;

// x = n * log(2) + r with |r| <= log(2) / 2, for |x| < 2^15; `sum` is n + kRounding. The high part
// of log(2) has 15 bits, so its product with n is exact.
template <class D, class V>
HWY_INLINE V ReduceByLog2(D d, V x, V& n, V& sum) {
  const V origin = hn::Set(d, kRounding);
  sum = hn::MulAdd(x, hn::Set(d, 1.44269504f), origin);
  n = hn::Sub(sum, origin);
  const V high = hn::NegMulAdd(n, hn::Set(d, 0x1.62e4p-1f), x);
  return hn::NegMulAdd(n, hn::Set(d, 0x1.7f7d1cp-20f), high);
}
template <class D, class V>
HWY_INLINE V ReduceByLog2(D d, V x, V& n) {
  V sum;
  return ReduceByLog2(d, x, n, sum);
}

// (exp(r) - 1 - r) / r^2 for |r| <= log(2) / 2, to 0.03 units of exp(r) (fitted).
inline constexpr float kExpTail[] = {0.49999994f, 0.166665211f, 0.041668389f, 0.00836871006f,
                                     0.00138146104f};
template <class D, class V>
HWY_INLINE V ExpTail(D d, V r) {
  return Polynomial(d, r, kExpTail[0], kExpTail[1], kExpTail[2], kExpTail[3], kExpTail[4]);
}

// exp(r) for |r| <= log(2) / 2.
template <class D, class V>
HWY_INLINE V ExpOfReduced(D d, V r) {
  return hn::Add(hn::MulAdd(hn::Mul(r, r), ExpTail(d, r), r), hn::Set(d, 1.0f));
}

// exp(x) / 2^n for the integer n nearest to x / log(2), |x| < 2^15.
template <class D, class V>
HWY_INLINE V ExpOfRest(D d, V x, V& n) {
  return ExpOfReduced(d, ReduceByLog2(d, x, n));
}

// x * 2^n for a `sum` of n and kRounding, where x and the result are normal numbers.
template <class D, class V>
HWY_INLINE V AddToExponent(D d, V x, V sum) {
  const hn::RebindToSigned<D> integer;
  const auto exponent = hn::ShiftLeft<23>(hn::BitCast(integer, sum));
  return hn::BitCast(d, hn::Add(hn::BitCast(integer, x), exponent));
}

// x * 2^n for integers n in [-126, 127].
template <class D, class V>
HWY_INLINE V TimesPowerOfTwo(D d, V x, V n) {
#if HWY_TARGET == HWY_AVX3
  if constexpr (hn::MaxLanes(D()) == 16) return V{_mm512_scalef_ps(x.raw, n.raw)};
#endif
  return hn::Mul(x, PowerOfTwo(d, n));
}

// For x in [-87, 87], where neither the result nor its scale leaves the normal numbers.
template <class D, class V>
HWY_INLINE V ExpOfModerate(D d, V x) {
  V n, sum;
  const V r = ReduceByLog2(d, x, n, sum);
  return AddToExponent(d, ExpOfReduced(d, r), sum);
}

// The same of several vectors, one operation of all of them after the other: a processor has fewer
// operations under way than the whole of one takes.
template <int kVectors, class D, class V>
HWY_INLINE void ExpOfModerate(D d, V (&x)[kVectors]) {
  V sum[kVectors], n[kVectors], tail[kVectors];
  const auto for_all = [](auto operation) HWY_ATTR {
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) operation(v);
  };
  const V origin = hn::Set(d, kRounding);
  const V inverse = hn::Set(d, 1.44269504f);
  for_all([&](int v) HWY_ATTR { sum[v] = hn::MulAdd(x[v], inverse, origin); });
  for_all([&](int v) HWY_ATTR { n[v] = hn::Sub(sum[v], origin); });
  const V high = hn::Set(d, 0x1.62e4p-1f);
  for_all([&](int v) HWY_ATTR { x[v] = hn::NegMulAdd(n[v], high, x[v]); });
  const V low = hn::Set(d, 0x1.7f7d1cp-20f);
  for_all([&](int v) HWY_ATTR { x[v] = hn::NegMulAdd(n[v], low, x[v]); });
  for_all([&](int v) HWY_ATTR {
    tail[v] = hn::MulAdd(x[v], hn::Set(d, kExpTail[4]), hn::Set(d, kExpTail[3]));
  });
  const auto add_term = [&](float number) HWY_ATTR {
    const V coefficient = hn::Set(d, number);
    for_all([&](int v) HWY_ATTR { tail[v] = hn::MulAdd(x[v], tail[v], coefficient); });
  };
  add_term(kExpTail[2]);
  add_term(kExpTail[1]);
  add_term(kExpTail[0]);
  for_all([&](int v) HWY_ATTR { tail[v] = hn::MulAdd(hn::Mul(x[v], x[v]), tail[v], x[v]); });
  const V one = hn::Set(d, 1.0f);
  for_all([&](int v) HWY_ATTR { x[v] = AddToExponent(d, hn::Add(tail[v], one), sum[v]); });
}

// As Exp, where not all results are normal numbers.
template <class D, class V>
HWY_INLINE V ExpOfAny(D d, V x) {
  // Less than half of the least subnormal number is left. These lanes, which masks make many of,
  // compute something else: results below the normal numbers take a hundred times as long.
  const auto vanishes = hn::Lt(x, hn::Set(d, -104.0f));
  // Beyond 100 the result is infinite; the scale below has room for a little more.
  const V near = hn::IfThenZeroElse(vanishes, hn::Min(x, hn::Set(d, 100.0f)));
  V n;
  const V power = ExpOfRest(d, near, n);
  // In two steps: neither 2^128 nor 2^-150 is a normal number.
  const hn::RebindToSigned<D> integer;
  const auto exponent = hn::ConvertTo(integer, n);
  const auto half = hn::ShiftRight<1>(exponent);
  const auto power_of_two = [&](auto e) HWY_ATTR {
    return hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(e, hn::Set(integer, 127))));
  };
  const V scaled =
      hn::Mul(hn::Mul(power, power_of_two(half)), power_of_two(hn::Sub(exponent, half)));
  return hn::IfThenElse(hn::IsNaN(x), x, hn::IfThenZeroElse(vanishes, scaled));
}

template <class D, class V>
HWY_INLINE V Exp(D d, V x) {
  const auto is_moderate = hn::Le(hn::Abs(x), hn::Set(d, 87.0f));
  if (HWY_LIKELY(hn::AllTrue(d, is_moderate))) return ExpOfModerate(d, x);
  return ExpOfAny(d, x);
}

template <class D, class V>
HWY_INLINE V Expm1(D d, V x) {
  // Below this the result is -1 to the last bit.
  const V near = hn::Min(hn::Max(x, hn::Set(d, -20.0f)), hn::Set(d, 100.0f));
  V n;
  const V r = ReduceByLog2(d, near, n);
  const V less = hn::MulAdd(hn::Mul(r, r), ExpTail(d, r), r);  // exp(r) - 1
  // 2^n * less + (2^n - 1) = (less + (1 - 2^-n)) * 2^n. The greatest n are scaled in two steps.
  const V top = hn::Min(n, hn::Set(d, 126.0f));
  const V gap = hn::Sub(hn::Set(d, 1.0f), PowerOfTwo(d, hn::Neg(top)));
  const V rest = hn::Min(hn::Sub(n, top), hn::Set(d, 100.0f));
  const V scaled = hn::Mul(hn::Mul(hn::Add(less, gap), PowerOfTwo(d, top)), PowerOfTwo(d, rest));
  // Zeros keep their sign and subnormal numbers their value, which squares would lose.
  const auto is_tiny = hn::Lt(hn::Abs(x), hn::Set(d, 0x1p-25f));
  return hn::IfThenElse(hn::Or(is_tiny, hn::IsNaN(x)), x, scaled);
}

// log(m) + e * log(2) for m in [sqrt(1/2), sqrt(2)]. With f = m - 1 and s = f / (2 + f):
// log(m) = 2 atanh(s) = 2 s + 2 s z, z = s^2/3 + s^4/5 + ..., and 2 s = f - s f.
template <class D, class V>
HWY_INLINE V LogOfReduced(D d, V m, V e) {
  const V f = hn::Sub(m, hn::Set(d, 1.0f));
  const V s = hn::Div(f, hn::Add(hn::Set(d, 2.0f), f));
  const V squared = hn::Mul(s, s);
  const V z2 =
      hn::Mul(squared, Polynomial(d, squared, 2.0f / 3, 2.0f / 5, 2.0f / 7, 2.0f / 9, 2.0f / 11));
  const V low = hn::NegMulAdd(e, hn::Set(d, 0x1.7f7d1cp-20f), hn::Mul(s, hn::Sub(f, z2)));
  return hn::MulAdd(e, hn::Set(d, 0x1.62e4p-1f), hn::Sub(f, low));
}

// x = m * 2^e with m in [sqrt(1/2), sqrt(2)], for positive finite x.
template <class D, class V>
HWY_INLINE V SplitExponent(D d, V x, V& e) {
  const hn::RebindToSigned<D> integer;
  const auto is_small = hn::Lt(x, hn::Set(d, 0x1p-126f));
  const V normal = hn::IfThenElse(is_small, hn::Mul(x, hn::Set(d, 0x1p24f)), x);
  // The bits of sqrt(1/2) as the origin: the exponent's field then counts from there.
  const auto origin = hn::Set(integer, 0x3f3504f3);
  const auto bits = hn::Sub(hn::BitCast(integer, normal), origin);
  const auto exponent = hn::ShiftRight<23>(bits);
  const auto mantissa = hn::Add(hn::And(bits, hn::Set(integer, 0x7fffff)), origin);
  e = hn::Sub(hn::ConvertTo(d, exponent), hn::IfThenElseZero(is_small, hn::Set(d, 24.0f)));
  return hn::BitCast(d, mantissa);
}

template <class D, class V>
HWY_INLINE V Log(D d, V x) {
  V e;
  const V m = SplitExponent(d, x, e);
  V result = LogOfReduced(d, m, e);
  result = hn::IfThenElse(hn::Eq(x, hn::Zero(d)), hn::Set(d, -kInfinity), result);
  result = hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Set(d, kNan), result);
  return hn::IfThenElse(hn::Or(hn::Eq(x, hn::Set(d, kInfinity)), hn::IsNaN(x)), x, result);
}

// log(u) for u = 1 + x rounded, and what the rounding lost.
template <class D, class V>
HWY_INLINE V Log1p(D d, V x) {
  const V one = hn::Set(d, 1.0f);
  const V u = hn::Add(one, x);
  // The smaller of the two summands is what the sum may have lost bits of.
  const V lost_of_x = hn::Sub(x, hn::Sub(u, one));
  const V lost_of_one = hn::Sub(one, hn::Sub(u, x));
  const V lost = hn::IfThenElse(hn::Lt(hn::Abs(x), one), lost_of_x, lost_of_one);
  V e;
  const V m = SplitExponent(d, u, e);
  V result = hn::Add(LogOfReduced(d, m, e), hn::Div(lost, u));
  result = hn::IfThenElse(hn::Eq(u, hn::Zero(d)), hn::Set(d, -kInfinity), result);
  result = hn::IfThenElse(hn::Lt(u, hn::Zero(d)), hn::Set(d, kNan), result);
  const auto is_itself = hn::Or(hn::Lt(hn::Abs(x), hn::Set(d, 0x1p-25f)),
                                hn::Or(hn::Eq(x, hn::Set(d, kInfinity)), hn::IsNaN(x)));
  return hn::IfThenElse(is_itself, x, result);
}

// tanh(x) = (exp(2 x) - 1) / (exp(2 x) + 1). With exp(2 x) = 2^n exp(r), both are divided by 2^n:
// ((exp(r) - 1) + (1 - 2^-n)) / ((exp(r) - 1) + (1 + 2^-n)).
template <class D, class V>
HWY_INLINE V Tanh(D d, V x) {
  const V one = hn::Set(d, 1.0f);
  const V size = hn::Abs(x);
  const V near = hn::Min(size, hn::Set(d, 10.0f));  // 1 to the last bit from 9.02 on
  const V origin = hn::Set(d, kRounding + 127);
  const V sum = hn::NegMulAdd(near, hn::Set(d, 2 * 1.44269504f), origin);  // 127 - n
  const V minus_n = hn::Sub(sum, origin);
  const V high = hn::MulAdd(minus_n, hn::Set(d, 0x1.62e4p-1f), hn::Add(near, near));
  const V r = hn::MulAdd(minus_n, hn::Set(d, 0x1.7f7d1cp-20f), high);
  const V less = hn::MulAdd(hn::Mul(r, r), ExpTail(d, r), r);
  const hn::RebindToSigned<D> integer;
  const V scale = hn::BitCast(d, hn::ShiftLeft<23>(hn::BitCast(integer, sum)));
  const V result = hn::Div(hn::Add(less, hn::Sub(one, scale)), hn::Add(less, hn::Add(one, scale)));
  // Below this it is x itself; NaN stays one.
  const auto is_other = hn::Ge(size, hn::Set(d, 0x1p-13f));
  return hn::IfThenElse(is_other, hn::CopySignToAbs(result, x), x);
}

// Half of a vector, which as float64 fills one. Where vectors have one lane, both halves are it.
#if HWY_TARGET == HWY_SCALAR
template <class D>
using HalfOf = D;
template <class D, class V>
HWY_INLINE V LowerOf(D /*half*/, V x) {
  return x;
}
template <class D, class V>
HWY_INLINE V UpperOf(D /*half*/, V x) {
  return x;
}
template <class D, class V>
HWY_INLINE V Join(D /*d*/, V /*upper*/, V lower) {
  return lower;
}
#else
template <class D>
using HalfOf = hn::Half<D>;
template <class D, class V>
HWY_INLINE hn::Vec<D> LowerOf(D half, V x) {
  return hn::LowerHalf(half, x);
}
template <class D, class V>
HWY_INLINE hn::Vec<D> UpperOf(D half, V x) {
  return hn::UpperHalf(half, x);
}
template <class D, class V>
HWY_INLINE hn::Vec<D> Join(D d, V upper, V lower) {
  return hn::Combine(d, upper, lower);
}
#endif

// For vectors of float64: c0 + x * (c1 + ...), as Polynomial.
template <class D, class V>
HWY_INLINE V Polynomial64(D d, V /*x*/, double c) {
  return hn::Set(d, c);
}
template <class D, class V, typename... Rest>
HWY_INLINE V Polynomial64(D d, V x, double c, Rest... rest) {
  return hn::MulAdd(x, Polynomial64(d, x, rest...), hn::Set(d, c));
}

#if HWY_TARGET == HWY_AVX3

// x * P(|x|), where P is the polynomial of the quarter that |x| is in: a register holds a
// coefficient for each of the 16.
template <class D, class V>
HWY_INLINE V Erf(D d, V x) {
  const hn::RebindToSigned<D> integer;
  static_assert(hn::MaxLanes(D()) == ErfTable::kSegments);
  const V size = hn::Abs(x);
  const V near = hn::Min(size, hn::Set(d, 3.99f));
  const auto segment =
      hn::ConvertTo(integer, hn::Mul(near, hn::Set(d, static_cast<float>(1 / ErfTable::kWidth))));
  const auto indices = hn::IndicesFromVec(d, segment);
  const V width = hn::Set(d, static_cast<float>(ErfTable::kWidth));
  const V middle = hn::MulAdd(hn::ConvertTo(d, segment), width,
                              hn::Set(d, static_cast<float>(ErfTable::kWidth / 2)));
  const V t = hn::Sub(near, middle);
  const auto coefficient = [&](size_t k) HWY_ATTR {
    return hn::TableLookupLanes(hn::Load(d, kErfTable.coefficients[k].data()), indices);
  };
  V quotient = coefficient(ErfTable::kDegree);
#pragma GCC unroll 5
  for (size_t k = ErfTable::kDegree; k-- > 0;) quotient = hn::MulAdd(quotient, t, coefficient(k));
  const V inner = hn::Mul(size, quotient);
  const V one = hn::Set(d, 1.0f);
  // 1 to the last bit from 3.92 on; rounding may take what is below beyond it.
  const auto is_one = hn::Or(hn::Ge(size, hn::Set(d, 3.92f)), hn::Gt(inner, one));
  return hn::CopySign(hn::IfThenElse(is_one, one, inner), x);
}

#else

// Below 1 a polynomial of erf(x) / x in x^2, above 1 - exp of a polynomial of log(erfc(x)); both
// fitted to 0.02 units of the result.
template <class D, class V>
HWY_INLINE V Erf(D d, V x) {
  const V size = hn::Min(hn::Abs(x), hn::Set(d, 4.0f));  // 1 to the last bit from 3.92 on
  const V squared = hn::Mul(x, x);
  const V inner =
      hn::Mul(x, Polynomial(d, squared, 1.1283791f, -0.37612626f, 0.112835854f, -0.026853811f,
                            0.0051883277f, -0.00080101925f, 7.853858e-05f));
  const V logarithm = Polynomial(d, size, -0.0003415126f, -1.1270893f, -0.63814473f, -0.10310682f,
                                 0.021838097f, -0.0029476667f, 0.00018638009f);
  const V erfc = ExpOfModerate(d, logarithm);  // the logarithm is at least -18
  const V outer = hn::CopySign(hn::Sub(hn::Set(d, 1.0f), erfc), x);
  const V result = hn::IfThenElse(hn::Lt(hn::Abs(x), hn::Set(d, 1.0f)), inner, outer);
  return hn::IfThenElse(hn::IsNaN(x), x, result);
}

#endif

// 1 / x for normal x from 1 on.
template <class D, class V>
HWY_INLINE V Reciprocal(D d, V x) {
#if HWY_TARGET == HWY_AVX3
  // Right to 14 bits, and then to 28.
  const V rough = hn::ApproximateReciprocal(x);
  return hn::Mul(rough, hn::NegMulAdd(x, rough, hn::Set(d, 2.0f)));
#else
  return hn::Div(hn::Set(d, 1.0f), x);
#endif
}

// 1 / (1 + exp(-x)). 0 below -87, where the result leaves the normal numbers.
template <class D, class V>
HWY_INLINE V Logistic(D d, V x) {
  const V one = hn::Set(d, 1.0f);
  const V most = hn::Set(d, 87.0f);
  // Beyond 87 the result is 1 to the last bit. NaN stays one.
  const V near = hn::IfThenElse(hn::Gt(x, most), most, x);
  const V origin = hn::Set(d, kRounding + 127);
  const V sum = hn::NegMulAdd(near, hn::Set(d, 1.44269504f), origin);
  const V n = hn::Sub(sum, origin);
  const V high = hn::MulAdd(n, hn::Set(d, 0x1.62e4p-1f), near);
  const V r = hn::Neg(hn::MulAdd(n, hn::Set(d, 0x1.7f7d1cp-20f), high));
  const hn::RebindToSigned<D> integer;
  const V scale = hn::BitCast(d, hn::ShiftLeft<23>(hn::BitCast(integer, sum)));
  const V result = Reciprocal(d, hn::MulAdd(ExpOfReduced(d, r), scale, one));
  return hn::IfThenZeroElse(hn::Lt(x, hn::Neg(most)), result);
}

// x / 2 * (1 + erf(x / sqrt(2))). Where the sum cancels, below -1, its error is that of the 1.
template <class D, class V>
HWY_INLINE V Gelu(D d, V x) {
  const V erf = Erf(d, hn::Mul(x, hn::Set(d, 0.70710678f)));
  return hn::Mul(hn::Mul(hn::Set(d, 0.5f), x), hn::Add(hn::Set(d, 1.0f), erf));
}

}  // namespace HWY_NAMESPACE
}  // namespace onnxifi::vector_math
HWY_AFTER_NAMESPACE();

#endif  // ONNXIFI_BACKENDS_CPU_VECTOR_MATH_VECTOR_MATH_INL_H_
