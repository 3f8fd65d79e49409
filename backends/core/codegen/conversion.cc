// SPDX-License-Identifier: Apache-2.0
//
// Conversion: casts as tensor::CastScalar does them.

#include "backends/core/codegen/conversion.h"

#include <bit>
#include <cstddef>
#include <string_view>

namespace onnxifi::codegen {
namespace {

using tensor::ElementType;
using tensor::Scalar;

// The bits of a small float's format: exponent, mantissa, bias, tensor::FloatSpecials. Empty for
// float16, bfloat16 and float8e8m0, which have functions of their own.
std::string_view FormatOf(ElementType type) {
  switch (type) {
    case ElementType::kFloat8E4M3Fn:
      return "4, 3, 7, 1";
    case ElementType::kFloat8E4M3Fnuz:
      return "4, 3, 8, 2";
    case ElementType::kFloat8E5M2:
      return "5, 2, 15, 0";
    case ElementType::kFloat8E5M2Fnuz:
      return "5, 2, 16, 2";
    case ElementType::kFloat6E2M3:
      return "2, 3, 1, 3";
    case ElementType::kFloat6E3M2:
      return "3, 2, 3, 3";
    case ElementType::kFloat4E2M1:
      return "2, 1, 1, 3";
    default:
      return {};
  }
}

// A narrow float's bits as f32, and back.
std::string Decode(Writer& writer, ElementType type, const std::string& bits) {
  if (type == ElementType::kBfloat16) return Text(writer.UseHelper("decode_bf16"), "(", bits, ")");
  if (type == ElementType::kFloat16) return Text(writer.UseHelper("decode_f16"), "(", bits, ")");
  if (type == ElementType::kFloat8E8M0) {
    return Text(writer.UseHelper("decode_e8m0"), "(", bits, ")");
  }
  return Text(writer.UseHelper("decode"), "(", bits, ", ", FormatOf(type), ")");
}

std::string Encode(Writer& writer, ElementType type, const std::string& value, bool saturate,
                   tensor::Rounding rounding) {
  std::string code;
  if (type == ElementType::kBfloat16) {
    code = Text(writer.UseHelper("encode_bf16"), "(", value, ")");
  } else if (type == ElementType::kFloat16) {
    code = Text(writer.UseHelper("encode_f16"), "(", value, ")");
  } else if (type == ElementType::kFloat8E8M0) {
    code = Text(writer.UseHelper("encode_e8m0"), "(", value, ", ", saturate ? 1 : 0, ", ",
                static_cast<int>(rounding), ")");
  } else {
    // Formats narrower than a byte have no infinity and no NaN.
    const bool saturates = tensor::IsPacked(type) || saturate;
    code = Text(writer.UseHelper("encode"), "(", value, ", ", FormatOf(type), ", ",
                saturates ? 1 : 0, ")");
  }
  return Text("AS(", LaneType(type), ", ", code, ")");
}

// A packed integer's bits as i32 or u32.
std::string Widen(ElementType type, const std::string& bits) {
  if (tensor::IsUnsigned(type)) return Text("AS(u32, ", bits, ")");
  const int unused = 32 - tensor::BitWidth(type);
  return Text("(AS(i32, AS(u32, ", bits, ") << ", unused, ") >> ", unused, ")");
}

}  // namespace

ElementType WideType(ElementType type) {
  if (type == ElementType::kFloat64) return type;
  if (tensor::IsFloat(type)) return ElementType::kFloat32;
  return tensor::IsSigned(type) ? ElementType::kInt64 : ElementType::kUint64;
}

bool IsNativeFloat(ElementType type) { return !FloatName(type).empty(); }

bool IsNativeInteger(ElementType type) {
  return tensor::IsInteger(type) && !tensor::IsPacked(type);
}

std::string Literal(Writer& writer, ElementType type, Scalar value) {
  if (type == ElementType::kFloat32) {
    return Text("FROM_BITS_f32(", Hex(std::bit_cast<uint32_t>(static_cast<float>(value.f))), "u)");
  }
  if (type == ElementType::kFloat64) {
    writer.UseFloat64();
    return Text("FROM_BITS_f64(", Bits64(std::bit_cast<uint64_t>(value.f)), ")");
  }
  // A complex constant is its real part.
  if (type == ElementType::kComplex64) {
    return Bits64(std::bit_cast<uint32_t>(static_cast<float>(value.f)));
  }
  if (type == ElementType::kComplex128) {
    return Text("MAKE_u128(", Bits64(std::bit_cast<uint64_t>(value.f)), ", ", Bits64(0), ")");
  }
  std::byte stored[8] = {};
  tensor::StoreScalar(type, stored, 0, value);
  uint64_t bits = 0;
  for (size_t k = 8; k-- > 0;) bits = bits << 8 | std::to_integer<uint64_t>(stored[k]);
  return Text("AS(", LaneType(type), ", ", Bits64(bits), ")");
}

std::string WriteCast(Writer& writer, ElementType from, ElementType to, const std::string& value,
                      bool saturate, tensor::Rounding rounding) {
  if (from == to) return value;
  // What is only stored is widened first.
  if (tensor::IsFloat(from) && !IsNativeFloat(from)) {
    const std::string wide = writer.Declare("f32", Decode(writer, from, value));
    return WriteCast(writer, ElementType::kFloat32, to, wide, saturate, rounding);
  }
  if (tensor::IsPacked(from)) {
    const bool is_signed = tensor::IsSigned(from);
    const std::string wide = writer.Declare(is_signed ? "i32" : "u32", Widen(from, value));
    return WriteCast(writer, is_signed ? ElementType::kInt32 : ElementType::kUint32, to, wide,
                     saturate, rounding);
  }
  const std::string_view lane = LaneType(to);
  if (tensor::IsBool(to)) return Text("AS(u8, ", value, " != 0)");
  if (IsNativeFloat(to)) return Text("AS(", lane, ", ", value, ")");
  if (tensor::IsFloat(to)) {
    std::string narrow = value;
    if (from == ElementType::kFloat64) {
      narrow = Text(writer.UseHelper("odd_f64"), "(", value, ")");
    } else if (from != ElementType::kFloat32) {
      // Of 16 bits or fewer every integer is a float32.
      const bool is_exact = tensor::IsBool(from) || tensor::BitWidth(from) <= 16;
      if (is_exact) {
        narrow = Text("AS(f32, ", value, ")");
      } else if (tensor::IsUnsigned(from)) {
        narrow = Text(writer.UseHelper("odd_u64"), "(AS(u64, ", value, "))");
      } else {
        const std::string odd(writer.UseHelper("odd_u64"));
        const std::string wide = writer.Declare("i64", Text("AS(i64, ", value, ")"));
        narrow = Text("(", wide, " < 0 ? -", odd, "(AS(u64, 0) - AS(u64, ", wide, ")) : ", odd,
                      "(AS(u64, ", wide, ")))");
      }
    }
    return Encode(writer, to, narrow, saturate, rounding);
  }
  std::string integer = value;
  if (IsNativeFloat(from)) {
    const std::string_view function = to == ElementType::kUint64 ? "to_u64" : "to_i64";
    integer = Text(writer.UseHelper(function, FloatName(from)), "(", value, ")");
  }
  if (tensor::IsPacked(to)) {
    return Text("AS(u8, ", integer, " & ", (1 << tensor::BitWidth(to)) - 1, ")");
  }
  return Text("AS(", lane, ", ", integer, ")");
}

std::string Bits64(uint64_t value) {
  return Text("U64(", Hex(value >> 32), "u, ", Hex(value & 0xffffffff), "u)");
}

std::string Hex(uint64_t value) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  do {
    text.insert(text.begin(), kDigits[value & 15]);
    value >>= 4;
  } while (value != 0);
  return "0x" + text;
}

}  // namespace onnxifi::codegen
