// SPDX-License-Identifier: Apache-2.0
//
// Reduction: the state of several vectors of channels stays in registers while the taps of a window
// pass.

#include "backends/cpu/pooling/reduction.h"

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

void ReduceBlock(const Windows& windows, const Block& block, const std::byte* source,
                 std::byte* result) {
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
