// SPDX-License-Identifier: Apache-2.0
//
// Gather, Scatter: the processor's own gathers for elements of 4 and 8 bytes, plain loops for
// narrower ones and for stores, of which it does one at a time anyhow. NearGather's permutations
// take masked vectors of at least 8 lanes.

#include "backends/cpu/engine/gather.h"

#include <algorithm>

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

#if HWY_TARGET <= HWY_AVX2
// How many windows there are; 0 where there are none.
int64_t FindWindows(const int32_t* positions, int64_t count, NearGather::Window* windows,
                    int32_t* offsets) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(hn::ScalableTag<int32_t>()));
  if (count < lanes) return 0;
  int64_t found = 0;
  for (int64_t begin = 0; begin < count; begin += lanes, ++found) {
    // The last window overlaps the one before.
    const int64_t target = std::min(begin, count - lanes);
    const int32_t* const part = positions + target;
    const auto [lowest, highest] = std::minmax_element(part, part + lanes);
    if (*highest - *lowest >= 2 * lanes) return 0;
    windows[found] = {*lowest, *highest - *lowest + 1, static_cast<int32_t>(target)};
    for (int64_t k = 0; k < lanes; ++k) offsets[found * lanes + k] = part[k] - *lowest;
  }
  return found;
}

void LoadWindows(const NearGather::Window* windows, int64_t window_count, const int32_t* offsets,
                 const std::byte* source, std::byte* target) {
  const hn::ScalableTag<int32_t> d;
  const auto lanes = static_cast<int32_t>(hn::Lanes(d));
  const auto* const from = reinterpret_cast<const int32_t*>(source);
  auto* const to = reinterpret_cast<int32_t*>(target);
  for (int64_t w = 0; w < window_count; ++w) {
    const NearGather::Window& window = windows[w];
    const int32_t* const first = from + window.first;
    const auto offset = hn::LoadU(d, offsets + w * lanes);
    if (window.length <= lanes) {
      const auto mask = hn::FirstN(d, static_cast<size_t>(window.length));
      const auto held = hn::MaskedLoad(mask, d, first);
      const auto at = hn::IndicesFromVec(d, offset);
      hn::StoreU(hn::TableLookupLanes(held, at), d, to + window.target);
      continue;
    }
    const auto mask = hn::FirstN(d, static_cast<size_t>(window.length - lanes));
    const auto low = hn::LoadU(d, first);
    const auto high = hn::MaskedLoad(mask, d, first + lanes);
    const auto is_low = hn::Lt(offset, hn::Set(d, lanes));
    const auto at = hn::IndicesFromVec(d, hn::And(offset, hn::Set(d, lanes - 1)));
    hn::StoreU(
        hn::IfThenElse(is_low, hn::TableLookupLanes(low, at), hn::TableLookupLanes(high, at)), d,
        to + window.target);
  }
}
#else
int64_t FindWindows(const int32_t* /*positions*/, int64_t /*count*/,
                    NearGather::Window* /*windows*/, int32_t* /*offsets*/) {
  return 0;
}
void LoadWindows(const NearGather::Window* /*windows*/, int64_t /*window_count*/,
                 const int32_t* /*offsets*/, const std::byte* /*source*/, std::byte* /*target*/) {}
#endif

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
HWY_EXPORT(FindWindows);
HWY_EXPORT(LoadWindows);

void Gather(const std::byte* source, const int32_t* positions, int64_t count, std::byte* target,
            int64_t element_bytes) {
  HWY_DYNAMIC_DISPATCH(GatherTyped)(source, positions, count, target, element_bytes);
}

bool NearGather::Find(const int32_t* positions, int64_t count, int64_t element_bytes) {
  window_count_ =
      element_bytes == sizeof(int32_t)
          ? HWY_DYNAMIC_DISPATCH(FindWindows)(positions, count, windows_.data(), offsets_.data())
          : 0;
  return window_count_ > 0;
}

void NearGather::Run(const std::byte* source, std::byte* target) const {
  HWY_DYNAMIC_DISPATCH(LoadWindows)
  (windows_.data(), window_count_, offsets_.data(), source, target);
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
