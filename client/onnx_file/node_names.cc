// SPDX-License-Identifier: Apache-2.0
//
// NodeNames: two fields of each node; field numbers are those of onnx.proto.

#include "client/onnx_file/node_names.h"

#include "client/onnx_file/wire_reader.h"

namespace onnxifi::onnx_file {
namespace {

constexpr uint32_t kModelGraph = 7;
constexpr uint32_t kGraphNode = 1;
constexpr uint32_t kNodeName = 3;
constexpr uint32_t kNodeOperator = 4;

// Calls `read` with every field of the message.
template <typename Read>
base::Status ForEachField(std::span<const std::byte> message, const Read& read) {
  WireReader reader(message);
  WireField field;
  while (true) {
    ONNXIFI_ASSIGN_OR_RETURN(const bool has_field, reader.Next(field));
    if (!has_field) return base::Ok();
    ONNXIFI_RETURN_IF_ERROR(read(field));
  }
}

}  // namespace

base::Result<std::vector<NodeName>> ParseNodeNames(std::span<const std::byte> model) {
  std::vector<NodeName> nodes;
  const auto read_node = [&](std::span<const std::byte> message) {
    NodeName& node = nodes.emplace_back();
    return ForEachField(message, [&](const WireField& field) {
      if (field.number == kNodeName) node.name = field.text();
      if (field.number == kNodeOperator) node.operator_type = field.text();
      return base::Ok();
    });
  };
  const auto read_graph = [&](const WireField& field) {
    if (field.number != kModelGraph) return base::Ok();
    return ForEachField(field.bytes, [&](const WireField& inner) {
      return inner.number == kGraphNode ? read_node(inner.bytes) : base::Ok();
    });
  };
  ONNXIFI_RETURN_IF_ERROR(ForEachField(model, read_graph));
  return nodes;
}

}  // namespace onnxifi::onnx_file
