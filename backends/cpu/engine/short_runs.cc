// SPDX-License-Identifier: Apache-2.0
//
// LoadShortRuns: what a whole vector writes behind a run, the next runs overwrite; the last ones
// are stored with a mask.

#include "backends/cpu/engine/short_runs.h"

#include <algorithm>
#include <cstring>

#include "backends/cpu/engine/lane_types.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/engine/short_runs.cc"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include <hwy/highway.h>

#include "backends/cpu/engine/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace onnxifi::engine {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

int64_t Longest(int64_t element_bytes) {
  constexpr int64_t kVectors = 4;
  int64_t longest = 0;
  WithLaneType(element_bytes, [&](auto lane_type) {
    using T = decltype(lane_type);
    const auto lanes = static_cast<int64_t>(hn::Lanes(hn::ScalableTag<T>()));
    if (kHasMaskedMemory<T>) longest = kVectors * lanes;
  });
  return longest;
}

// Runs that a vector holds.
template <typename T>
void LoadVectors(const T* from, int64_t run_step, int64_t step, int64_t runs, int64_t length,
                 T* to) {
  const hn::ScalableTag<T> d;
  const auto whole = static_cast<int64_t>(hn::Lanes(d));
  const auto first = hn::FirstN(d, static_cast<size_t>(length));
  const auto load = [&]() HWY_ATTR {
    if (step == 1) return hn::MaskedLoad(first, d, from);
    T element;
    std::memcpy(&element, from, sizeof(element));
    return hn::Set(d, element);
  };
  // Runs behind which are so many lanes that a whole vector stays within them.
  const int64_t covered = std::max<int64_t>(0, runs - (whole + length - 1) / length + 1);
  int64_t run = 0;
  for (; run < covered; ++run, from += run_step, to += length) hn::StoreU(load(), d, to);
  for (; run < runs; ++run, from += run_step, to += length) {
    hn::BlendedStore(load(), first, d, to);
  }
}

// Longer runs, whose last vector overlaps the one before.
template <typename T>
void LoadLongerRuns(const T* from, int64_t run_step, int64_t step, int64_t runs, int64_t length,
                    T* to) {
  const hn::ScalableTag<T> d;
  const auto whole = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t run = 0; run < runs; ++run, from += run_step, to += length) {
    T element;
    std::memcpy(&element, from, sizeof(element));
    const auto repeated = hn::Set(d, element);
    const auto move = [&](int64_t at) HWY_ATTR {
      hn::StoreU(step == 0 ? repeated : hn::LoadU(d, from + at), d, to + at);
    };
    for (int64_t at = 0; at + whole <= length; at += whole) move(at);
    move(length - whole);
  }
}

template <typename T>
void LoadRuns(const std::byte* source, int64_t run_step, int64_t step, int64_t runs, int64_t length,
              std::byte* lanes) {
  const auto* const from = reinterpret_cast<const T*>(source);
  auto* const to = reinterpret_cast<T*>(lanes);
  const bool is_longer = length > static_cast<int64_t>(hn::Lanes(hn::ScalableTag<T>()));
  (is_longer ? LoadLongerRuns<T> : LoadVectors<T>)(from, run_step, step, runs, length, to);
}

void LoadRunsTyped(const std::byte* source, int64_t run_step, int64_t step, int64_t runs,
                   int64_t length, std::byte* lanes, int64_t element_bytes) {
  WithLaneType(element_bytes, [&](auto lane_type) {
    using T = decltype(lane_type);
    if constexpr (kHasMaskedMemory<T>) {
      LoadRuns<T>(source, run_step, step, runs, length, lanes);
    }
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace onnxifi::engine
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace onnxifi::engine {

HWY_EXPORT(Longest);
HWY_EXPORT(LoadRunsTyped);

int64_t LongestShortRun(int64_t element_bytes) {
  return HWY_DYNAMIC_DISPATCH(Longest)(element_bytes);
}

void LoadShortRuns(const std::byte* source, int64_t run_step, int64_t step, int64_t runs,
                   int64_t length, std::byte* lanes, int64_t element_bytes) {
  HWY_DYNAMIC_DISPATCH(LoadRunsTyped)(source, run_step, step, runs, length, lanes, element_bytes);
}

}  // namespace onnxifi::engine
#endif
