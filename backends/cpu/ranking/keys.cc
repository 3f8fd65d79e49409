// SPDX-License-Identifier: Apache-2.0
//
// Keys: comparisons of vectors.

#include "backends/cpu/ranking/keys.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/ranking/keys.cc"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include <hwy/highway.h>

#include "backends/cpu/ranking/keys-inl.h"

HWY_BEFORE_NAMESPACE();
namespace onnxifi::ranking {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

template <typename Bits>
void Make(const KeyMaker<Bits>& make, bool is_largest, const Bits* elements, int64_t count,
          Bits* keys) {
  const hn::ScalableTag<Bits> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto flip = static_cast<Bits>(is_largest ? ~Bits{0} : Bits{0});
  const auto sign = hn::Set(d, make.sign);
  const auto infinity = hn::Set(d, make.infinity);
  const auto flipped = hn::Set(d, flip);
  int64_t k = 0;
  if (make.is_float) {
    for (; k + lanes <= count; k += lanes) {
      const auto key = MakeKeysOfFloats(d, hn::LoadU(d, elements + k), sign, infinity);
      hn::StoreU(hn::Xor(key, flipped), d, keys + k);
    }
  } else {
    const auto changed = hn::Xor(sign, flipped);
    for (; k + lanes <= count; k += lanes) {
      hn::StoreU(hn::Xor(hn::LoadU(d, elements + k), changed), d, keys + k);
    }
  }
  for (; k < count; ++k) keys[k] = static_cast<Bits>(make(elements[k]) ^ flip);
}

template <typename Bits>
int64_t Find(const Bits* keys, int64_t begin, int64_t end, Bits bound) {
  const hn::ScalableTag<Bits> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto bounds = hn::Set(d, bound);
  int64_t k = begin;
  for (; k + lanes <= end; k += lanes) {
    const int64_t first = hn::FindFirstTrue(d, hn::Lt(hn::LoadU(d, keys + k), bounds));
    if (first >= 0) return k + first;
  }
  for (; k < end; ++k) {
    if (keys[k] < bound) return k;
  }
  return end;
}

// One name per type: a table of targets has one signature.
#define ONNXIFI_KEYS(bits)                                                               \
  void Make##bits(const KeyMaker<uint##bits##_t>& make, bool is_largest,                 \
                  const uint##bits##_t* elements, int64_t count, uint##bits##_t* keys) { \
    Make(make, is_largest, elements, count, keys);                                       \
  }                                                                                      \
  int64_t Find##bits(const uint##bits##_t* keys, int64_t begin, int64_t end,             \
                     uint##bits##_t bound) {                                             \
    return Find(keys, begin, end, bound);                                                \
  }
ONNXIFI_KEYS(8)
ONNXIFI_KEYS(16)
ONNXIFI_KEYS(32)
ONNXIFI_KEYS(64)
#undef ONNXIFI_KEYS

}  // namespace HWY_NAMESPACE
}  // namespace onnxifi::ranking
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace onnxifi::ranking {

#define ONNXIFI_KEYS(bits)                                                             \
  HWY_EXPORT(Make##bits);                                                              \
  HWY_EXPORT(Find##bits);                                                              \
  template <>                                                                          \
  void MakeKeys(const KeyMaker<uint##bits##_t>& make, bool is_largest,                 \
                const uint##bits##_t* elements, int64_t count, uint##bits##_t* keys) { \
    HWY_DYNAMIC_DISPATCH(Make##bits)(make, is_largest, elements, count, keys);         \
  }                                                                                    \
  template <>                                                                          \
  int64_t FindBelow(const uint##bits##_t* keys, int64_t begin, int64_t end,            \
                    uint##bits##_t bound) {                                            \
    return HWY_DYNAMIC_DISPATCH(Find##bits)(keys, begin, end, bound);                  \
  }
ONNXIFI_KEYS(8)
ONNXIFI_KEYS(16)
ONNXIFI_KEYS(32)
ONNXIFI_KEYS(64)
#undef ONNXIFI_KEYS

}  // namespace onnxifi::ranking
#endif
