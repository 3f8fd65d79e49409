// SPDX-License-Identifier: Apache-2.0
//
// Sequences and optionals that are known while lowering: what goes in comes out, at the right
// place, and what only data could tell is refused.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "backends/core/ops/testing/run_operator.h"

namespace onnxifi::ops {
namespace {

using base::Code;
using graph::Graph;
using graph::ValueId;
using tensor::ElementType;
using tensor::Extents;
using tensor::Tensor;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Attributes = std::map<std::string, graph::Attribute, std::less<>>;

// Builds a graph of which every input and constant is given with its numbers.
class SequenceGraph {
 public:
  ValueId Input(Extents extents, const std::vector<double>& numbers,
                ElementType type = ElementType::kFloat32) {
    graph::Type declared{.kind = graph::Type::Kind::kTensor, .element = type};
    declared.extents.emplace();
    for (const int64_t extent : extents) declared.extents->push_back({extent, ""});
    graph_.inputs.push_back(graph_.AddValue(
        {.name = "x" + std::to_string(graph_.values.size()), .type = std::move(declared)}));
    inputs_.push_back(MakeTensor(type, std::move(extents), numbers));
    return graph_.inputs.back();
  }
  ValueId Integer(int64_t number) {
    graph::Value value{.name = "c" + std::to_string(graph_.values.size())};
    value.constant = MakeTensor(ElementType::kInt64, {}, {static_cast<double>(number)});
    return graph_.AddValue(std::move(value));
  }
  ValueId Node(std::string op_type, std::vector<ValueId> inputs, Attributes attributes = {},
               int version = 11) {
    graph::Node node{.op_type = std::move(op_type),
                     .since_version = version,
                     .index = static_cast<int>(graph_.nodes.size()),
                     .inputs = std::move(inputs)};
    node.attributes = std::move(attributes);
    node.outputs = {graph_.AddValue({.name = "v" + std::to_string(graph_.values.size())})};
    graph_.nodes.push_back(node);
    return node.outputs[0];
  }
  base::Result<std::vector<Tensor>> Run(std::vector<ValueId> outputs) {
    graph_.outputs = std::move(outputs);
    return RunGraph(graph_, inputs_);
  }
  Graph& graph() { return graph_; }

 private:
  Graph graph_;
  std::vector<Tensor> inputs_;
};

// Three tensors of different numbers.
std::vector<ValueId> MakeTensors(SequenceGraph& made) {
  return {made.Input({2}, {1, 2}), made.Input({2}, {3, 4}), made.Input({2}, {5, 6})};
}

TEST(SequenceTest, TensorsComeOutWhereTheyWentIn) {
  SequenceGraph made;
  const std::vector<ValueId> x = MakeTensors(made);
  const ValueId empty = made.Node("SequenceEmpty", {});
  const ValueId one = made.Node("SequenceInsert", {empty, x[0]});
  const ValueId two = made.Node("SequenceInsert", {one, x[1], made.Integer(0)});
  const ValueId three = made.Node("SequenceInsert", {two, x[2], made.Integer(-1)});
  // Now x1, x2, x0.
  std::vector<ValueId> outputs;
  for (const int64_t at : {0, 1, 2, -1, -3}) {
    outputs.push_back(made.Node("SequenceAt", {three, made.Integer(at)}));
  }
  outputs.push_back(made.Node("SequenceLength", {three}));
  const auto results = made.Run(outputs);
  ASSERT_TRUE(results.ok()) << results.status().Text();
  const std::vector<double> first = {3, 5, 1, 1, 3};
  for (size_t k = 0; k < first.size(); ++k) EXPECT_EQ(Numbers((*results)[k])[0], first[k]) << k;
  EXPECT_EQ((*results)[5].AsInt(0), 3);
  EXPECT_TRUE((*results)[5].extents().empty());
}

TEST(SequenceTest, ErasesTheLastOrTheOneAtAPosition) {
  SequenceGraph made;
  const ValueId all = made.Node("SequenceConstruct", MakeTensors(made));
  const ValueId without_last = made.Node("SequenceErase", {all});
  const ValueId without_first = made.Node("SequenceErase", {all, made.Integer(-3)});
  const auto results =
      made.Run({made.Node("SequenceAt", {without_last, made.Integer(-1)}),
                made.Node("SequenceAt", {without_first, made.Integer(0)}),
                made.Node("SequenceLength", {made.Node("Identity", {without_first}, {}, 14)})});
  ASSERT_TRUE(results.ok()) << results.status().Text();
  EXPECT_THAT(Numbers((*results)[0]), ElementsAre(3, 4));
  EXPECT_THAT(Numbers((*results)[1]), ElementsAre(3, 4));
  EXPECT_EQ((*results)[2].AsInt(0), 2);
}

TEST(SequenceTest, JoinsAlongAnAxisOrANewOne) {
  SequenceGraph made;
  const ValueId all = made.Node("SequenceConstruct", MakeTensors(made));
  const auto results = made.Run(
      {made.Node("ConcatFromSequence", {all}, {{"axis", int64_t{0}}}),
       made.Node("ConcatFromSequence", {all}, {{"axis", int64_t{-1}}, {"new_axis", int64_t{1}}})});
  ASSERT_TRUE(results.ok()) << results.status().Text();
  EXPECT_THAT(Numbers((*results)[0]), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_EQ((*results)[1].extents(), (Extents{2, 3}));
  EXPECT_THAT(Numbers((*results)[1]), ElementsAre(1, 3, 5, 2, 4, 6));
}

TEST(SequenceTest, SplitsIntoParts) {
  SequenceGraph made;
  const ValueId x = made.Input({2, 5}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
  const ValueId lengths = made.Input({2}, {4, 1}, ElementType::kInt64);
  const Attributes last_axis = {{"axis", int64_t{1}}};
  const ValueId pairs = made.Node("SplitToSequence", {x, made.Integer(2)}, last_axis);
  const ValueId given = made.Node("SplitToSequence", {x, lengths}, last_axis);
  const ValueId columns = made.Node("SplitToSequence", {x}, last_axis);
  const ValueId vectors =
      made.Node("SplitToSequence", {x}, {{"axis", int64_t{1}}, {"keepdims", int64_t{0}}});
  const auto results = made.Run({made.Node("SequenceAt", {pairs, made.Integer(2)}),
                                 made.Node("SequenceAt", {given, made.Integer(0)}),
                                 made.Node("SequenceAt", {columns, made.Integer(3)}),
                                 made.Node("SequenceAt", {vectors, made.Integer(3)}),
                                 made.Node("SequenceLength", {pairs})});
  ASSERT_TRUE(results.ok()) << results.status().Text();
  EXPECT_EQ((*results)[0].extents(), (Extents{2, 1})) << "what is left of five";
  EXPECT_THAT(Numbers((*results)[0]), ElementsAre(4, 9));
  EXPECT_THAT(Numbers((*results)[1]), ElementsAre(0, 1, 2, 3, 5, 6, 7, 8));
  EXPECT_EQ((*results)[2].extents(), (Extents{2, 1}));
  EXPECT_EQ((*results)[3].extents(), (Extents{2}));
  EXPECT_THAT(Numbers((*results)[3]), ElementsAre(3, 8));
  EXPECT_EQ((*results)[4].AsInt(0), 3);
}

TEST(SequenceTest, RefusesWhatDoesNotFit) {
  struct Fault {
    std::function<ValueId(SequenceGraph&, ValueId)> node;  // given a sequence of three
    Code code;
    const char* sentence;
  };
  const Fault faults[] = {
      {[](SequenceGraph& g, ValueId s) {
         return g.Node("SequenceAt", {s, g.Integer(3)});
       },
       Code::kInvalidModel, "Position 3 is outside [-3, 2]."},
      {[](SequenceGraph& g, ValueId s) {
         return g.Node("SequenceAt", {s, g.Integer(-4)});
       },
       Code::kInvalidModel, "Position -4 is outside [-3, 2]."},
      {[](SequenceGraph& g, ValueId s) {
         return g.Node("SequenceAt", {s, g.Input({}, {1}, ElementType::kInt64)});
       },
       Code::kUnsupportedShape, "is not known before the graph runs"},
      {[](SequenceGraph& g, ValueId s) {
         const ValueId other = g.Input({2}, {1, 2}, ElementType::kInt32);
         return g.Node("SequenceLength", {g.Node("SequenceInsert", {s, other})});
       },
       Code::kMismatchingDatatype, "cannot hold a tensor of int32"},
      {[](SequenceGraph& g, ValueId s) { return g.Node("Neg", {s}, {}, 13); },
       Code::kUnsupportedDatatype, "is a sequence where a tensor is needed"},
      {[](SequenceGraph&, ValueId s) { return s; }, Code::kUnsupportedDatatype,
       "is a sequence where a tensor is needed"},
      {[](SequenceGraph& g, ValueId) {
         const ValueId x = g.Input({5000}, std::vector<double>(5000, 1));
         return g.Node("SequenceLength", {g.Node("SplitToSequence", {x})});
       },
       Code::kUnsupportedShape, "A sequence of 5000 tensors exceeds the largest supported (4096)."},
      {[](SequenceGraph& g, ValueId s) {
         for (int k = 0; k < 400; ++k) s = g.Node("SequenceInsert", {s, g.Input({1}, {1})});
         return g.Node("SequenceLength", {s});
       },
       Code::kUnsupportedShape, "more than the largest supported number (65536)"},
      {[](SequenceGraph& g, ValueId) {
         return g.Node("SequenceLength", {g.Input({2}, {1, 2})});
       },
       Code::kMismatchingDatatype, "Input 0 is a tensor, not a sequence."},
      {[](SequenceGraph& g, ValueId) {
         return g.Node("ConcatFromSequence", {g.Node("SequenceEmpty", {})}, {{"axis", int64_t{0}}});
       },
       Code::kInvalidModel, "The sequence is empty."},
  };
  for (const Fault& fault : faults) {
    SequenceGraph made;
    const ValueId sequence = made.Node("SequenceConstruct", MakeTensors(made));
    const auto results = made.Run({fault.node(made, sequence)});
    ASSERT_FALSE(results.ok()) << fault.sentence;
    EXPECT_EQ(results.status().code(), fault.code) << results.status().Text();
    EXPECT_THAT(results.status().Text(), HasSubstr(fault.sentence));
  }
}

TEST(SequenceTest, ChecksTheDeclaredElementType) {
  for (const ElementType declared : {ElementType::kFloat32, ElementType::kFloat64}) {
    SequenceGraph made;
    const ValueId sequence = made.Node("SequenceConstruct", MakeTensors(made));
    graph::Type inner{.kind = graph::Type::Kind::kTensor, .element = declared};
    made.graph().values[static_cast<size_t>(sequence)].type = {
        .kind = graph::Type::Kind::kSequence, .inner = std::make_shared<graph::Type>(inner)};
    const auto results = made.Run({made.Node("SequenceLength", {sequence})});
    EXPECT_EQ(results.ok(), declared == ElementType::kFloat32) << results.status().Text();
    if (results.ok()) continue;
    EXPECT_EQ(results.status().code(), Code::kMismatchingDatatype);
  }
}

TEST(OptionalTest, TensorsAndSequencesHaveAnElementAndOmittedInputsNone) {
  SequenceGraph made;
  const std::vector<ValueId> x = MakeTensors(made);
  const ValueId sequence = made.Node("SequenceConstruct", {x[0], x[1]});
  const ValueId same = made.Node("OptionalGetElement", {sequence}, {}, 18);
  const auto results = made.Run({made.Node("OptionalHasElement", {x[0]}, {}, 18),
                                 made.Node("OptionalHasElement", {sequence}, {}, 18),
                                 made.Node("OptionalHasElement", {graph::kNoValue}, {}, 18),
                                 made.Node("OptionalHasElement", {}, {}, 18),
                                 made.Node("OptionalGetElement", {x[2]}, {}, 18),
                                 made.Node("SequenceAt", {same, made.Integer(1)})});
  ASSERT_TRUE(results.ok()) << results.status().Text();
  const bool has_element[] = {true, true, false, false};
  for (size_t k = 0; k < 4; ++k) EXPECT_EQ((*results)[k].AsInt(0), has_element[k] ? 1 : 0) << k;
  EXPECT_THAT(Numbers((*results)[4]), ElementsAre(5, 6));
  EXPECT_THAT(Numbers((*results)[5]), ElementsAre(3, 4));
}

}  // namespace
}  // namespace onnxifi::ops
