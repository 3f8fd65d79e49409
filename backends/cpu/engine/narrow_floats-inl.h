// SPDX-License-Identifier: Apache-2.0
//
// Casts between float32 and the floats of 8 bits and less, a lane of which is a byte. Included once
// per target of Highway, by the file that holds the casts.

#if defined(ONNXIFI_BACKENDS_CPU_ENGINE_NARROW_FLOATS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ONNXIFI_BACKENDS_CPU_ENGINE_NARROW_FLOATS_INL_H_
#undef ONNXIFI_BACKENDS_CPU_ENGINE_NARROW_FLOATS_INL_H_
#else
#define ONNXIFI_BACKENDS_CPU_ENGINE_NARROW_FLOATS_INL_H_
#endif

#include <hwy/highway.h>

#include <array>
#include <bit>
#include <cstdint>
#include <limits>

#include "backends/core/tensor/float_format.h"
#include "backends/cpu/engine/loop.h"

HWY_BEFORE_NAMESPACE();
namespace onnxifi::engine {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// As Format::Encode, vector by vector.
template <class Format>
void RunToNarrow(const LoopOperands& operands) {
  constexpr int kMantissaBits = std::popcount(Format::kMantissaMask);
  constexpr int kDropped = 23 - kMantissaBits;
  constexpr auto kSmallestNormal = static_cast<uint32_t>(Format::kMinExponent + 127) << 23;
  // Float32 rounds a sum with this to a multiple of the format's smallest number.
  constexpr auto kUnits = static_cast<uint32_t>(Format::kMinExponent + kDropped + 127) << 23;
  // Between the exponents of float32 and of the format.
  constexpr auto kRebias = static_cast<uint32_t>(Format::kMinExponent + 126) << kMantissaBits;
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr float kNan = std::bit_cast<float>(0x7fc00000u);
  constexpr float kNegativeNan = std::bit_cast<float>(0xffc00000u);
  constexpr bool kHasNegativeZero = Format::Encode(-0.0F, /*saturate=*/false) != 0;

  const hn::ScalableTag<float> d;
  const hn::RebindToUnsigned<decltype(d)> bits;
  const hn::Rebind<uint8_t, decltype(d)> bytes;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto* a = reinterpret_cast<const float*>(operands.inputs[0]);
  auto* result = reinterpret_cast<uint8_t*>(operands.result);
  const bool saturate = (operands.payload & 1) != 0;
  const auto beyond = hn::Set(bits, Format::Encode(kInfinity, saturate));
  const auto beyond_below = hn::Set(bits, Format::Encode(-kInfinity, saturate));
  int64_t i = 0;
  for (; i + lanes <= operands.lanes; i += lanes) {
    const auto x = hn::LoadU(d, a + i);
    const auto x_bits = hn::BitCast(bits, x);
    const auto magnitude = hn::And(x_bits, hn::Set(bits, 0x7fffffffU));
    const auto is_negative = hn::Ne(x_bits, magnitude);
    const auto is_odd = hn::And(hn::ShiftRight<kDropped>(magnitude), hn::Set(bits, 1U));
    const auto below_half = hn::Set(bits, (1U << (kDropped - 1)) - 1);
    const auto rounded = hn::Add(hn::Add(magnitude, below_half), is_odd);
    const auto normal = hn::Sub(hn::ShiftRight<kDropped>(rounded), hn::Set(bits, kRebias));
    const auto units = hn::Set(bits, kUnits);
    const auto sum = hn::Add(hn::BitCast(d, magnitude), hn::BitCast(d, units));
    const auto subnormal = hn::Sub(hn::BitCast(bits, sum), units);
    const auto is_subnormal = hn::Lt(magnitude, hn::Set(bits, kSmallestNormal));
    auto code = hn::IfThenElse(is_subnormal, subnormal, normal);
    const auto is_beyond = hn::Gt(code, hn::Set(bits, Format::LargestCode()));
    auto sign = hn::IfThenElseZero(is_negative, hn::Set(bits, Format::kSignBit));
    if constexpr (!kHasNegativeZero) {
      sign = hn::IfThenZeroElse(hn::Eq(code, hn::Zero(bits)), sign);
    }
    code = hn::IfThenElse(is_beyond, hn::IfThenElse(is_negative, beyond_below, beyond),
                          hn::Or(sign, code));
    const auto nan =
        hn::IfThenElse(is_negative, hn::Set(bits, Format::Encode(kNegativeNan, /*saturate=*/false)),
                       hn::Set(bits, Format::Encode(kNan, /*saturate=*/false)));
    code = hn::IfThenElse(hn::RebindMask(bits, hn::IsNaN(x)), nan, code);
    hn::StoreU(hn::TruncateTo(bytes, code), bytes, result + i);
  }
  for (; i < operands.lanes; ++i) result[i] = static_cast<uint8_t>(Format::Encode(a[i], saturate));
}

template <class Format>
constexpr std::array<float, 2 * Format::kSignBit> DecodedCodes() {
  std::array<float, 2 * Format::kSignBit> values{};
  for (uint32_t code = 0; code < values.size(); ++code) values[code] = Format::Decode(code);
  return values;
}

template <class Format>
void RunFromNarrow(const LoopOperands& operands) {
  static constexpr std::array<float, 2 * Format::kSignBit> kValues = DecodedCodes<Format>();
  const auto* a = reinterpret_cast<const uint8_t*>(operands.inputs[0]);
  auto* result = reinterpret_cast<float*>(operands.result);
  const int64_t lanes = operands.lanes;
  for (int64_t i = 0; i < lanes; ++i) result[i] = kValues[a[i] & (kValues.size() - 1)];
}

// What `visit` gives for the format of `type`; null for any other type, float8e8m0 among them.
template <class Visitor>
Loop VisitNarrowFormat(tensor::ElementType type, const Visitor& visit) {
  switch (type) {
    case tensor::ElementType::kFloat8E4M3Fn:
      return visit(tensor::Float8E4M3FnFormat());
    case tensor::ElementType::kFloat8E4M3Fnuz:
      return visit(tensor::Float8E4M3FnuzFormat());
    case tensor::ElementType::kFloat8E5M2:
      return visit(tensor::Float8E5M2Format());
    case tensor::ElementType::kFloat8E5M2Fnuz:
      return visit(tensor::Float8E5M2FnuzFormat());
    case tensor::ElementType::kFloat6E2M3:
      return visit(tensor::Float6E2M3Format());
    case tensor::ElementType::kFloat6E3M2:
      return visit(tensor::Float6E3M2Format());
    case tensor::ElementType::kFloat4E2M1:
      return visit(tensor::Float4E2M1Format());
    default:
      return nullptr;
  }
}

inline Loop FindToNarrow(tensor::ElementType to) {
  return VisitNarrowFormat(to, []<class Format>(Format) -> Loop { return RunToNarrow<Format>; });
}

inline Loop FindFromNarrow(tensor::ElementType from) {
  return VisitNarrowFormat(from,
                           []<class Format>(Format) -> Loop { return RunFromNarrow<Format>; });
}

}  // namespace HWY_NAMESPACE
}  // namespace onnxifi::engine
HWY_AFTER_NAMESPACE();

#endif  // ONNXIFI_BACKENDS_CPU_ENGINE_NARROW_FLOATS_INL_H_
