// SPDX-License-Identifier: Apache-2.0
//
// The kinds of reduction: Maximum, MaximumOfPlain, MaximumOfBfloat16, Average. Each has
// `Run<kVectors>(d, taps, at, result)`, which reduces elements from `at` on, as many as fill so
// many vectors, of everything that a window sees; what a window has that sees nothing, `Identity`;
// and those of a maximum whether an element `Replaces` another one before it. Taps say where
// elements lie:
//   ForEach(at, visit): visit(pointer to element `at` at a tap), tap by tap in row-major order;
//   Divider<T>(d): a function (sums, at) -> averages, of float64, which are stored as T.
// Included once per target of Highway.

#if defined(ONNXIFI_BACKENDS_CPU_POOLING_KINDS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ONNXIFI_BACKENDS_CPU_POOLING_KINDS_INL_H_
#undef ONNXIFI_BACKENDS_CPU_POOLING_KINDS_INL_H_
#else
#define ONNXIFI_BACKENDS_CPU_POOLING_KINDS_INL_H_
#endif

#include <hwy/highway.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "backends/core/tensor/element_type.h"

HWY_BEFORE_NAMESPACE();
namespace onnxifi::pooling {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

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

template <typename T>
struct Maximum {
  using Element = T;
  static constexpr bool kIsAverage = false;
  static constexpr T Identity() { return -std::numeric_limits<T>::infinity(); }
  // The first NaN stays.
  static bool Replaces(T value, T before) {
    return value > before || (value != value && before == before);
  }
  // Elements are taken by as many numbers as these have lanes.
  template <size_t kLanes>
  using Tag = hn::CappedTag<T, kLanes>;
  static constexpr size_t kLanes = HWY_MAX_BYTES / sizeof(T);

  template <int kVectors, class D, class Taps>
  static HWY_INLINE void Run(D d, const Taps& taps, int64_t at, T* result) {
    const auto lanes = static_cast<int64_t>(hn::Lanes(d));
    hn::Vec<D> maxima[kVectors];
    hn::Vec<D> sums[kVectors];  // NaN where there was a NaN, if not only there
    for (int k = 0; k < kVectors; ++k) {
      maxima[k] = hn::Set(d, -std::numeric_limits<T>::infinity());
      sums[k] = hn::Zero(d);
    }
    taps.ForEach(at, [&](const T* tap) HWY_ATTR {
      for (int k = 0; k < kVectors; ++k) {
        const auto value = hn::LoadU(d, tap + k * lanes);
        maxima[k] = Greater(value, maxima[k]);
        sums[k] = hn::Add(sums[k], value);
      }
    });
    for (int k = 0; k < kVectors; ++k) {
      const auto is_number = hn::Eq(sums[k], sums[k]);
      if (!hn::AllTrue(d, is_number)) maxima[k] = WithNan(d, taps, at + k * lanes);
      hn::StoreU(maxima[k], d, result + at + k * lanes);
    }
  }

  // The same where there may be a NaN: the first one stays.
  template <class D, class Taps>
  static HWY_NOINLINE hn::Vec<D> WithNan(D d, const Taps& taps, int64_t at) {
    auto maximum = hn::Set(d, -std::numeric_limits<T>::infinity());
    taps.ForEach(at, [&](const T* tap) HWY_ATTR {
      const auto value = hn::LoadU(d, tap);
      const auto is_number = hn::Eq(maximum, maximum);
      maximum = hn::IfThenElse(hn::AndNot(hn::Le(value, maximum), is_number), value, maximum);
    });
    return maximum;
  }
};

// A maximum of elements without NaN and -0.0: its order does not matter.
template <typename T>
struct MaximumOfPlain {
  using Element = T;
  static constexpr bool kIsAverage = false;
  static constexpr T Identity() {
    return std::is_floating_point_v<T> ? -std::numeric_limits<T>::infinity()
                                       : std::numeric_limits<T>::lowest();
  }
  static bool Replaces(T value, T before) { return value > before; }
  template <size_t kLanes>
  using Tag = hn::CappedTag<T, kLanes>;
  static constexpr size_t kLanes = HWY_MAX_BYTES / sizeof(T);

  template <int kVectors, class D, class Taps>
  static HWY_INLINE void Run(D d, const Taps& taps, int64_t at, T* result) {
    const auto lanes = static_cast<int64_t>(hn::Lanes(d));
    hn::Vec<D> maxima[kVectors];
    for (auto& maximum : maxima) maximum = hn::Set(d, Identity());
    taps.ForEach(at, [&](const T* tap) HWY_ATTR {
      for (int k = 0; k < kVectors; ++k) {
        maxima[k] = hn::Max(hn::LoadU(d, tap + k * lanes), maxima[k]);
      }
    });
    for (int k = 0; k < kVectors; ++k) hn::StoreU(maxima[k], d, result + at + k * lanes);
  }
};

// Elements are the bits of a bfloat16.
struct MaximumOfBfloat16 {
  using Element = int16_t;
  static constexpr bool kIsAverage = false;
  template <size_t kLanes>
  using Tag = hn::CappedTag<int16_t, kLanes>;
  static constexpr size_t kLanes = HWY_MAX_BYTES / sizeof(int16_t);
  static constexpr int16_t kMagnitude = 0x7FFF;
  static constexpr int16_t kInfinity = 0x7F80;

  static constexpr int16_t Identity() { return static_cast<int16_t>(0xFF80); }  // -infinity
  static bool Replaces(int16_t value, int16_t before) {
    const bool is_nan = (value & kMagnitude) > kInfinity;
    return (before & kMagnitude) <= kInfinity && (is_nan || OrderOf(value) > OrderOf(before));
  }

  // Integers in the order of the numbers; zeros of both signs are equal.
  static int OrderOf(int16_t bits) {
    const int magnitude = bits & kMagnitude;
    return bits < 0 ? -magnitude : magnitude;
  }
  template <class D, class V>
  static HWY_INLINE V OrderOf(D d, V bits, V magnitude) {
    return hn::IfThenElse(hn::Lt(bits, hn::Zero(d)), hn::Neg(magnitude), magnitude);
  }

  template <int kVectors, class D, class Taps>
  static HWY_INLINE void Run(D d, const Taps& taps, int64_t at, int16_t* result) {
    const auto lanes = static_cast<int64_t>(hn::Lanes(d));
    const auto magnitude_bits = hn::Set(d, kMagnitude);
    hn::Vec<D> maxima[kVectors];
    hn::Vec<D> orders[kVectors];   // of the maxima
    hn::Vec<D> largest[kVectors];  // magnitudes: that of NaN is above infinity's
    for (int k = 0; k < kVectors; ++k) {
      maxima[k] = hn::Set(d, Identity());
      orders[k] = hn::Set(d, static_cast<int16_t>(-kInfinity));
      largest[k] = hn::Zero(d);
    }
    taps.ForEach(at, [&](const int16_t* tap) HWY_ATTR {
      for (int k = 0; k < kVectors; ++k) {
        const auto value = hn::LoadU(d, tap + k * lanes);
        const auto magnitude = hn::And(value, magnitude_bits);
        const auto order = OrderOf(d, value, magnitude);
        maxima[k] = hn::IfThenElse(hn::Gt(order, orders[k]), value, maxima[k]);
        orders[k] = hn::Max(order, orders[k]);
        largest[k] = hn::Max(magnitude, largest[k]);
      }
    });
    for (int k = 0; k < kVectors; ++k) {
      const bool has_nan = !hn::AllFalse(d, hn::Gt(largest[k], hn::Set(d, kInfinity)));
      if (has_nan) maxima[k] = WithNan(d, taps, at + k * lanes);
      hn::StoreU(maxima[k], d, result + at + k * lanes);
    }
  }

  // The same where there is a NaN: the first one stays.
  template <class D, class Taps>
  static HWY_NOINLINE hn::Vec<D> WithNan(D d, const Taps& taps, int64_t at) {
    const auto magnitude_bits = hn::Set(d, kMagnitude);
    const auto infinity = hn::Set(d, kInfinity);
    auto maximum = hn::Set(d, Identity());
    taps.ForEach(at, [&](const int16_t* tap) HWY_ATTR {
      const auto value = hn::LoadU(d, tap);
      const auto magnitude = hn::And(value, magnitude_bits);
      const auto before = hn::And(maximum, magnitude_bits);
      const auto is_above =
          hn::Or(hn::Gt(magnitude, infinity),
                 hn::Gt(OrderOf(d, value, magnitude), OrderOf(d, maximum, before)));
      maximum = hn::IfThenElse(hn::AndNot(hn::Gt(before, infinity), is_above), value, maximum);
    });
    return maximum;
  }
};

template <typename T>
struct Average {
  using Element = T;
  static constexpr bool kIsAverage = true;
  static constexpr T Identity() { return 0; }
  template <size_t kLanes>
  using Tag = hn::CappedTag<double, kLanes>;
  static constexpr size_t kLanes = HWY_MAX_BYTES / sizeof(double);

  template <int kVectors, class D, class Taps>
  static HWY_INLINE void Run(D d, const Taps& taps, int64_t at, T* result) {
    const auto lanes = static_cast<int64_t>(hn::Lanes(d));
    hn::Vec<D> sums[kVectors];
    for (auto& sum : sums) sum = hn::Zero(d);
    taps.ForEach(at, [&](const T* tap) HWY_ATTR {
      for (int k = 0; k < kVectors; ++k) sums[k] = hn::Add(sums[k], LoadWide(d, tap + k * lanes));
    });
    const auto divided = taps.template Divider<T>(d);
    for (int k = 0; k < kVectors; ++k) {
      StoreRounded(d, divided(sums[k], at + k * lanes), result + at + k * lanes);
    }
  }

  template <class D>
  static HWY_INLINE hn::Vec<D> LoadWide(D d, const double* from) {
    return hn::LoadU(d, from);
  }
  template <class D>
  static HWY_INLINE hn::Vec<D> LoadWide(D d, const float* from) {
    const hn::Rebind<float, D> d_float;
    return hn::PromoteTo(d, hn::LoadU(d_float, from));
  }

  template <class D>
  static HWY_INLINE void StoreRounded(D d, hn::Vec<D> values, double* result) {
    hn::StoreU(values, d, result);
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

// The elements from `at` on that fill `kVectors` vectors, as often as they do.
template <class Kind, int kVectors, class D, class Taps>
HWY_INLINE int64_t ForVectors(D d, const Taps& taps, int64_t at, int64_t count,
                              typename Kind::Element* result) {
  const auto step = kVectors * static_cast<int64_t>(hn::Lanes(d));
  for (; at + step <= count; at += step) Kind::template Run<kVectors>(d, taps, at, result);
  return at;
}

// Elements [0, count).
template <class Kind, int kVectors, class Taps>
HWY_INLINE void ForElements(const Taps& taps, int64_t count, typename Kind::Element* result) {
  constexpr size_t kLanes = Kind::kLanes;
  const typename Kind::template Tag<kLanes> whole;
  int64_t at = ForVectors<Kind, kVectors>(whole, taps, 0, count, result);
  if constexpr (kVectors > 4) at = ForVectors<Kind, 4>(whole, taps, at, count, result);
  at = ForVectors<Kind, 1>(whole, taps, at, count, result);
  const typename Kind::template Tag<(kLanes + 1) / 2> half;
  at = ForVectors<Kind, 1>(half, taps, at, count, result);
  const typename Kind::template Tag<(kLanes + 3) / 4> quarter;
  at = ForVectors<Kind, 1>(quarter, taps, at, count, result);
  const typename Kind::template Tag<1> one;
  ForVectors<Kind, 1>(one, taps, at, count, result);
}

// body(kind) with the kind of these windows.
template <class Body>
HWY_INLINE void WithKind(bool is_average, tensor::ElementType type, Body body) {
  const bool is_wide = type == tensor::ElementType::kFloat64;
  if (is_average && is_wide) {
    body(Average<double>());
  } else if (is_average) {
    body(Average<float>());
  } else if (type == tensor::ElementType::kUint8) {
    body(MaximumOfPlain<uint8_t>());
  } else if (type == tensor::ElementType::kInt8) {
    body(MaximumOfPlain<int8_t>());
  } else if (type == tensor::ElementType::kBfloat16) {
    body(MaximumOfBfloat16());
  } else if (is_wide) {
    body(Maximum<double>());
  } else {
    body(Maximum<float>());
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace onnxifi::pooling
HWY_AFTER_NAMESPACE();

#endif  // ONNXIFI_BACKENDS_CPU_POOLING_KINDS_INL_H_
