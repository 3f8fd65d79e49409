// SPDX-License-Identifier: Apache-2.0
//
// Sort keys of vectors of elements. Included once per target of Highway.

#if defined(ONNXIFI_BACKENDS_CPU_RANKING_KEYS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ONNXIFI_BACKENDS_CPU_RANKING_KEYS_INL_H_
#undef ONNXIFI_BACKENDS_CPU_RANKING_KEYS_INL_H_
#else
#define ONNXIFI_BACKENDS_CPU_RANKING_KEYS_INL_H_
#endif

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace onnxifi::ranking {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// KeyMaker on vectors.
template <class D, class V>
HWY_INLINE V MakeKeysOfFloats(D d, V bits, V sign, V infinity) {
  const V magnitude = hn::AndNot(sign, bits);
  const auto is_negative = hn::Ne(hn::And(bits, sign), hn::Zero(d));
  const V key = hn::IfThenElse(is_negative, hn::Not(bits), hn::Or(bits, sign));
  const V number = hn::IfThenElse(hn::Eq(magnitude, hn::Zero(d)), sign, key);
  return hn::IfThenElse(hn::Gt(magnitude, infinity), hn::Not(hn::Zero(d)), number);
}

}  // namespace HWY_NAMESPACE
}  // namespace onnxifi::ranking
HWY_AFTER_NAMESPACE();

#endif  // ONNXIFI_BACKENDS_CPU_RANKING_KEYS_INL_H_
