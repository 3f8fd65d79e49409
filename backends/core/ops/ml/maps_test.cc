// SPDX-License-Identifier: Apache-2.0
//
// ZipMap, CastMap, DictVectorizer: maps made, read and passed on.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "backends/core/ops/testing/run_operator.h"

namespace onnxifi::ops {
namespace {

using base::Code;
using tensor::ElementType;
using tensor::Extents;
using tensor::Tensor;
using tensor::Value;
using ::testing::ElementsAre;
using Attributes = std::map<std::string, graph::Attribute, std::less<>>;
using Integers = std::vector<int64_t>;
using Strings = std::vector<std::string>;

graph::Type TensorType(ElementType element, std::vector<int64_t> extents) {
  graph::Type type{.kind = graph::Type::Kind::kTensor, .element = element};
  type.extents.emplace();
  for (const int64_t extent : extents) type.extents->push_back({extent, ""});
  return type;
}

graph::Type MapType(ElementType key, ElementType value) {
  graph::Type type{.kind = graph::Type::Kind::kMap, .element = key};
  type.inner = std::make_shared<graph::Type>(TensorType(value, {}));
  return type;
}

Tensor Keys(const Integers& keys) {
  return Tensor::FromValues<int64_t>(ElementType::kInt64, {static_cast<int64_t>(keys.size())},
                                     keys);
}

Tensor Keys(const Strings& keys) {
  return Tensor::FromStrings({static_cast<int64_t>(keys.size())}, keys);
}

Value NumberMap(Tensor keys, const std::vector<double>& numbers, ElementType type) {
  std::vector<tensor::ValueRef> values;
  for (const double number : numbers) {
    values.push_back(std::make_shared<const Value>(MakeTensor(type, {}, {number})));
  }
  return Value::Map(std::move(keys), std::move(values));
}

Value TextMap(Tensor keys, const Strings& texts) {
  std::vector<tensor::ValueRef> values;
  for (const std::string& text : texts) {
    values.push_back(std::make_shared<const Value>(Tensor::FromStrings({}, {text})));
  }
  return Value::Map(std::move(keys), std::move(values));
}

base::Result<Value> RunModel(const std::string& op_type, const Attributes& attributes,
                             const graph::Type& type, Value input) {
  graph::Graph graph;
  graph::Node node{.op_type = op_type, .domain = "ai.onnx.ml", .since_version = 1};
  node.attributes = attributes;
  graph.inputs = {graph.AddValue({.name = "x", .type = type})};
  node.inputs = graph.inputs;
  graph.outputs = {graph.AddValue({.name = "y"})};
  node.outputs = graph.outputs;
  graph.nodes.push_back(std::move(node));
  std::vector<Value> inputs;
  inputs.push_back(std::move(input));
  ONNXIFI_ASSIGN_OR_RETURN(std::vector<Value> outputs, RunGraphOnValues(graph, inputs));
  return std::move(outputs[0]);
}

std::vector<double> NumbersOf(const Value& map) {
  std::vector<double> numbers;
  for (const tensor::ValueRef& value : map.elements()) {
    EXPECT_EQ(value->tensor.type(), ElementType::kFloat32);
    EXPECT_EQ(value->tensor.extents(), Extents());
    numbers.push_back(value->tensor.AsDouble(0));
  }
  return numbers;
}

TEST(ZipMapTest, MakesAMapPerRow) {
  for (const int64_t rows : {int64_t{2}, int64_t{-1}}) {
    const auto result =
        RunModel("ZipMap", {{"classlabels_int64s", Integers{5, -3, 7}}},
                 TensorType(ElementType::kFloat32, {rows, 3}),
                 Value(MakeTensor(ElementType::kFloat32, {2, 3}, {1, 2, 3, 4, 5, 6})));
    ASSERT_TRUE(result.ok()) << result.status().Text();
    ASSERT_EQ(result->kind, Value::Kind::kSequence);
    ASSERT_EQ(result->elements().size(), 2u);
    for (const tensor::ValueRef& map : result->elements()) {
      ASSERT_EQ(map->kind, Value::Kind::kMap);
      EXPECT_THAT(Numbers(map->tensor), ElementsAre(5, -3, 7));
    }
    EXPECT_THAT(NumbersOf(*result->elements()[0]), ElementsAre(1, 2, 3));
    EXPECT_THAT(NumbersOf(*result->elements()[1]), ElementsAre(4, 5, 6));
  }
}

TEST(ZipMapTest, TakesOneAxisAsARowAndTheLastOfEqualLabels) {
  const auto result = RunModel("ZipMap", {{"classlabels_strings", Strings{"a", "b", "a"}}},
                               TensorType(ElementType::kFloat32, {3}),
                               Value(MakeTensor(ElementType::kFloat32, {3}, {1, 2, 3})));
  ASSERT_TRUE(result.ok()) << result.status().Text();
  ASSERT_EQ(result->elements().size(), 1u);
  EXPECT_EQ(result->elements()[0]->tensor.strings(), (Strings{"b", "a"}));
  EXPECT_THAT(NumbersOf(*result->elements()[0]), ElementsAre(2, 3));
}

TEST(ZipMapTest, MakesAnEmptySequenceOfNoRows) {
  const auto result = RunModel("ZipMap", {{"classlabels_strings", Strings{"a", "b"}}},
                               TensorType(ElementType::kFloat32, {-1, 2}),
                               Value(MakeTensor(ElementType::kFloat32, {0, 2}, {})));
  ASSERT_TRUE(result.ok()) << result.status().Text();
  EXPECT_EQ(result->kind, Value::Kind::kSequence);
  EXPECT_TRUE(result->elements().empty());
}

TEST(ZipMapTest, RefusesWhatDoesNotFit) {
  const auto expect = [](const Attributes& attributes, int64_t declared, Code code) {
    const auto result =
        RunModel("ZipMap", attributes, TensorType(ElementType::kFloat32, {1, declared}),
                 Value(MakeTensor(ElementType::kFloat32, {1, 2}, {1, 2})));
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.status().code(), code) << result.status().Text();
  };
  expect({{"classlabels_int64s", Integers{1, 2, 3}}}, 2, Code::kMismatchingShape);
  expect({{"classlabels_int64s", Integers{1, 2, 3}}}, -1, Code::kMismatchingShape);
  expect({}, 2, Code::kInvalidModel);
  expect({{"classlabels_int64s", Integers{1, 2}}, {"classlabels_strings", Strings{"a", "b"}}}, 2,
         Code::kInvalidModel);
}

TEST(DictVectorizerTest, OrdersValuesByItsVocabulary) {
  const ElementType number_types[] = {ElementType::kInt64, ElementType::kFloat32,
                                      ElementType::kFloat64};
  for (const ElementType type : number_types) {
    const auto named = RunModel("DictVectorizer", {{"string_vocabulary", Strings{"b", "x", "a"}}},
                                MapType(ElementType::kString, type),
                                NumberMap(Keys(Strings{"a", "b", "c"}), {1, 2, 3}, type));
    ASSERT_TRUE(named.ok()) << named.status().Text();
    EXPECT_EQ(named->tensor.type(), type);
    EXPECT_EQ(named->tensor.extents(), (Extents{1, 3}));
    EXPECT_THAT(Numbers(named->tensor), ElementsAre(2, 0, 1));
    if (type == ElementType::kInt64) continue;
    const auto numbered =
        RunModel("DictVectorizer", {{"int64_vocabulary", Integers{9, 8, 9}}},
                 MapType(ElementType::kInt64, type), NumberMap(Keys(Integers{9}), {0.5}, type));
    ASSERT_TRUE(numbered.ok()) << numbered.status().Text();
    EXPECT_THAT(Numbers(numbered->tensor), ElementsAre(0.5, 0, 0.5));
  }
  const auto texts = RunModel("DictVectorizer", {{"int64_vocabulary", Integers{2, 1, 0}}},
                              MapType(ElementType::kInt64, ElementType::kString),
                              TextMap(Keys(Integers{0, 2}), {"zero", "two"}));
  ASSERT_TRUE(texts.ok()) << texts.status().Text();
  EXPECT_EQ(texts->tensor.strings(), (Strings{"two", "", "zero"}));
}

TEST(DictVectorizerTest, RefusesOtherKeys) {
  const auto other = RunModel("DictVectorizer", {{"string_vocabulary", Strings{"a"}}},
                              MapType(ElementType::kInt64, ElementType::kFloat32),
                              NumberMap(Keys(Integers{1}), {1}, ElementType::kFloat32));
  ASSERT_FALSE(other.ok());
  EXPECT_EQ(other.status().code(), Code::kMismatchingDatatype);
  const auto none =
      RunModel("DictVectorizer", {}, MapType(ElementType::kInt64, ElementType::kFloat32),
               NumberMap(Keys(Integers{1}), {1}, ElementType::kFloat32));
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.status().code(), Code::kInvalidModel);
}

TEST(CastMapTest, ListsAllValuesByAscendingKey) {
  const Value numbers = NumberMap(Keys(Integers{5, -2, 0}), {2, 1.75, -1.5}, ElementType::kFloat32);
  const graph::Type type = MapType(ElementType::kInt64, ElementType::kFloat32);
  const auto floats = RunModel("CastMap", {}, type, numbers);
  ASSERT_TRUE(floats.ok()) << floats.status().Text();
  EXPECT_EQ(floats->tensor.type(), ElementType::kFloat32);
  EXPECT_EQ(floats->tensor.extents(), (Extents{1, 3}));
  EXPECT_THAT(Numbers(floats->tensor), ElementsAre(1.75, -1.5, 2));
  const auto integers = RunModel("CastMap", {{"cast_to", std::string("TO_INT64")}}, type, numbers);
  ASSERT_TRUE(integers.ok()) << integers.status().Text();
  EXPECT_EQ(integers->tensor.type(), ElementType::kInt64);
  EXPECT_THAT(Numbers(integers->tensor), ElementsAre(1, -1, 2));
  const auto texts = RunModel("CastMap", {{"cast_to", std::string("TO_STRING")}}, type, numbers);
  ASSERT_TRUE(texts.ok()) << texts.status().Text();
  EXPECT_EQ(texts->tensor.strings(), (Strings{"1.75", "-1.5", "2"}));
}

TEST(CastMapTest, PutsValuesAtTheirKeys) {
  const Attributes sparse = {{"map_form", std::string("SPARSE")}, {"max_map", int64_t{4}}};
  const graph::Type type = MapType(ElementType::kInt64, ElementType::kString);
  const Value map = TextMap(Keys(Integers{2, 7, 0}), {"8", "9", "-3"});
  for (const std::string to : {"TO_FLOAT", "TO_INT64"}) {
    Attributes attributes = sparse;
    attributes["cast_to"] = to;
    const auto numbers = RunModel("CastMap", attributes, type, map);
    ASSERT_TRUE(numbers.ok()) << numbers.status().Text();
    EXPECT_EQ(numbers->tensor.type(),
              to == "TO_FLOAT" ? ElementType::kFloat32 : ElementType::kInt64);
    EXPECT_EQ(numbers->tensor.extents(), (Extents{1, 4}));
    EXPECT_THAT(Numbers(numbers->tensor), ElementsAre(-3, 0, 8, 0));
  }
  const auto one = RunModel("CastMap", {{"map_form", std::string("SPARSE")}}, type, map);
  ASSERT_TRUE(one.ok()) << one.status().Text();
  EXPECT_THAT(Numbers(one->tensor), ElementsAre(-3)) << "max_map is 1 if nothing is said";
}

TEST(CastMapTest, TakesAnEmptyMap) {
  const auto dense = RunModel("CastMap", {}, MapType(ElementType::kInt64, ElementType::kFloat32),
                              NumberMap(Keys(Integers{}), {}, ElementType::kFloat32));
  ASSERT_TRUE(dense.ok()) << dense.status().Text();
  EXPECT_EQ(dense->tensor.extents(), (Extents{1, 0}));
}

TEST(CastMapTest, RefusesWhatItDoesNotKnow) {
  const auto expect = [](const Attributes& attributes, Code code) {
    const auto result =
        RunModel("CastMap", attributes, MapType(ElementType::kInt64, ElementType::kFloat32),
                 NumberMap(Keys(Integers{1}), {1}, ElementType::kFloat32));
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.status().code(), code) << result.status().Text();
  };
  expect({{"cast_to", std::string("TO_DOUBLE")}}, Code::kInvalidModel);
  expect({{"map_form", std::string("dense")}}, Code::kInvalidModel);
  expect({{"map_form", std::string("SPARSE")}, {"max_map", int64_t{-1}}}, Code::kInvalidModel);
  expect({{"map_form", std::string("SPARSE")}, {"max_map", int64_t{1} << 40}}, Code::kInvalidModel);
}

}  // namespace
}  // namespace onnxifi::ops
