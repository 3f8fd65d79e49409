// SPDX-License-Identifier: Apache-2.0
//
// The table of element types, by the numbers of TensorProto.DataType.

#include "client/onnx_file/element_type.h"

#include <fmt/format.h>

#include <array>

namespace onnxifi::onnx_file {
namespace {

constexpr std::array<ElementFacts, 29> kFacts = {{
    {ElementType::kUndefined, "undefined", 0, NumberClass::kNone},
    {ElementType::kFloat32, "float", 32, NumberClass::kFloat},
    {ElementType::kUint8, "uint8", 8, NumberClass::kInteger},
    {ElementType::kInt8, "int8", 8, NumberClass::kInteger},
    {ElementType::kUint16, "uint16", 16, NumberClass::kInteger},
    {ElementType::kInt16, "int16", 16, NumberClass::kInteger},
    {ElementType::kInt32, "int32", 32, NumberClass::kInteger},
    {ElementType::kInt64, "int64", 64, NumberClass::kInteger},
    {ElementType::kString, "string", 0, NumberClass::kString},
    {ElementType::kBool, "bool", 8, NumberClass::kBool},
    {ElementType::kFloat16, "float16", 16, NumberClass::kFloat},
    {ElementType::kFloat64, "double", 64, NumberClass::kFloat},
    {ElementType::kUint32, "uint32", 32, NumberClass::kInteger},
    {ElementType::kUint64, "uint64", 64, NumberClass::kInteger},
    {ElementType::kComplex64, "complex64", 64, NumberClass::kComplex},
    {ElementType::kComplex128, "complex128", 128, NumberClass::kComplex},
    {ElementType::kBfloat16, "bfloat16", 16, NumberClass::kFloat},
    {ElementType::kFloat8E4M3Fn, "float8e4m3fn", 8, NumberClass::kFloat},
    {ElementType::kFloat8E4M3Fnuz, "float8e4m3fnuz", 8, NumberClass::kFloat},
    {ElementType::kFloat8E5M2, "float8e5m2", 8, NumberClass::kFloat},
    {ElementType::kFloat8E5M2Fnuz, "float8e5m2fnuz", 8, NumberClass::kFloat},
    {ElementType::kUint4, "uint4", 4, NumberClass::kInteger},
    {ElementType::kInt4, "int4", 4, NumberClass::kInteger},
    {ElementType::kFloat4E2M1, "float4e2m1", 4, NumberClass::kFloat},
    {ElementType::kFloat8E8M0, "float8e8m0", 8, NumberClass::kFloat},
    {ElementType::kUint2, "uint2", 2, NumberClass::kInteger},
    {ElementType::kInt2, "int2", 2, NumberClass::kInteger},
    {ElementType::kFloat6E2M3, "float6e2m3", 6, NumberClass::kFloat},
    {ElementType::kFloat6E3M2, "float6e3m2", 6, NumberClass::kFloat},
}};

}  // namespace

const ElementFacts& FactsOf(ElementType type) {
  const auto number = static_cast<int32_t>(type);
  if (number < 0 || number >= static_cast<int32_t>(kFacts.size())) return kFacts[0];
  return kFacts[static_cast<size_t>(number)];
}

std::string NameOf(ElementType type) {
  const ElementFacts& facts = FactsOf(type);
  if (facts.type == type) return std::string(facts.name);
  return fmt::format("type {}", static_cast<int32_t>(type));
}

std::optional<int64_t> SizeBytes(ElementType type, int64_t element_count) {
  const int bits = FactsOf(type).bits;
  constexpr int64_t kMaxBytes = int64_t{1} << 62;
  if (bits == 0 || element_count < 0) return std::nullopt;
  if (bits < 8) {
    // Eight elements fill `bits` bytes.
    return element_count / 8 * bits + (element_count % 8 * bits + 7) / 8;
  }
  if (element_count > kMaxBytes / (bits / 8)) return std::nullopt;
  return element_count * (bits / 8);
}

}  // namespace onnxifi::onnx_file
