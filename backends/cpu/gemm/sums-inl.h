// SPDX-License-Identifier: Apache-2.0
//
// Sums of a block in registers: what they begin with, and how they are stored. Included once per
// target.

#if defined(ONNXIFI_BACKENDS_CPU_GEMM_SUMS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ONNXIFI_BACKENDS_CPU_GEMM_SUMS_INL_H_
#undef ONNXIFI_BACKENDS_CPU_GEMM_SUMS_INL_H_
#else
#define ONNXIFI_BACKENDS_CPU_GEMM_SUMS_INL_H_
#endif

#include <hwy/highway.h>

#include <cstdint>

#include "backends/cpu/gemm/epilogue-inl.h"
#include "backends/cpu/gemm/epilogue.h"
#include "backends/cpu/gemm/partial-inl.h"

HWY_BEFORE_NAMESPACE();
namespace onnxifi::gemm {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Whether half a vector takes less time than a whole one: it does where the units are half as wide
// as the vectors, and nowhere takes more. A last vector that is at most half full is computed so.
#if HWY_MAX_BYTES == 64
inline constexpr bool kHasHalves = true;
using HalfTag = hn::Half<hn::ScalableTag<float>>;
#else
inline constexpr bool kHasHalves = false;
using HalfTag = hn::ScalableTag<float>;
#endif

// Of `columns` columns with a bias, null for none, those of vector `v`, of which none but the last
// is partly filled.
template <class D>
HWY_INLINE hn::Vec<D> StartOf(D d, const float* bias, int64_t v, int64_t columns) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  if (bias == nullptr) return hn::Zero(d);
  if ((v + 1) * lanes <= columns) return hn::LoadU(d, bias + v * lanes);
  return LoadFirst(d, bias + v * lanes, columns - v * lanes);
}

// Adds the addend, applies the activation and stores the sums of `rows` rows of `columns` columns
// each. Bias and functions of the epilogue are the caller's. `addend` is that of the first row, or
// null. Conditions are tested once per block, not per vector: where the depth is small, that
// counts.
template <int rows, int vectors, class D>
HWY_INLINE void StoreSums(D d, const Epilogue& epilogue, const float* addend, int64_t columns,
                          float* c, int64_t stride, hn::Vec<D> (&sum)[rows][vectors]) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t addend_stride = epilogue.addend_stride;
  // Of the last vector's lanes, those that are columns; of others all are.
  const int64_t count = columns - (vectors - 1) * lanes;
  const bool is_whole = count == lanes;
  if (addend != nullptr) {
#pragma GCC unroll 3
    for (int v = 0; v < vectors; ++v) {
      const float* const from = addend + v * lanes;
#pragma GCC unroll 16
      for (int r = 0; r < rows; ++r) {
        sum[r][v] = hn::Add(sum[r][v], is_whole || v + 1 < vectors
                                           ? hn::LoadU(d, from + r * addend_stride)
                                           : LoadFirst(d, from + r * addend_stride, count));
      }
    }
  }
  Activate(d, epilogue, [&](auto activated) HWY_ATTR {
#pragma GCC unroll 3
    for (int v = 0; v < vectors; ++v) {
#pragma GCC unroll 16
      for (int r = 0; r < rows; ++r) sum[r][v] = activated(sum[r][v]);
    }
  });
#pragma GCC unroll 3
  for (int v = 0; v < vectors; ++v) {
    if (is_whole || v + 1 < vectors) {
#pragma GCC unroll 16
      for (int r = 0; r < rows; ++r) hn::StoreU(sum[r][v], d, c + r * stride + v * lanes);
    } else {
#pragma GCC unroll 16
      for (int r = 0; r < rows; ++r) {
        StoreFirst(d, sum[r][v], c + r * stride + v * lanes, count);
      }
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace onnxifi::gemm
HWY_AFTER_NAMESPACE();

#endif  // ONNXIFI_BACKENDS_CPU_GEMM_SUMS_INL_H_
