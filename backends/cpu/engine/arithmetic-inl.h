// SPDX-License-Identifier: Apache-2.0
//
// Arithmetic on one vector or two, for loops of one operation and for fused operations. Included
// once per target of Highway.

#if defined(ONNXIFI_BACKENDS_CPU_ENGINE_ARITHMETIC_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ONNXIFI_BACKENDS_CPU_ENGINE_ARITHMETIC_INL_H_
#undef ONNXIFI_BACKENDS_CPU_ENGINE_ARITHMETIC_INL_H_
#else
#define ONNXIFI_BACKENDS_CPU_ENGINE_ARITHMETIC_INL_H_
#endif

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace onnxifi::engine {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

#define ONNXIFI_UNARY(name, expression)       \
  struct name {                               \
    template <class D, class V>               \
    HWY_INLINE V operator()(D d, V a) const { \
      (void)d;                                \
      return expression;                      \
    }                                         \
  }

ONNXIFI_UNARY(Negate, hn::Neg(a));
ONNXIFI_UNARY(Absolute, hn::Abs(a));
// Zeros and NaN are their own sign.
ONNXIFI_UNARY(Sign, hn::IfThenElse(hn::Lt(hn::Zero(d), a), hn::Set(d, 1),
                                   hn::IfThenElse(hn::Lt(a, hn::Zero(d)), hn::Set(d, -1), a)));
ONNXIFI_UNARY(Floor, hn::Floor(a));
ONNXIFI_UNARY(Ceil, hn::Ceil(a));
ONNXIFI_UNARY(Round, hn::Round(a));
ONNXIFI_UNARY(Truncate, hn::Trunc(a));
ONNXIFI_UNARY(Root, hn::Sqrt(a));
ONNXIFI_UNARY(Complement, hn::Not(a));
ONNXIFI_UNARY(Negation, hn::Xor(a, hn::Set(d, 1)));

#undef ONNXIFI_UNARY

#define ONNXIFI_BINARY(name, expression)           \
  struct name {                                    \
    template <class D, class V>                    \
    HWY_INLINE V operator()(D d, V a, V b) const { \
      (void)d;                                     \
      return expression;                           \
    }                                              \
  }

ONNXIFI_BINARY(Sum, hn::Add(a, b));
ONNXIFI_BINARY(Difference, hn::Sub(a, b));
ONNXIFI_BINARY(Product, hn::Mul(a, b));
ONNXIFI_BINARY(Quotient, hn::Div(a, b));
ONNXIFI_BINARY(Minimum, hn::Min(a, b));
ONNXIFI_BINARY(Maximum, hn::Max(a, b));
// NaN if either is, and the second of two zeros. An x86 processor's own give the second of any two
// of which neither is less; those of other targets, plain code among them, do not.
#undef ONNXIFI_EXTREMA_GIVE_SECOND
#if HWY_ARCH_X86 && HWY_TARGET != HWY_EMU128 && HWY_TARGET != HWY_SCALAR
#define ONNXIFI_EXTREMA_GIVE_SECOND 1
#else
#define ONNXIFI_EXTREMA_GIVE_SECOND 0
#endif
#if ONNXIFI_EXTREMA_GIVE_SECOND
ONNXIFI_BINARY(FloatMinimum, hn::IfThenElse(hn::IsNaN(a), a, hn::Min(a, b)));
ONNXIFI_BINARY(FloatMaximum, hn::IfThenElse(hn::IsNaN(a), a, hn::Max(a, b)));
#else
ONNXIFI_BINARY(FloatMinimum, hn::IfThenElse(hn::Or(hn::Lt(a, b), hn::IsNaN(a)), a, b));
ONNXIFI_BINARY(FloatMaximum, hn::IfThenElse(hn::Or(hn::Lt(b, a), hn::IsNaN(a)), a, b));
#endif
ONNXIFI_BINARY(Conjunction, hn::And(a, b));
ONNXIFI_BINARY(Disjunction, hn::Or(a, b));
ONNXIFI_BINARY(Exclusion, hn::Xor(a, b));

#undef ONNXIFI_BINARY

// std::fmod of vectors of float64 that hold float32 numbers whose quotient is less than 2^29, for
// which every step is exact but the quotient, which may be rounded up to the next integer.
template <class D, class V>
HWY_INLINE V Remainder64(D d, V a, V b) {
  const V dividend = hn::Abs(a);
  const V divisor = hn::Abs(b);
  const V count = hn::Floor(hn::Div(dividend, divisor));
  const V rest = hn::NegMulAdd(count, divisor, dividend);
  return hn::CopySign(hn::IfThenElse(hn::Lt(rest, hn::Zero(d)), hn::Add(rest, divisor), rest), a);
}

}  // namespace HWY_NAMESPACE
}  // namespace onnxifi::engine
HWY_AFTER_NAMESPACE();

#endif  // ONNXIFI_BACKENDS_CPU_ENGINE_ARITHMETIC_INL_H_
