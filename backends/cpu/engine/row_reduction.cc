// SPDX-License-Identifier: Apache-2.0
//
// RowReduction: a row's parts fill vectors, as many as the next power of two holds; lanes without a
// part hold a number that the operation leaves out, so that no lane needs to be told from another.

#include "backends/cpu/engine/row_reduction.h"

#include <algorithm>
#include <cstdint>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/engine/row_reduction.cc"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include <hwy/highway.h>

#include "backends/cpu/engine/arithmetic-inl.h"
#include "backends/cpu/engine/row_reduction-inl.h"

HWY_BEFORE_NAMESPACE();
namespace onnxifi::engine {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

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
  if constexpr (kVectors < kPartVectors) {
    if (count > kVectors * kRowLanes) {
      return ReduceRows<Operation, 2 * kVectors>(elements, rows, count, neutral, states);
    }
  }
  ReduceRowsOf<kVectors, Operation>(reinterpret_cast<const float*>(elements), rows, count, neutral,
                                    reinterpret_cast<float*>(states));
}

void SumRows(const std::byte* elements, int64_t rows, int64_t count, std::byte* states) {
  ReduceRows<Sum>(elements, rows, count, kNoSummand, states);
}
void MultiplyRows(const std::byte* elements, int64_t rows, int64_t count, std::byte* states) {
  ReduceRows<Product>(elements, rows, count, 1.0f, states);
}
void FindMaximaOfRows(const std::byte* elements, int64_t rows, int64_t count, std::byte* states) {
  ReduceRows<FloatMaximum>(elements, rows, count, -kRowInfinity, states);
}
void FindMinimaOfRows(const std::byte* elements, int64_t rows, int64_t count, std::byte* states) {
  ReduceRows<FloatMinimum>(elements, rows, count, kRowInfinity, states);
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

// kElements of each lane. They come in as many streams, each in the order of memory.
template <int kElements, class Operation>
HWY_INLINE void ReduceElements(const float* elements, int64_t step, int64_t lanes, float* states) {
  const RowTag d;
  int64_t n = 0;
  for (; n + kRowLanes <= lanes; n += kRowLanes) {
    RowVec held = hn::LoadU(d, states + n);
#pragma GCC unroll 8
    for (int k = 0; k < kElements; ++k) {
      held = Operation()(d, held, hn::LoadU(d, elements + k * step + n));
    }
    hn::StoreU(held, d, states + n);
  }
  if (n == lanes) return;
  RowVec held = LoadFirst(d, states + n, lanes - n);
  for (int k = 0; k < kElements; ++k) {
    held = Operation()(d, held, LoadFirst(d, elements + k * step + n, lanes - n));
  }
  StoreFirst(d, held, states + n, lanes - n);
}

template <class Operation>
void ReduceColumns(const float* elements, int64_t step, int64_t count, int64_t lanes,
                   float* states) {
  constexpr int kElements = 8;
  int64_t k = 0;
  for (; k + kElements <= count; k += kElements) {
    ReduceElements<kElements, Operation>(elements + k * step, step, lanes, states);
  }
  for (; k < count; ++k) ReduceElements<1, Operation>(elements + k * step, step, lanes, states);
}

// The lanes of `vectors` vectors, from the first element of a part on: every kBlock-th row.
template <class Operation, int vectors, class Load>
HWY_INLINE void ReducePart(const float* elements, int64_t step, int64_t rows,
                           const RowVec (&begin)[vectors], const Load& load,
                           RowVec (&held)[vectors]) {
  const RowTag d;
  for (int v = 0; v < vectors; ++v) held[v] = begin[v];
  for (int64_t k = 0; k < rows; k += reference::kBlock) {
    const float* const row = elements + k * step;
    for (int v = 0; v < vectors; ++v) held[v] = Operation()(d, held[v], load(row, v));
  }
}

// Both halves of all parts of these lanes. load(row, v): vector v of a row.
template <class Operation, int vectors, class Load>
HWY_INLINE void ReduceParts(const float* elements, int64_t step, int64_t count, const float* states,
                            const Load& load, float* joined, int64_t joined_step) {
  constexpr int64_t kHalf = reference::kBlock / 2;
  const RowTag d;
  RowVec begin[vectors], held[vectors], other[vectors];
  for (int v = 0; v < vectors; ++v) begin[v] = load(states, v);
  for (int64_t p = 0; p < std::min(kHalf, count); ++p) {
    ReducePart<Operation, vectors>(elements + p * step, step, count - p, begin, load, held);
    if (p + kHalf < count) {
      ReducePart<Operation, vectors>(elements + (p + kHalf) * step, step, count - p - kHalf, begin,
                                     load, other);
      for (int v = 0; v < vectors; ++v) held[v] = Operation()(d, held[v], other[v]);
    }
    for (int v = 0; v < vectors; ++v) {
      hn::Store(held[v], d, joined + p * joined_step + v * kRowLanes);
    }
  }
}

// As ReduceRow, of lanes that are different results: a block of lanes at a time, whose parts are
// joined in the L1 cache. Rows of a part lie far apart, so several vectors of each are read at
// once.
template <class Operation>
void ReduceColumnsInParts(const float* elements, int64_t step, int64_t count, int64_t lanes,
                          float* states) {
  constexpr int64_t kBlock = 128;
  constexpr int64_t kHalf = reference::kBlock / 2;
  constexpr int kVectors = 4;
  const RowTag d;
  HWY_ALIGN float joined[kHalf][kBlock];
  for (int64_t first = 0; first < lanes; first += kBlock) {
    const int64_t block = std::min(kBlock, lanes - first);
    int64_t n = 0;
    const auto load = [d](const float* row, int v)
                          HWY_ATTR { return hn::LoadU(d, row + v * kRowLanes); };
    for (; n + kVectors * kRowLanes <= block; n += kVectors * kRowLanes) {
      ReduceParts<Operation, kVectors>(elements + first + n, step, count, states + first + n, load,
                                       joined[0] + n, kBlock);
    }
    for (; n + kRowLanes <= block; n += kRowLanes) {
      ReduceParts<Operation, 1>(elements + first + n, step, count, states + first + n, load,
                                joined[0] + n, kBlock);
    }
    if (n < block) {
      const auto load_rest = [d, left = block - n](const float* row, int /*v*/)
                                 HWY_ATTR { return LoadFirst(d, row, left); };
      ReduceParts<Operation, 1>(elements + first + n, step, count, states + first + n, load_rest,
                                joined[0] + n, kBlock);
    }
    int64_t parts = std::min(kHalf, count);
    for (int64_t half = kHalf / 2; half > 0; half /= 2) {
      for (int64_t p = 0; p + half < parts; ++p) {
        for (n = 0; n < block; n += kRowLanes) {
          const RowVec held = hn::Load(d, joined[p] + n);
          hn::Store(Operation()(d, held, hn::Load(d, joined[p + half] + n)), d, joined[p] + n);
        }
      }
      parts = std::min(parts, half);
    }
    std::copy_n(joined[0], block, states + first);
  }
}

template <class Operation>
ColumnReduction ColumnsBy(bool is_in_parts) {
  return is_in_parts ? ReduceColumnsInParts<Operation> : ReduceColumns<Operation>;
}

ColumnReduction FindOfColumns(program::ExprOp op, bool is_in_parts) {
  switch (op) {
    case program::ExprOp::kAdd:
      return ColumnsBy<Sum>(is_in_parts);
    case program::ExprOp::kMul:
      return ColumnsBy<Product>(is_in_parts);
    case program::ExprOp::kMax:
      return ColumnsBy<FloatMaximum>(is_in_parts);
    case program::ExprOp::kMin:
      return ColumnsBy<FloatMinimum>(is_in_parts);
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
HWY_EXPORT(FindOfColumns);
HWY_EXPORT(SpreadWords);

RowReduction FindRowReduction(program::ExprOp op, tensor::ElementType type) {
  if (type != tensor::ElementType::kFloat32) return nullptr;
  return HWY_DYNAMIC_DISPATCH(FindReduction)(op);
}

ColumnReduction FindColumnReduction(program::ExprOp op, tensor::ElementType type,
                                    bool is_in_parts) {
  if (type != tensor::ElementType::kFloat32) return nullptr;
  return HWY_DYNAMIC_DISPATCH(FindOfColumns)(op, is_in_parts);
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
