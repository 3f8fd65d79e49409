// SPDX-License-Identifier: Apache-2.0
//
// Reduction: the state of several vectors of channels stays in registers while the taps of a window
// pass. Maxima of bytes take a row of windows at a time: few channels fill one vector, and what is
// prepared for each window would take longer than its taps. Where windows overlap much, the maxima
// of the columns of pixels that they see are found first.

#include "backends/cpu/pooling/reduction.h"

#include <algorithm>
#include <cstddef>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/pooling/reduction.cc"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include <hwy/highway.h>

#include "backends/cpu/pooling/kinds-inl.h"

HWY_BEFORE_NAMESPACE();
namespace onnxifi::pooling {
namespace HWY_NAMESPACE {

// The quotient as division rounds it, sooner where that is stored as float32: `divisor` is a small
// integer and `inverse` its rounded inverse, so the first guess is close enough for one correction
// (Markstein) to hit. Of tiny numbers of float64 the rest would be none.
template <typename T, class D, class V = hn::Vec<D>>
HWY_INLINE V Divide(V dividend, V divisor, [[maybe_unused]] V inverse) {
#if HWY_NATIVE_FMA
  if constexpr (sizeof(T) == sizeof(double)) return hn::Div(dividend, divisor);
  const V guess = hn::Mul(dividend, inverse);
  const V rest = hn::NegMulAdd(guess, divisor, dividend);
  // Infinities have no rest.
  return hn::IfThenElse(hn::Eq(rest, rest), hn::MulAdd(rest, inverse, guess), guess);
#else
  return hn::Div(dividend, divisor);
#endif
}

// What the channels of one output see.
template <typename T>
struct Seen {
  const T* first;  // its first channel at the first tap
  std::array<int64_t, kSpatialAxes> counts;
  std::array<int64_t, kSpatialAxes> strides;
  double divisor;

  template <class Visit>
  HWY_INLINE void ForEach(int64_t channel, Visit visit) const {
    const T* plane = first + channel;
    for (int64_t z = 0; z < counts[0]; ++z, plane += strides[0]) {
      const T* row = plane;
      for (int64_t y = 0; y < counts[1]; ++y, row += strides[1]) {
        const T* tap = row;
        for (int64_t x = 0; x < counts[2]; ++x, tap += strides[2]) visit(tap);
      }
    }
  }

  template <typename Result, class D, class V = hn::Vec<D>>
  HWY_INLINE auto Divider(D d) const {
    const V all = hn::Set(d, divisor);
    const V inverse = hn::Set(d, 1 / divisor);
    return [=](V sums, int64_t /*at*/) HWY_ATTR { return Divide<Result, D>(sums, all, inverse); };
  }
};

template <class Kind>
void ForPixels(const Windows& windows, const Block& block, const std::byte* source_bytes,
               std::byte* result_bytes) {
  using Element = typename Kind::Element;
  const auto* const source = reinterpret_cast<const Element*>(source_bytes);
  auto* const result = reinterpret_cast<Element*>(result_bytes);
  Seen<Element> seen;
  seen.strides = windows.tap_strides;
  std::array<int64_t, kSpatialAxes> at;
  for (at[0] = 0; at[0] < block.extents[0]; ++at[0]) {
    for (at[1] = 0; at[1] < block.extents[1]; ++at[1]) {
      for (at[2] = 0; at[2] < block.extents[2]; ++at[2]) {
        int64_t offset = 0;
        int64_t counted = 1;
        for (int axis = 0; axis < kSpatialAxes; ++axis) {
          const Taps& taps = windows.taps[axis][static_cast<size_t>(block.begin[axis] + at[axis])];
          offset += taps.first * windows.strides[axis];
          seen.counts[axis] = taps.count;
          counted *= windows.counts_padding ? taps.counted : taps.count;
        }
        seen.first = source + offset;
        // Where nothing counts there is nothing but a sum of 0.
        seen.divisor = static_cast<double>(counted > 0 ? counted : 1);
        int64_t target = 0;
        for (int axis = 0; axis < kSpatialAxes; ++axis) target += at[axis] * block.strides[axis];
        ForElements<Kind, 8>(seen, block.channels, result + target);
      }
    }
  }
}

// Windows along one row, and the rows of the source that they see.
constexpr int64_t kMaxRows = 32;
template <typename T>
struct RowOfWindows {
  std::array<const T*, kMaxRows> rows;  // the block's first channel at the first pixel of each
  int64_t row_count;
  const Taps* taps;  // by window
  int64_t windows;
  int64_t pixel_stride, tap_stride;
  int64_t channels;
  T* result;
  int64_t result_stride;
};

// The maxima of some channels, window by window.
template <class D, typename T = hn::TFromD<D>>
void FindMaxima(D d, const RowOfWindows<T>& row, int64_t channel) {
  T* result = row.result + channel;
  for (int64_t window = 0; window < row.windows; ++window, result += row.result_stride) {
    const Taps& taps = row.taps[window];
    auto maximum = hn::Set(d, MaximumOfPlain<T>::Identity());
    for (int64_t r = 0; r < row.row_count; ++r) {
      const T* tap = row.rows[static_cast<size_t>(r)] + taps.first * row.pixel_stride + channel;
      for (int64_t k = 0; k < taps.count; ++k, tap += row.tap_stride) {
        maximum = hn::Max(hn::LoadU(d, tap), maximum);
      }
    }
    hn::StoreU(maximum, d, result);
  }
}

// The same; each pixel's column first. No pixels lie between the taps of a window.
template <class D, typename T = hn::TFromD<D>>
void FindMaximaByColumns(D d, const RowOfWindows<T>& row, int64_t channel) {
  constexpr int64_t kPixels = 256;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  HWY_ALIGN T columns[kPixels * HWY_MAX_BYTES];
  const auto end_of = [&](int64_t window) {
    return row.taps[window].first + row.taps[window].count;
  };
  for (int64_t begin = 0; begin < row.windows;) {
    if (row.taps[begin].count == 0 || row.taps[begin].count > kPixels) {
      RowOfWindows<T> one = row;
      one.taps += begin;
      one.windows = 1;
      one.result += begin * row.result_stride;
      FindMaxima(d, one, channel);
      ++begin;
      continue;
    }
    const int64_t first = row.taps[begin].first;
    int64_t end = begin + 1;
    while (end < row.windows && row.taps[end].count > 0 && end_of(end) - first <= kPixels) ++end;
    const int64_t pixels = end_of(end - 1) - first;
    for (int64_t pixel = 0; pixel < pixels; ++pixel) {
      const int64_t offset = (first + pixel) * row.pixel_stride + channel;
      auto maximum = hn::Set(d, MaximumOfPlain<T>::Identity());
      for (int64_t r = 0; r < row.row_count; ++r) {
        maximum = hn::Max(hn::LoadU(d, row.rows[static_cast<size_t>(r)] + offset), maximum);
      }
      hn::Store(maximum, d, columns + pixel * lanes);
    }
    for (int64_t window = begin; window < end; ++window) {
      const T* tap = columns + (row.taps[window].first - first) * lanes;
      auto maximum = hn::Load(d, tap);
      for (int64_t k = 1; k < row.taps[window].count; ++k) {
        maximum = hn::Max(hn::Load(d, tap + k * lanes), maximum);
      }
      hn::StoreU(maximum, d, row.result + window * row.result_stride + channel);
    }
    begin = end;
  }
}

// In vectors of at most so many channels, of which the last may overlap the one before it.
template <size_t kLanes, typename T>
void ReduceRow(const RowOfWindows<T>& row, bool by_columns) {
  const hn::CappedTag<T, kLanes> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  if constexpr (kLanes > 1) {
    if (row.channels < lanes) return ReduceRow<kLanes / 2>(row, by_columns);
  }
  for (int64_t channel = 0; channel < row.channels; channel += lanes) {
    const int64_t at = std::min(channel, row.channels - lanes);
    by_columns ? FindMaximaByColumns(d, row, at) : FindMaxima(d, row, at);
  }
}

// False, and nothing is written, where windows see too many rows.
template <typename T>
bool ReduceRows(const Windows& windows, const Block& block, const std::byte* source_bytes,
                std::byte* result_bytes) {
  const auto first = [&](int axis) {
    return windows.taps[axis].data() + block.begin[static_cast<size_t>(axis)];
  };
  const auto most = [&](int axis) {
    int64_t count = 0;
    for (int64_t at = 0; at < block.extents[axis]; ++at) {
      count = std::max(count, first(axis)[at].count);
    }
    return count;
  };
  const int64_t planes = most(0), rows = most(1), pixels = most(2);
  if (planes > kMaxRows || rows > kMaxRows || planes * rows > kMaxRows) return false;
  const auto* const source = reinterpret_cast<const T*>(source_bytes);
  RowOfWindows<T> row{};
  row.taps = first(2);
  row.windows = block.extents[2];
  row.pixel_stride = windows.strides[2];
  row.tap_stride = windows.tap_strides[2];
  row.channels = block.channels;
  row.result_stride = block.strides[2];
  // Loads and stores of one way and of the other.
  const int64_t seen = row.windows > 1 ? (row.taps[row.windows - 1].first - row.taps[0].first) : 0;
  const bool by_columns = row.tap_stride == row.pixel_stride && row.windows > 1 && seen >= 0 &&
                          (planes * rows + 1) * (seen + pixels) + pixels * row.windows <
                              planes * rows * pixels * row.windows;
  for (int64_t z = 0; z < block.extents[0]; ++z) {
    for (int64_t y = 0; y < block.extents[1]; ++y) {
      row.row_count = 0;
      const Taps& of_plane = first(0)[z];
      const Taps& of_row = first(1)[y];
      for (int64_t tap_z = 0; tap_z < of_plane.count; ++tap_z) {
        for (int64_t tap_y = 0; tap_y < of_row.count; ++tap_y) {
          row.rows[static_cast<size_t>(row.row_count++)] =
              source + of_plane.first * windows.strides[0] + tap_z * windows.tap_strides[0] +
              of_row.first * windows.strides[1] + tap_y * windows.tap_strides[1];
        }
      }
      row.result = reinterpret_cast<T*>(result_bytes) + z * block.strides[0] + y * block.strides[1];
      ReduceRow<HWY_MAX_BYTES>(row, by_columns && row.row_count > 0);
    }
  }
  return true;
}

void ReduceBlock(const Windows& windows, const Block& block, const std::byte* source,
                 std::byte* result) {
  const bool is_signed = windows.type == tensor::ElementType::kInt8;
  if (is_signed || windows.type == tensor::ElementType::kUint8) {
    const auto reduce = is_signed ? ReduceRows<int8_t> : ReduceRows<uint8_t>;
    if (reduce(windows, block, source, result)) return;
  }
  WithKind(windows.kind == Windows::Kind::kAverage, windows.type,
           [&](auto kind) { ForPixels<decltype(kind)>(windows, block, source, result); });
}

}  // namespace HWY_NAMESPACE
}  // namespace onnxifi::pooling
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace onnxifi::pooling {

HWY_EXPORT(ReduceBlock);

void ReduceWindows(const Windows& windows, const Block& block, const std::byte* source,
                   std::byte* result) {
  HWY_DYNAMIC_DISPATCH(ReduceBlock)(windows, block, source, result);
}

}  // namespace onnxifi::pooling
#endif
