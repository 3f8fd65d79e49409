// SPDX-License-Identifier: Apache-2.0
//
// Sequences and optionals, known while lowering or only when a graph runs: what goes in comes out,
// at the right place.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <numeric>
#include <random>
#include <string>

#include "backends/core/ops/lower_graph.h"
#include "backends/core/ops/testing/run_operator.h"

namespace onnxifi::ops {
namespace {

using base::Code;
using graph::Graph;
using graph::ValueId;
using graph::ValueIds;
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
    inputs_.emplace_back(MakeTensor(type, std::move(extents), numbers));
    return graph_.inputs.back();
  }
  // An input of which a run alone knows anything but its type.
  ValueId Input(graph::Type type, tensor::Value value) {
    graph_.inputs.push_back(graph_.AddValue(
        {.name = "x" + std::to_string(graph_.values.size()), .type = std::move(type)}));
    inputs_.push_back(std::move(value));
    return graph_.inputs.back();
  }
  ValueId Integer(int64_t number) {
    graph::Value value{.name = "c" + std::to_string(graph_.values.size())};
    value.constant = MakeTensor(ElementType::kInt64, {}, {static_cast<double>(number)});
    return graph_.AddValue(std::move(value));
  }
  ValueId Node(std::string op_type, ValueIds inputs, Attributes attributes = {}, int version = 11) {
    graph::Node node{.op_type = std::move(op_type),
                     .since_version = version,
                     .index = static_cast<int>(graph_.nodes.size()),
                     .inputs = std::move(inputs)};
    node.attributes = std::move(attributes);
    node.outputs = {graph_.AddValue({.name = "v" + std::to_string(graph_.values.size())})};
    graph_.nodes.push_back(node);
    return node.outputs[0];
  }
  base::Result<std::vector<Tensor>> Run(ValueIds outputs) {
    ONNXIFI_ASSIGN_OR_RETURN(const std::vector<tensor::Value> values, RunWhole(std::move(outputs)));
    std::vector<Tensor> tensors;
    for (const tensor::Value& value : values) tensors.push_back(value.tensor);
    return tensors;
  }
  base::Result<std::vector<tensor::Value>> RunWhole(ValueIds outputs) {
    graph_.outputs = std::move(outputs);
    return RunGraphOnValues(graph_, inputs_);
  }
  Graph& graph() { return graph_; }

 private:
  Graph graph_;
  std::vector<tensor::Value> inputs_;
};

// Three tensors of different numbers.
ValueIds MakeTensors(SequenceGraph& made) {
  return {made.Input({2}, {1, 2}), made.Input({2}, {3, 4}), made.Input({2}, {5, 6})};
}

TEST(SequenceTest, TensorsComeOutWhereTheyWentIn) {
  SequenceGraph made;
  const ValueIds x = MakeTensors(made);
  const ValueId empty = made.Node("SequenceEmpty", {});
  const ValueId one = made.Node("SequenceInsert", {empty, x[0]});
  const ValueId two = made.Node("SequenceInsert", {one, x[1], made.Integer(0)});
  const ValueId three = made.Node("SequenceInsert", {two, x[2], made.Integer(-1)});
  // Now x1, x2, x0.
  ValueIds outputs;
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
         return g.Node("SequenceAt", {s, g.Input({}, {3}, ElementType::kInt64)});
       },
       Code::kMismatchingShape, "Position 3 is outside [-3, 2] of a sequence of 3."},
      {[](SequenceGraph& g, ValueId s) {
         const ValueId uneven = g.Node("SequenceInsert", {s, g.Input({1, 1}, {7})});
         return g.Node("SequenceAt", {uneven, g.Input({}, {3}, ElementType::kInt64)});
       },
       Code::kUnsupportedShape, "The number of axes of output 0 is not known"},
      {[](SequenceGraph& g, ValueId s) {
         const ValueId other = g.Input({2}, {1, 2}, ElementType::kInt32);
         return g.Node("SequenceLength", {g.Node("SequenceInsert", {s, other})});
       },
       Code::kMismatchingDatatype, "cannot hold a tensor of int32"},
      {[](SequenceGraph& g, ValueId s) { return g.Node("Neg", {s}, {}, 13); },
       Code::kUnsupportedDatatype, "is a sequence where a tensor is needed"},
      {[](SequenceGraph& g, ValueId s) {
         for (int k = 0; k < 400; ++k) s = g.Node("SequenceInsert", {s, g.Input({1}, {1})});
         return g.Node("SequenceLength", {s});
       },
       Code::kUnsupportedShape, "more than the largest supported number (65536)"},
      {[](SequenceGraph& g, ValueId) {
         return g.Node("SequenceLength", {g.Input({2}, {1, 2})});
       },
       Code::kMismatchingDatatype, "Input 0 is a tensor of float with 1 axes, not a sequence."},
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
  const ValueIds x = MakeTensors(made);
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

graph::Type TensorType(ElementType element, int rank) {
  graph::Type type{.kind = graph::Type::Kind::kTensor, .element = element};
  type.extents.emplace(static_cast<size_t>(rank));
  return type;
}

graph::Type Of(graph::Type::Kind kind, graph::Type inner) {
  return {.kind = kind, .inner = std::make_shared<graph::Type>(std::move(inner))};
}

tensor::Value Row(const std::vector<double>& numbers) {
  return tensor::Value(
      MakeTensor(ElementType::kFloat32, {static_cast<int64_t>(numbers.size())}, numbers));
}

tensor::Value Rows(const std::vector<std::vector<double>>& rows) {
  std::vector<tensor::ValueRef> elements;
  for (const std::vector<double>& row : rows) {
    elements.push_back(std::make_shared<const tensor::Value>(Row(row)));
  }
  return tensor::Value::Sequence(std::move(elements));
}

std::vector<std::vector<double>> NumbersOf(const tensor::Value& sequence) {
  std::vector<std::vector<double>> rows;
  for (const tensor::ValueRef& element : sequence.elements()) {
    rows.push_back(Numbers(element->tensor));
  }
  return rows;
}

graph::Type SequenceOfRows() {
  return Of(graph::Type::Kind::kSequence, TensorType(ElementType::kFloat32, 1));
}

// Insertions and erasures at positions that only a run knows, against a list.
TEST(SequenceOfARunTest, ChangesLikeAList) {
  std::mt19937 random(3);
  for (int round = 0; round < 20; ++round) {
    SequenceGraph made;
    std::vector<std::vector<double>> list(random() % 3);
    for (size_t k = 0; k < list.size(); ++k) list[k] = {static_cast<double>(k), 0.5};
    ValueId sequence = made.Input(SequenceOfRows(), Rows(list));
    for (int change = 0; change < 8; ++change) {
      const auto count = static_cast<int64_t>(list.size());
      if (count > 0 && random() % 3 == 0) {
        const int64_t at =
            static_cast<int64_t>(random() % static_cast<unsigned>(2 * count)) - count;
        sequence =
            made.Node("SequenceErase",
                      {sequence, made.Input({}, {static_cast<double>(at)}, ElementType::kInt32)});
        list.erase(list.begin() + (at < 0 ? at + count : at));
        continue;
      }
      const int64_t at =
          static_cast<int64_t>(random() % static_cast<unsigned>(2 * count + 1)) - count;
      std::vector<double> row(random() % 4, 10.0 * round + change);
      const ValueId tensor = made.Input({static_cast<int64_t>(row.size())}, row);
      sequence = made.Node(
          "SequenceInsert",
          {sequence, tensor, made.Input({}, {static_cast<double>(at)}, ElementType::kInt64)});
      list.insert(list.begin() + (at < 0 ? at + count : at), row);
    }
    const auto results = made.RunWhole({sequence, made.Node("SequenceLength", {sequence})});
    ASSERT_TRUE(results.ok()) << results.status().Text();
    EXPECT_EQ(NumbersOf((*results)[0]), list);
    EXPECT_EQ((*results)[1].tensor.AsInt(0), static_cast<int64_t>(list.size()));
  }
}

TEST(SequenceOfARunTest, GivesElementsToFurtherComputation) {
  SequenceGraph made;
  const ValueId sequence = made.Input(SequenceOfRows(), Rows({{1, 2}, {3, 4, 5}, {}}));
  ValueIds outputs;
  for (const double at : {0, 1, 2, -2}) {
    const ValueId element =
        made.Node("SequenceAt", {sequence, made.Input({}, {at}, ElementType::kInt64)});
    outputs.push_back(made.Node("Add", {element, element}, {}, 14));
  }
  const auto results = made.Run(outputs);
  ASSERT_TRUE(results.ok()) << results.status().Text();
  EXPECT_THAT(Numbers((*results)[0]), ElementsAre(2, 4));
  EXPECT_THAT(Numbers((*results)[1]), ElementsAre(6, 8, 10));
  EXPECT_THAT(Numbers((*results)[2]), ElementsAre());
  EXPECT_THAT(Numbers((*results)[3]), ElementsAre(6, 8, 10));
}

TEST(SequenceOfARunTest, SplitsAndJoinsWhatOnlyARunMeasures) {
  // Each of these types has them.
  const std::vector<double> numbers = {0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 1, 5};
  for (const ElementType type :
       {ElementType::kFloat32, ElementType::kUint4, ElementType::kFloat6E3M2}) {
    for (const double split : {1, 2, 3, 7, 9}) {
      SequenceGraph made;
      const ValueId x = made.Input({2, 7}, numbers, type);
      const ValueId parts =
          made.Node("SplitToSequence", {x, made.Input({}, {split}, ElementType::kInt64)},
                    {{"axis", int64_t{-1}}});
      const auto results =
          made.Run({made.Node("ConcatFromSequence", {parts}, {{"axis", int64_t{1}}}),
                    made.Node("SequenceLength", {parts}),
                    made.Node("SequenceAt", {parts, made.Integer(-1)})});
      ASSERT_TRUE(results.ok()) << results.status().Text();
      EXPECT_EQ(Numbers((*results)[0]), numbers) << split;
      EXPECT_EQ((*results)[0].extents(), (Extents{2, 7}));
      EXPECT_EQ((*results)[1].AsInt(0), static_cast<int64_t>(std::ceil(7 / split)));
      const int64_t last =
          split == 9 ? 7 : 7 - static_cast<int64_t>(split) * ((*results)[1].AsInt(0) - 1);
      EXPECT_EQ((*results)[2].extents(), (Extents{2, last}));
      EXPECT_EQ(Numbers((*results)[2]).back(), 5);
    }
  }
}

// torch.repeat_interleave of counts that data tell, as TorchScript's exporter writes it: a loop
// cuts counts into parts of one, each of which gives an extent.
TEST(SequenceOfARunTest, KnowsTheExtentOfPartsOfOneLength) {
  SequenceGraph made;
  graph::Type declared{.kind = graph::Type::Kind::kTensor, .element = ElementType::kInt64};
  declared.extents.emplace({graph::Extent{-1, "n"}});
  const ValueId counts =
      made.Input(declared, tensor::Value(MakeTensor(ElementType::kInt64, {4}, {2, 0, 3, 1})));
  const auto filled = [&](double number) {
    return made.Node("ConstantOfShape", {made.Node("Shape", {counts}, {}, 1)},
                     {{"value", MakeTensor(ElementType::kInt64, {1}, {number})}}, 9);
  };
  const ValueId at = made.Input({}, {2}, ElementType::kInt64);
  const ValueId row = made.Input({1, 2}, {5, 7});
  const ValueId width = made.Input({1}, {2}, ElementType::kInt64);
  ValueIds outputs;
  const ValueId scalar = made.Integer(1);
  for (const ValueId parts :
       {made.Node("SplitToSequence", {counts, filled(1)}),
        made.Node("SplitToSequence", {counts, scalar}), made.Node("SplitToSequence", {counts})}) {
    const ValueId count = made.Node("SequenceAt", {parts, at});
    const ValueId shape = made.Node("Concat", {count, width}, {{"axis", int64_t{0}}}, 13);
    outputs.push_back(made.Node("Expand", {row, shape}, {}, 13));
    outputs.push_back(made.Node("ConcatFromSequence", {parts}, {{"axis", int64_t{0}}}));
  }
  const auto results = made.Run(outputs);
  ASSERT_TRUE(results.ok()) << results.status().Text();
  for (size_t k = 0; k < outputs.size(); k += 2) {
    EXPECT_EQ((*results)[k].extents(), (Extents{3, 2}));
    EXPECT_THAT(Numbers((*results)[k]), ElementsAre(5, 7, 5, 7, 5, 7));
    EXPECT_THAT(Numbers((*results)[k + 1]), ElementsAre(2, 0, 3, 1));
  }
}

TEST(SequenceOfARunTest, CountsOnNoExtentOfALastPart) {
  SequenceGraph made;
  graph::Type declared{.kind = graph::Type::Kind::kTensor, .element = ElementType::kFloat32};
  declared.extents.emplace({graph::Extent{-1, "n"}, graph::Extent{2, ""}});
  const ValueId x = made.Input(
      declared, tensor::Value(MakeTensor(ElementType::kFloat32, {3, 2}, {1, 2, 3, 4, 5, 6})));
  const ValueId parts = made.Node("SplitToSequence", {x, made.Integer(2)});
  const ValueId at = made.Input({}, {1}, ElementType::kInt64);
  const auto results =
      made.Run({made.Node("SequenceAt", {parts, at}),
                made.Node("ConcatFromSequence", {made.Node("SplitToSequence", {x})},
                          {{"axis", int64_t{0}}, {"new_axis", int64_t{1}}})});
  ASSERT_TRUE(results.ok()) << results.status().Text();
  EXPECT_EQ((*results)[0].extents(), (Extents{1, 2}));
  EXPECT_THAT(Numbers((*results)[0]), ElementsAre(5, 6));
  EXPECT_EQ((*results)[1].extents(), (Extents{3, 1, 2}));
}

TEST(SequenceOfARunTest, JoinsAlongANewAxis) {
  SequenceGraph made;
  const ValueId sequence = made.Input(SequenceOfRows(), Rows({{1, 2, 3}, {4, 5, 6}}));
  const auto results = made.Run({made.Node("ConcatFromSequence", {sequence},
                                           {{"axis", int64_t{-1}}, {"new_axis", int64_t{1}}})});
  ASSERT_TRUE(results.ok()) << results.status().Text();
  EXPECT_EQ((*results)[0].extents(), (Extents{3, 2}));
  EXPECT_THAT(Numbers((*results)[0]), ElementsAre(1, 4, 2, 5, 3, 6));
}

TEST(SequenceOfARunTest, RefusesValuesThatDoNotFit) {
  struct Fault {
    tensor::Value value;
    std::function<ValueId(SequenceGraph&, ValueId)> node;
    Code code;
    const char* sentence;
  };
  const auto pass = [](SequenceGraph&, ValueId s) { return s; };
  const auto at = [](double position) {
    return [position](SequenceGraph& g, ValueId s) {
      return g.Node("SequenceAt", {s, g.Input({}, {position}, ElementType::kInt64)});
    };
  };
  std::vector<tensor::ValueRef> mixed = Rows({{1}}).elements();
  mixed.push_back(std::make_shared<const tensor::Value>(MakeTensor(ElementType::kInt32, {1}, {1})));
  std::vector<tensor::ValueRef> deep = Rows({{1}}).elements();
  deep.push_back(
      std::make_shared<const tensor::Value>(MakeTensor(ElementType::kFloat32, {1, 1}, {1})));
  const Fault faults[] = {
      {Row({1}), pass, Code::kMismatchingDatatype,
       "Input 'x0' is a tensor of float of shape [1]; required is: sequence"},
      {tensor::Value(), pass, Code::kMismatchingDatatype, "is an optional without element"},
      {tensor::Value::Sequence(mixed), pass, Code::kMismatchingDatatype,
       "Element 1 of Input 'x0' is a tensor of int32"},
      {tensor::Value::Sequence(deep), pass, Code::kMismatchingShape,
       "Element 1 of Input 'x0' is a tensor of float of shape [1, 1]"},
      {Rows({{1}, {2}}), at(2), Code::kMismatchingShape,
       "Position 2 is outside [-2, 1] of a sequence of 2."},
      {Rows({}), at(0), Code::kMismatchingShape, "Position 0 is outside [0, -1]"},
      {Rows({}), [](SequenceGraph& g, ValueId s) { return g.Node("SequenceErase", {s}); },
       Code::kMismatchingShape, "The sequence has 0 elements"},
      {Rows({{1, 2}, {3}}),
       [](SequenceGraph& g, ValueId s) {
         return g.Node("ConcatFromSequence", {s}, {{"axis", int64_t{0}}, {"new_axis", int64_t{1}}});
       },
       Code::kMismatchingShape, "Element 1 has shape [1], element 0 [2]"},
      {Rows({{1}}),
       [](SequenceGraph& g, ValueId s) {
         return g.Node("SequenceInsert", {s, g.Input({1}, {1}, ElementType::kInt32)});
       },
       Code::kMismatchingDatatype, "An element of the sequence is once of type tensor of float"},
      {Rows({{1}}),
       [](SequenceGraph& g, ValueId) {
         return g.Node("SplitToSequence",
                       {g.Input({3}, {1, 2, 3}), g.Input({}, {0}, ElementType::kInt64)});
       },
       Code::kMismatchingShape, "Split (0) is less than 1."},
  };
  for (const Fault& fault : faults) {
    SequenceGraph made;
    const ValueId sequence = made.Input(SequenceOfRows(), fault.value);
    const auto results = made.RunWhole({fault.node(made, sequence)});
    ASSERT_FALSE(results.ok()) << fault.sentence;
    EXPECT_EQ(results.status().code(), fault.code) << results.status().Text();
    EXPECT_THAT(results.status().Text(), HasSubstr(fault.sentence));
  }
}

// Appends x[0 : i + 1] to the sequence that iteration i gets.
TEST(SequenceOfARunTest, GrowsInALoop) {
  for (const double iterations : {0, 1, 4}) {
    SequenceGraph made;
    const ValueId x = made.Input({4}, {7, 8, 9, 10});
    const ValueId empty = made.Node("SequenceEmpty", {});
    auto body = std::make_shared<Graph>();
    SequenceGraph inside;
    const ValueId i = inside.Input({}, {0}, ElementType::kInt64);
    const ValueId go = inside.Input({}, {0}, ElementType::kBool);
    const ValueId before = inside.Input(SequenceOfRows(), {});
    graph::Value captured{.name = "x"};
    captured.outer = x;
    const ValueId row = inside.graph().AddValue(std::move(captured));
    const auto list = [&](double number) {
      graph::Value value{.name = "c"};
      value.constant = MakeTensor(ElementType::kInt64, {1}, {number});
      return inside.graph().AddValue(std::move(value));
    };
    const ValueId end = inside.Node(
        "Unsqueeze", {inside.Node("Add", {i, inside.Integer(1)}, {}, 14), list(0)}, {}, 13);
    const ValueId part = inside.Node("Slice", {row, list(0), end}, {}, 13);
    const ValueId after = inside.Node("SequenceInsert", {before, part});
    *body = inside.graph();
    body->outputs = {inside.Node("Identity", {go}, {}, 16), after};
    body->nodes = inside.graph().nodes;
    body->values = inside.graph().values;
    const ValueId grown = made.Node(
        "Loop", {made.Input({}, {iterations}, ElementType::kInt64), graph::kNoValue, empty},
        {{"body", std::shared_ptr<const Graph>(body)}}, 16);
    const auto results = made.RunWhole({grown, made.Node("SequenceLength", {grown})});
    ASSERT_TRUE(results.ok()) << results.status().Text();
    const std::vector<std::vector<double>> rows = {{7}, {7, 8}, {7, 8, 9}, {7, 8, 9, 10}};
    EXPECT_EQ(NumbersOf((*results)[0]),
              (std::vector<std::vector<double>>(rows.begin(),
                                                rows.begin() + static_cast<int>(iterations))));
    EXPECT_EQ((*results)[1].tensor.AsInt(0), static_cast<int64_t>(iterations));
  }
}

TEST(SequenceMapTest, DoesItsBodyForEveryElement) {
  SequenceGraph made;
  const ValueId rows = made.Input(SequenceOfRows(), Rows({{1, 2}, {3}, {}}));
  const ValueId one = made.Input({1}, {100});
  SequenceGraph inside;
  const ValueId element = inside.Input(TensorType(ElementType::kFloat32, 1), {});
  const ValueId other = inside.Input({1}, {0});
  graph::Value captured{.name = "one"};
  captured.outer = one;
  const ValueId same = inside.graph().AddValue(std::move(captured));
  const ValueId sum =
      inside.Node("Add", {inside.Node("Add", {element, other}, {}, 14), same}, {}, 14);
  const ValueId shape = inside.Node("Shape", {element}, {}, 15);
  auto body = std::make_shared<Graph>(inside.graph());
  body->outputs = {sum, shape};
  made.graph().nodes.push_back({.op_type = "SequenceMap", .since_version = 17});
  graph::Node& node = made.graph().nodes.back();
  node.inputs = {rows, one};
  for (const char* name : {"sums", "shapes"}) {
    node.outputs.push_back(made.graph().AddValue({.name = name}));
  }
  node.attributes = {{"body", std::shared_ptr<const Graph>(body)}};
  const auto results = made.RunWhole(ValueIds(made.graph().nodes.back().outputs));
  ASSERT_TRUE(results.ok()) << results.status().Text();
  EXPECT_EQ(NumbersOf((*results)[0]), (std::vector<std::vector<double>>{{201, 202}, {203}, {}}));
  EXPECT_EQ(NumbersOf((*results)[1]), (std::vector<std::vector<double>>{{2}, {1}, {0}}));
}

// Every iteration takes one element; it must not bind, nor gather, all of them.
TEST(SequenceMapTest, HasALongSequenceAsOneValue) {
  for (const int64_t count : {3, 40}) {
    SequenceGraph made;
    std::vector<double> numbers(static_cast<size_t>(count));
    std::iota(numbers.begin(), numbers.end(), 1.0);
    const ValueId parts = made.Node("SplitToSequence", {made.Input({count}, numbers)}, {});
    SequenceGraph inside;
    const ValueId element = inside.Input(TensorType(ElementType::kFloat32, 1), {});
    const ValueId negative = inside.Node("Neg", {element}, {}, 13);
    auto body = std::make_shared<Graph>(inside.graph());
    body->outputs = {negative};
    const ValueId mapped =
        made.Node("SequenceMap", {parts}, {{"body", std::shared_ptr<const Graph>(body)}}, 17);
    const ValueId joined = made.Node("ConcatFromSequence", {mapped}, {{"axis", int64_t{0}}});
    const auto results = made.Run({joined});
    ASSERT_TRUE(results.ok()) << results.status().Text();
    for (double& number : numbers) number = -number;
    EXPECT_EQ(Numbers((*results)[0]), numbers);

    const auto program = LowerGraph(made.graph(), /*functions=*/nullptr);
    ASSERT_TRUE(program.ok()) << program.status().Text();
    for (const program::Step& step : (*program)->steps) {
      if (step.As<program::Control>() == nullptr) continue;
      EXPECT_LT(step.reads.size(), 10u) << count;
    }
  }
}

TEST(OptionalOfARunTest, TellsWhetherItHasItsElement) {
  const graph::Type optional =
      Of(graph::Type::Kind::kOptional, TensorType(ElementType::kFloat32, 1));
  for (const bool has_element : {false, true}) {
    SequenceGraph made;
    const ValueId given = made.Input(optional, has_element ? Row({5, 6}) : tensor::Value());
    const auto results = made.Run({made.Node("OptionalHasElement", {given}, {}, 18)});
    ASSERT_TRUE(results.ok()) << results.status().Text();
    EXPECT_EQ((*results)[0].AsInt(0), has_element ? 1 : 0);

    const ValueId element = made.Node("OptionalGetElement", {given}, {}, 18);
    const auto taken = made.Run({made.Node("Neg", {element}, {}, 13)});
    ASSERT_EQ(taken.ok(), has_element) << taken.status().Text();
    if (has_element) {
      EXPECT_THAT(Numbers((*taken)[0]), ElementsAre(-5, -6));
    } else {
      EXPECT_EQ(taken.status().code(), Code::kMismatchingDatatype);
      EXPECT_THAT(taken.status().Text(), HasSubstr("is an optional without element"));
    }
  }
}

// Maps, which no operator looks into: they cross the boundary alone, and inside sequences whose
// operators do not mind what they hold.
tensor::Value MapOf(Tensor keys, const std::vector<std::vector<double>>& rows) {
  std::vector<tensor::ValueRef> values;
  for (const std::vector<double>& row : rows) {
    values.push_back(std::make_shared<const tensor::Value>(Row(row)));
  }
  return tensor::Value::Map(std::move(keys), std::move(values));
}

graph::Type MapType(ElementType key) {
  graph::Type type = Of(graph::Type::Kind::kMap, TensorType(ElementType::kFloat32, 1));
  type.element = key;
  return type;
}

TEST(MapOfARunTest, ComesBackAsItWentIn) {
  SequenceGraph made;
  const tensor::Value numbered = MapOf(MakeTensor(ElementType::kInt64, {2}, {7, -7}), {{1, 2}, {}});
  const tensor::Value named = MapOf(Tensor::FromStrings({1}, {std::string("a\0", 2)}), {{3}});
  const ValueId first = made.Input(MapType(ElementType::kInt64), numbered);
  const ValueId second = made.Input(MapType(ElementType::kString), named);
  const auto results = made.RunWhole({second, first});
  ASSERT_TRUE(results.ok()) << results.status().Text();
  ASSERT_EQ((*results)[0].kind, tensor::Value::Kind::kMap);
  EXPECT_EQ((*results)[0].tensor.strings(), (std::vector<std::string>{std::string("a\0", 2)}));
  EXPECT_EQ(NumbersOf((*results)[0]), (std::vector<std::vector<double>>{{3}}));
  ASSERT_EQ((*results)[1].kind, tensor::Value::Kind::kMap);
  EXPECT_THAT(Numbers((*results)[1].tensor), ElementsAre(7, -7));
  EXPECT_EQ(NumbersOf((*results)[1]), (std::vector<std::vector<double>>{{1, 2}, {}}));
}

TEST(MapOfARunTest, IsAnElementOfASequence) {
  std::vector<tensor::ValueRef> maps;
  for (const double number : {10.0, 20.0, 30.0}) {
    maps.push_back(std::make_shared<const tensor::Value>(
        MapOf(MakeTensor(ElementType::kInt64, {1}, {number}), {{number + 1, number + 2}})));
  }
  SequenceGraph made;
  const ValueId sequence =
      made.Input(Of(graph::Type::Kind::kSequence, MapType(ElementType::kInt64)),
                 tensor::Value::Sequence(maps));
  const ValueId last = made.Node("SequenceAt", {sequence, made.Integer(-1)});
  const ValueId shorter = made.Node("SequenceErase", {sequence, made.Integer(1)});
  const ValueId turned = made.Node("SequenceInsert", {shorter, last, made.Integer(0)});
  const auto results = made.RunWhole({last, turned, made.Node("SequenceLength", {turned})});
  ASSERT_TRUE(results.ok()) << results.status().Text();
  ASSERT_EQ((*results)[0].kind, tensor::Value::Kind::kMap);
  EXPECT_THAT(Numbers((*results)[0].tensor), ElementsAre(30));
  EXPECT_EQ(NumbersOf((*results)[0]), (std::vector<std::vector<double>>{{31, 32}}));
  std::vector<double> keys;
  for (const tensor::ValueRef& map : (*results)[1].elements()) {
    ASSERT_EQ(map->kind, tensor::Value::Kind::kMap);
    keys.push_back(Numbers(map->tensor)[0]);
  }
  EXPECT_THAT(keys, ElementsAre(30, 10, 30));
  EXPECT_EQ((*results)[2].tensor.AsInt(0), 3);
}

TEST(MapOfARunTest, IsRefusedWithKeysOrValuesOfAnotherType) {
  const Tensor keys = MakeTensor(ElementType::kInt64, {1}, {1});
  const tensor::Value whole(MakeTensor(ElementType::kInt64, {1}, {1}));
  const tensor::Value wrong[] = {
      MapOf(Tensor::FromStrings({1}, {"1"}), {{1}}),
      tensor::Value::Map(keys, {std::make_shared<const tensor::Value>(whole)}), Row({1})};
  for (const tensor::Value& value : wrong) {
    SequenceGraph made;
    const ValueId given = made.Input(MapType(ElementType::kInt64), value);
    const auto results = made.RunWhole({given});
    ASSERT_FALSE(results.ok());
    EXPECT_EQ(results.status().code(), Code::kMismatchingDatatype) << results.status().Text();
  }
}

// One branch gives a tensor, the other an optional without it.
TEST(OptionalOfARunTest, LeavesABranchAsAnOptional) {
  for (const auto& [version, takes_first] :
       {std::pair(15, false), std::pair(15, true), std::pair(28, false), std::pair(28, true)}) {
    SequenceGraph made;
    const ValueId condition = made.Input({}, {takes_first ? 1.0 : 0.0}, ElementType::kBool);
    const auto branch = [&, version = version](bool is_empty) {
      SequenceGraph inside;
      const ValueId out =
          is_empty
              ? inside.Node("Optional", {}, {{"type", TensorType(ElementType::kInt64, 0)}}, version)
              : inside.Node("Identity", {inside.Integer(12)}, {}, 16);
      auto body = std::make_shared<Graph>(inside.graph());
      body->outputs = {out};
      return std::shared_ptr<const Graph>(std::move(body));
    };
    const ValueId chosen = made.Node(
        "If", {condition}, {{"then_branch", branch(false)}, {"else_branch", branch(true)}}, 16);
    const auto results = made.RunWhole({chosen, made.Node("OptionalHasElement", {chosen}, {}, 18)});
    ASSERT_TRUE(results.ok()) << results.status().Text();
    EXPECT_EQ((*results)[1].tensor.AsInt(0), takes_first ? 1 : 0);
    EXPECT_EQ((*results)[0].is_tensor(), takes_first);
    if (takes_first) {
      EXPECT_EQ((*results)[0].tensor.AsInt(0), 12);
    }
  }
}

}  // namespace
}  // namespace onnxifi::ops
