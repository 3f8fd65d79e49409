// SPDX-License-Identifier: Apache-2.0
//
// Placement: what is found, and that no bytes lead it astray.

#include "onnxifi/split/placement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <onnx/defs/parser.h>
#include <onnx/onnx_pb.h>

#include <cstdint>
#include <string>
#include <utility>

namespace onnxifi::split {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

onnx::ModelProto Parse() {
  onnx::ModelProto model;
  const auto status = onnx::OnnxParser::Parse(model, R"(
    <ir_version: 10, opset_import: ["" : 21]>
    graph (float[2] x) => (float[2] y) <float[2] w = {1, 2}> {
      a = Abs(x)  b = Add(a, w)  y = Neg(b)
    })");
  EXPECT_TRUE(status.IsOK()) << status.ErrorMessage();
  return model;
}

void Name(onnx::ModelProto& model, int node, const std::string& key, const std::string& value) {
  auto& entry = *model.mutable_graph()->mutable_node(node)->add_metadata_props();
  entry.set_key(key);
  entry.set_value(value);
}

std::map<int32_t, std::string> Find(const std::string& bytes) {
  return PlacementsOf({reinterpret_cast<const std::byte*>(bytes.data()), bytes.size()});
}

TEST(Placement, IsFoundAmongOtherMetadata) {
  onnx::ModelProto model = Parse();
  EXPECT_THAT(Find(model.SerializeAsString()), IsEmpty());
  Name(model, 1, "namespace", "onnxifi.device");
  EXPECT_THAT(Find(model.SerializeAsString()), IsEmpty());
  Name(model, 2, "onnxifi.device", "cpu:0");
  Name(model, 0, "stack", std::string(1000, 's'));
  Name(model, 0, "onnxifi.device", "opencl:1");
  EXPECT_THAT(Find(model.SerializeAsString()), ElementsAre(Pair(0, "opencl:1"), Pair(2, "cpu:0")));
  Name(model, 2, "onnxifi.device", "npu:0");
  EXPECT_THAT(Find(model.SerializeAsString()), ElementsAre(Pair(0, "opencl:1"), Pair(2, "npu:0")));
}

TEST(Placement, IsNotLookedForBeyondTheBytes) {
  onnx::ModelProto model = Parse();
  for (int node = 0; node < 3; ++node) Name(model, node, "onnxifi.device", "cpu:0");
  const std::string bytes = model.SerializeAsString();
  // The sanitizers see what is read beyond the end.
  for (size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_LE(Find(std::string(bytes.data(), length)).size(), 3U);
  }
  for (size_t at = 0; at < bytes.size(); ++at) {
    std::string damaged = bytes;
    damaged[at] = static_cast<char>(0xFF);
    EXPECT_LE(Find(damaged).size(), 3U);
  }
}

}  // namespace
}  // namespace onnxifi::split
