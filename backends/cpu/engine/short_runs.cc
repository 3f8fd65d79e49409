// SPDX-License-Identifier: Apache-2.0
//
// LoadShortRuns: what a whole vector writes behind a run, the next runs overwrite; the last ones
// are stored with a mask.

#include "backends/cpu/engine/short_runs.h"

#include <algorithm>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/engine/short_runs.cc"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace onnxifi::engine {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

#undef ONNXIFI_SHORT_RUNS_HAVE_MASKS
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2
#define ONNXIFI_SHORT_RUNS_HAVE_MASKS 1
#else
#define ONNXIFI_SHORT_RUNS_HAVE_MASKS 0
#endif

int64_t Longest(int64_t element_bytes) {
#if ONNXIFI_SHORT_RUNS_HAVE_MASKS
  if (element_bytes == 4) return static_cast<int64_t>(hn::Lanes(hn::ScalableTag<uint32_t>()));
  if (element_bytes == 8) return static_cast<int64_t>(hn::Lanes(hn::ScalableTag<uint64_t>()));
#endif
  (void)element_bytes;
  return 0;
}

#if ONNXIFI_SHORT_RUNS_HAVE_MASKS

template <typename T>
void LoadRuns(const std::byte* source, int64_t run_step, int64_t step, int64_t runs, int64_t length,
              std::byte* lanes) {
  const hn::ScalableTag<T> d;
  const auto whole = static_cast<int64_t>(hn::Lanes(d));
  const auto first = hn::FirstN(d, static_cast<size_t>(length));
  const auto* from = reinterpret_cast<const T*>(source);
  auto* to = reinterpret_cast<T*>(lanes);
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

#endif

void LoadRunsTyped([[maybe_unused]] const std::byte* source, [[maybe_unused]] int64_t run_step,
                   [[maybe_unused]] int64_t step, [[maybe_unused]] int64_t runs,
                   [[maybe_unused]] int64_t length, [[maybe_unused]] std::byte* lanes,
                   [[maybe_unused]] int64_t element_bytes) {
#if ONNXIFI_SHORT_RUNS_HAVE_MASKS
  if (element_bytes == 4) LoadRuns<uint32_t>(source, run_step, step, runs, length, lanes);
  if (element_bytes == 8) LoadRuns<uint64_t>(source, run_step, step, runs, length, lanes);
#endif
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
