// SPDX-License-Identifier: Apache-2.0
//
// Lane types: the loops over runs that are long enough for vectors.

#include "backends/cpu/engine/lane_types.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/engine/lane_types.cc"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace onnxifi::engine {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// The last vector overlaps the one before.
template <typename T>
void FillTyped(const std::byte* element, int64_t count, std::byte* lanes) {
  const hn::ScalableTag<T> d;
  const auto whole = static_cast<int64_t>(hn::Lanes(d));
  T value;
  std::memcpy(&value, element, sizeof(value));
  auto* const to = reinterpret_cast<T*>(lanes);
  if (count < whole) {
    for (int64_t lane = 0; lane < count; ++lane) to[lane] = value;
    return;
  }
  const auto filled = hn::Set(d, value);
  for (int64_t lane = 0; lane + whole <= count; lane += whole) hn::StoreU(filled, d, to + lane);
  hn::StoreU(filled, d, to + count - whole);
}

void Fill(const std::byte* element, int64_t lane_bytes, int64_t count, std::byte* lanes) {
  WithLaneType(lane_bytes,
               [&](auto lane_type) { FillTyped<decltype(lane_type)>(element, count, lanes); });
}

// What is made twice stays 0 or 1.
void MakeBools(uint8_t* lanes, int64_t count) {
  const hn::ScalableTag<uint8_t> d;
  const auto whole = static_cast<int64_t>(hn::Lanes(d));
  const auto one = hn::Set(d, uint8_t{1});
  const auto make = [&](int64_t lane) HWY_ATTR {
    hn::StoreU(hn::Min(hn::LoadU(d, lanes + lane), one), d, lanes + lane);
  };
  if (count < whole) {
    for (int64_t lane = 0; lane < count; ++lane) lanes[lane] = lanes[lane] != 0 ? 1 : 0;
    return;
  }
  for (int64_t lane = 0; lane + whole <= count; lane += whole) make(lane);
  make(count - whole);
}

}  // namespace HWY_NAMESPACE
}  // namespace onnxifi::engine
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace onnxifi::engine {

HWY_EXPORT(Fill);
HWY_EXPORT(MakeBools);

void FillLong(const std::byte* element, int64_t lane_bytes, int64_t count, std::byte* lanes) {
  HWY_DYNAMIC_DISPATCH(Fill)(element, lane_bytes, count, lanes);
}

void MakeBool(uint8_t* lanes, int64_t count) { HWY_DYNAMIC_DISPATCH(MakeBools)(lanes, count); }

}  // namespace onnxifi::engine
#endif
