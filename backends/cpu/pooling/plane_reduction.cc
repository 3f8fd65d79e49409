// SPDX-License-Identifier: Apache-2.0
//
// PlaneReduction: a list of pointers says where the first window of a row sees its taps; those of
// the windows behind lie behind. Where windows of a row are few, the same output of several planes
// is reduced at once, an element at a time.

#include "backends/cpu/pooling/plane_reduction.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "backends/cpu/pooling/row_copy.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/pooling/plane_reduction.cc"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include <hwy/highway.h>

#include "backends/cpu/pooling/kinds-inl.h"

HWY_BEFORE_NAMESPACE();
namespace onnxifi::pooling {
namespace HWY_NAMESPACE {

// What the windows of one row see.
template <typename T>
struct RowTaps {
  std::span<const T* const> taps;
  const double* counts;  // along the row
  double rows;           // that count

  template <class Visit>
  HWY_INLINE void ForEach(int64_t at, Visit visit) const {
    for (const T* tap : taps) visit(tap + at);
  }

  template <typename Result, class D, class V = hn::Vec<D>>
  HWY_INLINE auto Divider(D d) const {
    const V all = hn::Set(d, rows);
    const double* const each = counts;
    return [=](V sums, int64_t at)
               HWY_ATTR { return hn::Div(sums, hn::Mul(all, hn::LoadU(d, each + at))); };
  }
};

// The divisor of nothing is 1: its sum is 0.
inline double CountOf(const Windows& windows, const Taps& taps) {
  return static_cast<double>(
      std::max<int64_t>(1, windows.counts_padding ? taps.counted : taps.count));
}

// Elements `first` + k * stride of a row of `in` elements, for k in [0, length), with `identity`
// for those beyond its ends.
template <typename T>
HWY_INLINE void CopyRemainder(const T* row, int64_t in, int64_t first, int64_t stride,
                              int64_t length, T identity, T* to) {
  const int64_t low =
      std::clamp<int64_t>(first >= 0 ? 0 : (-first + stride - 1) / stride, 0, length);
  const int64_t high =
      std::clamp<int64_t>(first >= in ? 0 : (in - first + stride - 1) / stride, low, length);
  std::fill_n(to, low, identity);
  const T* from = row + first;
  if (stride == 1) {
    std::copy(from + low, from + high, to + low);
  } else {
    for (int64_t k = low; k < high; ++k) to[k] = from[k * stride];
  }
  std::fill_n(to + high, length - high, identity);
}

// Both remainders of a stride of 2: pairs that lie in the row are told apart by vectors.
template <typename T>
HWY_INLINE void CopyPairs(const T* row, int64_t in, int64_t first, int64_t length, T identity,
                          T* even, T* odd) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t low = std::clamp<int64_t>(first >= 0 ? 0 : (-first + 1) / 2, 0, length);
  const int64_t high = std::clamp<int64_t>((in - first) / 2, low, length);
  int64_t k = low;
  for (; k + lanes <= high; k += lanes) {
    hn::Vec<decltype(d)> a, b;
    hn::LoadInterleaved2(d, row + first + 2 * k, a, b);
    hn::StoreU(a, d, even + k);
    hn::StoreU(b, d, odd + k);
  }
  // What is left at either end.
  CopyRemainder(row, in, first, 2, low, identity, even);
  CopyRemainder(row, in, first + 1, 2, low, identity, odd);
  CopyRemainder(row, in, first + 2 * k, 2, length - k, identity, even + k);
  CopyRemainder(row, in, first + 2 * k + 1, 2, length - k, identity, odd + k);
}

// A row of `in` elements from `begin` on.
template <typename T>
void CopyRow(const T* row, int64_t in, int64_t begin, const RowCopy& copy, T identity, T* to) {
  const auto stride = static_cast<int64_t>(copy.remainders);
  const auto length = static_cast<int64_t>(copy.length);
  if (stride == 2) return CopyPairs(row, in, begin, length, identity, to, to + length);
  for (int64_t remainder = 0; remainder < stride; ++remainder, to += length) {
    CopyRemainder(row, in, begin + remainder, stride, length, identity, to);
  }
}

// The rows of one plane that the windows of a block see, and where its parts of the scratch memory
// lie.
template <class Kind>
class RowReduction {
 public:
  using T = typename Kind::Element;

  RowReduction(const PlaneWindows& plane, const Block& block, std::byte* scratch)
      : plane_(plane),
        block_(block),
        copy_(plane.sliding[2], block.begin[2], block.extents[2]),
        pointers_(reinterpret_cast<const T**>(scratch)) {
    for (size_t axis = 0; axis < 2; ++axis) {
      seen_[axis] = RangeOf(plane.windows.taps[axis], plane.sliding[axis].dilation,
                            block.begin[axis], block.extents[axis]);
    }
    const int64_t all_taps =
        std::max<int64_t>(1, copy_.taps) * plane.sliding[0].kernel * plane.sliding[1].kernel;
    scratch += Scratch::PointerBytes(all_taps);
    counts_ = reinterpret_cast<double*>(scratch);
    rows_ = reinterpret_cast<T*>(scratch + Scratch::CountBytes(block.extents[2]));
    for (int64_t k = 0; k < block.extents[2]; ++k) counts_[k] = Count(2, k);
  }

  // Each window as a whole.
  void ReduceWhole(const T* source, T* result) {
    const auto row_elements = static_cast<int64_t>(copy_.total());
    const auto row_at = [&](int64_t z, int64_t y) {
      return rows_ + ((z - seen_[0].begin) * seen_[1].size() + y - seen_[1].begin) * row_elements;
    };
    for (int64_t z = seen_[0].begin; z < seen_[0].end && copy_.taps > 0; ++z) {
      for (int64_t y = seen_[1].begin; y < seen_[1].end; ++y) Copy(source, z, y, row_at(z, y));
    }
    for (int64_t out_z = 0; out_z < block_.extents[0]; ++out_z) {
      for (int64_t out_y = 0; out_y < block_.extents[1]; ++out_y) {
        size_t count = 0;
        ForTaps(0, out_z, [&](int64_t z) {
          ForTaps(1, out_y, [&](int64_t y) { AppendTaps(row_at(z, y), count); });
        });
        Reduce(count, Count(0, out_z) * Count(1, out_y), block_.extents[2],
               result + out_z * block_.strides[0] + out_y * block_.strides[1]);
      }
    }
  }

  // Windows of a column, whose neighbours are those of the rows as they lie.
  bool AreColumns() const {
    const Sliding& x = plane_.sliding[2];
    return x.kernel == 1 && x.stride == 1 && Inside().size() == block_.extents[2];
  }
  void ReduceColumns(const T* source, T* result) {
    const int64_t begin = Inside().begin;
    for (int64_t out_z = 0; out_z < block_.extents[0]; ++out_z) {
      for (int64_t out_y = 0; out_y < block_.extents[1]; ++out_y) {
        const size_t count = AppendColumns(source, out_z, out_y, begin);
        Reduce(count, Count(0, out_z) * Count(1, out_y), block_.extents[2],
               result + out_z * block_.strides[0] + out_y * block_.strides[1]);
      }
    }
  }

  // Maxima down the columns of the windows first, of rows as they lie, then along the rows. Equal
  // numbers have to be the same: see `IsPlain`.
  void ReduceByAxes(const T* source, T* result) {
    const Sliding& x = plane_.sliding[2];
    const auto elements = static_cast<int64_t>(copy_.elements);
    T* const column = rows_;
    T* const row = x.stride == 1 ? column : column + RoundedUp(elements);
    const Range inside = Inside();
    std::fill_n(column, elements, Kind::Identity());
    for (int64_t out_z = 0; out_z < block_.extents[0]; ++out_z) {
      for (int64_t out_y = 0; out_y < block_.extents[1]; ++out_y) {
        size_t count = AppendColumns(source, out_z, out_y, inside.begin);
        if (inside.size() > 0) {
          Reduce<MaximumOfPlain<T>>(
              count, 1, inside.size(),
              column + (inside.begin - static_cast<int64_t>(copy_.source_begin)));
        }
        if (row != column) CopyRow(column, elements, 0, copy_, Kind::Identity(), row);
        count = 0;
        AppendTaps(row, count);
        Reduce<MaximumOfPlain<T>>(count, 1, block_.extents[2],
                                  result + out_z * block_.strides[0] + out_y * block_.strides[1]);
      }
    }
  }

  // Whether every element that the block sees is a number and no zero is negative, so that the
  // largest does not depend on the order.
  bool IsPlain(const T* source) const {
    if constexpr (std::is_floating_point_v<T>) {
      const hn::ScalableTag<T> d;
      const hn::RebindToUnsigned<decltype(d)> bits;
      const auto lanes = static_cast<int64_t>(hn::Lanes(d));
      const auto minus_zero = hn::BitCast(bits, hn::Set(d, T{-0.0}));
      const Range inside = Inside();
      auto is_special = hn::MaskFromVec(hn::Zero(d));
      for (int64_t z = seen_[0].begin; z < seen_[0].end; ++z) {
        for (int64_t y = seen_[1].begin; y < seen_[1].end; ++y) {
          const T* const row = At(source, z, y);
          int64_t at = inside.begin;
          for (; at + lanes <= inside.end; at += lanes) {
            const auto values = hn::LoadU(d, row + at);
            const auto is_minus_zero =
                hn::RebindMask(d, hn::Eq(hn::BitCast(bits, values), minus_zero));
            is_special = hn::Or(is_special, hn::Or(is_minus_zero, hn::IsNaN(values)));
          }
          for (; at < inside.end; ++at) {
            if (row[at] != row[at] || (row[at] == 0 && std::signbit(row[at]))) return false;
          }
          if (!hn::AllFalse(d, is_special)) return false;
        }
      }
      return true;
    }
    return true;
  }

  // Elements from one row of results to the next.
  static int64_t RoundedUp(int64_t elements) {
    constexpr int64_t kLine = Scratch::kAlignment / static_cast<int64_t>(sizeof(T));
    return (elements + kLine - 1) / kLine * kLine;
  }

 private:
  const Taps& TapsAt(size_t axis, int64_t out) const {
    return plane_.windows.taps[axis][static_cast<size_t>(block_.begin[axis] + out)];
  }
  double Count(size_t axis, int64_t out) const {
    return CountOf(plane_.windows, TapsAt(axis, out));
  }

  template <class Visit>
  HWY_INLINE void ForTaps(size_t axis, int64_t out, Visit visit) const {
    const Taps& taps = TapsAt(axis, out);
    for (int64_t k = 0; k < taps.count; ++k) {
      visit(taps.first + k * plane_.sliding[axis].dilation);
    }
  }

  const T* At(const T* source, int64_t z, int64_t y) const {
    return source + z * plane_.windows.strides[0] + y * plane_.windows.strides[1];
  }

  void Copy(const T* source, int64_t z, int64_t y, T* row) const {
    CopyRow(At(source, z, y), plane_.sliding[2].in, static_cast<int64_t>(copy_.source_begin), copy_,
            Kind::Identity(), row);
  }

  // The elements of a row that windows see.
  Range Inside() const {
    const Wide end = copy_.source_begin + copy_.elements;
    const auto first = static_cast<int64_t>(std::max<Wide>(copy_.source_begin, 0));
    const auto last = static_cast<int64_t>(std::min<Wide>(end, plane_.sliding[2].in));
    return {first, std::max(first, last)};
  }

  // The rows that the windows of an output row see, at element `begin`; returns how many.
  HWY_INLINE size_t AppendColumns(const T* source, int64_t out_z, int64_t out_y,
                                  int64_t begin) const {
    size_t count = 0;
    ForTaps(0, out_z, [&](int64_t z) {
      ForTaps(1, out_y, [&](int64_t y) { pointers_[count++] = At(source, z, y) + begin; });
    });
    return count;
  }

  // Where the first window of the block sees a copied row.
  HWY_INLINE void AppendTaps(const T* row, size_t& count) const {
    const Sliding& x = plane_.sliding[2];
    for (int64_t tx = 0; tx < copy_.taps; ++tx) {
      const int64_t u = tx * x.dilation;
      pointers_[count++] = row + u % x.stride * static_cast<int64_t>(copy_.length) + u / x.stride;
    }
  }

  template <class Reduced = Kind>
  void Reduce(size_t taps, double counted_rows, int64_t count, T* result) const {
    const RowTaps<T> row_taps = {{pointers_, taps}, counts_, counted_rows};
    ForElements<Reduced, 4>(row_taps, count, result);
  }

  const PlaneWindows& plane_;
  const Block& block_;
  const RowCopy copy_;
  std::array<Range, 2> seen_;
  const T** pointers_;
  double* counts_;
  T* rows_;
};

template <class Kind, typename T = typename Kind::Element>
void ReduceRows(const PlaneWindows& plane, const PlaneBlock& planes, const T* source, T* result,
                std::byte* scratch) {
  RowReduction<Kind> reduction(plane, planes.block, scratch);
  const bool are_columns = reduction.AreColumns();
  for (int64_t channel = 0; channel < planes.block.channels; ++channel) {
    if (are_columns) {
      reduction.ReduceColumns(source, result);
    } else if constexpr (Kind::kIsAverage || std::is_same_v<Kind, MaximumOfBfloat16>) {
      reduction.ReduceWhole(source, result);
    } else if (IsReducedByAxes(plane) && reduction.IsPlain(source)) {
      reduction.ReduceByAxes(source, result);
    } else {
      reduction.ReduceWhole(source, result);
    }
    source += planes.source_stride;
    result += planes.result_stride;
  }
}

// Rows that follow one another are one.
inline void JoinRows(std::array<int64_t, kSpatialAxes>& counts,
                     const std::array<int64_t, kSpatialAxes>& strides) {
  if (counts[1] != 1 && strides[1] != counts[2]) return;
  counts[2] *= counts[1];
  counts[1] = 1;
  if (counts[0] != 1 && strides[0] != counts[2]) return;
  counts[2] *= counts[0];
  counts[0] = 1;
}

// The largest element of a row, if it has a vector of elements at least, none of which is no
// number; 0 may be of either sign.
template <typename T>
HWY_INLINE bool FindLargest(const T* row, int64_t count, T& largest) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  if (count < lanes) return false;
  constexpr int kVectors = 4;
  hn::Vec<decltype(d)> maxima[kVectors], sums[kVectors];
  for (int v = 0; v < kVectors; ++v) {
    maxima[v] = hn::LoadU(d, row);
    sums[v] = hn::Zero(d);
  }
  const auto take = [&](int v, int64_t at) HWY_ATTR {
    const auto values = hn::LoadU(d, row + at);
    maxima[v] = Greater(values, maxima[v]);
    if constexpr (std::is_floating_point_v<T>) sums[v] = hn::Add(sums[v], hn::Sub(values, values));
  };
  int64_t at = 0;
  for (; at + kVectors * lanes <= count; at += kVectors * lanes) {
    for (int v = 0; v < kVectors; ++v) take(v, at + v * lanes);
  }
  for (; at + lanes <= count; at += lanes) take(0, at);
  take(0, count - lanes);
  const auto most = Greater(Greater(maxima[0], maxima[1]), Greater(maxima[2], maxima[3]));
  if constexpr (std::is_floating_point_v<T>) {
    // An infinity less itself is no number either.
    const auto sum = hn::Add(hn::Add(sums[0], sums[1]), hn::Add(sums[2], sums[3]));
    if (!hn::AllTrue(d, hn::Eq(sum, sum))) return false;
  }
  HWY_ALIGN T lanes_of_most[HWY_MAX_BYTES / sizeof(T)];
  hn::Store(most, d, lanes_of_most);
  largest = *std::max_element(lanes_of_most, lanes_of_most + lanes);
  return true;
}

// Whether a window has rows of at least a vector of neighbours, of which FindMaximum finds the
// largest.
template <class Kind>
HWY_INLINE bool HasLongRows(std::array<int64_t, kSpatialAxes> counts,
                            const std::array<int64_t, kSpatialAxes>& strides) {
  using T = typename Kind::Element;
  if constexpr (Kind::kIsAverage || std::is_same_v<Kind, MaximumOfBfloat16>) return false;
  if (strides[2] != 1 || counts[0] * counts[1] == 0) return false;
  JoinRows(counts, strides);
  return counts[2] >= static_cast<int64_t>(hn::Lanes(hn::ScalableTag<T>()));
}

// The largest element of a window of one plane, whose rows lie side by side; the first of equals.
// False where that is left to loops.
template <class Kind, typename T = typename Kind::Element>
HWY_INLINE bool FindMaximum(const T* first, std::array<int64_t, kSpatialAxes> counts,
                            const std::array<int64_t, kSpatialAxes>& strides, T* result) {
  if constexpr (Kind::kIsAverage || std::is_same_v<Kind, MaximumOfBfloat16>) {
    return false;
  } else {
    if (strides[2] != 1) return false;
    JoinRows(counts, strides);
    T most = Kind::Identity();
    const T* place = nullptr;
    for (int64_t z = 0; z < counts[0]; ++z) {
      for (int64_t y = 0; y < counts[1]; ++y) {
        const T* const row = first + z * strides[0] + y * strides[1];
        T largest;
        if (!FindLargest(row, counts[2], largest)) return false;
        if (place != nullptr && !(largest > most)) continue;
        most = largest;
        place = row;
      }
    }
    if (place == nullptr) return false;
    *result = most == 0 ? *std::find(place, place + counts[2], most) : most;
    return true;
  }
}

// One output of kPlanes planes.
template <class Kind, int64_t kPlanes, typename T = typename Kind::Element>
HWY_INLINE void ReduceOutput(const T* first, const std::array<int64_t, kSpatialAxes>& counts,
                             const std::array<int64_t, kSpatialAxes>& strides, double divisor,
                             int64_t source_stride, T* result, int64_t result_stride) {
  constexpr bool kIsAverage = Kind::kIsAverage;
  std::conditional_t<kIsAverage, double, T> state[kPlanes];
  for (auto& each : state) each = Kind::Identity();
  for (int64_t z = 0; z < counts[0]; ++z) {
    for (int64_t y = 0; y < counts[1]; ++y) {
      const T* tap = first + z * strides[0] + y * strides[1];
      for (int64_t x = 0; x < counts[2]; ++x, tap += strides[2]) {
        for (int64_t plane = 0; plane < kPlanes; ++plane) {
          const T value = tap[plane * source_stride];
          if constexpr (kIsAverage) {
            state[plane] += value;
          } else {
            state[plane] = Kind::Replaces(value, state[plane]) ? value : state[plane];
          }
        }
      }
    }
  }
  for (int64_t plane = 0; plane < kPlanes; ++plane) {
    if constexpr (kIsAverage) {
      result[plane * result_stride] = static_cast<T>(state[plane] / divisor);
    } else {
      result[plane * result_stride] = state[plane];
    }
  }
}

#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3

// Averages of the same window of kPlanesTogether planes, whose rows lie side by side: the sum of a
// plane is a lane, which adds up its elements in their order.
constexpr int64_t kPlanesTogether = 16;

inline void AveragePlanes(const float* first, std::array<int64_t, kSpatialAxes> counts,
                          const std::array<int64_t, kSpatialAxes>& strides, double divisor,
                          int64_t source_stride, float* result, int64_t result_stride) {
  const hn::CappedTag<double, 4> d;
  const hn::Rebind<float, decltype(d)> d_float;
  constexpr int64_t kGroups = kPlanesTogether / 4;
  JoinRows(counts, strides);
  hn::Vec<decltype(d)> sums[kGroups];
  for (auto& sum : sums) sum = hn::Zero(d);
  for (int64_t z = 0; z < counts[0]; ++z) {
    for (int64_t y = 0; y < counts[1]; ++y) {
      const float* const row = first + z * strides[0] + y * strides[1];
      int64_t x = 0;
      for (; x + 4 <= counts[2]; x += 4) {
#pragma GCC unroll 4
        for (int64_t group = 0; group < kGroups; ++group) {
          const float* const at = row + 4 * group * source_stride + x;
          const __m128 a = _mm_loadu_ps(at), b = _mm_loadu_ps(at + source_stride);
          const __m128 c = _mm_loadu_ps(at + 2 * source_stride);
          const __m128 e = _mm_loadu_ps(at + 3 * source_stride);
          // Elements of the four planes side by side.
          const __m128 ab_low = _mm_unpacklo_ps(a, b), ab_high = _mm_unpackhi_ps(a, b);
          const __m128 ce_low = _mm_unpacklo_ps(c, e), ce_high = _mm_unpackhi_ps(c, e);
          const __m128 elements[] = {_mm_movelh_ps(ab_low, ce_low), _mm_movehl_ps(ce_low, ab_low),
                                     _mm_movelh_ps(ab_high, ce_high),
                                     _mm_movehl_ps(ce_high, ab_high)};
#pragma GCC unroll 4
          for (const __m128& element : elements) {
            sums[group].raw = _mm256_add_pd(sums[group].raw, _mm256_cvtps_pd(element));
          }
        }
      }
      for (; x < counts[2]; ++x) {
        for (int64_t group = 0; group < kGroups; ++group) {
          HWY_ALIGN float elements[4];
          for (int64_t plane = 0; plane < 4; ++plane) {
            elements[plane] = row[(4 * group + plane) * source_stride + x];
          }
          sums[group] = hn::Add(sums[group], hn::PromoteTo(d, hn::Load(d_float, elements)));
        }
      }
    }
  }
  for (int64_t group = 0; group < kGroups; ++group) {
    HWY_ALIGN double each[4];
    hn::Store(sums[group], d, each);
    for (int64_t plane = 0; plane < 4; ++plane) {
      result[(4 * group + plane) * result_stride] = static_cast<float>(each[plane] / divisor);
    }
  }
}

#endif

template <class Kind, typename T = typename Kind::Element>
void ReduceFew(const PlaneWindows& plane, const PlaneBlock& planes, const T* source, T* result) {
  constexpr int64_t kPlanes = 8;
  const Windows& windows = plane.windows;
  const Block& block = planes.block;
  std::array<int64_t, kSpatialAxes> at;
  for (at[0] = 0; at[0] < block.extents[0]; ++at[0]) {
    for (at[1] = 0; at[1] < block.extents[1]; ++at[1]) {
      for (at[2] = 0; at[2] < block.extents[2]; ++at[2]) {
        std::array<int64_t, kSpatialAxes> counts;
        const T* from = source;
        T* to = result;
        double divisor = 1;
        for (size_t axis = 0; axis < kSpatialAxes; ++axis) {
          const Taps& taps = windows.taps[axis][static_cast<size_t>(block.begin[axis] + at[axis])];
          counts[axis] = taps.count;
          divisor *= CountOf(windows, taps);
          from += taps.first * windows.strides[axis];
          to += at[axis] * block.strides[axis];
        }
        int64_t channel = 0;
        const bool has_long_rows = HasLongRows<Kind>(counts, windows.tap_strides);
        for (; has_long_rows && channel < block.channels; ++channel) {
          const T* const plane_source = from + channel * planes.source_stride;
          T* const plane_result = to + channel * planes.result_stride;
          if (FindMaximum<Kind>(plane_source, counts, windows.tap_strides, plane_result)) continue;
          // Of what is no number or infinite.
          ReduceOutput<Kind, 1>(plane_source, counts, windows.tap_strides, divisor,
                                planes.source_stride, plane_result, planes.result_stride);
        }
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
        if constexpr (std::is_same_v<Kind, Average<float>>) {
          for (; channel + kPlanesTogether <= block.channels && windows.tap_strides[2] == 1 &&
                 counts[2] >= 4;
               channel += kPlanesTogether) {
            AveragePlanes(from + channel * planes.source_stride, counts, windows.tap_strides,
                          divisor, planes.source_stride, to + channel * planes.result_stride,
                          planes.result_stride);
          }
        }
#endif
        for (; channel + kPlanes <= block.channels; channel += kPlanes) {
          ReduceOutput<Kind, kPlanes>(from + channel * planes.source_stride, counts,
                                      windows.tap_strides, divisor, planes.source_stride,
                                      to + channel * planes.result_stride, planes.result_stride);
        }
        for (; channel < block.channels; ++channel) {
          ReduceOutput<Kind, 1>(from + channel * planes.source_stride, counts, windows.tap_strides,
                                divisor, planes.source_stride, to + channel * planes.result_stride,
                                planes.result_stride);
        }
      }
    }
  }
}

void ReducePlaneBlock(const PlaneWindows& windows, const PlaneBlock& block,
                      const std::byte* source_bytes, std::byte* result_bytes, std::byte* scratch) {
  const Windows& plane = windows.windows;
  WithKind(plane.kind == Windows::Kind::kAverage, plane.type, [&](auto kind) {
    using Kind = decltype(kind);
    using T = typename Kind::Element;
    const auto* const source = reinterpret_cast<const T*>(source_bytes);
    auto* const result = reinterpret_cast<T*>(result_bytes);
    if (scratch != nullptr) {
      ReduceRows<Kind>(windows, block, source, result, scratch);
    } else {
      ReduceFew<Kind>(windows, block, source, result);
    }
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace onnxifi::pooling
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace onnxifi::pooling {

// Of more than a column or a row.
bool IsReducedByAxes(const PlaneWindows& plane) {
  const std::array<Sliding, kSpatialAxes>& sliding = plane.sliding;
  const bool has_columns = sliding[0].kernel > 1 || sliding[1].kernel > 1;
  return plane.windows.kind == Windows::Kind::kMaximum && has_columns && sliding[2].kernel > 1 &&
         plane.windows.type != tensor::ElementType::kBfloat16;
}

int64_t PlaneScratchBytes(const PlaneWindows& windows,
                          const std::array<int64_t, kSpatialAxes>& extents) {
  // A vector of few windows is not worth the copies.
  constexpr int64_t kMinWindows = 4;
  constexpr int64_t kMaxBytes = 1 << 20;
  if (extents[2] < kMinWindows) return 0;
  const Sliding& x = windows.sliding[2];
  // As many taps as windows may see, wherever a block lies.
  const Wide row = static_cast<Wide>(extents[2] - 1) * x.stride +
                   static_cast<Wide>(x.kernel - 1) * x.dilation + x.stride;
  Wide rows = 1, taps = x.kernel;
  for (size_t axis = 0; axis < 2; ++axis) {
    const Sliding& sliding = windows.sliding[axis];
    const Wide reach = static_cast<Wide>(extents[axis] - 1) * sliding.stride +
                       static_cast<Wide>(sliding.kernel - 1) * sliding.dilation + 1;
    rows *= std::min<Wide>(reach, sliding.in);
    taps *= sliding.kernel;
    if (rows > kMaxBytes || taps > kMaxBytes || row > kMaxBytes) return 0;
  }
  const Wide row_bytes = row * tensor::SizeBytes(windows.windows.type, 1);
  Wide bytes = rows * row_bytes;
  // Where maxima are taken axis after axis, a column, and behind it a row.
  if (IsReducedByAxes(windows)) {
    bytes = std::max(bytes, Scratch::Up(static_cast<int64_t>(row_bytes)) + row_bytes);
  }
  if (bytes > kMaxBytes) return 0;
  return Scratch::PointerBytes(static_cast<int64_t>(taps)) + Scratch::CountBytes(extents[2]) +
         Scratch::Up(static_cast<int64_t>(bytes));
}

HWY_EXPORT(ReducePlaneBlock);

void ReducePlanes(const PlaneWindows& windows, const PlaneBlock& block, const std::byte* source,
                  std::byte* result, std::byte* scratch) {
  HWY_DYNAMIC_DISPATCH(ReducePlaneBlock)(windows, block, source, result, scratch);
}

}  // namespace onnxifi::pooling
#endif
