// SPDX-License-Identifier: Apache-2.0
//
// Computed loads: coordinates become element numbers in blocks that stay in the L1 cache, which
// vectors gather. Lanes at which a guard fails gather what another lane does, and are filled.

#include "backends/cpu/engine/computed_loads.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/engine/computed_loads.cc"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include <hwy/highway.h>

#include "backends/cpu/engine/geometry.h"

#ifndef ONNXIFI_ENGINE_COMPUTED_LOADS_TERM_
#define ONNXIFI_ENGINE_COMPUTED_LOADS_TERM_
namespace onnxifi::engine {

// step * coordinate, of a coordinate that differs between lanes.
struct Term {
  const int64_t* numbers;
  int64_t step;
};
struct Terms {
  int64_t offset = 0;
  int count = 0;
  Term terms[kMaxAxes];
};
struct Bounds {
  int64_t lowest;
  int64_t highest;
};

}  // namespace onnxifi::engine
#endif

HWY_BEFORE_NAMESPACE();
namespace onnxifi::engine {
namespace HWY_NAMESPACE {

// Plain loops, which the compiler makes vectors of, per target.
void AddMultiplesHere(int64_t step, const int64_t* HWY_RESTRICT numbers, int64_t count,
                      int64_t* HWY_RESTRICT sums) {
  const auto factor = static_cast<uint64_t>(step);
  if (factor == 1) {  // has no product, which is slow in vectors of 64 bits
    for (int64_t k = 0; k < count; ++k) {
      sums[k] =
          static_cast<int64_t>(static_cast<uint64_t>(sums[k]) + static_cast<uint64_t>(numbers[k]));
    }
    return;
  }
  for (int64_t k = 0; k < count; ++k) {
    sums[k] = static_cast<int64_t>(static_cast<uint64_t>(sums[k]) +
                                   factor * static_cast<uint64_t>(numbers[k]));
  }
}

// sums[k] = offset + the terms' sum.
Bounds SumTermsHere(const Terms& terms, int64_t begin, int64_t count, int64_t* HWY_RESTRICT sums) {
  for (int64_t k = 0; k < count; ++k) sums[k] = terms.offset;
  for (int t = 0; t < terms.count; ++t) {
    AddMultiplesHere(terms.terms[t].step, terms.terms[t].numbers + begin, count, sums);
  }
  int64_t lowest = sums[0];
  int64_t highest = sums[0];
  for (int64_t k = 1; k < count; ++k) {
    lowest = sums[k] < lowest ? sums[k] : lowest;
    highest = sums[k] > highest ? sums[k] : highest;
  }
  return {lowest, highest};
}

// inside[k] stays -1 where start + numbers[k], modulo 2^64, lies in [0, extent), else becomes 0.
void KeepInsideHere(const int64_t* HWY_RESTRICT numbers, int64_t start, int64_t extent,
                    int64_t count, int64_t* HWY_RESTRICT inside) {
  const auto end = static_cast<uint64_t>(extent > 0 ? extent : 0);
  for (int64_t k = 0; k < count; ++k) {
    const uint64_t number = static_cast<uint64_t>(numbers[k]) + static_cast<uint64_t>(start);
    inside[k] &= number < end ? -1 : 0;
  }
}

// targets[k] = inside[k] ? elements[k] : instead.
Bounds SelectElementsHere(const int64_t* HWY_RESTRICT elements, const int64_t* HWY_RESTRICT inside,
                          int64_t instead, int64_t count, int64_t* HWY_RESTRICT targets) {
  int64_t lowest = instead;
  int64_t highest = instead;
  for (int64_t k = 0; k < count; ++k) {
    const int64_t element = (elements[k] & inside[k]) | (instead & ~inside[k]);
    targets[k] = element;
    lowest = element < lowest ? element : lowest;
    highest = element > highest ? element : highest;
  }
  return {lowest, highest};
}

void NarrowPositionsHere(const int64_t* HWY_RESTRICT elements, int64_t first, int64_t count,
                         int32_t* HWY_RESTRICT positions) {
  for (int64_t k = 0; k < count; ++k) positions[k] = static_cast<int32_t>(elements[k] - first);
}

}  // namespace HWY_NAMESPACE
}  // namespace onnxifi::engine
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "backends/core/reference/column.h"
#include "backends/cpu/engine/gather.h"
#include "backends/cpu/engine/lane_types.h"

namespace onnxifi::engine {
namespace {

HWY_EXPORT(AddMultiplesHere);
HWY_EXPORT(SumTermsHere);
HWY_EXPORT(KeepInsideHere);
HWY_EXPORT(SelectElementsHere);
HWY_EXPORT(NarrowPositionsHere);

constexpr int64_t kBlock = 256;

// The lanes of a block: how far each guard's number reaches, and the elements as positions from the
// first of them.
class Block {
 public:
  static constexpr size_t kMaxGuards = 8;
  // Rows for which it takes less time to find windows than to gather without.
  static constexpr int64_t kWorthWindows = 4;

  // Of the coordinates of `view` only those in `columns` count here: they differ between lanes.
  // `loads`: how many rows have the same coordinates of lanes.
  Block(const device::BoundView& view, std::span<const std::byte* const> numbers, uint32_t columns,
        int64_t loads)
      : view_(view), elements_terms_(MakeTerms(view.strides, numbers, columns)), loads_(loads) {
    for (const device::BoundGuard& guard : view.guards) {
      if (guard_count_ == kMaxGuards) break;
      guards_[guard_count_++] = MakeTerms(guard.coefficients, numbers, columns);
    }
  }

  void MoveTo(int64_t begin, int64_t count) {
    begin_ = begin;
    count_ = count;
    reach_ = HWY_DYNAMIC_DISPATCH(SumTermsHere)(elements_terms_, begin, count, elements_);
    for (size_t g = 0; g < guard_count_; ++g) {
      const Terms& guard = guards_[g];
      guard_reach_[g] = guard.count == 0
                            ? Bounds{0, 0}
                            : HWY_DYNAMIC_DISPATCH(SumTermsHere)(guard, begin, count, guarded_);
    }
    has_positions_ = false;
    masked_count_ = 0;
  }

  // Loads the block, the other coordinates of which add up to `element` and, per guard, to
  // guarded(g).
  template <typename T, typename Guarded>
  void Load(const std::byte* base, int64_t element, Guarded&& guarded, T fill, T* lanes) {
    if (guard_count_ != view_.guards.size()) {
      return LoadOneByOne(base, element, guarded, fill, lanes);
    }
    // Guards that let some of the lanes pass, and their numbers but for what differs between lanes.
    std::array<size_t, kMaxGuards> partial;
    std::array<int64_t, kMaxGuards> starts;
    size_t partial_count = 0;
    for (size_t g = 0; g < guard_count_; ++g) {
      const int64_t start = guarded(g);
      const int64_t extent = view_.guards[g].extent;
      if (guards_[g].count == 0) {
        if (start >= 0 && start < extent) continue;
        std::fill_n(lanes, count_, fill);
        return;
      }
      // Neither sum wraps where both lie in [0, extent).
      if (IsWithin(start, guard_reach_[g].lowest, extent) &&
          IsWithin(start, guard_reach_[g].highest, extent)) {
        continue;
      }
      partial[partial_count] = g;
      starts[partial_count++] = start;
    }
    if (partial_count > 0) {
      return LoadGuarded(base, element, {partial.data(), partial_count}, starts, fill, lanes);
    }
    if (!IsGatherable(ElementAt<T>(base, WrapMulAdd(element, reach_.lowest, 1)), reach_)) {
      return LoadEach(base, element, elements_, lanes);
    }
    if (!has_positions_) {
      HWY_DYNAMIC_DISPATCH(NarrowPositionsHere)(elements_, reach_.lowest, count_, positions_);
      FindRun();
      is_near_ = run_begin_ == run_end_ && loads_ >= kWorthWindows &&
                 near_.Find(positions_, count_, sizeof(T));
      has_positions_ = true;
    }
    const auto* const first = reinterpret_cast<const std::byte*>(
        ElementAt<T>(base, WrapMulAdd(element, reach_.lowest, 1)));
    if (is_near_) return near_.Run(first, reinterpret_cast<std::byte*>(lanes));
    const auto gather = [&](int64_t begin, int64_t end) {
      if (begin == end) return;
      Gather(first, positions_ + begin, end - begin, reinterpret_cast<std::byte*>(lanes + begin),
             sizeof(T));
    };
    if (run_begin_ == run_end_) return gather(0, count_);
    gather(0, run_begin_);
    std::memcpy(lanes + run_begin_, first + static_cast<size_t>(positions_[run_begin_]) * sizeof(T),
                static_cast<size_t>(run_end_ - run_begin_) * sizeof(T));
    gather(run_end_, count_);
  }

 private:
  static Terms MakeTerms(std::span<const int64_t> steps, std::span<const std::byte* const> numbers,
                         uint32_t columns) {
    Terms terms;
    for (size_t axis = 0; axis < numbers.size(); ++axis) {
      if (steps[axis] == 0 || (columns >> axis & 1) == 0) continue;
      terms.terms[terms.count++] = {reinterpret_cast<const int64_t*>(numbers[axis]), steps[axis]};
    }
    return terms;
  }

  static bool IsWithin(int64_t start, int64_t reach, int64_t extent) {
    int64_t sum = 0;
    return !__builtin_add_overflow(start, reach, &sum) && sum >= 0 && sum < extent;
  }

  template <typename Element>
  static bool IsGatherable(const Element* first, const Bounds& reach) {
    int64_t width = 0;
    return !__builtin_sub_overflow(reach.highest, reach.lowest, &width) && width <= INT32_MAX &&
           IsAligned(reinterpret_cast<const std::byte*>(first), sizeof(Element));
  }

  // The longest run of neighbours, as what is padded has; none where it is short.
  void FindRun() {
    constexpr int64_t kWorthACopy = 16;
    run_begin_ = run_end_ = 0;
    // What is enlarged or shrunk has none.
    const int64_t reach = reach_.highest - reach_.lowest + 1;
    if (reach < count_ / 4 * 3 || reach > count_ + count_ / 4) return;
    for (int64_t begin = 0; begin < count_;) {
      int64_t end = begin + 1;
      while (end < count_ && positions_[end] == positions_[end - 1] + 1) ++end;
      if (end - begin >= kWorthACopy && end - begin > run_end_ - run_begin_) {
        run_begin_ = begin;
        run_end_ = end;
      }
      begin = end;
    }
  }

  template <typename T>
  void LoadEach(const std::byte* base, int64_t element, const int64_t* elements, T* lanes) const {
    for (int64_t k = 0; k < count_; ++k) {
      lanes[k] = ElementAt<T>(base, WrapMulAdd(element, elements[k], 1))->value;
    }
  }

  // Which lanes pass, and where the others load instead, is kept for the next row.
  template <typename T>
  void LoadGuarded(const std::byte* base, int64_t element, std::span<const size_t> guards,
                   const std::array<int64_t, kMaxGuards>& starts, T fill, T* lanes) {
    if (!std::ranges::equal(guards, std::span(masked_guards_).first(masked_count_)) ||
        !std::equal(starts.begin(), starts.begin() + static_cast<std::ptrdiff_t>(guards.size()),
                    masked_starts_.begin())) {
      FindInside(guards, starts);
    }
    if (!is_any_inside_) {
      std::fill_n(lanes, count_, fill);
      return;
    }
    const auto* const first = ElementAt<T>(base, WrapMulAdd(element, masked_reach_.lowest, 1));
    if (IsGatherable(first, masked_reach_)) {
      Gather(reinterpret_cast<const std::byte*>(first), masked_positions_, count_,
             reinterpret_cast<std::byte*>(lanes), sizeof(T));
    } else {
      LoadEach(base, element, masked_elements_, lanes);
    }
    for (int64_t k = 0; k < count_; ++k) lanes[k] = inside_[k] != 0 ? lanes[k] : fill;
  }

  void FindInside(std::span<const size_t> guards, const std::array<int64_t, kMaxGuards>& starts) {
    std::fill_n(inside_, count_, int64_t{-1});
    for (size_t k = 0; k < guards.size(); ++k) {
      const Terms& guard = guards_[guards[k]];
      HWY_DYNAMIC_DISPATCH(SumTermsHere)(guard, begin_, count_, guarded_);
      HWY_DYNAMIC_DISPATCH(KeepInsideHere)
      (guarded_, starts[k], view_.guards[guards[k]].extent, count_, inside_);
    }
    masked_count_ = guards.size();
    std::ranges::copy(guards, masked_guards_.begin());
    masked_starts_ = starts;
    const int64_t* const some = std::find(inside_, inside_ + count_, int64_t{-1});
    is_any_inside_ = some != inside_ + count_;
    if (!is_any_inside_) return;
    masked_reach_ = HWY_DYNAMIC_DISPATCH(SelectElementsHere)(
        elements_, inside_, elements_[some - inside_], count_, masked_elements_);
    HWY_DYNAMIC_DISPATCH(NarrowPositionsHere)
    (masked_elements_, masked_reach_.lowest, count_, masked_positions_);
  }

  // The same with any number of guards.
  template <typename T, typename Guarded>
  void LoadOneByOne(const std::byte* base, int64_t element, Guarded&& guarded, T fill, T* lanes) {
    for (int64_t k = 0; k < count_; ++k) {
      bool is_inside = true;
      for (size_t g = 0; g < view_.guards.size() && is_inside; ++g) {
        int64_t number = guarded(g);
        if (g < guard_count_) {
          for (int t = 0; t < guards_[g].count; ++t) {
            const Term& term = guards_[g].terms[t];
            number = WrapMulAdd(number, term.step, term.numbers[begin_ + k]);
          }
        }
        is_inside = number >= 0 && number < view_.guards[g].extent;
      }
      lanes[k] = is_inside ? ElementAt<T>(base, WrapMulAdd(element, elements_[k], 1))->value : fill;
    }
  }

  const device::BoundView& view_;
  const Terms elements_terms_;
  Terms guards_[kMaxGuards];
  size_t guard_count_ = 0;
  int64_t begin_ = 0;
  int64_t count_ = 0;
  Bounds reach_{};
  Bounds guard_reach_[kMaxGuards];
  bool has_positions_ = false;
  const int64_t loads_;
  int64_t run_begin_ = 0, run_end_ = 0;
  bool is_near_ = false;
  NearGather near_;
  int64_t elements_[kBlock];
  int64_t guarded_[kBlock];
  // Of the guards and starts that the lanes were last held against, none at first.
  size_t masked_count_ = 0;
  std::array<size_t, kMaxGuards> masked_guards_{};
  std::array<int64_t, kMaxGuards> masked_starts_{};
  bool is_any_inside_ = false;
  Bounds masked_reach_{};
  int64_t inside_[kBlock];
  int64_t masked_elements_[kBlock];
  int32_t masked_positions_[kBlock];
  int32_t positions_[kBlock];
};

// Calls load(T{}, fill) for the type of the view's lanes.
template <typename Load>
void WithFill(const device::BoundView& view, Load&& load) {
  std::byte bytes[8] = {};
  tensor::StoreScalar(view.type, bytes, 0, view.fill);
  WithLaneType(reference::LaneBytes(view.type), [&](auto lane_type) {
    decltype(lane_type) fill;
    std::memcpy(&fill, bytes, sizeof(fill));
    load(lane_type, fill);
  });
}

// The part of a linear form that is one number per row, without columns and from the row's begin:
// what differs between rows, by axis.
class RowForm {
 public:
  RowForm(const RowCoordinates& coordinates, int64_t offset, std::span<const int64_t> steps)
      : offset_(offset) {
    for (size_t axis = 0; axis < coordinates.numbers.size(); ++axis) {
      if (steps[axis] == 0 || (coordinates.columns >> axis & 1) != 0) continue;
      if (static_cast<int>(axis) == coordinates.along) {
        step_ = steps[axis];
        offset_ = WrapMulAdd(offset_, step_, coordinates.begin);
      } else {
        terms_[count_++] = {reinterpret_cast<const int64_t*>(coordinates.numbers[axis]),
                            steps[axis]};
      }
    }
  }

  int64_t At(int64_t row) const {
    int64_t number = offset_;
    for (int t = 0; t < count_; ++t) {
      number = WrapMulAdd(number, terms_[t].step, terms_[t].numbers[row]);
    }
    return number;
  }
  // From lane to lane of a row.
  int64_t step() const { return step_; }

 private:
  int64_t offset_;
  int64_t step_ = 0;
  int count_ = 0;
  Term terms_[kMaxAxes];
};

std::vector<RowForm> GuardForms(const device::BoundView& view, const RowCoordinates& coordinates) {
  std::vector<RowForm> forms;
  forms.reserve(view.guards.size());
  for (const device::BoundGuard& guard : view.guards) {
    forms.emplace_back(coordinates, guard.offset, guard.coefficients);
  }
  return forms;
}

// Rows whose lanes lie a step apart.
template <typename T>
void LoadRuns(const device::BoundView& view, const std::byte* base,
              const RowCoordinates& coordinates, T fill, T* lanes) {
  const int64_t length = coordinates.length;
  const RowForm elements(coordinates, view.offset, view.strides);
  const std::vector<RowForm> guards = GuardForms(view, coordinates);
  for (int64_t row = 0; row < coordinates.rows; ++row, lanes += length) {
    int64_t low = 0;
    int64_t high = length;
    for (size_t g = 0; g < guards.size(); ++g) {
      const int64_t extent = view.guards[g].extent;
      const int64_t number = guards[g].At(row);
      if (guards[g].step() != 0) {
        Narrow(number, guards[g].step(), extent, low, high);
      } else if (number < 0 || number >= extent) {
        high = low;
      }
    }
    low = std::min(low, length);
    high = std::clamp(high, low, length);
    Fill(lanes, low, fill);
    if (low < high) {
      const int64_t first = WrapMulAdd(elements.At(row), elements.step(), low);
      LoadRun(ElementAt<T>(base, first), elements.step(), high - low, lanes + low);
    }
    Fill(lanes + high, length - high, fill);
  }
}

}  // namespace

void AddMultiples(int64_t step, const int64_t* numbers, int64_t count, int64_t* sums) {
  HWY_DYNAMIC_DISPATCH(AddMultiplesHere)(step, numbers, count, sums);
}

void LoadAt(const device::BoundView& view, const std::byte* base,
            std::span<const std::byte* const> coordinates, int64_t count, std::byte* lanes) {
  WithFill(view, [&]<typename T>(T, T fill) {
    Block block(view, coordinates, ~uint32_t{0}, /*loads=*/1);
    for (int64_t begin = 0; begin < count; begin += kBlock) {
      block.MoveTo(begin, std::min(kBlock, count - begin));
      block.Load(
          base, view.offset, [&](size_t g) { return view.guards[g].offset; }, fill,
          reinterpret_cast<T*>(lanes) + begin);
    }
  });
  if (view.type == tensor::ElementType::kBool) MakeBool(reinterpret_cast<uint8_t*>(lanes), count);
}

void LoadRowsAt(const device::BoundView& view, const std::byte* base,
                const RowCoordinates& coordinates, std::byte* lanes) {
  const int64_t length = coordinates.length;
  WithFill(view, [&]<typename T>(T, T fill) {
    auto* typed = reinterpret_cast<T*>(lanes);
    if (coordinates.columns == 0) return LoadRuns(view, base, coordinates, fill, typed);
    Block block(view, coordinates.numbers, coordinates.columns, coordinates.rows);
    const RowForm elements(coordinates, view.offset, view.strides);
    const std::vector<RowForm> guards = GuardForms(view, coordinates);
    for (int64_t begin = 0; begin < length; begin += kBlock) {
      block.MoveTo(begin, std::min(kBlock, length - begin));
      for (int64_t row = 0; row < coordinates.rows; ++row) {
        block.Load(
            base, elements.At(row), [&](size_t g) { return guards[g].At(row); }, fill,
            typed + row * length + begin);
      }
    }
  });
  if (view.type == tensor::ElementType::kBool) {
    MakeBool(reinterpret_cast<uint8_t*>(lanes), coordinates.rows * length);
  }
}

}  // namespace onnxifi::engine
#endif
