// SPDX-License-Identifier: Apache-2.0
//
// ElementType: what one element of a tensor is. Values equal ONNX's TensorProto.DataType and, where
// the interface names them, ONNXIFI_DATATYPE_*.

#ifndef ONNXIFI_BACKENDS_CORE_TENSOR_ELEMENT_TYPE_H_
#define ONNXIFI_BACKENDS_CORE_TENSOR_ELEMENT_TYPE_H_

#include <cstdint>
#include <optional>
#include <string_view>

namespace onnxifi::tensor {

enum class ElementType : uint8_t {
  kUndefined = 0,
  kFloat32 = 1,
  kUint8 = 2,
  kInt8 = 3,
  kUint16 = 4,
  kInt16 = 5,
  kInt32 = 6,
  kInt64 = 7,
  kString = 8,
  kBool = 9,
  kFloat16 = 10,
  kFloat64 = 11,
  kUint32 = 12,
  kUint64 = 13,
  kComplex64 = 14,
  kComplex128 = 15,
  kBfloat16 = 16,
  kFloat8E4M3Fn = 17,
  kFloat8E4M3Fnuz = 18,
  kFloat8E5M2 = 19,
  kFloat8E5M2Fnuz = 20,
  kUint4 = 21,
  kInt4 = 22,
  kFloat4E2M1 = 23,
  kFloat8E8M0 = 24,
  kUint2 = 25,
  kInt2 = 26,
  kFloat6E2M3 = 27,
  kFloat6E3M2 = 28,
};
inline constexpr int kElementTypeCount = 29;

// The type with this ONNX number; nothing if ONNX has none or it is UNDEFINED.
std::optional<ElementType> ElementTypeFromOnnx(int64_t number);
// ONNX's textual name, e.g. "float16", "uint4", "float8e4m3fn".
std::string_view Name(ElementType type);

// Bits of one element in memory: 2, 4 and 6 for the packed types, 0 for strings and UNDEFINED.
int BitWidth(ElementType type);
// Bytes of `element_count` densely packed elements, rounded up to a whole byte; INT64_MAX on
// overflow.
int64_t SizeBytes(ElementType type, int64_t element_count);

// Classes. Every type but strings is in exactly one of the first five.
bool IsFloat(
    ElementType type);  // float64, float32, float16, bfloat16 and floats of 8, 6 and 4 bits
bool IsSigned(ElementType type);    // signed integers
bool IsUnsigned(ElementType type);  // unsigned integers; not bool
bool IsBool(ElementType type);
bool IsComplex(ElementType type);
inline bool IsInteger(ElementType type) { return IsSigned(type) || IsUnsigned(type); }
// Types narrower than a byte, one behind the other from the low bits of the first byte on. Those of
// 6 bits may begin in one byte and end in the next.
bool IsPacked(ElementType type);
// The fewest elements that fill whole bytes: 4 of 2 or 6 bits, 2 of 4 bits, else 1; 0 for strings
// and UNDEFINED.
int ElementsPerGroup(ElementType type);

// The type in which arithmetic on `type` is done: itself for float32, float64, integers of 8 bits
// and more and bool; float32 for every narrower float; int8/uint8 for the packed integers.
ElementType ArithmeticType(ElementType type);

// Largest and smallest finite value of a float type, or the range of an integer type, as float64
// (int64's and uint64's maximum round up).
double LargestFinite(ElementType type);
double Lowest(ElementType type);

}  // namespace onnxifi::tensor

#endif  // ONNXIFI_BACKENDS_CORE_TENSOR_ELEMENT_TYPE_H_
