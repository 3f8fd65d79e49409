// SPDX-License-Identifier: Apache-2.0
//
// Casts that need no table of cases, as plain loops that the compiler turns into each target's
// vector code: between integers, from integers to floats, between floats, to and from the 16-bit
// floats. From floats to integers the reference's loops know what is out of range.

#include "backends/core/tensor/float_format.h"
#include "backends/cpu/engine/loop.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/engine/cast_loops.cc"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include <hwy/highway.h>

#include "backends/cpu/engine/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace onnxifi::engine {
namespace HWY_NAMESPACE {

using tensor::ElementType;

template <typename From, typename To, class Function>
HWY_INLINE void ForEach(const LoopOperands& operands, Function function) {
  const auto* a = reinterpret_cast<const From*>(operands.inputs[0]);
  auto* result = reinterpret_cast<To*>(operands.result);
#pragma GCC ivdep
  for (int64_t i = 0; i < operands.lanes; ++i) result[i] = function(a[i]);
}

template <typename From, typename To>
void RunCast(const LoopOperands& operands) {
  ForEach<From, To>(operands, [](From x) { return static_cast<To>(x); });
}

template <typename From>
void RunToBool(const LoopOperands& operands) {
  ForEach<From, uint8_t>(operands, [](From x) { return static_cast<uint8_t>(x != 0); });
}

void RunFromBfloat16(const LoopOperands& operands) {
  ForEach<uint16_t, uint32_t>(operands, [](uint16_t x) { return static_cast<uint32_t>(x) << 16; });
}

void RunToBfloat16(const LoopOperands& operands) {
  ForEach<uint32_t, uint16_t>(operands, [](uint32_t bits) {
    const uint32_t rounded = (bits + 0x7fffu + (bits >> 16 & 1)) >> 16;
    const uint32_t nan = (bits >> 16 & 0x8000u) | 0x7fc0u;
    return static_cast<uint16_t>((bits & 0x7fffffffu) > 0x7f800000u ? nan : rounded);
  });
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

inline constexpr Loop kFromFloat16 = RunFromFloat16;
inline constexpr Loop kToFloat16 = RunToFloat16;

#else

inline constexpr Loop kFromFloat16 = nullptr;
inline constexpr Loop kToFloat16 = nullptr;

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
  switch (to) {
    case ElementType::kInt8:
    case ElementType::kUint8:
      return RunCast<From, uint8_t>;
    case ElementType::kInt16:
    case ElementType::kUint16:
      return RunCast<From, uint16_t>;
    case ElementType::kInt32:
    case ElementType::kUint32:
      return RunCast<From, uint32_t>;
    case ElementType::kInt64:
    case ElementType::kUint64:
      return RunCast<From, uint64_t>;
    default:
      return FindWide<From>(to);
  }
}

Loop FindCast(ElementType from, ElementType to) {
  switch (from) {
    case ElementType::kFloat32:
      if (to == ElementType::kFloat16) return kToFloat16;
      if (to == ElementType::kBfloat16) return RunToBfloat16;
      return FindWide<float>(to);
    case ElementType::kFloat64:
      return FindWide<double>(to);
    case ElementType::kFloat16:
      return to == ElementType::kFloat32 ? kFromFloat16 : nullptr;
    case ElementType::kBfloat16:
      return to == ElementType::kFloat32 ? RunFromBfloat16 : nullptr;
    case ElementType::kInt8:
      return FindFromInteger<int8_t>(to);
    case ElementType::kInt16:
      return FindFromInteger<int16_t>(to);
    case ElementType::kInt32:
      return FindFromInteger<int32_t>(to);
    case ElementType::kInt64:
      return FindFromInteger<int64_t>(to);
    case ElementType::kBool:
    case ElementType::kUint8:
      return FindFromInteger<uint8_t>(to);
    case ElementType::kUint16:
      return FindFromInteger<uint16_t>(to);
    case ElementType::kUint32:
      return FindFromInteger<uint32_t>(to);
    case ElementType::kUint64:
      return FindFromInteger<uint64_t>(to);
    default:
      return nullptr;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace onnxifi::engine
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace onnxifi::engine {

HWY_EXPORT(FindCast);

Loop FindCastLoop(tensor::ElementType from, tensor::ElementType to) {
  return HWY_DYNAMIC_DISPATCH(FindCast)(from, to);
}

}  // namespace onnxifi::engine
#endif
