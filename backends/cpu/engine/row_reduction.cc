// SPDX-License-Identifier: Apache-2.0
//
// RowReduction: a row's parts fill vectors, as many as the next power of two holds; lanes without a
// part hold a number that the operation leaves out, so that no lane needs to be told from another.

#include "backends/cpu/engine/row_reduction.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "backends/core/tensor/native_type.h"

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

// An operation on lanes of T, and the number that it leaves out.
template <typename T, class Operation>
struct Operator {
  using Number = T;
  static constexpr Operation kApply{};
  static constexpr T Neutral() {
    constexpr bool is_float = std::is_floating_point_v<T>;
    using Limits = std::numeric_limits<T>;
    if (std::is_same_v<Operation, Sum>) return is_float ? static_cast<T>(kNoSummand) : T{0};
    if (std::is_same_v<Operation, Product>) return T{1};
    const bool is_maximum =
        std::is_same_v<Operation, Maximum> || std::is_same_v<Operation, FloatMaximum>;
    if (is_float) return is_maximum ? -Limits::infinity() : Limits::infinity();
    return is_maximum ? Limits::lowest() : Limits::max();
  }
};

template <int kVectors, class Op, typename T = typename Op::Number>
void ReduceRowsOf(const T* elements, int64_t rows, int64_t count, T* states) {
  for (int64_t row = 0; row < rows; ++row) {
    states[row] =
        ReduceRow<kVectors>(elements + row * count, count, states[row], Op::Neutral(), Op::kApply);
  }
}

template <class Op, int kVectors = 1, typename T = typename Op::Number>
void ReduceRows(const std::byte* elements, int64_t rows, int64_t count, std::byte* states) {
  if constexpr (kVectors < kPartVectorsOf<T>) {
    if (count > kVectors * kLanesOf<T>) {
      return ReduceRows<Op, 2 * kVectors>(elements, rows, count, states);
    }
  }
  ReduceRowsOf<kVectors, Op>(reinterpret_cast<const T*>(elements), rows, count,
                             reinterpret_cast<T*>(states));
}

// Of integers, whose order changes nothing: as few vectors as keep loads going.
template <class Op, typename T = typename Op::Number>
void ReduceRowsInAnyOrder(const std::byte* elements, int64_t rows, int64_t count,
                          std::byte* states) {
  constexpr int kVectors = 4;
  constexpr int64_t kLanes = kLanesOf<T>;
  const TagOf<T> d;
  const auto* row = reinterpret_cast<const T*>(elements);
  auto* const reduced = reinterpret_cast<T*>(states);
  for (int64_t r = 0; r < rows; ++r, row += count) {
    VecOf<T> parts[kVectors];
    for (auto& part : parts) part = hn::Set(d, Op::Neutral());
    int64_t n = 0;
    for (; n + kVectors * kLanes <= count; n += kVectors * kLanes) {
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) {
        parts[v] = Op::kApply(d, parts[v], hn::LoadU(d, row + n + v * kLanes));
      }
    }
    for (; n + kLanes <= count; n += kLanes) {
      parts[0] = Op::kApply(d, parts[0], hn::LoadU(d, row + n));
    }
    if (n < count) {
      const auto last = LoadFirst(d, row + n, count - n);
      parts[1] = hn::IfThenElse(hn::FirstN(d, static_cast<size_t>(count - n)),
                                Op::kApply(d, parts[1], last), parts[1]);
    }
    const auto all =
        Op::kApply(d, Op::kApply(d, parts[0], parts[1]), Op::kApply(d, parts[2], parts[3]));
    const hn::CappedTag<T, 1> one;
    const T of_row = JoinLanes(d, all, Op::kApply);
    reduced[r] = hn::GetLane(Op::kApply(one, hn::Set(one, reduced[r]), hn::Set(one, of_row)));
  }
}

// kElements of each lane. They come in as many streams, each in the order of memory.
template <int kElements, class Op, typename T = typename Op::Number>
HWY_INLINE void ReduceElements(const T* elements, int64_t step, int64_t lanes, T* states) {
  const TagOf<T> d;
  constexpr int64_t kLanes = kLanesOf<T>;
  int64_t n = 0;
  for (; n + kLanes <= lanes; n += kLanes) {
    VecOf<T> held = hn::LoadU(d, states + n);
#pragma GCC unroll 8
    for (int k = 0; k < kElements; ++k) {
      held = Op::kApply(d, held, hn::LoadU(d, elements + k * step + n));
    }
    hn::StoreU(held, d, states + n);
  }
  if (n >= lanes) return;
  VecOf<T> held = LoadFirst(d, states + n, lanes - n);
  for (int k = 0; k < kElements; ++k) {
    held = Op::kApply(d, held, LoadFirst(d, elements + k * step + n, lanes - n));
  }
  StoreFirst(d, held, states + n, lanes - n);
}

template <class Op, typename T = typename Op::Number>
void ReduceColumns(const std::byte* elements, int64_t step, int64_t count, int64_t lanes,
                   std::byte* states) {
  constexpr int kElements = 8;
  const auto* from = reinterpret_cast<const T*>(elements);
  auto* const to = reinterpret_cast<T*>(states);
  int64_t k = 0;
  for (; k + kElements <= count; k += kElements) {
    ReduceElements<kElements, Op>(from + k * step, step, lanes, to);
  }
  for (; k < count; ++k) ReduceElements<1, Op>(from + k * step, step, lanes, to);
}

// The lanes of `vectors` vectors, from the first element of a part on: every kBlock-th row.
template <class Op, int vectors, class Load, typename T = typename Op::Number>
HWY_INLINE void ReducePart(const T* elements, int64_t step, int64_t rows,
                           const VecOf<T> (&begin)[vectors], const Load& load,
                           VecOf<T> (&held)[vectors]) {
  const TagOf<T> d;
  for (int v = 0; v < vectors; ++v) held[v] = begin[v];
  for (int64_t k = 0; k < rows; k += reference::kBlock) {
    const T* const row = elements + k * step;
    for (int v = 0; v < vectors; ++v) held[v] = Op::kApply(d, held[v], load(row, v));
  }
}

// Both halves of all parts of these lanes. load(row, v): vector v of a row.
template <class Op, int vectors, class Load, typename T = typename Op::Number>
HWY_INLINE void ReduceParts(const T* elements, int64_t step, int64_t count, const T* states,
                            const Load& load, T* joined, int64_t joined_step) {
  constexpr int64_t kHalf = reference::kBlock / 2;
  const TagOf<T> d;
  VecOf<T> begin[vectors], held[vectors], other[vectors];
  for (int v = 0; v < vectors; ++v) begin[v] = load(states, v);
  for (int64_t p = 0; p < std::min(kHalf, count); ++p) {
    ReducePart<Op, vectors>(elements + p * step, step, count - p, begin, load, held);
    if (p + kHalf < count) {
      ReducePart<Op, vectors>(elements + (p + kHalf) * step, step, count - p - kHalf, begin, load,
                              other);
      for (int v = 0; v < vectors; ++v) held[v] = Op::kApply(d, held[v], other[v]);
    }
    for (int v = 0; v < vectors; ++v) {
      hn::Store(held[v], d, joined + p * joined_step + v * kLanesOf<T>);
    }
  }
}

// As ReduceRow, of lanes that are different results: a block of lanes at a time, whose parts are
// joined in the L1 cache. Rows of a part lie far apart, so several vectors of each are read at
// once.
template <class Op, typename T = typename Op::Number>
void ReduceColumnsInParts(const std::byte* of_elements, int64_t step, int64_t count, int64_t lanes,
                          std::byte* of_states) {
  constexpr int64_t kBlock = 512 / sizeof(T);
  constexpr int64_t kHalf = reference::kBlock / 2;
  constexpr int kVectors = 4;
  constexpr int64_t kLanes = kLanesOf<T>;
  const TagOf<T> d;
  const auto* const elements = reinterpret_cast<const T*>(of_elements);
  auto* const states = reinterpret_cast<T*>(of_states);
  HWY_ALIGN T joined[kHalf][kBlock];
  for (int64_t first = 0; first < lanes; first += kBlock) {
    const int64_t block = std::min(kBlock, lanes - first);
    int64_t n = 0;
    const auto load = [d](const T* row, int v)
                          HWY_ATTR { return hn::LoadU(d, row + v * kLanesOf<T>); };
    for (; n + kVectors * kLanes <= block; n += kVectors * kLanes) {
      ReduceParts<Op, kVectors>(elements + first + n, step, count, states + first + n, load,
                                joined[0] + n, kBlock);
    }
    for (; n + kLanes <= block; n += kLanes) {
      ReduceParts<Op, 1>(elements + first + n, step, count, states + first + n, load, joined[0] + n,
                         kBlock);
    }
    if (n < block) {
      const auto load_rest = [d, left = block - n](const T* row, int /*v*/)
                                 HWY_ATTR { return LoadFirst(d, row, left); };
      ReduceParts<Op, 1>(elements + first + n, step, count, states + first + n, load_rest,
                         joined[0] + n, kBlock);
    }
    int64_t parts = std::min(kHalf, count);
    for (int64_t half = kHalf / 2; half > 0; half /= 2) {
      for (int64_t p = 0; p + half < parts; ++p) {
        for (n = 0; n < block; n += kLanes) {
          const VecOf<T> held = hn::Load(d, joined[p] + n);
          hn::Store(Op::kApply(d, held, hn::Load(d, joined[p + half] + n)), d, joined[p] + n);
        }
      }
      parts = std::min(parts, half);
    }
    std::copy_n(joined[0], block, states + first);
  }
}

template <class Op>
constexpr bool kHasOrder = std::is_floating_point_v<typename Op::Number>;

struct Rows {
  template <class Op>
  RowReduction Find() const {
    if constexpr (kHasOrder<Op>) {
      return ReduceRows<Op>;
    } else {
      return ReduceRowsInAnyOrder<Op>;
    }
  }
};

struct Columns {
  bool is_in_parts;
  template <class Op>
  ColumnReduction Find() const {
    if constexpr (kHasOrder<Op>) {
      if (is_in_parts) return ReduceColumnsInParts<Op>;
    }
    return ReduceColumns<Op>;
  }
};

// What `loops` has for an operation on a type, or null.
template <class Loops, typename Reduction = decltype(Loops().template Find<Operator<float, Sum>>())>
Reduction FindIn(const Loops& loops, program::ExprOp op, tensor::ElementType type) {
  // Lanes of bool are bytes of 0 and 1, of which there is no sum.
  if (tensor::IsBool(type)) {
    if (op == program::ExprOp::kAdd) return nullptr;
    type = tensor::ElementType::kUint8;
  }
  return tensor::VisitNative(type, [&]<typename T>(T) -> Reduction {
    constexpr bool is_float = std::is_floating_point_v<T>;
    switch (op) {
      case program::ExprOp::kAdd:
        return loops.template Find<Operator<T, Sum>>();
      case program::ExprOp::kMul:
        if constexpr (is_float) return loops.template Find<Operator<T, Product>>();
        return nullptr;
      case program::ExprOp::kMax:
        return loops
            .template Find<Operator<T, std::conditional_t<is_float, FloatMaximum, Maximum>>>();
      case program::ExprOp::kMin:
        return loops
            .template Find<Operator<T, std::conditional_t<is_float, FloatMinimum, Minimum>>>();
      default:
        return nullptr;
    }
  });
}

RowReduction FindOfRows(program::ExprOp op, tensor::ElementType type) {
  return FindIn(Rows(), op, type);
}

ColumnReduction FindOfColumns(program::ExprOp op, tensor::ElementType type, bool is_in_parts) {
  return FindIn(Columns{is_in_parts}, op, type);
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

HWY_EXPORT(FindOfRows);
HWY_EXPORT(FindOfColumns);
HWY_EXPORT(SpreadWords);

RowReduction FindRowReduction(program::ExprOp op, tensor::ElementType type) {
  return HWY_DYNAMIC_DISPATCH(FindOfRows)(op, type);
}

ColumnReduction FindColumnReduction(program::ExprOp op, tensor::ElementType type,
                                    bool is_in_parts) {
  return HWY_DYNAMIC_DISPATCH(FindOfColumns)(op, type, is_in_parts);
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
