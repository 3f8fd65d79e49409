// SPDX-License-Identifier: Apache-2.0
//
// Lane types: elements of memory as lanes of their size, and the loops over a run of them that
// every way of loading a tile shares.

#ifndef ONNXIFI_BACKENDS_CPU_ENGINE_LANE_TYPES_H_
#define ONNXIFI_BACKENDS_CPU_ENGINE_LANE_TYPES_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "backends/cpu/engine/any_address.h"
#include "backends/cpu/engine/geometry.h"

namespace onnxifi::engine {

// Calls function(T{}) for the unsigned type of `lane_bytes`.
template <typename Function>
void WithLaneType(int64_t lane_bytes, Function&& function) {
  switch (lane_bytes) {
    case 1:
      return function(uint8_t{});
    case 2:
      return function(uint16_t{});
    case 4:
      return function(uint32_t{});
    case 8:
      return function(uint64_t{});
    default:
      return;
  }
}

// lanes[0, count) = the element, by vectors.
void FillLong(const std::byte* element, int64_t lane_bytes, int64_t count, std::byte* lanes);

template <typename T>
void Fill(T* lanes, int64_t count, T value) {
  constexpr int64_t kWorthACall = 128 / static_cast<int64_t>(sizeof(T));
  if (count >= kWorthACall) {
    return FillLong(reinterpret_cast<const std::byte*>(&value), sizeof(T), count,
                    reinterpret_cast<std::byte*>(lanes));
  }
  for (int64_t lane = 0; lane < count; ++lane) lanes[lane] = value;
}

template <typename T>
void LoadRun(const AnyAddress<T>* __restrict source, int64_t step, int64_t count,
             T* __restrict lanes) {
  constexpr int64_t kWorthACall = 128 / static_cast<int64_t>(sizeof(T));
  if (step == 0) return Fill(lanes, count, source->value);
  if (step == 1) {
    if (count >= kWorthACall) {
      std::memcpy(lanes, source, static_cast<size_t>(count) * sizeof(T));
      return;
    }
    int64_t lane = 0;
    constexpr int64_t kTogether = std::max<int64_t>(1, 16 / static_cast<int64_t>(sizeof(T)));
    for (; lane + kTogether <= count; lane += kTogether) {
      std::memcpy(lanes + lane, source + lane, kTogether * sizeof(T));
    }
    for (; lane < count; ++lane) lanes[lane] = source[lane].value;
    return;
  }
  for (int64_t lane = 0; lane < count; ++lane) lanes[lane] = source[lane * step].value;
}

template <typename T>
const AnyAddress<T>* ElementAt(const std::byte* base, int64_t element) {
  return reinterpret_cast<const AnyAddress<T>*>(base + WrapMulAdd(0, element, sizeof(T)));
}

template <typename T>
T* ElementAt(std::byte* base, int64_t element) {
  return reinterpret_cast<T*>(base + WrapMulAdd(0, element, sizeof(T)));
}

// Narrows the lanes [low, high) of a run to those where 0 <= start + lane * step < extent.
void Narrow(int64_t start, int64_t step, int64_t extent, int64_t& low, int64_t& high);

// A bool in memory may be any byte; lanes are 0 and 1.
void MakeBool(uint8_t* lanes, int64_t count);

}  // namespace onnxifi::engine

#endif  // ONNXIFI_BACKENDS_CPU_ENGINE_LANE_TYPES_H_
