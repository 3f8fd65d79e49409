// SPDX-License-Identifier: Apache-2.0
//
// Gather, Scatter: the processor's own gathers for elements of 4 and 8 bytes, plain loops for
// narrower ones and for stores, of which it does one at a time anyhow.

#include "backends/cpu/engine/gather.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/engine/gather.cc"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace onnxifi::engine {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

template <typename T>
void GatherPlain(const T* HWY_RESTRICT source, const int32_t* HWY_RESTRICT positions, int64_t count,
                 T* HWY_RESTRICT target) {
  for (int64_t k = 0; k < count; ++k) target[k] = source[positions[k]];
}

template <typename T>
void GatherVectors(const T* HWY_RESTRICT source, const int32_t* HWY_RESTRICT positions,
                   int64_t count, T* HWY_RESTRICT target) {
  const hn::ScalableTag<T> d;
  const hn::RebindToSigned<decltype(d)> d_index;
  const hn::Rebind<int32_t, decltype(d)> d_position;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t k = 0;
  for (; k + lanes <= count; k += lanes) {
    const auto at = hn::LoadU(d_position, positions + k);
    if constexpr (sizeof(T) == 8) {
      hn::StoreU(hn::GatherIndex(d, source, hn::PromoteTo(d_index, at)), d, target + k);
    } else {
      hn::StoreU(hn::GatherIndex(d, source, at), d, target + k);
    }
  }
  GatherPlain(source, positions + k, count - k, target + k);
}

void GatherTyped(const std::byte* source, const int32_t* positions, int64_t count,
                 std::byte* target, int64_t element_bytes) {
  switch (element_bytes) {
    case 1:
      return GatherPlain(reinterpret_cast<const uint8_t*>(source), positions, count,
                         reinterpret_cast<uint8_t*>(target));
    case 2:
      return GatherPlain(reinterpret_cast<const uint16_t*>(source), positions, count,
                         reinterpret_cast<uint16_t*>(target));
    case 4:
      return GatherVectors(reinterpret_cast<const uint32_t*>(source), positions, count,
                           reinterpret_cast<uint32_t*>(target));
    case 8:
      return GatherVectors(reinterpret_cast<const uint64_t*>(source), positions, count,
                           reinterpret_cast<uint64_t*>(target));
    default:
      return;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace onnxifi::engine
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace onnxifi::engine {
namespace {

template <typename T>
void ScatterTyped(const std::byte* source, const int32_t* positions, int64_t count,
                  std::byte* target) {
  const T* from = reinterpret_cast<const T*>(source);
  T* to = reinterpret_cast<T*>(target);
  for (int64_t k = 0; k < count; ++k) to[positions[k]] = from[k];
}

}  // namespace

HWY_EXPORT(GatherTyped);

void Gather(const std::byte* source, const int32_t* positions, int64_t count, std::byte* target,
            int64_t element_bytes) {
  HWY_DYNAMIC_DISPATCH(GatherTyped)(source, positions, count, target, element_bytes);
}

void Scatter(const std::byte* source, const int32_t* positions, int64_t count, std::byte* target,
             int64_t element_bytes) {
  switch (element_bytes) {
    case 1:
      return ScatterTyped<uint8_t>(source, positions, count, target);
    case 2:
      return ScatterTyped<uint16_t>(source, positions, count, target);
    case 4:
      return ScatterTyped<uint32_t>(source, positions, count, target);
    case 8:
      return ScatterTyped<uint64_t>(source, positions, count, target);
    default:
      return;
  }
}

}  // namespace onnxifi::engine
#endif
