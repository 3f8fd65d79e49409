// SPDX-License-Identifier: Apache-2.0
//
// Lanes: a bit per element, a vector at a time.

#include "backends/cpu/non_zero/lanes.h"

#include <bit>
#include <cstring>

#include "backends/cpu/engine/lane_types.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/non_zero/lanes.cc"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace onnxifi::non_zero {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Calls take(mask, k) for vectors of elements from number k on. Lanes beyond the last element are
// zero.
template <typename T, typename Take>
HWY_INLINE void ForMasks(const Lanes& lanes, const Take& take) {
  const hn::ScalableTag<T> d;
  const auto width = static_cast<int64_t>(hn::Lanes(d));
  const auto deciding = hn::Set(d, static_cast<T>(lanes.deciding_bits));
  const T* elements = reinterpret_cast<const T*>(lanes.elements);
  int64_t k = 0;
  for (; k + width <= lanes.count; k += width) {
    take(hn::Ne(hn::And(hn::LoadU(d, elements + k), deciding), hn::Zero(d)), k);
  }
  const int64_t rest = lanes.count - k;
  if (rest <= 0) return;
  HWY_ALIGN T last[HWY_MAX_BYTES / sizeof(T)] = {};
  std::memcpy(last, elements + k, static_cast<size_t>(rest) * sizeof(T));
  take(hn::Ne(hn::And(hn::Load(d, last), deciding), hn::Zero(d)), k);
}

template <typename T>
int64_t Count(const Lanes& lanes) {
  int64_t count = 0;
  ForMasks<T>(lanes, [&](auto mask, int64_t /*k*/) HWY_ATTR {
    count += static_cast<int64_t>(hn::CountTrue(hn::ScalableTag<T>(), mask));
  });
  return count;
}

template <typename T>
int64_t Find(const Lanes& lanes, int64_t first, int64_t* positions) {
  const int64_t* begin = positions;
  ForMasks<T>(lanes, [&](auto mask, int64_t k) HWY_ATTR {
    const hn::ScalableTag<T> d;
    constexpr size_t kWords = (hn::MaxLanes(d) + 63) / 64;
    uint64_t words[kWords] = {};
    hn::StoreMaskBits(d, mask, reinterpret_cast<uint8_t*>(words));
    for (size_t word = 0; word < kWords; ++word) {
      const int64_t position = first + k + 64 * static_cast<int64_t>(word);
      for (uint64_t bits = words[word]; bits != 0; bits &= bits - 1) {
        *positions++ = position + std::countr_zero(bits);
      }
    }
  });
  return positions - begin;
}

int64_t CountHere(const Lanes& lanes) {
  int64_t count = 0;
  engine::WithLaneType(lanes.lane_bytes,
                       [&](auto lane_type) { count = Count<decltype(lane_type)>(lanes); });
  return count;
}

int64_t FindHere(const Lanes& lanes, int64_t first, int64_t* positions) {
  int64_t count = 0;
  engine::WithLaneType(lanes.lane_bytes, [&](auto lane_type) {
    count = Find<decltype(lane_type)>(lanes, first, positions);
  });
  return count;
}

}  // namespace HWY_NAMESPACE
}  // namespace onnxifi::non_zero
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace onnxifi::non_zero {

HWY_EXPORT(CountHere);
HWY_EXPORT(FindHere);

std::optional<uint64_t> FindDecidingBits(tensor::ElementType type) {
  using enum tensor::ElementType;
  switch (type) {
    // Both zeros are zero.
    case kFloat16:
    case kBfloat16:
    case kFloat32:
    case kFloat64:
    case kFloat8E4M3Fn:
    case kFloat8E5M2:
      return ~uint64_t{0} >> (65 - tensor::BitWidth(type));
    // There is one zero; the bits of the other are NaN.
    case kFloat8E4M3Fnuz:
    case kFloat8E5M2Fnuz:
    case kBool:
      return 0xFF;
    default:
      break;
  }
  const int bits = tensor::BitWidth(type);
  if (!tensor::IsInteger(type) || bits < 8) return std::nullopt;
  return ~uint64_t{0} >> (64 - bits);
}

int64_t CountNonZero(const Lanes& lanes) { return HWY_DYNAMIC_DISPATCH(CountHere)(lanes); }

int64_t FindNonZero(const Lanes& lanes, int64_t first, int64_t* positions) {
  return HWY_DYNAMIC_DISPATCH(FindHere)(lanes, first, positions);
}

}  // namespace onnxifi::non_zero
#endif
