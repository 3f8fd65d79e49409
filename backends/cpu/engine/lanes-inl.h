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

// Whether the target leaves alone what a mask excludes; AVX2 has such instructions for 4 bytes and
// more.
template <typename T>
constexpr bool kHasMaskedMemory = HWY_TARGET <= HWY_AVX3 ||
                                  (HWY_TARGET <= HWY_AVX2 && sizeof(T) >= sizeof(float));

// The first `count` elements, of which there are at most as many as a vector has; the other lanes
// are 0.
template <class D, typename T = hn::TFromD<D>>
HWY_INLINE hn::Vec<D> LoadFirst(D d, const T* elements, int64_t count) {
  if constexpr (kHasMaskedMemory<T>) {
    return hn::MaskedLoad(hn::FirstN(d, static_cast<size_t>(count)), d, elements);
  } else {
    HWY_ALIGN T lanes[hn::MaxLanes(D())] = {};
    std::memcpy(lanes, elements, static_cast<size_t>(count) * sizeof(T));
    return hn::Load(d, lanes);
  }
}

template <class D, typename T = hn::TFromD<D>>
HWY_INLINE void StoreFirst(D d, hn::Vec<D> v, T* elements, int64_t count) {
  if constexpr (kHasMaskedMemory<T>) {
    hn::BlendedStore(v, hn::FirstN(d, static_cast<size_t>(count)), d, elements);
  } else {
    HWY_ALIGN T lanes[hn::MaxLanes(D())];
    hn::Store(v, d, lanes);
    std::memcpy(elements, lanes, static_cast<size_t>(count) * sizeof(T));
  }
}

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
  const int64_t rest = operands.lanes - i;
  if (rest > 0) StoreFirst(d, operation(d, LoadFirst(d, a + i, rest)), result + i, rest);
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
  const int64_t rest = operands.lanes - i;
  if (rest <= 0) return;
  const auto last = operation(d, LoadFirst(d, a + i, rest), LoadFirst(d, b + i, rest));
  StoreFirst(d, last, result + i, rest);
}

}  // namespace HWY_NAMESPACE
}  // namespace onnxifi::engine
HWY_AFTER_NAMESPACE();

#endif  // ONNXIFI_BACKENDS_CPU_ENGINE_LANES_INL_H_
