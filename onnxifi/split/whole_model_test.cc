// SPDX-License-Identifier: Apache-2.0
//
// WholeModel: edges, what is constant, and islands that say the same as the whole.

#include "onnxifi/split/whole_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <onnx/checker.h>
#include <onnx/defs/parser.h>
#include <onnx/onnx_pb.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "backends/core/model/import.h"

namespace onnxifi::split {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

std::string Parse(const std::string& graph) {
  onnx::ModelProto model;
  const auto status = onnx::OnnxParser::Parse(
      model, ("<ir_version: 10, opset_import: [\"\" : 21]>\n" + graph).c_str());
  EXPECT_TRUE(status.IsOK()) << status.ErrorMessage();
  return model.SerializeAsString();
}

std::span<const std::byte> Bytes(const std::string& text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

// A model with the bytes that it borrows.
struct Subject {
  explicit Subject(std::string model, std::vector<GivenWeight> given = {})
      : bytes(std::move(model)),
        weights(std::move(given)),
        read(WholeModel::Read(Bytes(bytes), weights)) {
    EXPECT_TRUE(read.ok()) << read.status().Text();
  }
  const WholeModel& whole() const { return **read; }
  const FlowingValue& Value(const std::string& name) const {
    for (const FlowingValue& value : whole().values()) {
      if (value.name == name) return value;
    }
    ADD_FAILURE() << "There is no value " << name;
    static const FlowingValue none;
    return none;
  }
  std::vector<std::string> Names(const std::vector<int32_t>& positions) const {
    std::vector<std::string> names;
    for (const int32_t position : positions) names.push_back(whole().values()[position].name);
    return names;
  }
  // The island as a graph, imported as a plugin would.
  onnx::ModelProto Island(const std::vector<int32_t>& nodes) {
    island = whole().Extract(nodes);
    onnx::ModelProto proto;
    EXPECT_TRUE(proto.ParseFromString(island.bytes));
    model::ImportOptions options;
    for (const int32_t position : island.weights) {
      const GivenWeight& weight = weights[position];
      options.weights.push_back({weight.name, weight.type, weight.extents, weight.data});
    }
    const auto imported = model::Import(Bytes(island.bytes), options);
    EXPECT_TRUE(imported.ok()) << imported.status().Text();
    if (imported.ok()) {
      EXPECT_EQ(imported->inputs.size(), island.inputs.size());
    }
    return proto;
  }

  std::string bytes;
  std::vector<GivenWeight> weights;
  base::Result<std::unique_ptr<WholeModel>> read;
  IslandModel island;
};

// Islands are sorted, and positions are those of the model as given.
TEST(WholeModel, SortsNodes) {
  Subject subject(Parse(R"(
    graph (float[4] x) => (float[4] y) {
      y = Mul(t, k)
      k = Constant<value = float[1] {2}>()
      t = Abs(x)
    })"));
  ASSERT_THAT(subject.whole().nodes(), SizeIs(2));
  EXPECT_EQ(subject.whole().nodes()[0].operator_type, "Abs");
  EXPECT_EQ(subject.whole().nodes()[0].model_index, 2);
  EXPECT_EQ(subject.whole().nodes()[1].model_index, 0);
  EXPECT_EQ(subject.whole().Heads()[0].operator_type, "Mul");
  EXPECT_EQ(subject.whole().Heads()[2].operator_type, "Abs");
  const onnx::ModelProto island = subject.Island({0, 1});
  ASSERT_THAT(island.graph().node(), SizeIs(3));
  EXPECT_EQ(island.graph().node(2).op_type(), "Mul");
  EXPECT_EQ(subject.island.model_nodes.back(), 0);
}

TEST(WholeModel, TakesAnInputThatIsListedTwiceOnce) {
  onnx::ModelProto model;
  ASSERT_TRUE(model.ParseFromString(Parse(R"(
    graph (float[4] x) => (float[4] y) { y = Mul(x, x) })")));
  *model.mutable_graph()->add_input() = model.graph().input(0);
  const Subject subject(model.SerializeAsString());
  EXPECT_THAT(subject.whole().inputs(), SizeIs(1));
}

TEST(WholeModel, TakesAnOutputThatIsListedTwiceOnce) {
  const Subject subject(Parse(R"(
    graph (float[4] x) => (float[4] y, float[4] t, float[4] y) {
      t = Abs(x)
      y = Mul(t, x)
    })"));
  EXPECT_THAT(subject.Names(subject.whole().outputs()), ElementsAre("y", "t"));
}

TEST(WholeModel, TellsTheHeadsOfAllNodes) {
  onnx::ModelProto model;
  ASSERT_TRUE(model.ParseFromString(Parse(R"(
    graph (float[4] x) => (float[4] y) {
      k = Constant<value = float[1] {2}>()
      unread = Neg(x)
      t = Abs(x)
      y = Mul(t, k)
    })")));
  auto& own = *model.add_opset_import();
  own.set_domain("own");
  own.set_version(3);
  model.mutable_graph()->mutable_node(1)->set_domain("own");
  model.mutable_graph()->mutable_node(2)->set_name("named");
  const Subject subject(model.SerializeAsString());
  ASSERT_THAT(subject.whole().nodes(), SizeIs(2));
  std::string told;
  for (const NodeHead& head : subject.whole().Heads()) {
    told += head.domain + "." + head.operator_type + "-" + std::to_string(head.opset_version) +
            head.name + " ";
  }
  EXPECT_EQ(told, ".Constant-21 own.Neg-3 .Abs-21named .Mul-21 ");
}

TEST(WholeModel, TellsWhoReadsWhat) {
  const Subject subject(Parse(R"(
    graph (float[N, 4] x) => (float[N, 2] left, float[N, 4] y) {
      t = Abs(x)
      left, right = Split<axis = 1, num_outputs = 2>(t)
      s = Concat<axis = 1>(right, right)
      y = Add(t, s)
    })"));
  EXPECT_THAT(subject.whole().nodes(), SizeIs(4));
  EXPECT_EQ(subject.whole().nodes()[1].operator_type, "Split");
  EXPECT_EQ(subject.Value("x").producer, -1);
  EXPECT_THAT(subject.Value("x").readers, ElementsAre(0));
  EXPECT_THAT(subject.Value("t").readers, ElementsAre(1, 3));
  EXPECT_THAT(subject.Value("right").readers, ElementsAre(2));
  EXPECT_TRUE(subject.Value("left").is_output);
  EXPECT_FALSE(subject.Value("right").is_output);
  ASSERT_TRUE(subject.Value("right").is_carried());
  EXPECT_EQ((*subject.Value("right").dimensions)[0].symbol, "N");
  EXPECT_EQ((*subject.Value("right").dimensions)[1].number, 2);
  EXPECT_THAT(subject.Names(subject.whole().inputs()), ElementsAre("x"));
  EXPECT_THAT(subject.Names(subject.whole().outputs()), ElementsAre("left", "y"));
}

TEST(WholeModel, GivesIslandsTheInitializersThatTheyRead) {
  std::string text = R"(
    graph (float[2] x) => (float[2] y)
    <float[2] a = {1, 2}, float[2] b = {3, 4}, float[2] c = {5, 6}> {
      t = Add(x, a)
      u = Mul(t, b)
      y = Sub(u, a)
    })";
  Subject subject(Parse(text));
  EXPECT_THAT(subject.Value("t").readers, ElementsAre(1));
  EXPECT_EQ(subject.whole().nodes()[0].constant_bytes, 8);
  const onnx::ModelProto island = subject.Island({0, 1});
  EXPECT_THAT(subject.Names(subject.island.inputs), ElementsAre("x"));
  EXPECT_THAT(subject.Names(subject.island.outputs), ElementsAre("u"));
  ASSERT_THAT(island.graph().initializer(), SizeIs(2));
  EXPECT_EQ(island.graph().initializer(0).name(), "a");
  EXPECT_EQ(island.graph().initializer(1).name(), "b");
  EXPECT_THAT(island.graph().initializer(1).float_data(), ElementsAre(3, 4));
  EXPECT_EQ(island.graph().input(0).type().tensor_type().shape().dim(0).dim_value(), 2);
  const onnx::ModelProto last = subject.Island({2});
  EXPECT_THAT(subject.Names(subject.island.inputs), ElementsAre("u"));
  ASSERT_THAT(last.graph().initializer(), SizeIs(1));
  EXPECT_THAT(last.graph().initializer(0).float_data(), ElementsAre(1, 2));
  EXPECT_THAT(subject.island.model_nodes, ElementsAre(2));
}

TEST(WholeModel, LiftsWhatSubgraphsCapture) {
  Subject subject(Parse(R"(
    graph (float[3] x, bool c) => (float[3] y)
    <float[3] w = {1, 2, 3}> {
      t = Abs(x)
      u = Neg(x)
      y = If (c) <
        then_branch = then_graph () => (float[3] a) { k = Add(t, w)  a = Identity(k) },
        else_branch = else_graph () => (float[3] b) { t2 = Mul(u, u)  b = Identity(t2) }
      >
    })"));
  EXPECT_THAT(subject.Value("t").readers, ElementsAre(2));
  EXPECT_THAT(subject.Value("u").readers, ElementsAre(2));
  const onnx::ModelProto island = subject.Island({2});
  EXPECT_THAT(subject.Names(subject.island.inputs), testing::UnorderedElementsAre("c", "t", "u"));
  ASSERT_THAT(island.graph().initializer(), SizeIs(1));
  EXPECT_EQ(island.graph().initializer(0).name(), "w");
}

TEST(WholeModel, RepeatsConstantsAndFixedShapesWhereTheyAreRead) {
  Subject subject(Parse(R"(
    graph (float[2, 6] x, float[N, 3] z) => (float[4, 3] y, float[A, B] v)
    {
      three = Constant<value = int64[1] {3}>()
      shape = Shape(x)
      zero = Constant<value = int64 {0}>()
      rows = Gather<axis = 0>(shape, zero)
      axes = Constant<value = int64[1] {0}>()
      first = Unsqueeze(rows, axes)
      two = Mul(first, first)
      target = Concat<axis = 0>(two, three)
      t = Abs(x)
      y = Reshape(t, target)
      open = Shape(z)
      v = Reshape(z, open)
    })"));
  // Abs, Reshape, and the two that depend on N.
  std::vector<std::string> operators;
  for (const ModelNode& node : subject.whole().nodes()) operators.push_back(node.operator_type);
  EXPECT_THAT(operators, ElementsAre("Abs", "Reshape", "Shape", "Reshape"));
  const onnx::ModelProto island = subject.Island({1});
  EXPECT_THAT(subject.Names(subject.island.inputs), ElementsAre("t"));
  ASSERT_THAT(island.graph().initializer(), SizeIs(1));
  EXPECT_EQ(island.graph().initializer(0).name(), "target");
  EXPECT_THAT(island.graph().initializer(0).int64_data(), ElementsAre(4, 3));
  subject.Island({3});
  EXPECT_THAT(subject.Names(subject.island.inputs), ElementsAre("z", "open"));
}

TEST(WholeModel, CopiesConstantNodes) {
  Subject subject(Parse(R"(
    graph (float[2] x) => (float[2] y) {
      k = Constant<value = float[2] {7, 8}>()
      t = Add(x, k)
      y = Mul(t, k)
    })"));
  EXPECT_THAT(subject.whole().nodes(), SizeIs(2));
  const onnx::ModelProto island = subject.Island({1});
  ASSERT_THAT(island.graph().node(), SizeIs(2));
  EXPECT_THAT(island.graph().node(0).attribute(0).t().float_data(), ElementsAre(7, 8));
  EXPECT_THAT(subject.island.model_nodes, ElementsAre(0, 2));
}

TEST(WholeModel, CarriesTheCallersWeights) {
  const std::vector<float> data = {1, 2};
  Subject subject(
      Parse(R"(
    graph (float[2] x, float[2] w) => (float[2] y) {
      t = Abs(x)
      y = Mul(t, w)
    })"),
      {{"w", tensor::ElementType::kFloat32, {2}, reinterpret_cast<const std::byte*>(data.data())}});
  EXPECT_THAT(subject.Names(subject.whole().inputs()), ElementsAre("x"));
  subject.Island({0});
  EXPECT_THAT(subject.island.weights, IsEmpty());
  subject.Island({1});
  EXPECT_THAT(subject.island.weights, ElementsAre(0));
  EXPECT_THAT(subject.Names(subject.island.inputs), ElementsAre("t"));
}

TEST(WholeModel, KeepsLargeWeightsOutOfTheQuestion) {
  onnx::ModelProto model;
  ASSERT_TRUE(model.ParseFromString(Parse(R"(
    graph (float[1, 4000] x) => (float[1, 2] y) <float[4000, 2] w = {0}> {
      t = Abs(x)
      y = MatMul(t, w)
    })")));
  onnx::TensorProto& w = *model.mutable_graph()->mutable_initializer(0);
  w.clear_float_data();
  w.set_raw_data(std::string(32000, '\x3f'));
  Subject subject(model.SerializeAsString());
  EXPECT_LT(subject.whole().claim_model().size(), 1000U);
  EXPECT_EQ(subject.whole().nodes()[1].constant_bytes, 32000);
  const onnx::ModelProto island = subject.Island({1});
  EXPECT_EQ(island.graph().initializer(0).raw_data(), w.raw_data());
}

TEST(WholeModel, KnowsWhatNoBoundaryCarries) {
  const Subject subject(Parse(R"(
    graph (float[2] x) => (float[2] y) {
      s = SequenceConstruct(x, x)
      i = Constant<value = int64 {1}>()
      y = SequenceAt(s, i)
    })"));
  EXPECT_FALSE(subject.Value("s").is_carried());
  EXPECT_TRUE(subject.Value("x").is_carried());
}

// A rank that the model declares, and nothing else tells, may decide whether a node is supported.
TEST(WholeModel, DeclaresInnerValuesOfIslands) {
  Subject subject(Parse(R"(
    graph (float[N, M] x, int64[K, L] i) => (float[P] y) <float[P] t, float[N, M] own> {
      own = Abs(x)
      t = GatherND(own, i)
      s = Relu(t)
      y = Neg(s)
    })"));
  const onnx::ModelProto island = subject.Island({0, 1, 2});
  std::map<std::string, int> ranks;
  for (const onnx::ValueInfoProto& value : island.graph().value_info()) {
    ranks[value.name()] = value.type().tensor_type().shape().dim_size();
  }
  // What leaves the island is declared where it leaves.
  EXPECT_THAT(ranks, testing::UnorderedElementsAre(testing::Pair("own", 2), testing::Pair("t", 1)));
  ASSERT_THAT(island.graph().output(), SizeIs(1));
  EXPECT_EQ(island.graph().output(0).name(), "s");
  EXPECT_EQ(island.graph().output(0).type().tensor_type().shape().dim_size(), 1);
}

TEST(WholeModel, KnowsTheAxesOfWhatLoopsCarry) {
  const Subject subject(Parse(R"(
    graph (float[N, 4] x, int64 n, bool c) => (float[M, 4] y) {
      t = Loop (n, c, x) <body = body (int64 i, bool d, float[A, 4] p) => (bool e, float[B, 4] q) {
        e = Identity(d)  q = Concat<axis = 0>(p, p) }>
      u = Loop (n, c, t) <body = body (int64 i, bool d, float[A, 4] p2) => (bool e2, float[A, 4] q2) {
        e2 = Identity(d)  q2 = Abs(p2) }>
      y = Neg(u)
    })"));
  for (const char* name : {"t", "u"}) {
    ASSERT_TRUE(subject.Value(name).is_carried());
    ASSERT_THAT(*subject.Value(name).dimensions, SizeIs(2));
    EXPECT_EQ((*subject.Value(name).dimensions)[0].number, -1);
    EXPECT_EQ((*subject.Value(name).dimensions)[1].number, 4);
  }
}

TEST(WholeModel, TakesBothSpellingsOfTheDefaultDomain) {
  onnx::ModelProto model;
  ASSERT_TRUE(model.ParseFromString(Parse(R"(
    graph (float[N, 4] x, bool c) => (float[N, 2] y) {
      k = Constant<value = float[1] {2}>()
      left, right = Split<axis = 1, num_outputs = 2>(x)
      y = If (c) <
        then_branch = then_graph () => (float[N, 2] a) { a = Mul(left, k) },
        else_branch = else_graph () => (float[N, 2] b) { b = Neg(right) }
      >
    })")));
  const std::string domain = "ai.onnx";
  model.mutable_opset_import(0)->set_domain(domain);
  for (onnx::NodeProto& node : *model.mutable_graph()->mutable_node()) {
    node.set_domain(domain);
    for (onnx::AttributeProto& attribute : *node.mutable_attribute()) {
      if (attribute.has_g()) attribute.mutable_g()->mutable_node(0)->set_domain(domain);
    }
  }
  Subject subject(model.SerializeAsString());
  ASSERT_THAT(subject.whole().nodes(), SizeIs(2));
  EXPECT_EQ(subject.whole().Heads()[1].opset_version, 21);
  ASSERT_TRUE(subject.Value("right").is_carried());
  EXPECT_EQ((*subject.Value("right").dimensions)[1].number, 2);
  const onnx::ModelProto island = subject.Island({1});
  EXPECT_THAT(subject.Names(subject.island.inputs),
              testing::UnorderedElementsAre("c", "left", "right"));
  EXPECT_EQ(island.graph().node(1).attribute(0).g().node(0).domain(), "");
}

TEST(WholeModel, RefusesWhatCannotBeCut) {
  const auto refusal = [](const std::string& bytes) {
    const auto read = WholeModel::Read(Bytes(bytes), {});
    return read.ok() ? std::string() : read.status().Text();
  };
  EXPECT_THAT(refusal(Parse("graph (float[2] x) => (float[2] x) { y = Abs(x) }")),
              HasSubstr("'x' is made by no node"));
  EXPECT_EQ(refusal(Parse("graph (float[2] x) => (float[2] y) { y = Abs(t)  t = Neg(x) }")), "");
  EXPECT_THAT(refusal(Parse("graph (float[2] x) => (float[2] y) { y = Abs(t)  t = Neg(y) }")),
              HasSubstr("cycle of 2 nodes"));
  EXPECT_THAT(refusal(Parse("graph (float[2] x) => (float[2] y) { y = Abs(t) }")),
              HasSubstr("reads 't'"));
  EXPECT_THAT(refusal("\x3a\x05"), HasSubstr("byte"));
}

}  // namespace
}  // namespace onnxifi::split
