// SPDX-License-Identifier: Apache-2.0
//
// RowReduction: a row's parts fill vectors, as many as the next power of two holds; lanes without a
// part hold a number that the operation leaves out, so that no lane needs to be told from another.

#include "backends/cpu/engine/row_reduction.h"

#include <cstring>
#include <limits>
#include <type_traits>

#include "backends/core/reference/column.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/engine/row_reduction.cc"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include <hwy/highway.h>

#include "backends/cpu/engine/arithmetic-inl.h"

HWY_BEFORE_NAMESPACE();
namespace onnxifi::engine {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using Tag = hn::ScalableTag<float>;
using Vec = hn::Vec<Tag>;

constexpr int kVectorLanes = static_cast<int>(hn::MaxLanes(Tag()));
constexpr int kMaxVectors = static_cast<int>(reference::kBlock) / kVectorLanes;

// Lane n joins lane n + half, until one is left.
template <class D, class V, class Operation>
HWY_INLINE float JoinLanes(D d, V v, Operation operation) {
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

// The first `count` elements, of which there are fewer than a vector has; the other lanes are 0.
HWY_INLINE Vec LoadFirst(Tag d, const float* elements, int64_t count) {
#if HWY_TARGET <= HWY_AVX2
  return hn::MaskedLoad(hn::FirstN(d, static_cast<size_t>(count)), d, elements);
#else
  HWY_ALIGN float lanes[kVectorLanes] = {};
  std::memcpy(lanes, elements, static_cast<size_t>(count) * sizeof(float));
  return hn::Load(d, lanes);
#endif
}

// A row of at most kVectors vectors, or of any length where that is all parts.
template <int kVectors, class Operation>
HWY_INLINE float ReduceRow(const float* elements, int64_t count, float state, float neutral,
                           Operation operation) {
  const Tag d;
  Vec parts[kVectors];
  const Vec begin = hn::Set(d, state);
  const Vec empty = hn::Set(d, neutral);
  int64_t left = count;
  auto take_vectors = [&](auto is_first) HWY_ATTR {
#pragma GCC unroll 32
    for (int v = 0; v < kVectors; ++v) {
      const Vec held = decltype(is_first)::value ? begin : parts[v];
      const Vec unused = decltype(is_first)::value ? empty : parts[v];
      const int64_t lanes = left - v * kVectorLanes;
      if (lanes >= kVectorLanes) {
        parts[v] = operation(d, held, hn::LoadU(d, elements + v * kVectorLanes));
      } else if (lanes > 0) {
        const Vec last = LoadFirst(d, elements + v * kVectorLanes, lanes);
        parts[v] = hn::IfThenElse(hn::FirstN(d, static_cast<size_t>(lanes)),
                                  operation(d, held, last), unused);
      } else {
        parts[v] = unused;
      }
    }
    elements += kVectors * kVectorLanes;
    left -= kVectors * kVectorLanes;
  };
  take_vectors(std::true_type());
  for (; left >= kVectors * kVectorLanes; left -= kVectors * kVectorLanes) {
#pragma GCC unroll 32
    for (int v = 0; v < kVectors; ++v) {
      parts[v] = operation(d, parts[v], hn::LoadU(d, elements + v * kVectorLanes));
    }
    elements += kVectors * kVectorLanes;
  }
  if (left > 0) take_vectors(std::false_type());
#pragma GCC unroll 8
  for (int half = kVectors / 2; half > 0; half /= 2) {
#pragma GCC unroll 32
    for (int v = 0; v < half; ++v) parts[v] = operation(d, parts[v], parts[v + half]);
  }
  return JoinLanes(d, parts[0], operation);
}

template <int kVectors, class Operation>
void ReduceRowsOf(const float* elements, int64_t rows, int64_t count, float neutral,
                  float* states) {
  for (int64_t row = 0; row < rows; ++row) {
    states[row] =
        ReduceRow<kVectors>(elements + row * count, count, states[row], neutral, Operation());
  }
}

template <class Operation, int kVectors = 1>
void ReduceRows(const std::byte* elements, int64_t rows, int64_t count, float neutral,
                std::byte* states) {
  if constexpr (kVectors < kMaxVectors) {
    if (count > kVectors * kVectorLanes) {
      return ReduceRows<Operation, 2 * kVectors>(elements, rows, count, neutral, states);
    }
  }
  ReduceRowsOf<kVectors, Operation>(reinterpret_cast<const float*>(elements), rows, count, neutral,
                                    reinterpret_cast<float*>(states));
}

constexpr float kInfinite = std::numeric_limits<float>::infinity();

// A number x is left as it is, to its sign, by x + -0, x * 1, max(x, -infinity) and
// min(x, infinity).
void SumRows(const std::byte* elements, int64_t rows, int64_t count, std::byte* states) {
  ReduceRows<Sum>(elements, rows, count, -0.0f, states);
}
void MultiplyRows(const std::byte* elements, int64_t rows, int64_t count, std::byte* states) {
  ReduceRows<Product>(elements, rows, count, 1.0f, states);
}
void FindMaximaOfRows(const std::byte* elements, int64_t rows, int64_t count, std::byte* states) {
  ReduceRows<FloatMaximum>(elements, rows, count, -kInfinite, states);
}
void FindMinimaOfRows(const std::byte* elements, int64_t rows, int64_t count, std::byte* states) {
  ReduceRows<FloatMinimum>(elements, rows, count, kInfinite, states);
}

RowReduction FindReduction(program::ExprOp op) {
  switch (op) {
    case program::ExprOp::kAdd:
      return SumRows;
    case program::ExprOp::kMul:
      return MultiplyRows;
    case program::ExprOp::kMax:
      return FindMaximaOfRows;
    case program::ExprOp::kMin:
      return FindMinimaOfRows;
    default:
      return nullptr;
  }
}

// Rows of words of 4 bytes, which are most.
void SpreadWords(const uint32_t* values, int64_t rows, int64_t count, uint32_t* target) {
  const hn::ScalableTag<uint32_t> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t row = 0; row < rows; ++row, target += count) {
    const auto value = hn::Set(d, values[row]);
    if (count < lanes) {
      for (int64_t k = 0; k < count; ++k) target[k] = values[row];
      continue;
    }
    for (int64_t k = 0; k + lanes <= count; k += lanes) hn::StoreU(value, d, target + k);
    hn::StoreU(value, d, target + count - lanes);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace onnxifi::engine
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace onnxifi::engine {
namespace {

template <typename T>
void SpreadTyped(const std::byte* values, int64_t rows, int64_t count, std::byte* target) {
  const T* from = reinterpret_cast<const T*>(values);
  T* to = reinterpret_cast<T*>(target);
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t k = 0; k < count; ++k) to[row * count + k] = from[row];
  }
}

}  // namespace

HWY_EXPORT(FindReduction);
HWY_EXPORT(SpreadWords);

RowReduction FindRowReduction(program::ExprOp op, tensor::ElementType type) {
  if (type != tensor::ElementType::kFloat32) return nullptr;
  return HWY_DYNAMIC_DISPATCH(FindReduction)(op);
}

void SpreadOverRows(const std::byte* values, int64_t lane_bytes, int64_t rows, int64_t count,
                    std::byte* target) {
  switch (lane_bytes) {
    case 1:
      return SpreadTyped<uint8_t>(values, rows, count, target);
    case 2:
      return SpreadTyped<uint16_t>(values, rows, count, target);
    case 4:
      return HWY_DYNAMIC_DISPATCH(SpreadWords)(reinterpret_cast<const uint32_t*>(values), rows,
                                               count, reinterpret_cast<uint32_t*>(target));
    case 8:
      return SpreadTyped<uint64_t>(values, rows, count, target);
    default:
      return;
  }
}

}  // namespace onnxifi::engine
#endif
