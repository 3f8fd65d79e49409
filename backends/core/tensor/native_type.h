// SPDX-License-Identifier: Apache-2.0
//
// NativeType: from an element type to the C++ type that computes with it, for code that is
// instantiated once per type.

#ifndef ONNXIFI_BACKENDS_CORE_TENSOR_NATIVE_TYPE_H_
#define ONNXIFI_BACKENDS_CORE_TENSOR_NATIVE_TYPE_H_

#include <cstdint>

#include "backends/core/tensor/element_type.h"

namespace onnxifi::tensor {

// What `visit` gives for a zero of the type that integers of `type` have in C++; a default value
// for any other type, bool and the packed integers among them.
template <typename Visitor>
auto VisitInteger(ElementType type, const Visitor& visit) -> decltype(visit(int64_t{})) {
  switch (type) {
    case ElementType::kInt8:
      return visit(int8_t{});
    case ElementType::kInt16:
      return visit(int16_t{});
    case ElementType::kInt32:
      return visit(int32_t{});
    case ElementType::kInt64:
      return visit(int64_t{});
    case ElementType::kUint8:
      return visit(uint8_t{});
    case ElementType::kUint16:
      return visit(uint16_t{});
    case ElementType::kUint32:
      return visit(uint32_t{});
    case ElementType::kUint64:
      return visit(uint64_t{});
    default:
      return {};
  }
}

// The same for float32 and float64 too.
template <typename Visitor>
auto VisitNative(ElementType type, const Visitor& visit) -> decltype(visit(int64_t{})) {
  if (type == ElementType::kFloat32) return visit(float{});
  if (type == ElementType::kFloat64) return visit(double{});
  return VisitInteger(type, visit);
}

}  // namespace onnxifi::tensor

#endif  // ONNXIFI_BACKENDS_CORE_TENSOR_NATIVE_TYPE_H_
