// SPDX-License-Identifier: Apache-2.0
//
// Interleave: whole vectors of each plane by shuffles, the last pixels one by one.

#include "backends/cpu/engine/interleave.h"

#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/engine/interleave.cc"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace onnxifi::engine {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

template <typename T, int kPlanes>
void InterleavePlanes(const T* HWY_RESTRICT source, int64_t plane_step, int64_t count,
                      T* HWY_RESTRICT pixels) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t k = 0;
  for (; k + lanes <= count; k += lanes) {
    const auto first = hn::LoadU(d, source + k);
    const auto second = hn::LoadU(d, source + plane_step + k);
    if constexpr (kPlanes == 2) {
      hn::StoreInterleaved2(first, second, d, pixels + k * kPlanes);
    } else {
      const auto third = hn::LoadU(d, source + 2 * plane_step + k);
      hn::StoreInterleaved3(first, second, third, d, pixels + k * kPlanes);
    }
  }
  for (; k < count; ++k) {
    for (int p = 0; p < kPlanes; ++p) {
      std::memcpy(pixels + k * kPlanes + p, source + p * plane_step + k, sizeof(T));
    }
  }
}

template <typename T>
void InterleaveOf(const std::byte* source, int64_t plane_step, int64_t planes, int64_t count,
                  std::byte* pixels) {
  const auto* const from = reinterpret_cast<const T*>(source);
  auto* const to = reinterpret_cast<T*>(pixels);
  planes == 2 ? InterleavePlanes<T, 2>(from, plane_step, count, to)
              : InterleavePlanes<T, 3>(from, plane_step, count, to);
}

void InterleaveTyped(const std::byte* source, int64_t plane_step, int64_t planes, int64_t count,
                     std::byte* pixels, int64_t element_bytes) {
  switch (element_bytes) {
    case 1:
      return InterleaveOf<uint8_t>(source, plane_step, planes, count, pixels);
    case 2:
      return InterleaveOf<uint16_t>(source, plane_step, planes, count, pixels);
    case 4:
      return InterleaveOf<uint32_t>(source, plane_step, planes, count, pixels);
    case 8:
      return InterleaveOf<uint64_t>(source, plane_step, planes, count, pixels);
    default:
      return;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace onnxifi::engine
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace onnxifi::engine {

HWY_EXPORT(InterleaveTyped);

void Interleave(const std::byte* source, int64_t plane_step, int64_t planes, int64_t count,
                std::byte* pixels, int64_t element_bytes) {
  HWY_DYNAMIC_DISPATCH(InterleaveTyped)(source, plane_step, planes, count, pixels, element_bytes);
}

}  // namespace onnxifi::engine
#endif
