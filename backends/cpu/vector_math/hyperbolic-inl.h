// SPDX-License-Identifier: Apache-2.0
//
// Hyperbolic functions of float32 and their inverses, from the exponential function and the
// logarithm. Bounds on the error in units in the last place, as in vector_math-inl.h:
//
//   Sinh, Cosh   2      Asinh, Atanh   2.5      Acosh   3

#if defined(ONNXIFI_BACKENDS_CPU_VECTOR_MATH_HYPERBOLIC_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ONNXIFI_BACKENDS_CPU_VECTOR_MATH_HYPERBOLIC_INL_H_
#undef ONNXIFI_BACKENDS_CPU_VECTOR_MATH_HYPERBOLIC_INL_H_
#else
#define ONNXIFI_BACKENDS_CPU_VECTOR_MATH_HYPERBOLIC_INL_H_
#endif

#include <hwy/highway.h>

#include "backends/cpu/vector_math/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace onnxifi::vector_math {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// exp(x) / 2 for x >= 0, which is finite up to 89.4. NaN gives any number.
template <class D, class V>
HWY_INLINE V HalfOfExp(D d, V x) {
  V n;
  const V power = ExpOfRest(d, hn::Min(x, hn::Set(d, 90.0f)), n);
  // In two steps: 2^(n - 1) may be 2^129.
  const V top = hn::Min(n, hn::Set(d, 120.0f));
  const V rest = hn::Sub(hn::Sub(n, top), hn::Set(d, 1.0f));
  return hn::Mul(hn::Mul(power, PowerOfTwo(d, top)), PowerOfTwo(d, rest));
}

// (exp(x) - exp(-x)) / 2, near 0 a polynomial.
template <class D, class V>
HWY_INLINE V Sinh(D d, V x) {
  const V size = hn::Abs(x);
  const V power = HalfOfExp(d, size);
  const V large = hn::CopySign(hn::Sub(power, hn::Div(hn::Set(d, 0.25f), power)), x);
  const V squared = hn::Mul(x, x);
  const V tail =
      Polynomial(d, squared, 0.166666672f, 0.00833335053f, 0.000198360663f, 2.81743974e-06f);
  const V small = hn::MulAdd(hn::Mul(x, squared), tail, x);
  // NaN is the polynomial's, and so is what is not greater than 1.
  return hn::IfThenElse(hn::Gt(size, hn::Set(d, 1.0f)), large, small);
}

// (exp(x) + exp(-x)) / 2
template <class D, class V>
HWY_INLINE V Cosh(D d, V x) {
  const V power = HalfOfExp(d, hn::Abs(x));
  const V result = hn::Add(power, hn::Div(hn::Set(d, 0.25f), power));
  return hn::IfThenElse(hn::IsNaN(x), x, result);
}

// From here on the 1 under the roots is nothing beside the square.
inline constexpr float kFarFromOne = 0x1p26f;
inline constexpr float kLog2 = 0.693147182f;

// log(x + sqrt(x^2 + 1)) = log1p(x + x^2 / (1 + sqrt(x^2 + 1)))
template <class D, class V>
HWY_INLINE V Asinh(D d, V x) {
  const V one = hn::Set(d, 1.0f);
  const V size = hn::Abs(x);
  const auto is_far = hn::Gt(size, hn::Set(d, kFarFromOne));
  const V squared = hn::Mul(size, size);
  const V root = hn::Sqrt(hn::Add(squared, one));
  const V less = hn::Add(size, hn::Div(squared, hn::Add(root, one)));
  const V logarithm = Log1p(d, hn::IfThenElse(is_far, size, less));
  return hn::CopySign(hn::Add(logarithm, hn::IfThenElseZero(is_far, hn::Set(d, kLog2))), x);
}

// log(x + sqrt(x^2 - 1)), with t = x - 1: log1p(t + sqrt(t (t + 2)))
template <class D, class V>
HWY_INLINE V Acosh(D d, V x) {
  const V one = hn::Set(d, 1.0f);
  const auto is_far = hn::Gt(x, hn::Set(d, kFarFromOne));
  const V t = hn::Sub(x, one);
  const V less = hn::Add(t, hn::Sqrt(hn::Mul(t, hn::Add(x, one))));
  const V logarithm = Log1p(d, hn::IfThenElse(is_far, x, less));
  const V result = hn::Add(logarithm, hn::IfThenElseZero(is_far, hn::Set(d, kLog2)));
  return hn::IfThenElse(hn::Lt(x, one), hn::Set(d, kNan), result);
}

// log((1 + x) / (1 - x)) / 2 = log1p(2 x + 2 x^2 / (1 - x)) / 2
template <class D, class V>
HWY_INLINE V Atanh(D d, V x) {
  const V size = hn::Abs(x);
  const V twice = hn::Add(size, size);
  const V quotient = hn::Div(hn::Mul(twice, size), hn::Sub(hn::Set(d, 1.0f), size));
  const V result = hn::Mul(hn::Set(d, 0.5f), Log1p(d, hn::Add(twice, quotient)));
  // Beyond 1 the two terms cancel each other.
  const auto is_undefined = hn::Gt(size, hn::Set(d, 1.0f));
  return hn::IfThenElse(is_undefined, hn::Set(d, kNan), hn::CopySign(result, x));
}

}  // namespace HWY_NAMESPACE
}  // namespace onnxifi::vector_math
HWY_AFTER_NAMESPACE();

#endif  // ONNXIFI_BACKENDS_CPU_VECTOR_MATH_HYPERBOLIC_INL_H_
