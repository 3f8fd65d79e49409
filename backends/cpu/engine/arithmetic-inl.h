// SPDX-License-Identifier: Apache-2.0
//
// Arithmetic on two vectors, for loops of one operation and for chains. Included once per target of
// Highway.

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
// NaN if either is.
ONNXIFI_BINARY(FloatMinimum, hn::IfThenElse(hn::Or(hn::Lt(a, b), hn::IsNaN(a)), a, b));
ONNXIFI_BINARY(FloatMaximum, hn::IfThenElse(hn::Or(hn::Lt(b, a), hn::IsNaN(a)), a, b));
ONNXIFI_BINARY(Conjunction, hn::And(a, b));
ONNXIFI_BINARY(Disjunction, hn::Or(a, b));
ONNXIFI_BINARY(Exclusion, hn::Xor(a, b));

#undef ONNXIFI_BINARY

}  // namespace HWY_NAMESPACE
}  // namespace onnxifi::engine
HWY_AFTER_NAMESPACE();

#endif  // ONNXIFI_BACKENDS_CPU_ENGINE_ARITHMETIC_INL_H_
