// SPDX-License-Identifier: Apache-2.0
//
// Floats at any address, and the first lanes of a vector to and from memory, where the memory ends
// with them. Highway's own masked loads read the whole vector on processors without masks. Included
// once per target.

#if defined(ONNXIFI_BACKENDS_CPU_GEMM_PARTIAL_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ONNXIFI_BACKENDS_CPU_GEMM_PARTIAL_INL_H_
#undef ONNXIFI_BACKENDS_CPU_GEMM_PARTIAL_INL_H_
#else
#define ONNXIFI_BACKENDS_CPU_GEMM_PARTIAL_INL_H_
#endif

#include <hwy/highway.h>

#include <cstdint>
#include <cstring>

HWY_BEFORE_NAMESPACE();
namespace onnxifi::gemm {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// A float at any address, as a caller's memory may be.
HWY_INLINE float FloatAt(const float* address) {
  float number;
  std::memcpy(&number, address, sizeof(number));
  return number;
}

// Lanes [0, count) from `source`, 0 in the others; count <= Lanes(d).
template <class D>
HWY_INLINE hn::Vec<D> LoadFirst(D d, const float* source, int64_t count) {
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
  return hn::MaskedLoad(hn::FirstN(d, static_cast<size_t>(count)), d, source);
#else
  HWY_ALIGN float lanes[HWY_MAX_BYTES / sizeof(float)] = {};
  std::memcpy(lanes, source, static_cast<size_t>(count) * sizeof(float));
  return hn::Load(d, lanes);
#endif
}

// Lanes [0, count) to `target`; nothing behind them is touched, so another thread may write there.
template <class D>
HWY_INLINE void StoreFirst(D d, hn::Vec<D> v, float* target, int64_t count) {
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
  hn::BlendedStore(v, hn::FirstN(d, static_cast<size_t>(count)), d, target);
#else
  HWY_ALIGN float lanes[HWY_MAX_BYTES / sizeof(float)];
  hn::Store(v, d, lanes);
  std::memcpy(target, lanes, static_cast<size_t>(count) * sizeof(float));
#endif
}

}  // namespace HWY_NAMESPACE
}  // namespace onnxifi::gemm
HWY_AFTER_NAMESPACE();

#endif  // ONNXIFI_BACKENDS_CPU_GEMM_PARTIAL_INL_H_
