// SPDX-License-Identifier: Apache-2.0
//
// Conversions: dispatch on the element type to the bit formats, ONNX's Cast rules between the
// classes, and the loads and stores of densely packed elements.

#include "backends/core/tensor/convert.h"

#include <bit>
#include <cmath>
#include <cstring>

#include "backends/core/tensor/float_format.h"
#include "backends/core/tensor/packed.h"
#include "backends/core/tensor/truncation.h"

namespace onnxifi::tensor {
namespace {

// float8e8m0 has neither sign nor mantissa: code c is 2^(c - 127), 255 is NaN.
float DecodeE8M0(uint32_t code) {
  if (code == 0xff) return std::bit_cast<float>(0x7fc00000u);
  // 2^-127 is a float32 subnormal.
  return std::bit_cast<float>(code == 0 ? 0x00400000u : code << 23);
}

// The table of ONNX's Cast (opset 24); negative values are undefined there and lose their sign
// here.
uint32_t EncodeE8M0(float value, bool saturate, Rounding rounding) {
  constexpr uint32_t kNan = 0xff;
  constexpr uint32_t kMax = 0xfe;
  constexpr uint32_t kSmallestBits = 0x00400000u;  // 2^-127
  const uint32_t magnitude = std::bit_cast<uint32_t>(value) & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return kNan;
  if (magnitude == 0x7f800000u) return saturate ? kMax : kNan;
  if (magnitude < kSmallestBits) return saturate ? 0 : kNan;
  const uint32_t exponent = magnitude >> 23;
  // Fraction above the power of two, as 23 bits of a whole: below 2^-126 the leading one is
  // explicit.
  const uint32_t fraction =
      exponent == 0 ? (magnitude - kSmallestBits) << 1 : magnitude & 0x7fffffu;
  uint32_t code = exponent;
  switch (rounding) {
    case Rounding::kUp:
      code += fraction != 0 ? 1 : 0;
      break;
    case Rounding::kDown:
      break;
    case Rounding::kNearestEven:
    case Rounding::kNearest:
      code += fraction >= 0x400000u ? 1 : 0;
      break;
  }
  if (code > kMax) return saturate ? kMax : kNan;
  return code;
}

// float64 -> float32 by truncation with the lost bits kept as the lowest one, so that a second
// rounding to a narrower type is correct (Boldo and Melquiond, "Emulation of a FMA and correctly
// rounded sums", 2008).
float RoundToOdd(double value) {
  const auto nearest = static_cast<float>(value);
  if (static_cast<double>(nearest) == value || std::isnan(value)) return nearest;
  uint32_t bits = std::bit_cast<uint32_t>(nearest);
  if (std::fabs(static_cast<double>(nearest)) > std::fabs(value)) --bits;
  return std::bit_cast<float>(bits | 1);
}

// As above, 64-bit integer -> float64.
double RoundToOdd(uint64_t magnitude) {
  if (magnitude >> 53 == 0) return static_cast<double>(magnitude);
  constexpr uint64_t kDropped = (1u << 11) - 1;
  const uint64_t sticky = (magnitude & kDropped) != 0 ? uint64_t{1} << 11 : 0;
  return static_cast<double>((magnitude & ~kDropped) | sticky);
}

uint64_t Magnitude(int64_t value) {
  return value < 0 ? ~static_cast<uint64_t>(value) + 1 : static_cast<uint64_t>(value);
}

// The low `bits` bits as the integer type of that width reads them.
int64_t WrapSigned(uint64_t value, int bits) {
  const int unused = 64 - bits;
  return static_cast<int64_t>(value << unused) >> unused;
}

uint64_t WrapUnsigned(uint64_t value, int bits) {
  return bits == 64 ? value : value & ((uint64_t{1} << bits) - 1);
}

template <typename T>
T LoadAs(const std::byte* data, int64_t index) {
  T value;
  std::memcpy(&value, data + index * static_cast<int64_t>(sizeof(T)), sizeof(T));
  return value;
}

template <typename T>
void StoreAs(std::byte* data, int64_t index, T value) {
  std::memcpy(data + index * static_cast<int64_t>(sizeof(T)), &value, sizeof(T));
}

Scalar MakeFloat(double value) { return Scalar{.f = value}; }
Scalar MakeSigned(int64_t value) { return Scalar{.i = value}; }
Scalar MakeUnsigned(uint64_t value) { return Scalar{.u = value}; }

}  // namespace

float DecodeFloat(ElementType type, uint32_t bits) {
  switch (type) {
    case ElementType::kFloat16:
      return Float16Format::Decode(bits & 0xffff);
    case ElementType::kBfloat16:
      return Bfloat16Format::Decode(bits & 0xffff);
    case ElementType::kFloat8E4M3Fn:
      return Float8E4M3FnFormat::Decode(bits & 0xff);
    case ElementType::kFloat8E4M3Fnuz:
      return Float8E4M3FnuzFormat::Decode(bits & 0xff);
    case ElementType::kFloat8E5M2:
      return Float8E5M2Format::Decode(bits & 0xff);
    case ElementType::kFloat8E5M2Fnuz:
      return Float8E5M2FnuzFormat::Decode(bits & 0xff);
    case ElementType::kFloat8E8M0:
      return DecodeE8M0(bits & 0xff);
    case ElementType::kFloat6E2M3:
      return Float6E2M3Format::Decode(bits & 0x3f);
    case ElementType::kFloat6E3M2:
      return Float6E3M2Format::Decode(bits & 0x3f);
    case ElementType::kFloat4E2M1:
      return Float4E2M1Format::Decode(bits & 0xf);
    default:
      return 0;
  }
}

uint32_t EncodeFloat(ElementType type, float value, bool saturate, Rounding rounding) {
  switch (type) {
    case ElementType::kFloat16:
      return Float16Format::Encode(value, /*saturate=*/false);
    case ElementType::kBfloat16:
      return Bfloat16Format::Encode(value);
    case ElementType::kFloat8E4M3Fn:
      return Float8E4M3FnFormat::Encode(value, saturate);
    case ElementType::kFloat8E4M3Fnuz:
      return Float8E4M3FnuzFormat::Encode(value, saturate);
    case ElementType::kFloat8E5M2:
      return Float8E5M2Format::Encode(value, saturate);
    case ElementType::kFloat8E5M2Fnuz:
      return Float8E5M2FnuzFormat::Encode(value, saturate);
    case ElementType::kFloat8E8M0:
      return EncodeE8M0(value, saturate, rounding);
    case ElementType::kFloat6E2M3:
      return Float6E2M3Format::Encode(value, /*saturate=*/true);
    case ElementType::kFloat6E3M2:
      return Float6E3M2Format::Encode(value, /*saturate=*/true);
    case ElementType::kFloat4E2M1:
      return Float4E2M1Format::Encode(value, /*saturate=*/true);
    default:
      return 0;
  }
}

uint32_t EncodeDouble(ElementType type, double value, bool saturate, Rounding rounding) {
  return EncodeFloat(type, RoundToOdd(value), saturate, rounding);
}

Scalar LoadScalar(ElementType type, const std::byte* data, int64_t index) {
  switch (type) {
    case ElementType::kFloat32:
      return MakeFloat(LoadAs<float>(data, index));
    case ElementType::kFloat64:
      return MakeFloat(LoadAs<double>(data, index));
    case ElementType::kUint8:
      return MakeUnsigned(LoadAs<uint8_t>(data, index));
    case ElementType::kInt8:
      return MakeSigned(LoadAs<int8_t>(data, index));
    case ElementType::kUint16:
      return MakeUnsigned(LoadAs<uint16_t>(data, index));
    case ElementType::kInt16:
      return MakeSigned(LoadAs<int16_t>(data, index));
    case ElementType::kUint32:
      return MakeUnsigned(LoadAs<uint32_t>(data, index));
    case ElementType::kInt32:
      return MakeSigned(LoadAs<int32_t>(data, index));
    case ElementType::kUint64:
      return MakeUnsigned(LoadAs<uint64_t>(data, index));
    case ElementType::kInt64:
      return MakeSigned(LoadAs<int64_t>(data, index));
    case ElementType::kBool:
      return MakeUnsigned(LoadAs<uint8_t>(data, index) != 0 ? 1 : 0);
    case ElementType::kFloat16:
    case ElementType::kBfloat16:
      return MakeFloat(DecodeFloat(type, LoadAs<uint16_t>(data, index)));
    case ElementType::kFloat8E4M3Fn:
    case ElementType::kFloat8E4M3Fnuz:
    case ElementType::kFloat8E5M2:
    case ElementType::kFloat8E5M2Fnuz:
    case ElementType::kFloat8E8M0:
      return MakeFloat(DecodeFloat(type, LoadAs<uint8_t>(data, index)));
    case ElementType::kFloat6E2M3:
    case ElementType::kFloat6E3M2:
      return MakeFloat(DecodeFloat(type, LoadPacked<6>(data, index)));
    case ElementType::kFloat4E2M1:
      return MakeFloat(DecodeFloat(type, LoadPacked<4>(data, index)));
    case ElementType::kUint4:
      return MakeUnsigned(LoadPacked<4>(data, index));
    case ElementType::kInt4:
      return MakeSigned(WrapSigned(LoadPacked<4>(data, index), 4));
    case ElementType::kUint2:
      return MakeUnsigned(LoadPacked<2>(data, index));
    case ElementType::kInt2:
      return MakeSigned(WrapSigned(LoadPacked<2>(data, index), 2));
    case ElementType::kUndefined:
    case ElementType::kString:
    case ElementType::kComplex64:
    case ElementType::kComplex128:
      break;
  }
  return MakeUnsigned(0);
}

void StoreScalar(ElementType type, std::byte* data, int64_t index, Scalar value) {
  switch (type) {
    case ElementType::kFloat32:
      return StoreAs(data, index, static_cast<float>(value.f));
    case ElementType::kFloat64:
      return StoreAs(data, index, value.f);
    case ElementType::kUint8:
    case ElementType::kInt8:
      return StoreAs(data, index, static_cast<uint8_t>(value.u));
    case ElementType::kUint16:
    case ElementType::kInt16:
      return StoreAs(data, index, static_cast<uint16_t>(value.u));
    case ElementType::kUint32:
    case ElementType::kInt32:
      return StoreAs(data, index, static_cast<uint32_t>(value.u));
    case ElementType::kUint64:
    case ElementType::kInt64:
      return StoreAs(data, index, value.u);
    case ElementType::kBool:
      return StoreAs(data, index, static_cast<uint8_t>(value.u != 0));
    case ElementType::kFloat16:
    case ElementType::kBfloat16:
      return StoreAs(data, index, static_cast<uint16_t>(EncodeDouble(type, value.f)));
    case ElementType::kFloat8E4M3Fn:
    case ElementType::kFloat8E4M3Fnuz:
    case ElementType::kFloat8E5M2:
    case ElementType::kFloat8E5M2Fnuz:
      // Not saturated: the value was cast before, so an infinity here is meant.
      return StoreAs(data, index,
                     static_cast<uint8_t>(EncodeDouble(type, value.f, /*saturate=*/false)));
    case ElementType::kFloat8E8M0:
      return StoreAs(data, index, static_cast<uint8_t>(EncodeDouble(type, value.f)));
    case ElementType::kFloat6E2M3:
    case ElementType::kFloat6E3M2:
      return StorePacked<6>(data, index, EncodeDouble(type, value.f));
    case ElementType::kFloat4E2M1:
      return StorePacked<4>(data, index, EncodeDouble(type, value.f));
    case ElementType::kUint4:
    case ElementType::kInt4:
      return StorePacked<4>(data, index, static_cast<uint32_t>(value.u));
    case ElementType::kUint2:
    case ElementType::kInt2:
      return StorePacked<2>(data, index, static_cast<uint32_t>(value.u));
    case ElementType::kUndefined:
    case ElementType::kString:
    case ElementType::kComplex64:
    case ElementType::kComplex128:
      break;
  }
}

Scalar CastScalar(ElementType from, ElementType to, Scalar value, bool saturate,
                  Rounding rounding) {
  const bool from_float = IsFloat(from);
  const bool from_signed = IsSigned(from);
  if (IsBool(to)) {
    return MakeUnsigned(from_float ? value.f != 0 : value.u != 0);
  }
  if (IsFloat(to)) {
    if (from == to) return value;
    if (to == ElementType::kFloat64) {
      if (from_float) return value;
      return MakeFloat(from_signed ? static_cast<double>(value.i) : static_cast<double>(value.u));
    }
    if (to == ElementType::kFloat32) {
      if (from_float) return MakeFloat(static_cast<float>(value.f));
      return MakeFloat(from_signed ? static_cast<float>(value.i) : static_cast<float>(value.u));
    }
    double wide = value.f;
    if (!from_float) {
      wide = RoundToOdd(from_signed ? Magnitude(value.i) : value.u);
      if (from_signed && value.i < 0) wide = -wide;
    }
    return MakeFloat(DecodeFloat(to, EncodeDouble(to, wide, saturate, rounding)));
  }
  uint64_t integer = value.u;
  if (from_float) {
    integer = to == ElementType::kUint64 ? TruncateToUint64(value.f)
                                         : static_cast<uint64_t>(TruncateToInt64(value.f));
  }
  const int bits = BitWidth(to);
  if (IsSigned(to)) return MakeSigned(WrapSigned(integer, bits));
  if (IsUnsigned(to)) return MakeUnsigned(WrapUnsigned(integer, bits));
  return MakeUnsigned(0);
}

}  // namespace onnxifi::tensor
