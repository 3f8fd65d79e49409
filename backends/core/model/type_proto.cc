// SPDX-License-Identifier: Apache-2.0
//
// TypeProto: both directions. Nesting was bounded by the scanner.

#include "backends/core/model/type_proto.h"

#include <memory>
#include <string>
#include <utility>

namespace onnxifi::model {
namespace {

using base::Code;
using base::Result;
using base::Status;
using graph::Type;

Result<Type> TensorTypeFromProto(const onnx::TypeProto_Tensor& proto) {
  Type type{.kind = Type::Kind::kTensor};
  if (proto.elem_type() != 0) {
    ONNXIFI_ASSIGN_OR_RETURN(type.element,
                             ElementTypeFromProto(proto.elem_type(), "The declared tensor type"));
  }
  if (!proto.has_shape()) return type;
  if (proto.shape().dim_size() > kMaxRank) {
    return Status(Code::kUnsupportedShape,
                  "The declared rank (" + std::to_string(proto.shape().dim_size()) +
                      ") exceeds the highest supported (" + std::to_string(kMaxRank) + ").");
  }
  std::vector<graph::Extent>& extents = type.extents.emplace();
  extents.reserve(static_cast<size_t>(proto.shape().dim_size()));
  for (const auto& dim : proto.shape().dim()) {
    graph::Extent& extent = extents.emplace_back();
    if (dim.has_dim_value()) {
      if (dim.dim_value() < -1) {
        return Status(Code::kInvalidModel, "The declared extent (" +
                                               std::to_string(dim.dim_value()) +
                                               ") is below the smallest allowed (0).");
      }
      extent.number = dim.dim_value();
    } else if (dim.has_dim_param()) {
      extent.symbol = dim.dim_param();
    }
  }
  return type;
}

Result<std::shared_ptr<const Type>> InnerFromProto(const onnx::TypeProto& proto) {
  ONNXIFI_ASSIGN_OR_RETURN(Type inner, TypeFromProto(proto));
  return std::make_shared<const Type>(std::move(inner));
}

}  // namespace

Result<tensor::ElementType> ElementTypeFromProto(int32_t number, std::string_view owner) {
  if (const auto type = tensor::ElementTypeFromOnnx(number)) return *type;
  if (number != 0 && onnx::TensorProto_DataType_IsValid(number)) {
    return Status(Code::kUnsupportedDatatype,
                  std::string(owner) + " has ONNX's element type " + std::to_string(number) +
                      ", beyond the highest supported (" +
                      std::to_string(tensor::kElementTypeCount - 1) + ").");
  }
  return Status(Code::kInvalidModel, std::string(owner) + " has element type " +
                                         std::to_string(number) + ", which ONNX does not define.");
}

Result<Type> TypeFromProto(const onnx::TypeProto& proto) {
  Type type;
  switch (proto.value_case()) {
    case onnx::TypeProto::kTensorType:
      return TensorTypeFromProto(proto.tensor_type());
    case onnx::TypeProto::kSequenceType: {
      type.kind = Type::Kind::kSequence;
      ONNXIFI_ASSIGN_OR_RETURN(type.inner, InnerFromProto(proto.sequence_type().elem_type()));
      return type;
    }
    case onnx::TypeProto::kOptionalType: {
      type.kind = Type::Kind::kOptional;
      ONNXIFI_ASSIGN_OR_RETURN(type.inner, InnerFromProto(proto.optional_type().elem_type()));
      return type;
    }
    case onnx::TypeProto::kMapType: {
      type.kind = Type::Kind::kMap;
      ONNXIFI_ASSIGN_OR_RETURN(
          type.element, ElementTypeFromProto(proto.map_type().key_type(), "The declared map key"));
      ONNXIFI_ASSIGN_OR_RETURN(type.inner, InnerFromProto(proto.map_type().value_type()));
      return type;
    }
    case onnx::TypeProto::kSparseTensorType:
      return Status(Code::kUnsupportedDatatype, "Sparse tensors as values are not supported.");
    case onnx::TypeProto::kOpaqueType:
      return Status(Code::kUnsupportedDatatype, "Opaque types are not supported.");
    case onnx::TypeProto::VALUE_NOT_SET:
      break;
  }
  return type;
}

onnx::TypeProto TypeToProto(const Type& type) {
  onnx::TypeProto proto;
  switch (type.kind) {
    case Type::Kind::kUnknown:
      break;
    case Type::Kind::kTensor: {
      proto.mutable_tensor_type()->set_elem_type(static_cast<int32_t>(type.element));
      if (!type.extents) break;
      onnx::TensorShapeProto* shape = proto.mutable_tensor_type()->mutable_shape();
      for (const graph::Extent& extent : *type.extents) {
        auto* dim = shape->add_dim();
        if (extent.is_known()) {
          dim->set_dim_value(extent.number);
        } else if (!extent.symbol.empty()) {
          dim->set_dim_param(extent.symbol);
        }
      }
      break;
    }
    case Type::Kind::kSequence:
      proto.mutable_sequence_type();
      if (type.inner)
        *proto.mutable_sequence_type()->mutable_elem_type() = TypeToProto(*type.inner);
      break;
    case Type::Kind::kOptional:
      proto.mutable_optional_type();
      if (type.inner)
        *proto.mutable_optional_type()->mutable_elem_type() = TypeToProto(*type.inner);
      break;
    case Type::Kind::kMap:
      proto.mutable_map_type()->set_key_type(static_cast<int32_t>(type.element));
      if (type.inner) *proto.mutable_map_type()->mutable_value_type() = TypeToProto(*type.inner);
      break;
  }
  return proto;
}

}  // namespace onnxifi::model
