// SPDX-License-Identifier: Apache-2.0
//
// ElementType: one table of what ONNX defines of each element type; every question is answered from
// it.

#include "backends/core/tensor/element_type.h"

#include <array>
#include <cstddef>
#include <numeric>

namespace onnxifi::tensor {
namespace {

enum class Class : uint8_t { kNone, kFloat, kSigned, kUnsigned, kBool, kComplex };

struct Traits {
  std::string_view name;
  int bit_width;
  Class element_class;
  ElementType arithmetic;
  double largest;
  double lowest;
};

using enum ElementType;

constexpr std::array<Traits, kElementTypeCount> kTraits = {{
    {"undefined", 0, Class::kNone, kUndefined, 0, 0},
    {"float", 32, Class::kFloat, kFloat32, 0x1.fffffep127, -0x1.fffffep127},
    {"uint8", 8, Class::kUnsigned, kUint8, 255, 0},
    {"int8", 8, Class::kSigned, kInt8, 127, -128},
    {"uint16", 16, Class::kUnsigned, kUint16, 65535, 0},
    {"int16", 16, Class::kSigned, kInt16, 32767, -32768},
    {"int32", 32, Class::kSigned, kInt32, 2147483647.0, -2147483648.0},
    {"int64", 64, Class::kSigned, kInt64, 0x1p63, -0x1p63},
    {"string", 0, Class::kNone, kString, 0, 0},
    {"bool", 8, Class::kBool, kBool, 1, 0},
    {"float16", 16, Class::kFloat, kFloat32, 65504, -65504},
    {"double", 64, Class::kFloat, kFloat64, 0x1.fffffffffffffp1023, -0x1.fffffffffffffp1023},
    {"uint32", 32, Class::kUnsigned, kUint32, 4294967295.0, 0},
    {"uint64", 64, Class::kUnsigned, kUint64, 0x1p64, 0},
    {"complex64", 64, Class::kComplex, kComplex64, 0x1.fffffep127, -0x1.fffffep127},
    {"complex128", 128, Class::kComplex, kComplex128, 0x1.fffffffffffffp1023,
     -0x1.fffffffffffffp1023},
    {"bfloat16", 16, Class::kFloat, kFloat32, 0x1.fep127, -0x1.fep127},
    {"float8e4m3fn", 8, Class::kFloat, kFloat32, 448, -448},
    {"float8e4m3fnuz", 8, Class::kFloat, kFloat32, 240, -240},
    {"float8e5m2", 8, Class::kFloat, kFloat32, 57344, -57344},
    {"float8e5m2fnuz", 8, Class::kFloat, kFloat32, 57344, -57344},
    {"uint4", 4, Class::kUnsigned, kUint8, 15, 0},
    {"int4", 4, Class::kSigned, kInt8, 7, -8},
    {"float4e2m1", 4, Class::kFloat, kFloat32, 6, -6},
    {"float8e8m0", 8, Class::kFloat, kFloat32, 0x1p127, 0x1p-127},
    {"uint2", 2, Class::kUnsigned, kUint8, 3, 0},
    {"int2", 2, Class::kSigned, kInt8, 1, -2},
    {"float6e2m3", 6, Class::kFloat, kFloat32, 7.5, -7.5},
    {"float6e3m2", 6, Class::kFloat, kFloat32, 28, -28},
}};

constexpr const Traits& Of(ElementType type) { return kTraits[static_cast<size_t>(type)]; }

}  // namespace

std::optional<ElementType> ElementTypeFromOnnx(int64_t number) {
  if (number <= 0 || number >= kElementTypeCount) return std::nullopt;
  return static_cast<ElementType>(number);
}

std::string_view Name(ElementType type) { return Of(type).name; }

int BitWidth(ElementType type) { return Of(type).bit_width; }

int64_t SizeBytes(ElementType type, int64_t element_count) {
  const int64_t bits = BitWidth(type);
  if (bits == 0) return 0;
  if (bits < 8) {
    // Eight elements fill `bits` bytes. Divided first: the product of count and bits could
    // overflow.
    return element_count / 8 * bits + (element_count % 8 * bits + 7) / 8;
  }
  int64_t size_bytes = 0;
  if (__builtin_mul_overflow(element_count, bits / 8, &size_bytes)) return INT64_MAX;
  return size_bytes;
}

bool IsFloat(ElementType type) { return Of(type).element_class == Class::kFloat; }
bool IsSigned(ElementType type) { return Of(type).element_class == Class::kSigned; }
bool IsUnsigned(ElementType type) { return Of(type).element_class == Class::kUnsigned; }
bool IsBool(ElementType type) { return Of(type).element_class == Class::kBool; }
bool IsComplex(ElementType type) { return Of(type).element_class == Class::kComplex; }

bool IsPacked(ElementType type) {
  const int bits = BitWidth(type);
  return bits > 0 && bits < 8;
}

int ElementsPerGroup(ElementType type) {
  const int bits = BitWidth(type);
  return bits == 0 ? 0 : 8 / std::gcd(8, bits);
}

ElementType ArithmeticType(ElementType type) { return Of(type).arithmetic; }

double LargestFinite(ElementType type) { return Of(type).largest; }
double Lowest(ElementType type) { return Of(type).lowest; }

}  // namespace onnxifi::tensor
