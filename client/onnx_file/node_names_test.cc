// SPDX-License-Identifier: Apache-2.0
//
// NodeNames of models that are written byte by byte.

#include "client/onnx_file/node_names.h"

#include <gtest/gtest.h>

#include <string>

namespace onnxifi::onnx_file {
namespace {

std::string Field(int number, const std::string& content) {
  return static_cast<char>(number << 3 | 2) + std::string(1, static_cast<char>(content.size())) +
         content;
}

TEST(NodeNames, AreThoseOfTheMainGraph) {
  const std::string graph = Field(1, Field(1, "x") + Field(3, "first") + Field(4, "Conv")) +
                            Field(2, "graph") + Field(1, Field(4, "Add") + Field(2, "y")) +
                            Field(5, "weight");
  const std::string model = std::string("\x08\x0A", 2) + Field(7, graph) + Field(8, "opset");
  const auto nodes = ParseNodeNames(std::as_bytes(std::span(model)));
  ASSERT_TRUE(nodes.ok());
  ASSERT_EQ(nodes->size(), 2U);
  EXPECT_EQ((*nodes)[0].name, "first");
  EXPECT_EQ((*nodes)[0].operator_type, "Conv");
  EXPECT_EQ((*nodes)[1].name, "");
  EXPECT_EQ((*nodes)[1].operator_type, "Add");
  for (size_t size = 3; size + 7 < model.size(); ++size) {
    EXPECT_FALSE(ParseNodeNames(std::as_bytes(std::span(model).first(size))).ok()) << size;
  }
}

}  // namespace
}  // namespace onnxifi::onnx_file
