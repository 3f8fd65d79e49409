// SPDX-License-Identifier: Apache-2.0
//
// Signatures: names make no difference, everything that a device could check by does.

#include "onnxifi/split/node_signer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <onnx/defs/parser.h>

#include "onnxifi/split/whole_model.h"

namespace onnxifi::split {
namespace {

std::vector<NodeSignature> SignaturesOf(const std::string& graph, const char* opset = "21") {
  onnx::ModelProto model;
  const auto status = onnx::OnnxParser::Parse(
      model,
      ("<ir_version: 10, opset_import: [\"\" : " + std::string(opset) + "]>\n" + graph).c_str());
  EXPECT_TRUE(status.IsOK()) << status.ErrorMessage();
  const std::string bytes = model.SerializeAsString();
  const auto whole =
      WholeModel::Read({reinterpret_cast<const std::byte*>(bytes.data()), bytes.size()}, {});
  EXPECT_TRUE(whole.ok()) << whole.status().Text();
  return (*whole)->Signatures();
}

NodeSignature LastOf(const std::string& graph, const char* opset = "21") {
  return SignaturesOf(graph, opset).back();
}

TEST(NodeSigner, ForgetsNames) {
  const NodeSignature one = LastOf(R"(
    graph (float[2, 300] x) => (float[2, 300] y)
    <float[300] w = {1}> { y = Softmax <axis = 1> (x) })");
  const NodeSignature other = LastOf(R"(
    agraph (float[2, 300] before, float[1] unused) => (float[2, 300] after) {
      after = Softmax <axis = 1> (before) })");
  EXPECT_EQ(one.alone, other.alone);
  EXPECT_EQ(one.in_model, other.in_model);
}

TEST(NodeSigner, TellsApartWhatDevicesDecideBy) {
  const std::vector<NodeSignature> all = {
      LastOf("graph (float[2, 300] x) => (float[2, 300] y) { y = Softmax <axis = 1> (x) }"),
      LastOf("graph (float[2, 300] x) => (float[2, 300] y) { y = Softmax <axis = 0> (x) }"),
      LastOf("graph (float[2, 300] x) => (float[2, 300] y) { y = Softmax <axis = 1> (x) }", "20"),
      LastOf("graph (float[2, 301] x) => (float[2, 301] y) { y = Softmax <axis = 1> (x) }"),
      LastOf("graph (float16[2, 300] x) => (float16[2, 300] y) { y = Softmax <axis = 1> (x) }"),
      LastOf("graph (float[N, 300] x) => (float[N, 300] y) { y = Softmax <axis = 1> (x) }"),
      LastOf("graph (float[2, 300] x) => (float[2, 300] y) { y = LogSoftmax <axis = 1> (x) }"),
      LastOf("graph (float[9, 9] x, float[9, 9] z) => (float[9, 9] y) { y = Add(x, z) }"),
      LastOf("graph (float[9, 9] x) => (float[9, 9] y) { y = Add(x, x) }"),
      LastOf("graph (float[9, 9] x) => (float[9, 9] y) <float[1] c = {2}> { y = Add(x, c) }"),
      LastOf("graph (float[9, 9] x) => (float[9, 9] y) <float[1] c = {3}> { y = Add(x, c) }"),
      LastOf("graph (float[9, 9] x) => (float[9, 9] y) <float[1] c = {3}> { y = Add(c, x) }"),
      LastOf("graph (float[9, 9] x) => (y) { y, m = Dropout(x) }"),
      LastOf("graph (float[9, 9] x) => (y) { y = Dropout(x) }"),
      LastOf("graph (float[9, 9] x) => (y) <float[1] c = {2}> { y = Clip(x, c) }"),
      LastOf("graph (float[9, 9] x) => (y) <float[1] c = {2}> { y = Clip(x, , c) }"),
  };
  for (size_t one = 0; one < all.size(); ++one) {
    for (size_t other = 0; other < one; ++other) {
      EXPECT_NE(all[one].alone, all[other].alone) << one << " and " << other;
      EXPECT_NE(all[one].in_model, all[other].in_model) << one << " and " << other;
    }
  }
}

TEST(NodeSigner, LooksAtMakersOnlyWhereTheySayMore) {
  // What fixed extents say does not depend on who makes them.
  const NodeSignature after_abs =
      LastOf("graph (float[9, 9] x) => (float[9, 9] y) { t = Abs(x)  y = Neg(t) }");
  const NodeSignature after_exp =
      LastOf("graph (float[9, 9] x) => (float[9, 9] y) { t = Exp(x)  y = Neg(t) }");
  EXPECT_EQ(after_abs.in_model, after_exp.in_model);
  // The extents of a reshape may be known to whoever follows how they are computed.
  const char* const head = "graph (float[9, N] x, int64[1] n) => (float[M] y) ";
  const NodeSignature of_shape =
      LastOf(head + std::string("{ s = Shape <start = 1> (x)  y = Reshape(x, s) }"));
  const NodeSignature of_sum = LastOf(head + std::string("{ s = Add(n, n)  y = Reshape(x, s) }"));
  const NodeSignature of_input = LastOf(head + std::string("{ y = Reshape(x, n) }"));
  EXPECT_EQ(of_shape.alone, of_sum.alone);
  EXPECT_EQ(of_shape.alone, of_input.alone);
  EXPECT_NE(of_shape.in_model, of_sum.in_model);
  EXPECT_NE(of_shape.in_model, of_input.in_model);
}

TEST(NodeSigner, ReadsSubgraphsAndWhatTheyCapture) {
  const auto branch = [](const char* body, const char* type) {
    return LastOf("graph (bool b, " + std::string(type) +
                  "[9, 9] x) => (y) { y = If (b) <then_branch = one () => (t) { t = " + body +
                  "(x) }, else_branch = two () => (e) { e = Identity(x) }> }");
  };
  EXPECT_NE(branch("Abs", "float").alone, branch("Neg", "float").alone);
  EXPECT_NE(branch("Abs", "float").alone, branch("Abs", "double").alone);
  EXPECT_EQ(branch("Abs", "float").alone, branch("Abs", "float").alone);
}

TEST(NodeSigner, ReadsTheFunctionThatANodeCalls) {
  const auto call = [](const char* body) {
    onnx::ModelProto model;
    const auto status =
        onnx::OnnxParser::Parse(model, (R"(<ir_version: 10, opset_import: ["" : 21, "mine" : 1]>
          graph (float[9, 9] x) => (float[9, 9] y) { y = mine.F(x) }
          <domain: "mine", opset_import: ["" : 21]> F (a) => (r) { r = )" +
                                        std::string(body) + "(a) }")
                                           .c_str());
    EXPECT_TRUE(status.IsOK()) << status.ErrorMessage();
    const std::string bytes = model.SerializeAsString();
    const auto whole =
        WholeModel::Read({reinterpret_cast<const std::byte*>(bytes.data()), bytes.size()}, {});
    EXPECT_TRUE(whole.ok()) << whole.status().Text();
    return (*whole)->Signatures().at(0);
  };
  EXPECT_NE(call("Abs").alone, call("Neg").alone);
  EXPECT_EQ(call("Abs").alone, call("Abs").alone);
}

}  // namespace
}  // namespace onnxifi::split
