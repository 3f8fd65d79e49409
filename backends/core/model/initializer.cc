// SPDX-License-Identifier: Apache-2.0
//
// Initializer: tensors read or copied into values.

#include "backends/core/model/initializer.h"

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "backends/core/model/refusal.h"

namespace onnxifi::model {

using base::Code;
using base::Result;
using base::Status;
using graph::Type;
using graph::Value;

namespace {

template <typename Proto>
Result<Value> ReadTensor(const Proto& proto, bool has_data, bool lifts_values,
                         TensorReader& tensors) {
  ONNXIFI_ASSIGN_OR_RETURN(const TensorReader::Header header, tensors.ReadHeader(proto));
  Value value;
  value.type = TensorType(header.type, header.extents);
  value.is_weight = header.element_count > graph::kMaxStructuralCount;
  const bool has_values = header.element_count == 0 || has_data;
  if (!lifts_values && (value.is_weight || !has_values)) {
    value.is_weight = true;
    return value;
  }
  ONNXIFI_ASSIGN_OR_RETURN(value.constant, tensors.Read(proto));
  return value;
}

}  // namespace

Status WeightTable::Add(std::span<const Weight> weights) {
  for (const Weight& weight : weights) {
    if (!weights_.emplace(weight.name, &weight).second) {
      return {Code::kInvalidName, "Weight " + Quote(weight.name) + " is given twice."};
    }
  }
  return base::Ok();
}

const Weight* WeightTable::Find(std::string_view name) const {
  if (weights_.empty()) return nullptr;
  const auto found = weights_.find(name);
  return found == weights_.end() ? nullptr : found->second;
}

Result<Value> ReadWeight(const Weight& weight) {
  const std::string quoted = "Weight " + Quote(weight.name);
  for (const int64_t extent : weight.extents) {
    if (extent < 0) {
      return Status(Code::kInvalidShape, quoted + " has an extent (" +
                                             std::to_string(static_cast<uint64_t>(extent)) +
                                             ") above the largest possible (2^63 - 1).");
    }
  }
  if (weight.type == tensor::ElementType::kString ||
      weight.type == tensor::ElementType::kUndefined) {
    return Status(Code::kUnsupportedDatatype, quoted + " has element type " +
                                                  std::string(tensor::Name(weight.type)) +
                                                  ", which a weight cannot have.");
  }
  const int64_t element_count = tensor::ElementCount(weight.extents);
  if (weight.data == nullptr && element_count != 0) {
    return Status(Code::kInvalidMemoryLocation, quoted + " has no data.");
  }
  ONNXIFI_ASSIGN_OR_RETURN(tensor::Tensor copy,
                           tensor::Tensor::Allocate(weight.type, weight.extents));
  if (element_count != 0) {
    std::memcpy(copy.mutable_data(), weight.data, static_cast<size_t>(copy.size_bytes()));
  }
  Value value{.name = weight.name, .type = TensorType(weight.type, weight.extents)};
  value.constant = std::move(copy);
  value.is_weight = element_count > graph::kMaxStructuralCount;
  return value;
}

Result<Value> ReadInitializer(const onnx::TensorProto& proto, bool lifts_values,
                              TensorReader& tensors) {
  return ReadTensor(proto, tensors.HasData(proto), lifts_values, tensors);
}

Result<Value> ReadInitializer(const onnx::SparseTensorProto& proto, bool lifts_values,
                              TensorReader& tensors) {
  return ReadTensor(proto, /*has_data=*/true, lifts_values, tensors);
}

// In a weight descriptor an extent of 0 is a fault of its own (ONNXIFI, onnxInitGraph).
Status CheckDeclaredShape(const Value& value, const Type& declared, bool is_from_descriptor) {
  if (declared.kind == Type::Kind::kUnknown) return base::Ok();
  if (declared.kind != Type::Kind::kTensor) {
    return {Code::kMismatchingDatatype,
            "Value " + Quote(value.name) + " is a tensor but is declared to be none."};
  }
  if (!declared.extents) return base::Ok();
  const std::vector<graph::Extent>& actual = *value.type.extents;
  if (actual.size() != declared.extents->size()) {
    return {Code::kMismatchingShape, "Value " + Quote(value.name) + " has rank " +
                                         std::to_string(actual.size()) + " but is declared with " +
                                         std::to_string(declared.extents->size()) + "."};
  }
  for (size_t axis = 0; axis < actual.size(); ++axis) {
    const graph::Extent& expected = (*declared.extents)[axis];
    if (expected.is_known() && expected.number != actual[axis].number) {
      const bool is_zero = is_from_descriptor && actual[axis].number == 0;
      return {is_zero ? Code::kInvalidShape : Code::kMismatchingShape,
              "Value " + Quote(value.name) + " has extent " + std::to_string(actual[axis].number) +
                  " on axis " + std::to_string(axis) + " but is declared with " +
                  std::to_string(expected.number) + "."};
    }
  }
  return base::Ok();
}

Type TensorType(tensor::ElementType element, const tensor::Extents& extents) {
  Type type{.kind = Type::Kind::kTensor, .element = element};
  type.extents.emplace();
  type.extents->reserve(extents.size());
  for (const int64_t extent : extents) type.extents->push_back({.number = extent});
  return type;
}

}  // namespace onnxifi::model
