// SPDX-License-Identifier: Apache-2.0
//
// PlaneReduction: a list of pointers says where the first window of a row sees its taps; those of
// the windows behind lie behind. Where windows of a row are few, the same output of several planes
// is reduced at once, an element at a time.

#include "backends/cpu/pooling/plane_reduction.h"

#include <algorithm>
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

template <typename T>
void CopyRow(const T* row, const Sliding& sliding, const RowCopy& copy, T identity, T* to) {
  const auto stride = static_cast<int64_t>(copy.remainders);
  const auto length = static_cast<int64_t>(copy.length);
  const auto begin = static_cast<int64_t>(copy.source_begin);
  if (stride == 2) return CopyPairs(row, sliding.in, begin, length, identity, to, to + length);
  for (int64_t remainder = 0; remainder < stride; ++remainder, to += length) {
    CopyRemainder(row, sliding.in, begin + remainder, stride, length, identity, to);
  }
}

template <class Kind, typename T = typename Kind::Element>
void ReduceRows(const PlaneWindows& plane, const PlaneBlock& planes, const T* source, T* result,
                std::byte* scratch) {
  const Windows& windows = plane.windows;
  const Block& block = planes.block;
  const Sliding& x = plane.sliding[2];
  const RowCopy copy(x, block.begin[2], block.extents[2]);
  std::array<Range, 2> seen;
  for (size_t axis = 0; axis < 2; ++axis) {
    seen[axis] = RangeOf(windows.taps[axis], plane.sliding[axis].dilation, block.begin[axis],
                         block.extents[axis]);
  }
  const int64_t all_taps = plane.sliding[0].kernel * plane.sliding[1].kernel * copy.taps;
  auto* const pointers = reinterpret_cast<const T**>(scratch);
  auto* const counts = reinterpret_cast<double*>(scratch + Scratch::PointerBytes(all_taps));
  auto* const rows = reinterpret_cast<T*>(scratch + Scratch::PointerBytes(all_taps) +
                                          Scratch::CountBytes(block.extents[2]));
  for (int64_t k = 0; k < block.extents[2]; ++k) {
    counts[k] = CountOf(windows, windows.taps[2][static_cast<size_t>(block.begin[2] + k)]);
  }
  const auto row_elements = static_cast<int64_t>(copy.total());
  const auto row_at = [&](int64_t z, int64_t y) {
    return rows + ((z - seen[0].begin) * seen[1].size() + y - seen[1].begin) * row_elements;
  };
  for (int64_t channel = 0; channel < block.channels; ++channel) {
    for (int64_t z = seen[0].begin; z < seen[0].end && copy.taps > 0; ++z) {
      for (int64_t y = seen[1].begin; y < seen[1].end; ++y) {
        CopyRow(source + z * windows.strides[0] + y * windows.strides[1], x, copy, Kind::Identity(),
                row_at(z, y));
      }
    }
    for (int64_t out_z = 0; out_z < block.extents[0]; ++out_z) {
      const Taps& at_z = windows.taps[0][static_cast<size_t>(block.begin[0] + out_z)];
      for (int64_t out_y = 0; out_y < block.extents[1]; ++out_y) {
        const Taps& at_y = windows.taps[1][static_cast<size_t>(block.begin[1] + out_y)];
        size_t count = 0;
        for (int64_t tz = 0; tz < at_z.count; ++tz) {
          for (int64_t ty = 0; ty < at_y.count; ++ty) {
            const T* const row = row_at(at_z.first + tz * plane.sliding[0].dilation,
                                        at_y.first + ty * plane.sliding[1].dilation);
            for (int64_t tx = 0; tx < copy.taps; ++tx) {
              const int64_t u = tx * x.dilation;
              pointers[count++] =
                  row + u % x.stride * static_cast<int64_t>(copy.length) + u / x.stride;
            }
          }
        }
        const RowTaps<T> taps = {
            {pointers, count}, counts, CountOf(windows, at_z) * CountOf(windows, at_y)};
        ForElements<Kind, 4>(taps, block.extents[2],
                             result + out_z * block.strides[0] + out_y * block.strides[1]);
      }
    }
    source += planes.source_stride;
    result += planes.result_stride;
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
  const Wide bytes = rows * row * tensor::SizeBytes(windows.windows.type, 1);
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
