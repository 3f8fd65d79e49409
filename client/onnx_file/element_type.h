// SPDX-License-Identifier: Apache-2.0
//
// The element types of ONNX tensors as a caller of the interface sees them: numbers of
// TensorProto.DataType, which the descriptors repeat, with their widths. A table of the callers'
// own, so that the suite checks by the standard alone.

#ifndef ONNXIFI_CLIENT_ONNX_FILE_ELEMENT_TYPE_H_
#define ONNXIFI_CLIENT_ONNX_FILE_ELEMENT_TYPE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace onnxifi::onnx_file {

enum class ElementType : int32_t {
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

enum class NumberClass : uint8_t { kNone, kFloat, kInteger, kBool, kComplex, kString };

struct ElementFacts {
  ElementType type;
  std::string_view name;
  // In memory; 2, 4 and 6 for the packed types, 0 for strings.
  int bits;
  NumberClass number_class;
};

// The facts of a type; for a number that ONNX does not have those of kUndefined, with no bits and
// no class.
const ElementFacts& FactsOf(ElementType type);

// "float16", or "type 77" for a number that ONNX does not have.
std::string NameOf(ElementType type);

// Bytes of `element_count` dense elements, rounded up to a whole byte; nothing when it exceeds 2^62
// or is no such type.
std::optional<int64_t> SizeBytes(ElementType type, int64_t element_count);

}  // namespace onnxifi::onnx_file

#endif  // ONNXIFI_CLIENT_ONNX_FILE_ELEMENT_TYPE_H_
