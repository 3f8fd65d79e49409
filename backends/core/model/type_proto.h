// SPDX-License-Identifier: Apache-2.0
//
// TypeProto -> graph::Type, as declared.

#ifndef ONNXIFI_BACKENDS_CORE_MODEL_TYPE_PROTO_H_
#define ONNXIFI_BACKENDS_CORE_MODEL_TYPE_PROTO_H_

#include <onnx/onnx_pb.h>

#include <string_view>

#include "backends/core/base/result.h"
#include "backends/core/graph/graph.h"

namespace onnxifi::model {

// Axes of a declared or constant tensor.
inline constexpr int kMaxRank = 64;

// What is declared; a type left out is kUnknown, an extent of -1 (as some exporters write) is
// unknown. INVALID_MODEL: an element type number that ONNX does not have, an extent below -1.
// UNSUPPORTED_DATATYPE: sparse and opaque types, six-bit floats. UNSUPPORTED_SHAPE: more than
// kMaxRank axes.
base::Result<graph::Type> TypeFromProto(const onnx::TypeProto& proto);

// The element type of this ONNX number; INVALID_MODEL and UNSUPPORTED_DATATYPE as above. `owner` is
// named in the sentence, e.g. "Tensor 'w'".
base::Result<tensor::ElementType> ElementTypeFromProto(int32_t number, std::string_view owner);

// The inverse of TypeFromProto.
onnx::TypeProto TypeToProto(const graph::Type& type);

}  // namespace onnxifi::model

#endif  // ONNXIFI_BACKENDS_CORE_MODEL_TYPE_PROTO_H_
