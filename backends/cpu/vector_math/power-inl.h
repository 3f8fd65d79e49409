// SPDX-License-Identifier: Apache-2.0
//
// Power of float32 numbers, computed in float64 so that a large exponent leaves the error of the
// logarithm below float32's last bit. Bound: 0.51 units in the last place; special values are those
// of std::pow.

#if defined(ONNXIFI_BACKENDS_CPU_VECTOR_MATH_POWER_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ONNXIFI_BACKENDS_CPU_VECTOR_MATH_POWER_INL_H_
#undef ONNXIFI_BACKENDS_CPU_VECTOR_MATH_POWER_INL_H_
#else
#define ONNXIFI_BACKENDS_CPU_VECTOR_MATH_POWER_INL_H_
#endif

#include <hwy/highway.h>

#include "backends/cpu/vector_math/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace onnxifi::vector_math {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// (m * 2^e)^y for m in [sqrt(1/2), sqrt(2)], in float64. With s = (m - 1) / (m + 1),
// log2(m) = 2 atanh(s) / log(2); its polynomial is right to 2^-37, that of 2^r to 2^-34 (both
// fitted). Exponents beyond float32's are bounded where the result is 0 or infinite.
template <class D, class V>
HWY_INLINE V PowOfSplit64(D d, V m, V e, V y) {
  const hn::RebindToSigned<D> integer;
  const V one = hn::Set(d, 1.0);
  const V s = hn::Div(hn::Sub(m, one), hn::Add(m, one));
  const V series = Polynomial64(d, hn::Mul(s, s), 2.8853900817901428, 0.96179667327629181,
                                0.57708359606218695, 0.41167211731389258, 0.340740302679652);
  const V product = hn::Mul(y, hn::MulAdd(s, series, e));
  const V exponent = hn::Max(hn::Min(product, hn::Set(d, 140.0)), hn::Set(d, -160.0));
  // The sum's lowest bits are the nearest integer, in two's complement.
  const V origin = hn::Set(d, 0x1.8p52);
  const V sum = hn::Add(exponent, origin);
  const V r = hn::Sub(exponent, hn::Sub(sum, origin));
  const V power = Polynomial64(d, r, 0.99999999996168243, 0.69314718072845172, 0.24022651198157324,
                               0.055504103534397352, 0.009618027253710814, 0.0013333922568601192,
                               0.0001546929113269372, 1.5201920646190636e-05);
  return hn::BitCast(
      d, hn::Add(hn::BitCast(integer, power), hn::ShiftLeft<52>(hn::BitCast(integer, sum))));
}

template <class D, class V>
HWY_INLINE V Pow(D d, V x, V y) {
  const V zero = hn::Zero(d);
  const V size = hn::Abs(x);
  const V infinity = hn::Set(d, kInfinity);
  V e;
  const V m = SplitExponent(d, size, e);
  // Logarithms of 0 and infinity that with any exponent but 0 are as good as infinite.
  const auto is_zero = hn::Eq(size, zero);
  const auto is_extreme = hn::Or(is_zero, hn::Eq(size, infinity));
  const V far = hn::Set(d, 1e30f);
  e = hn::IfThenElse(is_extreme, hn::IfThenElse(is_zero, hn::Neg(far), far), e);
  const V scaled = hn::IfThenElse(is_extreme, hn::Mul(y, hn::Set(d, 0x1p100f)), y);
  const V most = hn::Set(d, 1e20f);
  const V near = hn::Max(hn::Min(scaled, most), hn::Neg(most));

  const HalfOf<D> half;
  const hn::Rebind<double, decltype(half)> wide;
  const auto power_of_half = [&](auto m_half, auto e_half, auto y_half) HWY_ATTR {
    return hn::DemoteTo(half,
                        PowOfSplit64(wide, hn::PromoteTo(wide, m_half), hn::PromoteTo(wide, e_half),
                                     hn::PromoteTo(wide, y_half)));
  };
  const V power = Join(d, power_of_half(UpperOf(half, m), UpperOf(half, e), UpperOf(half, near)),
                       power_of_half(LowerOf(half, m), LowerOf(half, e), LowerOf(half, near)));

  // A negative base: the sign of an odd power; none of a finite one between whole numbers.
  const V halved = hn::Mul(y, hn::Set(d, 0.5f));
  const auto is_whole = hn::Eq(hn::Floor(y), y);
  const auto is_odd = hn::And(is_whole, hn::Ne(hn::Floor(halved), halved));
  const auto is_undefined = hn::AndNot(is_whole, hn::And(hn::Lt(x, zero), hn::Lt(size, infinity)));
  V result = hn::IfThenElse(is_odd, hn::CopySign(power, x), power);
  result = hn::IfThenElse(is_undefined, hn::Set(d, kNan), result);
  // NaN gives NaN but for x^0 and 1^y.
  const auto stays = hn::Or(hn::Eq(y, zero), hn::Eq(x, hn::Set(d, 1.0f)));
  const V sum = hn::Add(x, y);
  return hn::IfThenElse(hn::AndNot(stays, hn::Or(hn::IsNaN(x), hn::IsNaN(y))), sum, result);
}

}  // namespace HWY_NAMESPACE
}  // namespace onnxifi::vector_math
HWY_AFTER_NAMESPACE();

#endif  // ONNXIFI_BACKENDS_CPU_VECTOR_MATH_POWER_INL_H_
