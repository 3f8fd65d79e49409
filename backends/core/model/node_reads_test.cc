// SPDX-License-Identifier: Apache-2.0
//
// NamesReadBy: what subgraphs define themselves is not read from outside.

#include "backends/core/model/node_reads.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <onnx/defs/parser.h>

namespace onnxifi::model {
namespace {

using testing::ElementsAre;

std::vector<std::string> ReadByFirstNode(const char* text) {
  onnx::GraphProto graph;
  const auto status = onnx::OnnxParser::Parse(graph, text);
  EXPECT_TRUE(status.IsOK()) << status.ErrorMessage();
  return NamesReadBy(graph.node(0));
}

TEST(NamesReadBy, GivesEachInputOnceAndNoneThatIsLeftOut) {
  EXPECT_THAT(ReadByFirstNode(R"(g (float[2] x) => (float[2] y) { y = Clip(x, "", x) })"),
              ElementsAre("x"));
}

TEST(NamesReadBy, GivesWhatSubgraphsOfSubgraphsCapture) {
  EXPECT_THAT(ReadByFirstNode(R"(
      g (bool c, float[2] x, float[2] z) => (float[2] y) {
        y = If (c) <
          then_branch = outer () => (float[2] a) <float[2] w = {1, 2}> {
            t = Add(x, w)
            a = If (d) <
              then_branch = inner () => (float[2] e) { u = Mul(t, z)  e = Neg(u) },
              else_branch = other () => (float[2] f) { f = Neg(w) }
            >
          },
          else_branch = last () => (float[2] x2) { x2 = Abs(t) }
        >
      })"),
              // The other branch's 't' is none of the first one's.
              ElementsAre("c", "x", "d", "z", "t"));
}

TEST(NamesReadBy, TakesResultsOfASubgraphThatItDoesNotMakeFromOutside) {
  EXPECT_THAT(ReadByFirstNode(R"(
      g (int64 n, bool c, float[2] x) => (float[2] y) {
        y = Loop (n, c, x) <body = body (int64 i, bool d, float[2] p) => (bool d, float[2] far) {
          q = Neg(p) }>
      })"),
              ElementsAre("n", "c", "x", "far"));
}

}  // namespace
}  // namespace onnxifi::model
