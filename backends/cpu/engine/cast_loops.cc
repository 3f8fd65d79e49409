// SPDX-License-Identifier: Apache-2.0
//
// Casts that need no table of cases. Plain loops that the compiler turns into each target's vector
// code: between integers, from integers to floats, between floats. In vectors: to and from the
// 16-bit floats and narrower ones; from float32 and float64 to integers, in vectors whose lanes are
// all in the range of int32. Between a narrow float and any type but float32: two casts, by way of
// float32.

#include <algorithm>
#include <bit>
#include <cmath>
#include <type_traits>

#include "backends/core/reference/column.h"
#include "backends/core/tensor/float_format.h"
#include "backends/core/tensor/native_type.h"
#include "backends/core/tensor/truncation.h"
#include "backends/cpu/engine/loop.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/engine/cast_loops.cc"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include <hwy/highway.h>

#include "backends/cpu/engine/lanes-inl.h"
#include "backends/cpu/engine/narrow_floats-inl.h"

HWY_BEFORE_NAMESPACE();
namespace onnxifi::engine {
namespace HWY_NAMESPACE {

using tensor::ElementType;

// `lanes` is a copy: a byte that is stored could be one of `operands`.
template <typename From, typename To, class Function>
HWY_INLINE void ForEach(const LoopOperands& operands, Function function) {
  const auto* a = reinterpret_cast<const From*>(operands.inputs[0]);
  auto* result = reinterpret_cast<To*>(operands.result);
  const int64_t lanes = operands.lanes;
#pragma GCC ivdep
  for (int64_t i = 0; i < lanes; ++i) result[i] = function(a[i]);
}

template <typename From, typename To>
void RunCast(const LoopOperands& operands) {
  ForEach<From, To>(operands, [](From x) { return static_cast<To>(x); });
}

template <typename From>
void RunToBool(const LoopOperands& operands) {
  ForEach<From, uint8_t>(operands, [](From x) { return static_cast<uint8_t>(x != 0); });
}

// bfloat16 is the upper half of a float32.
void RunFromBfloat16(const LoopOperands& operands) {
  const hn::ScalableTag<float> d;
  const hn::RebindToUnsigned<decltype(d)> bits;
  const hn::Rebind<uint16_t, decltype(d)> half;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto* a = reinterpret_cast<const uint16_t*>(operands.inputs[0]);
  auto* result = reinterpret_cast<float*>(operands.result);
  int64_t i = 0;
  for (; i + lanes <= operands.lanes; i += lanes) {
    const auto upper = hn::ShiftLeft<16>(hn::PromoteTo(bits, hn::LoadU(half, a + i)));
    hn::StoreU(hn::BitCast(d, upper), d, result + i);
  }
  for (; i < operands.lanes; ++i) result[i] = tensor::Bfloat16Format::Decode(a[i]);
}

// As Bfloat16Format::Encode, vector by vector.
void RunToBfloat16(const LoopOperands& operands) {
  const hn::ScalableTag<float> d;
  const hn::RebindToUnsigned<decltype(d)> bits;
  const hn::Rebind<uint16_t, decltype(d)> half;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto* a = reinterpret_cast<const float*>(operands.inputs[0]);
  auto* result = reinterpret_cast<uint16_t*>(operands.result);
  const auto below_half = hn::Set(bits, 0x7fffU);
  const auto one = hn::Set(bits, 1U);
  const auto quiet = hn::Set(bits, 0x7fc0U);
  const auto sign = hn::Set(bits, 0x8000U);
  int64_t i = 0;
  for (; i + lanes <= operands.lanes; i += lanes) {
    const auto x = hn::LoadU(d, a + i);
    const auto code = hn::BitCast(bits, x);
    const auto upper = hn::ShiftRight<16>(code);
    const auto is_odd = hn::And(upper, one);
    const auto rounded = hn::ShiftRight<16>(hn::Add(hn::Add(code, below_half), is_odd));
    const auto nan = hn::Or(hn::And(upper, sign), quiet);
    const auto is_nan = hn::RebindMask(bits, hn::IsNaN(x));
    hn::StoreU(hn::TruncateTo(half, hn::IfThenElse(is_nan, nan, rounded)), half, result + i);
  }
  for (; i < operands.lanes; ++i) {
    result[i] = static_cast<uint16_t>(tensor::Bfloat16Format::Encode(a[i]));
  }
}

// What RunToBfloat16 and RunFromBfloat16 make of it.
void RunBfloat16AndBack(const LoopOperands& operands) {
  ForLanes<float>(operands, [](auto d, auto x) HWY_ATTR {
    const hn::RebindToUnsigned<decltype(d)> bits;
    const auto code = hn::BitCast(bits, x);
    const auto is_odd = hn::And(hn::ShiftRight<16>(code), hn::Set(bits, 1U));
    const auto rounded = hn::Add(hn::Add(code, hn::Set(bits, 0x7fffU)), is_odd);
    const auto upper = hn::BitCast(d, hn::And(rounded, hn::Set(bits, 0xffff'0000U)));
    const auto nan = hn::BitCast(
        d, hn::Or(hn::And(code, hn::Set(bits, 0x8000'0000U)), hn::Set(bits, 0x7fc0'0000U)));
    return hn::IfThenElse(hn::IsNaN(x), nan, upper);
  });
}

// Numbers of 32 bits as integers of any size; narrower and unsigned ones get the low bits.
template <typename To, class V>
HWY_INLINE void StoreNumbers(V numbers, To* to) {
  const hn::DFromV<V> d;
  const hn::RebindToUnsigned<decltype(d)> bits;
  if constexpr (sizeof(To) > sizeof(uint32_t)) {
    alignas(64) int32_t narrow[hn::MaxLanes(d)];
    hn::Store(numbers, d, narrow);
    for (size_t k = 0; k < hn::Lanes(d); ++k) to[k] = static_cast<To>(int64_t{narrow[k]});
  } else if constexpr (sizeof(To) == sizeof(uint32_t)) {
    hn::StoreU(hn::BitCast(bits, numbers), bits, to);
  } else {
    const hn::Rebind<To, decltype(d)> narrow;
    hn::StoreU(hn::TruncateTo(narrow, hn::BitCast(bits, numbers)), narrow, to);
  }
}

template <class D>
HWY_INLINE auto TruncateVector(D d, const float* from) {
  return hn::ConvertTo(hn::RebindToSigned<D>(), hn::LoadU(d, from));
}
template <class D>
HWY_INLINE auto TruncateVector(D d, const double* from) {
  return hn::DemoteTo(hn::Rebind<int32_t, D>(), hn::LoadU(d, from));
}

// The low bits of a truncated number; of what int32 does not hold, as the reference has it.
template <typename From, typename To>
void RunTruncate(const LoopOperands& operands) {
  const hn::ScalableTag<From> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto* a = reinterpret_cast<const From*>(operands.inputs[0]);
  auto* result = reinterpret_cast<To*>(operands.result);
  const auto limit = hn::Set(d, From{0x1p31F});
  const auto one_by_one = [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      if constexpr (std::is_same_v<To, uint64_t>) {
        result[i] = tensor::TruncateToUint64(static_cast<double>(a[i]));
      } else {
        result[i] = static_cast<To>(tensor::TruncateToInt64(static_cast<double>(a[i])));
      }
    }
  };
  constexpr int kVectors = 4;
  int64_t i = 0;
  for (; i + kVectors * lanes <= operands.lanes; i += kVectors * lanes) {
    // False of NaN.
    const auto is_within = [&](int v) HWY_ATTR {
      return hn::Lt(hn::Abs(hn::LoadU(d, a + i + v * lanes)), limit);
    };
    const auto are_within =
        hn::And(hn::And(is_within(0), is_within(1)), hn::And(is_within(2), is_within(3)));
    if (HWY_UNLIKELY(!hn::AllTrue(d, are_within))) {
      one_by_one(i, i + kVectors * lanes);
      continue;
    }
    for (int v = 0; v < kVectors; ++v) {
      StoreNumbers(TruncateVector(d, a + i + v * lanes), result + i + v * lanes);
    }
  }
  one_by_one(i, operands.lanes);
}

template <typename From>
Loop FindTruncate(ElementType to) {
  switch (tensor::IsInteger(to) ? tensor::BitWidth(to) : 0) {
    // Signed or not, the bits are the same, but for what int64 does not hold.
    case 8:
      return RunTruncate<From, uint8_t>;
    case 16:
      return RunTruncate<From, uint16_t>;
    case 32:
      return RunTruncate<From, uint32_t>;
    case 64:
      return to == ElementType::kUint64 ? RunTruncate<From, uint64_t> : RunTruncate<From, int64_t>;
    default:
      return nullptr;
  }
}

// Processors with AVX2 convert these; where Highway has to compute it, the reference's loop does.
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3

void RunFromFloat16(const LoopOperands& operands) {
  const hn::ScalableTag<float> d;
  const hn::Rebind<hwy::float16_t, decltype(d)> half;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto* a = reinterpret_cast<const hwy::float16_t*>(operands.inputs[0]);
  auto* result = reinterpret_cast<float*>(operands.result);
  int64_t i = 0;
  for (; i + lanes <= operands.lanes; i += lanes) {
    hn::StoreU(hn::PromoteTo(d, hn::LoadU(half, a + i)), d, result + i);
  }
  const auto* codes = reinterpret_cast<const uint16_t*>(operands.inputs[0]);
  for (; i < operands.lanes; ++i) result[i] = tensor::Float16Format::Decode(codes[i]);
}

void RunToFloat16(const LoopOperands& operands) {
  const hn::ScalableTag<float> d;
  const hn::Rebind<hwy::float16_t, decltype(d)> half;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto* a = reinterpret_cast<const float*>(operands.inputs[0]);
  auto* result = reinterpret_cast<hwy::float16_t*>(operands.result);
  int64_t i = 0;
  for (; i + lanes <= operands.lanes; i += lanes) {
    hn::StoreU(hn::DemoteTo(half, hn::LoadU(d, a + i)), half, result + i);
  }
  auto* codes = reinterpret_cast<uint16_t*>(operands.result);
  for (; i < operands.lanes; ++i) {
    codes[i] = static_cast<uint16_t>(tensor::Float16Format::Encode(a[i], /*saturate=*/false));
  }
}

void RunFloat16AndBack(const LoopOperands& operands) {
  ForLanes<float>(operands, [](auto d, auto x) HWY_ATTR {
    const hn::Rebind<hwy::float16_t, decltype(d)> half;
    return hn::PromoteTo(d, hn::DemoteTo(half, x));
  });
}

inline constexpr Loop kFromFloat16 = RunFromFloat16;
inline constexpr Loop kToFloat16 = RunToFloat16;
inline constexpr Loop kFloat16AndBack = RunFloat16AndBack;

#else

inline constexpr Loop kFromFloat16 = nullptr;
inline constexpr Loop kToFloat16 = nullptr;
inline constexpr Loop kFloat16AndBack = nullptr;

#endif

// To what every type but the 16-bit floats can be cast to.
template <typename From>
Loop FindWide(ElementType to) {
  switch (to) {
    case ElementType::kFloat32:
      return RunCast<From, float>;
    case ElementType::kFloat64:
      return RunCast<From, double>;
    case ElementType::kBool:
      return RunToBool<From>;
    default:
      return nullptr;
  }
}

template <typename From>
Loop FindFromInteger(ElementType to) {
  // Signed or not, the bits are the same.
  const Loop integer = tensor::VisitInteger(
      to, []<typename To>(To) -> Loop { return RunCast<From, std::make_unsigned_t<To>>; });
  return integer != nullptr ? integer : FindWide<From>(to);
}

// float64 as float32, with what is lost in the lowest bit, so that a second rounding is right: as
// tensor::CastScalar has it.
inline float RoundToOdd(double value) {
  const auto nearest = static_cast<float>(value);
  const auto back = static_cast<double>(nearest);
  const auto bits = std::bit_cast<uint32_t>(nearest);
  const uint32_t is_above = std::fabs(back) > std::fabs(value) ? 1 : 0;
  // Of what is no number neither comparison is true.
  const bool is_inexact = back < value || back > value;
  return std::bit_cast<float>(is_inexact ? (bits - is_above) | 1 : bits);
}

// An integer of 64 bits likewise as float64.
template <typename From>
inline double RoundToOddDouble(From value) {
  constexpr uint64_t kDropped = (uint64_t{1} << 11) - 1;
  const bool is_negative = std::is_signed_v<From> && value < 0;
  const uint64_t bits = static_cast<uint64_t>(value);
  const uint64_t magnitude = is_negative ? ~bits + 1 : bits;
  const uint64_t sticky = (magnitude & kDropped) != 0 ? kDropped + 1 : 0;
  const uint64_t kept = magnitude >> 53 == 0 ? magnitude : (magnitude & ~kDropped) | sticky;
  const auto rounded = static_cast<double>(kept);
  return is_negative ? -rounded : rounded;
}

template <typename From>
void RunToOdd(const LoopOperands& operands) {
  if constexpr (std::is_integral_v<From> && sizeof(From) == sizeof(uint64_t)) {
    ForEach<From, float>(operands, [](From x) { return RoundToOdd(RoundToOddDouble(x)); });
  } else {
    ForEach<From, float>(operands, [](From x) { return RoundToOdd(static_cast<double>(x)); });
  }
}

// The numbers of another type as float32, on their way to a float that is narrower: rounded so that
// the second rounding gives what one would.
Loop FindOnTheWay(ElementType from, ElementType to) {
  switch (from) {
    case ElementType::kFloat16:
      return kFromFloat16;
    case ElementType::kBfloat16:
      return RunFromBfloat16;
    case ElementType::kFloat64:
      return RunToOdd<double>;
    case ElementType::kBool:
      return RunCast<uint8_t, float>;
    default:
      break;
  }
  if (const Loop narrow = FindFromNarrow(from); narrow != nullptr) return narrow;
  return tensor::VisitInteger(from, [to]<typename From>(From) -> Loop {
    // All integers that float16 tells apart, and where it ends, are numbers of float32.
    if (sizeof(From) <= sizeof(uint16_t) || to == ElementType::kFloat16)
      return RunCast<From, float>;
    return RunToOdd<From>;
  });
}

Loop FindCast(ElementType from, ElementType to);

// Two casts, in blocks that stay in the L1 cache between them.
void RunByWayOfFloat32(const LoopOperands& operands) {
  constexpr int64_t kBlock = 512;
  HWY_ALIGN float between[kBlock];
  const Loop first = FindOnTheWay(operands.from_type, operands.type);
  const Loop second = FindCast(ElementType::kFloat32, operands.type);
  const int64_t from_bytes = reference::LaneBytes(operands.from_type);
  const int64_t to_bytes = reference::LaneBytes(operands.type);
  auto* const floats = reinterpret_cast<std::byte*>(between);
  for (int64_t begin = 0; begin < operands.lanes; begin += kBlock) {
    const int64_t lanes = std::min(kBlock, operands.lanes - begin);
    first({floats,
           {operands.inputs[0] + begin * from_bytes, nullptr, nullptr},
           lanes,
           0,
           ElementType::kFloat32,
           operands.from_type});
    second({operands.result + begin * to_bytes,
            {floats, nullptr, nullptr},
            lanes,
            operands.payload,
            operands.type,
            ElementType::kFloat32});
  }
}

// Null where one of the two has no loop.
Loop FindByWayOfFloat32(ElementType from, ElementType to) {
  const bool is_known = from != ElementType::kFloat32 && to != ElementType::kFloat32 &&
                        from != to && FindOnTheWay(from, to) != nullptr &&
                        FindCast(ElementType::kFloat32, to) != nullptr;
  return is_known ? RunByWayOfFloat32 : nullptr;
}

Loop FindCast(ElementType from, ElementType to) {
  if (from != ElementType::kFloat32 && from != to && tensor::IsFloat(to) &&
      to != ElementType::kFloat32 && to != ElementType::kFloat64) {
    return FindByWayOfFloat32(from, to);
  }
  switch (from) {
    case ElementType::kFloat32:
      if (to == ElementType::kFloat16) return kToFloat16;
      if (to == ElementType::kBfloat16) return RunToBfloat16;
      if (const Loop narrow = FindToNarrow(to); narrow != nullptr) return narrow;
      if (const Loop truncate = FindTruncate<float>(to); truncate != nullptr) return truncate;
      return FindWide<float>(to);
    case ElementType::kFloat64:
      if (const Loop truncate = FindTruncate<double>(to); truncate != nullptr) return truncate;
      return FindWide<double>(to);
    case ElementType::kFloat16:
      return to == ElementType::kFloat32 ? kFromFloat16 : FindByWayOfFloat32(from, to);
    case ElementType::kBfloat16:
      return to == ElementType::kFloat32 ? RunFromBfloat16 : FindByWayOfFloat32(from, to);
    case ElementType::kBool:
      return FindFromInteger<uint8_t>(to);
    default:
      if (const Loop narrow = FindFromNarrow(from); narrow != nullptr) {
        return to == ElementType::kFloat32 ? narrow : FindByWayOfFloat32(from, to);
      }
      return tensor::VisitInteger(
          from, [to]<typename From>(From) -> Loop { return FindFromInteger<From>(to); });
  }
}

Loop FindCastAndBack(ElementType type) {
  if (type == ElementType::kBfloat16) return RunBfloat16AndBack;
  return type == ElementType::kFloat16 ? kFloat16AndBack : nullptr;
}

}  // namespace HWY_NAMESPACE
}  // namespace onnxifi::engine
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace onnxifi::engine {

HWY_EXPORT(FindCast);
HWY_EXPORT(FindCastAndBack);

Loop FindCastLoop(tensor::ElementType from, tensor::ElementType to) {
  return HWY_DYNAMIC_DISPATCH(FindCast)(from, to);
}

Loop FindCastAndBackLoop(tensor::ElementType type) {
  return HWY_DYNAMIC_DISPATCH(FindCastAndBack)(type);
}

}  // namespace onnxifi::engine
#endif
