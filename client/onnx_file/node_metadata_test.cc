// SPDX-License-Identifier: Apache-2.0
//
// NodeMetadata: what is added, and that nothing else changes.

#include "client/onnx_file/node_metadata.h"

#include <gtest/gtest.h>

#include "client/onnx_file/wire_writer.h"

namespace onnxifi::onnx_file {
namespace {

std::span<const std::byte> Bytes(const std::string& text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

// A model with a number before the graph and text after it; in the graph two nodes with a name
// between them, and fields of fixed width.
std::string Model(const std::string& first, const std::string& second) {
  std::string graph;
  AppendBytesField(graph, 1, first);
  AppendBytesField(graph, 2, "name");
  AppendBytesField(graph, 1, second);
  AppendVarint(graph, 14 << 3 | 1);
  graph += std::string("\1\2\3\4\5\6\7\xF8", 8);
  AppendVarint(graph, 13 << 3 | 5);
  graph += std::string("\1\2\3\xF4", 4);
  std::string model;
  AppendIntegerField(model, 1, -10);
  AppendBytesField(model, 7, graph);
  AppendBytesField(model, 2, "producer");
  return model;
}

std::string Node(const std::string& device) {
  std::string node;
  AppendBytesField(node, 4, "Abs");
  if (device.empty()) return node;
  std::string entry;
  AppendBytesField(entry, 1, "where");
  AppendBytesField(entry, 2, device);
  AppendBytesField(node, 9, entry);
  return node;
}

TEST(NodeMetadata, IsAddedToTheNodesThatHaveAValue) {
  const std::string plain = Model(Node(""), Node(""));
  EXPECT_EQ(*AddNodeMetadata(Bytes(plain), "where", {}), plain);
  EXPECT_EQ(*AddNodeMetadata(Bytes(plain), "where", {{1, "cpu:0"}}),
            Model(Node(""), Node("cpu:0")));
  const std::string long_name(300, 'x');
  EXPECT_EQ(*AddNodeMetadata(Bytes(plain), "where", {{0, long_name}, {1, "b"}, {2, "nobody"}}),
            Model(Node(long_name), Node("b")));
}

TEST(NodeMetadata, IsNotAddedToWhatIsNoModel) {
  const std::string plain = Model(Node(""), Node(""));
  const std::string torn = plain.substr(0, plain.size() - 1);
  EXPECT_EQ(AddNodeMetadata(Bytes(torn), "where", {}).status().code(),
            base::Code::kInvalidProtobuf);
}

}  // namespace
}  // namespace onnxifi::onnx_file
