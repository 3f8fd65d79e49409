// SPDX-License-Identifier: Apache-2.0
//
// The formats' definitions: IEEE 754 for float16, its truncation bfloat16, the OCP specifications
// for 8, 6 and 4 bits.

#include "client/comparison/float_format.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace onnxifi::comparison {
namespace {

using onnx_file::ElementType;

enum class NonFinite : uint8_t {
  kIeee,            // largest exponent: infinity and NaN
  kAllOnesIsNan,    // "fn": only exponent and fraction all ones is NaN
  kMinusZeroIsNan,  // "fnuz": the pattern of -0 is NaN
  kNone,
};

struct Format {
  int exponent_bits;
  int fraction_bits;
  int bias;
  NonFinite non_finite;
};

Format FormatOf(ElementType type) {
  switch (type) {
    case ElementType::kBfloat16:
      return {8, 7, 127, NonFinite::kIeee};
    case ElementType::kFloat8E4M3Fn:
      return {4, 3, 7, NonFinite::kAllOnesIsNan};
    case ElementType::kFloat8E4M3Fnuz:
      return {4, 3, 8, NonFinite::kMinusZeroIsNan};
    case ElementType::kFloat8E5M2:
      return {5, 2, 15, NonFinite::kIeee};
    case ElementType::kFloat8E5M2Fnuz:
      return {5, 2, 16, NonFinite::kMinusZeroIsNan};
    case ElementType::kFloat6E2M3:
      return {2, 3, 1, NonFinite::kNone};
    case ElementType::kFloat6E3M2:
      return {3, 2, 3, NonFinite::kNone};
    case ElementType::kFloat4E2M1:
      return {2, 1, 1, NonFinite::kNone};
    default:
      return {5, 10, 15, NonFinite::kIeee};  // float16
  }
}

template <typename T>
T LoadAs(std::span<const std::byte> bytes, int64_t index) {
  T value;
  std::memcpy(&value, bytes.data() + static_cast<size_t>(index) * sizeof(T), sizeof(T));
  return value;
}

int64_t SignExtend(uint64_t bits, int width) {
  const uint64_t sign = uint64_t{1} << (width - 1);
  return static_cast<int64_t>((bits ^ sign) - sign);
}

}  // namespace

double DecodeSmallFloat(ElementType type, uint32_t bits) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  if (type == ElementType::kFloat8E8M0) {  // An exponent alone, no sign.
    return (bits & 0xFF) == 0xFF ? kNan : std::ldexp(1.0, static_cast<int>(bits & 0xFF) - 127);
  }
  const Format format = FormatOf(type);
  const uint32_t fraction_mask = (1u << format.fraction_bits) - 1;
  const uint32_t exponent_mask = (1u << format.exponent_bits) - 1;
  const uint32_t fraction = bits & fraction_mask;
  const uint32_t exponent = bits >> format.fraction_bits & exponent_mask;
  const bool is_negative = (bits >> (format.fraction_bits + format.exponent_bits) & 1) != 0;
  if (format.non_finite == NonFinite::kIeee && exponent == exponent_mask) {
    if (fraction != 0) return kNan;
    return is_negative ? -std::numeric_limits<double>::infinity()
                       : std::numeric_limits<double>::infinity();
  }
  if (format.non_finite == NonFinite::kAllOnesIsNan && exponent == exponent_mask &&
      fraction == fraction_mask) {
    return kNan;
  }
  if (format.non_finite == NonFinite::kMinusZeroIsNan && is_negative && exponent == 0 &&
      fraction == 0) {
    return kNan;
  }
  // value = fraction' * 2^(exponent' - bias - fraction_bits), with the hidden one unless the
  // exponent is 0.
  const uint32_t significand = exponent == 0 ? fraction : fraction | (fraction_mask + 1);
  const int power =
      static_cast<int>(exponent == 0 ? 1 : exponent) - format.bias - format.fraction_bits;
  const double magnitude = std::ldexp(static_cast<double>(significand), power);
  return is_negative ? -magnitude : magnitude;
}

uint64_t LoadBits(ElementType type, std::span<const std::byte> bytes, int64_t index) {
  const int width = onnx_file::FactsOf(type).bits;
  if (width < 8) {
    const int64_t bit = index * width;
    const auto first = static_cast<size_t>(bit / 8);
    const auto last = static_cast<size_t>((bit + width - 1) / 8);
    const auto pair =
        std::to_integer<uint64_t>(bytes[first]) | std::to_integer<uint64_t>(bytes[last]) << 8;
    return pair >> (bit % 8) & ((uint64_t{1} << width) - 1);
  }
  const auto width_bytes = static_cast<size_t>(width / 8);
  uint64_t value = 0;
  std::memcpy(&value, bytes.data() + static_cast<size_t>(index) * width_bytes, width_bytes);
  return value;
}

double LoadNumber(ElementType type, std::span<const std::byte> bytes, int64_t index) {
  const uint64_t bits = LoadBits(type, bytes, index);
  switch (type) {
    case ElementType::kFloat32:
      return std::bit_cast<float>(static_cast<uint32_t>(bits));
    case ElementType::kFloat64:
      return std::bit_cast<double>(bits);
    case ElementType::kInt2:
    case ElementType::kInt4:
    case ElementType::kInt8:
    case ElementType::kInt16:
    case ElementType::kInt32:
    case ElementType::kInt64:
      return static_cast<double>(SignExtend(bits, onnx_file::FactsOf(type).bits));
    default:
      break;
  }
  if (onnx_file::FactsOf(type).number_class == onnx_file::NumberClass::kFloat) {
    return DecodeSmallFloat(type, static_cast<uint32_t>(bits));
  }
  return static_cast<double>(bits);
}

std::complex<double> LoadComplex(ElementType type, std::span<const std::byte> bytes,
                                 int64_t index) {
  if (type == ElementType::kComplex64) {
    return {LoadAs<float>(bytes, 2 * index), LoadAs<float>(bytes, 2 * index + 1)};
  }
  return {LoadAs<double>(bytes, 2 * index), LoadAs<double>(bytes, 2 * index + 1)};
}

}  // namespace onnxifi::comparison
