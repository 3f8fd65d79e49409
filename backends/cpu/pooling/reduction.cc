// SPDX-License-Identifier: Apache-2.0
//
// Reduction: the state of several vectors of channels stays in registers while the taps of a window
// pass.

#include "backends/cpu/pooling/reduction.h"

#include <cstddef>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/pooling/reduction.cc"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace onnxifi::pooling {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// What one output sees.
template <typename T>
struct Seen {
  const T* first;  // its first channel at the first tap
  std::array<int64_t, kSpatialAxes> counts;
  std::array<int64_t, kSpatialAxes> strides;
  double divisor;
};

template <typename T, class Visit>
HWY_INLINE void ForTaps(const Seen<T>& seen, int64_t channel, Visit visit) {
  const T* plane = seen.first + channel;
  for (int64_t z = 0; z < seen.counts[0]; ++z, plane += seen.strides[0]) {
    const T* row = plane;
    for (int64_t y = 0; y < seen.counts[1]; ++y, row += seen.strides[1]) {
      const T* tap = row;
      for (int64_t x = 0; x < seen.counts[2]; ++x, tap += seen.strides[2]) visit(tap);
    }
  }
}

// value > maximum ? value : maximum
template <class V>
HWY_INLINE V Greater(V value, V maximum) {
#if HWY_ARCH_X86
  // The instruction says so, for NaN and zeros of both signs too.
  return hn::Max(value, maximum);
#else
  return hn::IfThenElse(hn::Gt(value, maximum), value, maximum);
#endif
}

struct Maximum {
  using Element = float;
  // Channels are taken by as many floats as these have lanes.
  template <size_t kLanes>
  using Tag = hn::CappedTag<float, kLanes>;
  static constexpr size_t kLanes = HWY_MAX_BYTES / sizeof(float);

  template <int kVectors, class D>
  static HWY_INLINE void Run(D d, const Seen<float>& seen, int64_t channel, float* result) {
    const auto lanes = static_cast<int64_t>(hn::Lanes(d));
    hn::Vec<D> maxima[kVectors];
    hn::Vec<D> sums[kVectors];  // NaN where there was a NaN, if not only there
    for (int k = 0; k < kVectors; ++k) {
      maxima[k] = hn::Set(d, -std::numeric_limits<float>::infinity());
      sums[k] = hn::Zero(d);
    }
    ForTaps(seen, channel, [&](const float* tap) HWY_ATTR {
      for (int k = 0; k < kVectors; ++k) {
        const auto value = hn::LoadU(d, tap + k * lanes);
        maxima[k] = Greater(value, maxima[k]);
        sums[k] = hn::Add(sums[k], value);
      }
    });
    for (int k = 0; k < kVectors; ++k) {
      const auto is_number = hn::Eq(sums[k], sums[k]);
      if (!hn::AllTrue(d, is_number)) maxima[k] = WithNan(d, seen, channel + k * lanes);
      hn::StoreU(maxima[k], d, result + channel + k * lanes);
    }
  }

  // The same where there may be a NaN: the first one stays.
  template <class D>
  static HWY_NOINLINE hn::Vec<D> WithNan(D d, const Seen<float>& seen, int64_t channel) {
    auto maximum = hn::Set(d, -std::numeric_limits<float>::infinity());
    ForTaps(seen, channel, [&](const float* tap) HWY_ATTR {
      const auto value = hn::LoadU(d, tap);
      const auto is_number = hn::Eq(maximum, maximum);
      maximum = hn::IfThenElse(hn::AndNot(hn::Le(value, maximum), is_number), value, maximum);
    });
    return maximum;
  }
};

// The quotient as division rounds it, sooner. `divisor` is a small integer and `inverse` its
// rounded inverse, so the first guess is close enough for one correction (Markstein) to hit.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V Divide(V dividend, V divisor, [[maybe_unused]] V inverse) {
#if HWY_NATIVE_FMA
  const V guess = hn::Mul(dividend, inverse);
  const V rest = hn::NegMulAdd(guess, divisor, dividend);
  // Infinities have no rest.
  return hn::IfThenElse(hn::Eq(rest, rest), hn::MulAdd(rest, inverse, guess), guess);
#else
  return hn::Div(dividend, divisor);
#endif
}

template <typename T>
struct MaximumOfBytes {
  using Element = T;
  template <size_t kLanes>
  using Tag = hn::CappedTag<T, kLanes>;
  static constexpr size_t kLanes = HWY_MAX_BYTES;

  template <int kVectors, class D>
  static HWY_INLINE void Run(D d, const Seen<T>& seen, int64_t channel, T* result) {
    const auto lanes = static_cast<int64_t>(hn::Lanes(d));
    hn::Vec<D> maxima[kVectors];
    for (auto& maximum : maxima) maximum = hn::Set(d, std::numeric_limits<T>::lowest());
    ForTaps(seen, channel, [&](const T* tap) HWY_ATTR {
      for (int k = 0; k < kVectors; ++k) {
        maxima[k] = hn::Max(hn::LoadU(d, tap + k * lanes), maxima[k]);
      }
    });
    for (int k = 0; k < kVectors; ++k) hn::StoreU(maxima[k], d, result + channel + k * lanes);
  }
};

struct Average {
  using Element = float;
  template <size_t kLanes>
  using Tag = hn::CappedTag<double, kLanes>;
  static constexpr size_t kLanes = HWY_MAX_BYTES / sizeof(double);

  template <int kVectors, class D>
  static HWY_INLINE void Run(D d, const Seen<float>& seen, int64_t channel, float* result) {
    const hn::Rebind<float, D> d_float;
    const auto lanes = static_cast<int64_t>(hn::Lanes(d));
    hn::Vec<D> sums[kVectors];
    for (auto& sum : sums) sum = hn::Zero(d);
    ForTaps(seen, channel, [&](const float* tap) HWY_ATTR {
      for (int k = 0; k < kVectors; ++k) {
        sums[k] = hn::Add(sums[k], hn::PromoteTo(d, hn::LoadU(d_float, tap + k * lanes)));
      }
    });
    const auto divisor = hn::Set(d, seen.divisor);
    const auto inverse = hn::Set(d, 1 / seen.divisor);
    for (int k = 0; k < kVectors; ++k) {
      StoreRounded(d, Divide<D>(sums[k], divisor, inverse), result + channel + k * lanes);
    }
  }

  template <class D>
  static HWY_INLINE void StoreRounded(D d, hn::Vec<D> values, float* result) {
#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128
    // Where vectors are emulated, infinities become the largest numbers.
    HWY_ALIGN double all[HWY_MAX_BYTES / sizeof(double)];
    hn::Store(values, d, all);
    for (size_t k = 0; k < hn::Lanes(d); ++k) result[k] = static_cast<float>(all[k]);
#else
    const hn::Rebind<float, D> d_float;
    hn::StoreU(hn::DemoteTo(d_float, values), d_float, result);
#endif
  }
};

// The channels from `channel` on that fill `kVectors` vectors, as often as they do.
template <class Kind, int kVectors, class D>
HWY_INLINE int64_t ForVectors(D d, const Seen<typename Kind::Element>& seen, int64_t channel,
                              int64_t channels, typename Kind::Element* result) {
  const auto step = kVectors * static_cast<int64_t>(hn::Lanes(d));
  for (; channel + step <= channels; channel += step) {
    Kind::template Run<kVectors>(d, seen, channel, result);
  }
  return channel;
}

template <class Kind>
HWY_INLINE void ForChannels(const Seen<typename Kind::Element>& seen, int64_t channels,
                            typename Kind::Element* result) {
  constexpr size_t kLanes = Kind::kLanes;
  const typename Kind::template Tag<kLanes> whole;
  int64_t channel = ForVectors<Kind, 8>(whole, seen, 0, channels, result);
  channel = ForVectors<Kind, 4>(whole, seen, channel, channels, result);
  channel = ForVectors<Kind, 1>(whole, seen, channel, channels, result);
  const typename Kind::template Tag<(kLanes + 1) / 2> half;
  channel = ForVectors<Kind, 1>(half, seen, channel, channels, result);
  const typename Kind::template Tag<(kLanes + 3) / 4> quarter;
  channel = ForVectors<Kind, 1>(quarter, seen, channel, channels, result);
  const typename Kind::template Tag<1> one;
  ForVectors<Kind, 1>(one, seen, channel, channels, result);
}

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
        ForChannels<Kind>(seen, block.channels, result + target);
      }
    }
  }
}

void ReduceBlock(const Windows& windows, const Block& block, const std::byte* source,
                 std::byte* result) {
  if (windows.kind == Windows::Kind::kAverage) {
    ForPixels<Average>(windows, block, source, result);
  } else if (windows.type == tensor::ElementType::kUint8) {
    ForPixels<MaximumOfBytes<uint8_t>>(windows, block, source, result);
  } else if (windows.type == tensor::ElementType::kInt8) {
    ForPixels<MaximumOfBytes<int8_t>>(windows, block, source, result);
  } else {
    ForPixels<Maximum>(windows, block, source, result);
  }
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
