// SPDX-License-Identifier: Apache-2.0
//
// ExtremePosition: of a row first the extreme, then where it is; of neighbours a vector of extremes
// and a vector of positions, and of short rows, too, whose elements are gathered.

#include "backends/cpu/engine/extreme_position.h"

#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "backends/core/tensor/native_type.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/engine/extreme_position.cc"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include <hwy/highway.h>

#ifndef ONNXIFI_BACKENDS_CPU_ENGINE_EXTREME_POSITION_CC_
#define ONNXIFI_BACKENDS_CPU_ENGINE_EXTREME_POSITION_CC_

namespace onnxifi::engine {

// The most neighbours of which positions are found before they are stored.
constexpr int64_t kNeighbours = 256;

// Loops of one type and one extreme; null where the type has none.
struct PositionSearch {
  // Of `count` elements, at least 1, that lie together.
  int64_t (*in_row)(const std::byte* row, int64_t count) = nullptr;
  // Of at most kNeighbours searches side by side, each among `count` elements `step` apart; results
  // are `result_step` apart.
  void (*of_neighbours)(const std::byte* source, int64_t count, int64_t step, int64_t neighbours,
                        int64_t* results, int64_t result_step) = nullptr;
  // The same of rows `row_step` apart, below kMaxRowStep.
  void (*of_rows)(const std::byte* source, int64_t count, int64_t row_step, int64_t rows,
                  int64_t* results, int64_t result_step) = nullptr;
};
constexpr int64_t kMaxRowStep = 1 << 24;

}  // namespace onnxifi::engine

#endif  // ONNXIFI_BACKENDS_CPU_ENGINE_EXTREME_POSITION_CC_

HWY_BEFORE_NAMESPACE();
namespace onnxifi::engine {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

template <typename T>
using TagOf = hn::ScalableTag<T>;
template <typename T>
using VecOf = hn::Vec<TagOf<T>>;
// As wide as T.
template <typename T>
using Position = hwy::MakeSigned<T>;

template <bool is_largest, class V>
HWY_INLINE V Extremer(V a, V b) {
  return is_largest ? hn::Max(a, b) : hn::Min(a, b);
}

// Calls body(first element) for vectors that cover [0, count), forwards or backwards; the last of
// them overlaps the one before. Ends where body answers true. `count` is at least a vector.
template <bool is_backwards, typename T, class Body>
HWY_INLINE void ForVectors(int64_t count, Body body) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(TagOf<T>()));
  int64_t done = 0;
  for (; done + lanes <= count; done += lanes) {
    if (body(is_backwards ? count - done - lanes : done)) return;
  }
  if (done < count) body(is_backwards ? 0 : count - lanes);
}

// The last lane for which `mask` is true; -1 if there is none.
template <class D, class Mask>
HWY_INLINE int64_t LastTrue(D d, Mask mask) {
  uint8_t bits[8] = {};
  hn::StoreMaskBits(d, mask, bits);
  uint64_t all = 0;
  std::memcpy(&all, bits, sizeof(all));
  return all == 0 ? -1 : 63 - __builtin_clzll(all);
}

// The first, or last, element for which a vector's `matches` is true; -1 if there is none.
template <bool takes_last, typename T, class Matches>
HWY_INLINE int64_t FindPosition(int64_t count, Matches matches) {
  const TagOf<T> d;
  int64_t position = -1;
  ForVectors<takes_last, T>(count, [&](int64_t at) HWY_ATTR {
    const auto mask = matches(at);
    const int64_t lane = takes_last ? LastTrue(d, mask) : hn::FindFirstTrue(d, mask);
    if (lane < 0) return false;
    position = at + lane;
    return true;
  });
  return position;
}

// Whether `candidate` takes the place of `best`, which was met before it.
template <bool is_largest, bool takes_last, typename T>
HWY_INLINE bool Takes(T candidate, T best) {
  if constexpr (std::is_floating_point_v<T>) {
    const bool is_nan = candidate != candidate;
    if (best != best) return takes_last && is_nan;
    if (is_nan) return true;
  }
  if (takes_last && candidate == best) return true;
  return is_largest ? candidate > best : candidate < best;
}

template <bool is_largest, bool takes_last, typename T>
int64_t PositionInRow(const T* row, int64_t count) {
  constexpr bool has_nan = std::is_floating_point_v<T>;
  const TagOf<T> d;
  using Vec = VecOf<T>;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  if (count < lanes) {
    int64_t position = 0;
    for (int64_t k = 1; k < count; ++k) {
      if (Takes<is_largest, takes_last>(row[k], row[position])) position = k;
    }
    return position;
  }
  // Four at a time, then the rest; what is met twice changes nothing.
  Vec best[4];
  Vec sum = hn::Zero(d);  // NaN where there was a NaN, if not only there
  for (auto& each : best) each = hn::LoadU(d, row);
  int64_t k = 0;
  for (; k + 4 * lanes <= count; k += 4 * lanes) {
#pragma GCC unroll 4
    for (int v = 0; v < 4; ++v) {
      const Vec x = hn::LoadU(d, row + k + v * lanes);
      best[v] = Extremer<is_largest>(x, best[v]);
      if constexpr (has_nan) sum = hn::Add(sum, x);
    }
  }
  ForVectors<false, T>(count - k < lanes ? lanes : count - k, [&](int64_t at) HWY_ATTR {
    const Vec x = hn::LoadU(d, row + (count - k < lanes ? count - lanes : k) + at);
    best[0] = Extremer<is_largest>(x, best[0]);
    if constexpr (has_nan) sum = hn::Add(sum, x);
    return false;
  });
  if (has_nan && !hn::AllTrue(d, hn::Eq(sum, sum))) {
    const int64_t position = FindPosition<takes_last, T>(count, [&](int64_t at) HWY_ATTR {
      const Vec x = hn::LoadU(d, row + at);
      return hn::Not(hn::Eq(x, x));
    });
    if (position >= 0) return position;
  }
  const Vec all = Extremer<is_largest>(Extremer<is_largest>(best[0], best[1]),
                                       Extremer<is_largest>(best[2], best[3]));
  const Vec extreme = is_largest ? hn::MaxOfLanes(d, all) : hn::MinOfLanes(d, all);
  return FindPosition<takes_last, T>(
      count, [&](int64_t at) HWY_ATTR { return hn::Eq(hn::LoadU(d, row + at), extreme); });
}

// Positions of kVectors vectors of searches among `count` elements; load(k, v): element k of each
// of vector v.
template <bool is_largest, bool takes_last, int kVectors, typename T, class Load>
HWY_INLINE void PositionsOfVectors(int64_t count, Load load, Position<T>* positions) {
  const TagOf<T> d;
  const TagOf<Position<T>> d_position;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  VecOf<T> best[kVectors];
  VecOf<Position<T>> at[kVectors];
  for (int v = 0; v < kVectors; ++v) {
    best[v] = load(0, v);
    at[v] = hn::Zero(d_position);
  }
  for (int64_t k = 1; k < count; ++k) {
    const auto position = hn::Set(d_position, static_cast<Position<T>>(k));
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      const auto x = load(k, v);
      const auto is_better = is_largest ? hn::Lt(best[v], x) : hn::Lt(x, best[v]);
      auto takes = is_better;
      if constexpr (takes_last) takes = hn::Or(is_better, hn::Eq(x, best[v]));
      if constexpr (std::is_floating_point_v<T>) {
        const auto is_nan = hn::Not(hn::Eq(x, x));
        takes = hn::Or(takes, takes_last ? is_nan : hn::And(is_nan, hn::Eq(best[v], best[v])));
      }
      best[v] = hn::IfThenElse(takes, x, best[v]);
      at[v] = hn::IfThenElse(hn::RebindMask(d_position, takes), position, at[v]);
    }
  }
  for (int v = 0; v < kVectors; ++v) hn::StoreU(at[v], d_position, positions + v * lanes);
}

template <bool is_largest, bool takes_last, typename T>
void PositionsOfNeighbours(const T* source, int64_t count, int64_t step, int64_t neighbours,
                           Position<T>* positions) {
  const TagOf<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t n = 0;
  const auto load = [&](int64_t k, int v)
                        HWY_ATTR { return hn::LoadU(d, source + n + v * lanes + k * step); };
  for (; n + 4 * lanes <= neighbours; n += 4 * lanes) {
    PositionsOfVectors<is_largest, takes_last, 4, T>(count, load, positions + n);
  }
  for (; n + lanes <= neighbours; n += lanes) {
    PositionsOfVectors<is_largest, takes_last, 1, T>(count, load, positions + n);
  }
  for (; n < neighbours; ++n) {
    int64_t position = 0;
    for (int64_t k = 1; k < count; ++k) {
      if (Takes<is_largest, takes_last>(source[n + k * step], source[n + position * step])) {
        position = k;
      }
    }
    positions[n] = static_cast<Position<T>>(position);
  }
}

template <bool is_largest, bool takes_last, typename T>
void PositionsOfRows(const T* source, int64_t count, int64_t row_step, int64_t rows,
                     Position<T>* positions) {
  const TagOf<T> d;
  const TagOf<Position<T>> d_position;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto places =
      hn::Mul(hn::Iota(d_position, 0), hn::Set(d_position, static_cast<Position<T>>(row_step)));
  int64_t n = 0;
  const auto load = [&](int64_t k, int v) HWY_ATTR {
    return hn::GatherIndex(d, source + (n + v * lanes) * row_step + k, places);
  };
  for (; n + 2 * lanes <= rows; n += 2 * lanes) {
    PositionsOfVectors<is_largest, takes_last, 2, T>(count, load, positions + n);
  }
  for (; n < rows; ++n) {
    positions[n] = static_cast<Position<T>>(
        PositionInRow<is_largest, takes_last>(source + n * row_step, count));
  }
}

template <bool is_largest, bool takes_last, typename T>
struct Search {
  static int64_t InRow(const std::byte* row, int64_t count) {
    return PositionInRow<is_largest, takes_last>(reinterpret_cast<const T*>(row), count);
  }
  static void OfNeighbours(const std::byte* source, int64_t count, int64_t step, int64_t neighbours,
                           int64_t* results, int64_t result_step) {
    Position<T> positions[kNeighbours];
    PositionsOfNeighbours<is_largest, takes_last>(reinterpret_cast<const T*>(source), count, step,
                                                  neighbours, positions);
    for (int64_t n = 0; n < neighbours; ++n) results[n * result_step] = positions[n];
  }
  static void OfRows(const std::byte* source, int64_t count, int64_t row_step, int64_t rows,
                     int64_t* results, int64_t result_step) {
    Position<T> positions[kNeighbours];
    PositionsOfRows<is_largest, takes_last>(reinterpret_cast<const T*>(source), count, row_step,
                                            rows, positions);
    for (int64_t n = 0; n < rows; ++n) results[n * result_step] = positions[n];
  }
};

template <typename T>
PositionSearch SearchOf(bool is_largest, bool takes_last) {
  const auto both = []<class S>(S) { return PositionSearch{S::InRow, S::OfNeighbours, S::OfRows}; };
  if (is_largest) {
    return takes_last ? both(Search<true, true, T>()) : both(Search<true, false, T>());
  }
  return takes_last ? both(Search<false, true, T>()) : both(Search<false, false, T>());
}

PositionSearch FindSearch(tensor::ElementType type, bool is_largest, bool takes_last) {
  return tensor::VisitNative(type, [&]<typename T>(T) -> PositionSearch {
    if constexpr (sizeof(T) >= sizeof(float)) {
      return SearchOf<T>(is_largest, takes_last);
    } else {
      return {};
    }
  });
}

int64_t FindInFloats(bool is_largest, bool takes_last, const float* row, int64_t count) {
  return SearchOf<float>(is_largest, takes_last)
      .in_row(reinterpret_cast<const std::byte*>(row), count);
}

}  // namespace HWY_NAMESPACE
}  // namespace onnxifi::engine
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <algorithm>
#include <string>
#include <vector>

#include "backends/cpu/engine/loop.h"
#include "backends/cpu/processor/processor.h"

namespace onnxifi::engine {
namespace {

HWY_EXPORT(FindSearch);
HWY_EXPORT(FindInFloats);

// Types that have no loops of their own, and whose numbers float32 has.
bool IsWidened(tensor::ElementType type) {
  switch (type) {
    case tensor::ElementType::kFloat16:
    case tensor::ElementType::kBfloat16:
    case tensor::ElementType::kInt8:
    case tensor::ElementType::kUint8:
    case tensor::ElementType::kInt16:
    case tensor::ElementType::kUint16:
      return true;
    default:
      return false;
  }
}

PositionSearch SearchFor(tensor::ElementType type, program::Extreme extreme) {
  if (IsWidened(type)) type = tensor::ElementType::kFloat32;
  return HWY_DYNAMIC_DISPATCH(FindSearch)(type, extreme.is_largest, extreme.takes_last);
}

class BoundExtremePosition final : public device::BoundKernel {
 public:
  // `lane_axis`: of the neighbours, or of rows that are searched together, whose elements lie side
  // by side then; -1: row by row.
  BoundExtremePosition(program::Extreme extreme, int lane_axis, const device::BoundStep& step,
                       Runtime& runtime)
      : lane_axis_(lane_axis),
        has_rows_(lane_axis >= 0 && step.reads[0].strides[static_cast<size_t>(lane_axis)] != 1),
        domain_(step.domain),
        source_(step.reads[0]),
        result_(step.writes[0]),
        search_(SearchFor(source_.type, extreme)),
        widen_(IsWidened(source_.type) ? FindCastLoop(source_.type, tensor::ElementType::kFloat32)
                                       : nullptr),
        element_bytes_(tensor::SizeBytes(source_.type, 1)),
        block_(BlockOf(lane_axis, domain_.back(), widen_ != nullptr)),
        runtime_(runtime) {
    if (widen_ != nullptr) {
      runtime.scratch().Reserve(domain_.back() * block_ * static_cast<int64_t>(sizeof(float)));
    }
  }

  // Neighbours of which positions are found before they are stored; of those that are widened
  // first, as few as leave them in a cache. 1 of rows.
  static int64_t BlockOf(int lane_axis, int64_t count, bool is_widened) {
    if (lane_axis < 0) return 1;
    constexpr int64_t kWidened = 1 << 16;
    return is_widened ? std::clamp<int64_t>(kWidened / count / 16 * 16, 16, kNeighbours)
                      : kNeighbours;
  }

  std::string Detail() const override {
    return std::string("position of an extreme, ") + processor::VectorName();
  }

  base::Status Run(device::Addresses addresses) const override {
    const size_t rank = domain_.size();
    const int64_t count = domain_.back();
    const int64_t lanes = lane_axis_ < 0 ? 1 : domain_[static_cast<size_t>(lane_axis_)];
    const int64_t blocks = (lanes + block_ - 1) / block_;
    int64_t rows = 1;
    for (size_t axis = 0; axis + 1 < rank; ++axis) {
      if (static_cast<int>(axis) != lane_axis_) rows *= domain_[axis];
    }
    const std::byte* const source = addresses[source_.buffer] + source_.offset * element_bytes_;
    auto* const result = reinterpret_cast<int64_t*>(addresses[result_.buffer]) + result_.offset;
    constexpr int64_t kCostOfElement = 150;  // picoseconds
    const int64_t cost = (count * kCostOfElement + 5000) * std::min(lanes, block_);
    return runtime_.For(rows * blocks, cost, [&](int64_t begin, int64_t end, std::byte* scratch) {
      for (int64_t item = begin; item < end; ++item) {
        int64_t from = 0, to = 0;
        int64_t row = item / blocks;
        for (size_t axis = rank - 1; axis-- > 0;) {
          if (static_cast<int>(axis) == lane_axis_) continue;
          const int64_t at = row % domain_[axis];
          row /= domain_[axis];
          from += at * source_.strides[axis];
          to += at * result_.strides[axis];
        }
        const int64_t first = lane_axis_ < 0 ? 0 : item % blocks * block_;
        const std::byte* elements = source + (from + first) * element_bytes_;
        if (has_rows_) {
          elements = source + (from + first * LaneStep()) * element_bytes_;
        }
        int64_t step = has_rows_ ? LaneStep() : source_.strides.back();
        const int64_t neighbours = std::min(block_, lanes - first);
        if (widen_ != nullptr) {
          Widen(elements, count, neighbours, scratch);
          elements = scratch;
          step = has_rows_ ? count : neighbours;
        }
        if (lane_axis_ < 0) {
          result[to] = search_.in_row(elements, count);
          continue;
        }
        const int64_t stride = result_.strides[static_cast<size_t>(lane_axis_)];
        const auto search = has_rows_ ? search_.of_rows : search_.of_neighbours;
        search(elements, count, step, neighbours, result + to + first * stride, stride);
      }
    });
  }

 private:
  // A row, or `count` rows of neighbours, as float32 behind one another.
  void Widen(const std::byte* elements, int64_t count, int64_t neighbours, std::byte* to) const {
    const auto widen = [&](const std::byte* from, int64_t lanes) {
      widen_({to, {from, nullptr, nullptr}, lanes, 0, tensor::ElementType::kFloat32, source_.type});
      to += lanes * static_cast<int64_t>(sizeof(float));
    };
    if (lane_axis_ < 0) return widen(elements, count);
    if (has_rows_) return widen(elements, count * neighbours);
    for (int64_t k = 0; k < count; ++k) {
      widen(elements + k * source_.strides.back() * element_bytes_, neighbours);
    }
  }

  int64_t LaneStep() const { return source_.strides[static_cast<size_t>(lane_axis_)]; }

  const int lane_axis_;
  const bool has_rows_;
  const tensor::Extents domain_;
  const device::BoundView source_, result_;
  const PositionSearch search_;
  const Loop widen_;  // null where there is a search of the type itself
  const int64_t element_bytes_;
  const int64_t block_;
  Runtime& runtime_;
};

}  // namespace

std::optional<program::Extreme> FindExtremePosition(const program::ExprPool& pool,
                                                    const program::Step& step) {
  const program::Reduce& reduce = *step.As<program::Reduce>();
  if (reduce.axes != 1 || reduce.roots.size() != 1 || step.reads.size() != 1 ||
      !step.reads[0].guards.empty()) {
    return std::nullopt;
  }
  const program::ExprNode& root = pool[reduce.roots[0]];
  if (root.op != program::ExprOp::kState || root.payload != 1) return std::nullopt;
  const std::optional<program::ArgExtreme> found = program::FindArgExtreme(pool, reduce.reduction);
  if (!found) return std::nullopt;
  const program::ExprNode* element = &pool[found->element];
  const program::ExprNode& index = pool[found->index];
  // Other types have numbers that float32 rounds to the same one, so they tie only after the cast.
  if (element->op == program::ExprOp::kCast && element->type == tensor::ElementType::kFloat32 &&
      IsWidened(pool[element->operands[0]].type)) {
    element = &pool[element->operands[0]];
  }
  const bool is_element = element->op == program::ExprOp::kLoad && element->operands.empty() &&
                          element->type == step.reads[0].type &&
                          SearchFor(element->type, found->extreme).in_row != nullptr;
  const bool is_index =
      index.op == program::ExprOp::kIndex && index.payload == step.domain.size() - 1;
  if (!is_element || !is_index) return std::nullopt;
  return found->extreme;
}

std::unique_ptr<device::BoundKernel> BindExtremePosition(program::Extreme extreme,
                                                         const device::BoundStep& step,
                                                         Runtime& runtime) {
  constexpr int64_t kMinNeighbours = 4, kMinRows = 32;
  const size_t reduced = step.domain.size() - 1;
  const int64_t count = step.domain[reduced];
  if (count < 1 || count > std::numeric_limits<int32_t>::max()) return nullptr;
  const tensor::ElementType type = step.reads[0].type;
  const bool is_widened = IsWidened(type);
  if (is_widened && FindCastLoop(type, tensor::ElementType::kFloat32) == nullptr) return nullptr;
  const std::vector<int64_t>& strides = step.reads[0].strides;
  int lane_axis = -1;
  if (strides[reduced] != 1 && count != 1) {
    for (size_t axis = 0; axis < reduced; ++axis) {
      if (strides[axis] == 1 && step.domain[axis] >= kMinNeighbours) {
        lane_axis = static_cast<int>(axis);
      }
    }
    if (lane_axis < 0) return nullptr;
  }
  // Shorter rows take longer to call than to search: some are searched together, and where there
  // are few, or widening is a call for each, tiles turn them around.
  constexpr int64_t kShortestRow = 16;
  if (lane_axis < 0 && count < kShortestRow) {
    for (size_t axis = 0; axis < reduced; ++axis) {
      const bool is_dense = strides[axis] == count;
      const bool is_near = strides[axis] > 1 && strides[axis] < kMaxRowStep;
      if (step.domain[axis] >= kMinRows && (is_widened ? is_dense && count > 1 : is_near)) {
        lane_axis = static_cast<int>(axis);
      }
    }
    if (lane_axis < 0) return nullptr;
  }
  // Longer rows would leave the caches once they are widened.
  constexpr int64_t kMaxWidened = 1 << 18;
  constexpr int64_t kMaxWidenedNeighbours = 1 << 12;
  if (is_widened && count > (lane_axis < 0 ? kMaxWidened : kMaxWidenedNeighbours)) return nullptr;
  return std::make_unique<BoundExtremePosition>(extreme, lane_axis, step, runtime);
}

int64_t FindExtremeInRow(program::Extreme extreme, const float* row, int64_t count) {
  return HWY_DYNAMIC_DISPATCH(FindInFloats)(extreme.is_largest, extreme.takes_last, row, count);
}

}  // namespace onnxifi::engine
#endif
