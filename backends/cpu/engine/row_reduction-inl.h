// SPDX-License-Identifier: Apache-2.0
//
// Reduction of one row whose elements are lanes of vectors: element n is reduced into part n modulo
// 128, and parts are joined in halves, as the reference does it. Included once per target of
// Highway.

#if defined(ONNXIFI_BACKENDS_CPU_ENGINE_ROW_REDUCTION_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ONNXIFI_BACKENDS_CPU_ENGINE_ROW_REDUCTION_INL_H_
#undef ONNXIFI_BACKENDS_CPU_ENGINE_ROW_REDUCTION_INL_H_
#else
#define ONNXIFI_BACKENDS_CPU_ENGINE_ROW_REDUCTION_INL_H_
#endif

#include <hwy/highway.h>

#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "backends/core/reference/column.h"
#include "backends/cpu/engine/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace onnxifi::engine {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

template <typename T>
using TagOf = hn::ScalableTag<T>;
template <typename T>
using VecOf = hn::Vec<TagOf<T>>;
template <typename T>
constexpr int kLanesOf = static_cast<int>(hn::MaxLanes(TagOf<T>()));
// Vectors that hold all parts of a row.
template <typename T>
constexpr int kPartVectorsOf = static_cast<int>(reference::kBlock) / kLanesOf<T>;

using RowTag = TagOf<float>;
using RowVec = VecOf<float>;
constexpr int kRowLanes = kLanesOf<float>;
constexpr int kPartVectors = kPartVectorsOf<float>;

// A number x is left as it is, to its sign, by x + -0, x * 1, max(x, -infinity) and
// min(x, infinity).
constexpr float kNoSummand = -0.0f;
constexpr float kRowInfinity = std::numeric_limits<float>::infinity();

// Lane n joins lane n + half, until one is left.
template <class D, class V, class Operation>
HWY_INLINE hn::TFromD<D> JoinLanes(D d, V v, Operation operation) {
#if HWY_TARGET != HWY_SCALAR
  if constexpr (hn::MaxLanes(D()) > 1) {
    const hn::Half<D> half;
    return JoinLanes(half, operation(half, hn::LowerHalf(half, v), hn::UpperHalf(half, v)),
                     operation);
  }
#endif
  (void)d;
  (void)operation;
  return hn::GetLane(v);
}

// The element itself is what is reduced.
struct Unchanged {
  template <class D, class V>
  HWY_INLINE V operator()(D /*d*/, V x) const {
    return x;
  }
};

// Reduces transform(element) of a row of at most kVectors vectors, or of any length where that is
// all parts. `neutral` is a number that the operation leaves out.
template <int kVectors, typename T, class Operation, class Transform = Unchanged>
HWY_INLINE T ReduceRow(const T* elements, int64_t count, T state, T neutral, Operation operation,
                       Transform transform = {}) {
  const TagOf<T> d;
  constexpr int kLanes = kLanesOf<T>;
  VecOf<T> parts[kVectors];
  const VecOf<T> begin = hn::Set(d, state);
  const VecOf<T> empty = hn::Set(d, neutral);
  int64_t left = count;
  auto take_vectors = [&](auto is_first) HWY_ATTR {
#pragma GCC unroll 32
    for (int v = 0; v < kVectors; ++v) {
      const VecOf<T> held = decltype(is_first)::value ? begin : parts[v];
      const VecOf<T> unused = decltype(is_first)::value ? empty : parts[v];
      const int64_t lanes = left - v * kLanes;
      if (lanes >= kLanes) {
        parts[v] = operation(d, held, transform(d, hn::LoadU(d, elements + v * kLanes)));
      } else if (lanes > 0) {
        const VecOf<T> last = transform(d, LoadFirst(d, elements + v * kLanes, lanes));
        parts[v] = hn::IfThenElse(hn::FirstN(d, static_cast<size_t>(lanes)),
                                  operation(d, held, last), unused);
      } else {
        parts[v] = unused;
      }
    }
    elements += kVectors * kLanes;
    left -= kVectors * kLanes;
  };
  take_vectors(std::true_type());
  for (; left >= kVectors * kLanes; left -= kVectors * kLanes) {
#pragma GCC unroll 32
    for (int v = 0; v < kVectors; ++v) {
      parts[v] = operation(d, parts[v], transform(d, hn::LoadU(d, elements + v * kLanes)));
    }
    elements += kVectors * kLanes;
  }
  if (left > 0) take_vectors(std::false_type());
#pragma GCC unroll 8
  for (int half = kVectors / 2; half > 0; half /= 2) {
#pragma GCC unroll 32
    for (int v = 0; v < half; ++v) parts[v] = operation(d, parts[v], parts[v + half]);
  }
  return JoinLanes(d, parts[0], operation);
}

}  // namespace HWY_NAMESPACE
}  // namespace onnxifi::engine
HWY_AFTER_NAMESPACE();

#endif  // ONNXIFI_BACKENDS_CPU_ENGINE_ROW_REDUCTION_INL_H_
