// SPDX-License-Identifier: Apache-2.0
//
// NodeMetadata: copies field by field down to the nodes; lengths change on the way.

#include "client/onnx_file/node_metadata.h"

#include "client/onnx_file/wire_reader.h"
#include "client/onnx_file/wire_writer.h"

namespace onnxifi::onnx_file {
namespace {

// Field numbers of onnx.proto.
constexpr uint32_t kModelGraph = 7;
constexpr uint32_t kGraphNode = 1;
constexpr uint32_t kNodeMetadata = 9;
constexpr uint32_t kEntryKey = 1;
constexpr uint32_t kEntryValue = 2;

}  // namespace

base::Result<std::string> AddNodeMetadata(std::span<const std::byte> model, std::string_view key,
                                          const std::map<uint32_t, std::string>& values) {
  std::string copy;
  copy.reserve(model.size());
  WireReader reader(model);
  WireField field;
  while (true) {
    ONNXIFI_ASSIGN_OR_RETURN(const bool has_field, reader.Next(field));
    if (!has_field) return copy;
    if (field.number != kModelGraph || field.type != WireType::kBytes) {
      AppendField(copy, field);
      continue;
    }
    std::string graph;
    graph.reserve(field.bytes.size());
    WireReader graph_reader(field.bytes);
    for (uint32_t index = 0;;) {
      WireField part;
      ONNXIFI_ASSIGN_OR_RETURN(const bool has_part, graph_reader.Next(part));
      if (!has_part) break;
      const bool is_node = part.number == kGraphNode && part.type == WireType::kBytes;
      const auto value = is_node ? values.find(index++) : values.end();
      if (value == values.end()) {
        AppendField(graph, part);
        continue;
      }
      std::string entry;
      AppendBytesField(entry, kEntryKey, key);
      AppendBytesField(entry, kEntryValue, value->second);
      std::string node(part.text());
      AppendBytesField(node, kNodeMetadata, entry);
      AppendBytesField(graph, kGraphNode, node);
    }
    AppendBytesField(copy, kModelGraph, graph);
  }
}

}  // namespace onnxifi::onnx_file
