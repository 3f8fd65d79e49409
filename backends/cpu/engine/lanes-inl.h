// SPDX-License-Identifier: Apache-2.0
//
// Lanes: an operation on vectors as a loop over the lanes of a tile. Included once per target of
// Highway, by the files that hold loops. Inputs are read before the result is written, lane by
// lane, so the result may be an input.

#if defined(ONNXIFI_BACKENDS_CPU_ENGINE_LANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ONNXIFI_BACKENDS_CPU_ENGINE_LANES_INL_H_
#undef ONNXIFI_BACKENDS_CPU_ENGINE_LANES_INL_H_
#else
#define ONNXIFI_BACKENDS_CPU_ENGINE_LANES_INL_H_
#endif

#include <hwy/highway.h>

#include <cstdint>
#include <cstring>

#include "backends/cpu/engine/loop.h"

HWY_BEFORE_NAMESPACE();
namespace onnxifi::engine {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// result[i] = operation(d, a[i])
template <typename T, class Operation>
HWY_INLINE void ForLanes(const LoopOperands& operands, Operation operation) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto* a = reinterpret_cast<const T*>(operands.inputs[0]);
  auto* result = reinterpret_cast<T*>(operands.result);
  int64_t i = 0;
  for (; i + lanes <= operands.lanes; i += lanes) {
    hn::StoreU(operation(d, hn::LoadU(d, a + i)), d, result + i);
  }
  if (i == operands.lanes) return;
  const auto rest = static_cast<size_t>(operands.lanes - i) * sizeof(T);
  HWY_ALIGN T last[HWY_MAX_BYTES / sizeof(T)] = {};
  std::memcpy(last, a + i, rest);
  hn::Store(operation(d, hn::Load(d, last)), d, last);
  std::memcpy(result + i, last, rest);
}

// result[i] = operation(d, a[i], b[i])
template <typename T, class Operation>
HWY_INLINE void ForLanePairs(const LoopOperands& operands, Operation operation) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto* a = reinterpret_cast<const T*>(operands.inputs[0]);
  const auto* b = reinterpret_cast<const T*>(operands.inputs[1]);
  auto* result = reinterpret_cast<T*>(operands.result);
  int64_t i = 0;
  for (; i + 2 * lanes <= operands.lanes; i += 2 * lanes) {
    const auto a0 = hn::LoadU(d, a + i);
    const auto a1 = hn::LoadU(d, a + i + lanes);
    const auto b0 = hn::LoadU(d, b + i);
    const auto b1 = hn::LoadU(d, b + i + lanes);
    hn::StoreU(operation(d, a0, b0), d, result + i);
    hn::StoreU(operation(d, a1, b1), d, result + i + lanes);
  }
  for (; i + lanes <= operands.lanes; i += lanes) {
    hn::StoreU(operation(d, hn::LoadU(d, a + i), hn::LoadU(d, b + i)), d, result + i);
  }
  if (i == operands.lanes) return;
  const auto rest = static_cast<size_t>(operands.lanes - i) * sizeof(T);
  HWY_ALIGN T last_a[HWY_MAX_BYTES / sizeof(T)] = {};
  HWY_ALIGN T last_b[HWY_MAX_BYTES / sizeof(T)] = {};
  std::memcpy(last_a, a + i, rest);
  std::memcpy(last_b, b + i, rest);
  hn::Store(operation(d, hn::Load(d, last_a), hn::Load(d, last_b)), d, last_a);
  std::memcpy(result + i, last_a, rest);
}

}  // namespace HWY_NAMESPACE
}  // namespace onnxifi::engine
HWY_AFTER_NAMESPACE();

#endif  // ONNXIFI_BACKENDS_CPU_ENGINE_LANES_INL_H_
