// SPDX-License-Identifier: Apache-2.0
//
// AttributeProto: one case per type, in ONNX's order.

#include "backends/core/model/attribute_proto.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "backends/core/model/refusal.h"
#include "backends/core/model/type_proto.h"

namespace onnxifi::model {
namespace {

using base::Code;
using base::Result;
using base::Status;
using graph::Attribute;
using onnx::AttributeProto;

using Subgraph = std::shared_ptr<const graph::Graph>;

// A list attribute of what `read` gives for each of `protos`.
template <typename Value, typename Protos, typename Read>
Result<Attribute> ReadEach(const Protos& protos, const Read& read) {
  std::vector<Value> values;
  for (const auto& proto : protos) {
    ONNXIFI_ASSIGN_OR_RETURN(Value value, read(proto));
    values.push_back(std::move(value));
  }
  return Attribute(std::move(values));
}

}  // namespace

AttributeProto::AttributeType TypeOf(const AttributeProto& attribute) {
  if (attribute.type() != AttributeProto::UNDEFINED) return attribute.type();
  if (attribute.has_f()) return AttributeProto::FLOAT;
  if (attribute.has_i()) return AttributeProto::INT;
  if (attribute.has_s()) return AttributeProto::STRING;
  if (attribute.has_t()) return AttributeProto::TENSOR;
  if (attribute.has_g()) return AttributeProto::GRAPH;
  if (attribute.has_sparse_tensor()) return AttributeProto::SPARSE_TENSOR;
  if (attribute.has_tp()) return AttributeProto::TYPE_PROTO;
  if (attribute.floats_size() > 0) return AttributeProto::FLOATS;
  if (attribute.ints_size() > 0) return AttributeProto::INTS;
  if (attribute.strings_size() > 0) return AttributeProto::STRINGS;
  if (attribute.tensors_size() > 0) return AttributeProto::TENSORS;
  if (attribute.graphs_size() > 0) return AttributeProto::GRAPHS;
  if (attribute.sparse_tensors_size() > 0) return AttributeProto::SPARSE_TENSORS;
  if (attribute.type_protos_size() > 0) return AttributeProto::TYPE_PROTOS;
  return AttributeProto::UNDEFINED;
}

AttributeProto::AttributeType TypeOf(const Attribute& attribute) {
  // In the order of the variant's alternatives.
  constexpr AttributeProto::AttributeType kTypes[] = {
      AttributeProto::INT,    AttributeProto::FLOAT,     AttributeProto::STRING,
      AttributeProto::INTS,   AttributeProto::FLOATS,    AttributeProto::STRINGS,
      AttributeProto::TENSOR, AttributeProto::TENSORS,   AttributeProto::GRAPH,
      AttributeProto::GRAPHS, AttributeProto::TYPE_PROTO};
  static_assert(std::size(kTypes) == std::variant_size_v<Attribute>);
  return kTypes[attribute.index()];
}

Result<Attribute> ReadAttribute(const AttributeProto& proto, AttributeProto::AttributeType type,
                                TensorReader& tensors, const SubgraphImporter& import_subgraph) {
  const auto read_tensor = [&tensors](const auto& tensor) { return tensors.Read(tensor); };
  switch (type) {
    case AttributeProto::FLOAT:
      return Attribute(proto.f());
    case AttributeProto::INT:
      return Attribute(static_cast<int64_t>(proto.i()));
    case AttributeProto::STRING:
      return Attribute(proto.s());
    case AttributeProto::FLOATS:
      return Attribute(std::vector<float>(proto.floats().begin(), proto.floats().end()));
    case AttributeProto::INTS:
      return Attribute(std::vector<int64_t>(proto.ints().begin(), proto.ints().end()));
    case AttributeProto::STRINGS:
      return Attribute(std::vector<std::string>(proto.strings().begin(), proto.strings().end()));
    case AttributeProto::TENSOR: {
      ONNXIFI_ASSIGN_OR_RETURN(tensor::Tensor value, tensors.Read(proto.t()));
      return Attribute(std::move(value));
    }
    case AttributeProto::SPARSE_TENSOR: {
      ONNXIFI_ASSIGN_OR_RETURN(tensor::Tensor value, tensors.Read(proto.sparse_tensor()));
      return Attribute(std::move(value));
    }
    case AttributeProto::TENSORS:
      return ReadEach<tensor::Tensor>(proto.tensors(), read_tensor);
    case AttributeProto::SPARSE_TENSORS:
      return ReadEach<tensor::Tensor>(proto.sparse_tensors(), read_tensor);
    case AttributeProto::GRAPH: {
      ONNXIFI_ASSIGN_OR_RETURN(Subgraph value, import_subgraph(proto.g()));
      return Attribute(std::move(value));
    }
    case AttributeProto::GRAPHS:
      return ReadEach<Subgraph>(proto.graphs(), import_subgraph);
    case AttributeProto::TYPE_PROTO: {
      ONNXIFI_ASSIGN_OR_RETURN(graph::Type value, TypeFromProto(proto.tp()));
      return Attribute(std::move(value));
    }
    default:
      return Status(Code::kUnsupportedAttribute,
                    "Attribute " + Quote(proto.name()) + " has type number " +
                        std::to_string(static_cast<int>(type)) + ", which is not supported.");
  }
}

bool HasCaptures(const Attribute& attribute) {
  const auto captures = [](const Subgraph& subgraph) {
    return std::ranges::any_of(
        subgraph->values, [](const graph::Value& value) { return value.outer != graph::kNoValue; });
  };
  if (const auto* one = std::get_if<Subgraph>(&attribute)) {
    return captures(*one);
  }
  const auto* many = std::get_if<std::vector<Subgraph>>(&attribute);
  return many != nullptr && std::ranges::any_of(*many, captures);
}

int64_t CopiedBytes(const Attribute& attribute) {
  if (const auto* text = std::get_if<std::string>(&attribute)) {
    return static_cast<int64_t>(text->size());
  }
  if (const auto* ints = std::get_if<std::vector<int64_t>>(&attribute)) {
    return static_cast<int64_t>(ints->size() * sizeof(int64_t));
  }
  if (const auto* floats = std::get_if<std::vector<float>>(&attribute)) {
    return static_cast<int64_t>(floats->size() * sizeof(float));
  }
  int64_t size_bytes = 0;
  if (const auto* texts = std::get_if<std::vector<std::string>>(&attribute)) {
    for (const std::string& text : *texts) {
      size_bytes += static_cast<int64_t>(sizeof(std::string) + text.size());
    }
  }
  return size_bytes;
}

int64_t TensorBytes(const Attribute& attribute) {
  if (const auto* one = std::get_if<tensor::Tensor>(&attribute)) return one->size_bytes();
  int64_t size_bytes = 0;
  if (const auto* many = std::get_if<std::vector<tensor::Tensor>>(&attribute)) {
    for (const tensor::Tensor& one : *many) size_bytes += one.size_bytes();
  }
  return size_bytes;
}

}  // namespace onnxifi::model
