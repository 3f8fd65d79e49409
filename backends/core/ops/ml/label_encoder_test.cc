// SPDX-License-Identifier: Apache-2.0
//
// LabelEncoder: tables of any size and type against a search from the end of the list.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "backends/core/ops/testing/run_operator.h"

namespace onnxifi::ops {
namespace {

using tensor::ElementType;
using tensor::Extents;
using tensor::Tensor;
using ::testing::ElementsAre;
using Attributes = std::map<std::string, graph::Attribute, std::less<>>;
using Integers = std::vector<int64_t>;
using Strings = std::vector<std::string>;

base::Result<std::vector<Tensor>> RunEncoder(const Attributes& attributes, NodeInput x) {
  return RunOperator({"LabelEncoder", 4, attributes, {std::move(x)}, {true}, "ai.onnx.ml"});
}

Tensor List(ElementType type, const std::vector<double>& numbers) {
  return MakeTensor(type, {static_cast<int64_t>(numbers.size())}, numbers);
}

constexpr ElementType kTypes[] = {ElementType::kFloat32, ElementType::kFloat64, ElementType::kInt64,
                                  ElementType::kInt32, ElementType::kInt16};

TEST(LabelEncoderTableTest, FindsNumbersOfEachType) {
  std::mt19937 random(59);
  for (const ElementType type : kTypes) {
    for (const ElementType to : kTypes) {
      for (const size_t count : {0, 1, 2, 3, 4, 7, 8, 9, 100}) {
        std::vector<double> keys, values, x;
        for (size_t k = 0; k < count; ++k) {
          keys.push_back(static_cast<double>(random() % 150) - 75);
          values.push_back(static_cast<double>(random() % 1000));
        }
        for (int k = -80; k < 80; ++k) x.push_back(k);
        const auto rows = static_cast<int64_t>(x.size()) / 2;
        const auto result =
            RunEncoder({{"keys_tensor", List(type, keys)},
                        {"values_tensor", List(to, values)},
                        {"default_tensor", List(to, {-7})}},
                       count % 2 == 0 ? Symbolic({rows, 2}, x, type) : Given({rows, 2}, x, type));
        ASSERT_TRUE(result.ok()) << result.status().Text();
        EXPECT_EQ((*result)[0].type(), to);
        ASSERT_EQ((*result)[0].extents(), (Extents{rows, 2}));
        for (size_t at = 0; at < x.size(); ++at) {
          double expected = -7;
          // Of equal keys the last one counts.
          for (size_t k = 0; k < count; ++k) {
            if (keys[k] == x[at]) expected = values[k];
          }
          EXPECT_EQ((*result)[0].AsDouble(static_cast<int64_t>(at)), expected)
              << x[at] << " among " << count;
        }
      }
    }
  }
}

TEST(LabelEncoderTableTest, TellsEdgesApart) {
  const double inf = std::numeric_limits<double>::infinity(), nan = std::nan("");
  for (const ElementType type : {ElementType::kFloat32, ElementType::kFloat64}) {
    const auto result = RunEncoder({{"keys_tensor", List(type, {inf, 0, nan, -inf, 5, nan})},
                                    {"values_int64s", Integers{1, 2, 3, 4, 5, 6}}},
                                   Given({7}, {nan, inf, -inf, -0.0, 5, 4, 1e30}, type));
    ASSERT_TRUE(result.ok()) << result.status().Text();
    EXPECT_THAT(Numbers((*result)[0]), ElementsAre(6, 1, 4, 2, 5, -1, -1));
  }
  const int64_t large = int64_t{1} << 53;
  const Integers keys = {large, large + 1, INT64_MIN, INT64_MAX};
  const Tensor x = Tensor::FromValues<int64_t>(ElementType::kInt64, {4}, keys);
  const auto result = RunEncoder({{"keys_int64s", keys}, {"values_int64s", Integers{1, 2, 3, 4}}},
                                 {x, NodeInput::Kind::kGiven});
  ASSERT_TRUE(result.ok()) << result.status().Text();
  EXPECT_THAT(Numbers((*result)[0]), ElementsAre(1, 2, 3, 4));
}

TEST(LabelEncoderTableTest, FindsStrings) {
  Strings keys, values, x, expected;
  for (int k = 0; k < 37; ++k) {
    keys.push_back(std::string(static_cast<size_t>((k * 11) % 37), 'a') + "!");
    values.push_back("value " + std::to_string(k));
  }
  keys.emplace_back();
  values.emplace_back("nothing");
  for (size_t k = keys.size(); k-- > 0;) {
    x.push_back(keys[k]);
    expected.push_back(values[k]);
    x.push_back(keys[k] + "?");
    expected.emplace_back("none");
  }
  for (const NodeInput::Kind kind : {NodeInput::Kind::kGiven, NodeInput::Kind::kSymbolic}) {
    const auto result =
        RunEncoder({{"keys_strings", keys},
                    {"values_strings", values},
                    {"default_string", std::string("none")}},
                   {Tensor::FromStrings({static_cast<int64_t>(x.size())}, x), kind});
    ASSERT_TRUE(result.ok()) << result.status().Text();
    EXPECT_EQ((*result)[0].strings(), expected);
  }
}

TEST(LabelEncoderTableTest, TakesNoElements) {
  const auto result = RunEncoder({{"keys_int64s", Integers{1}}, {"values_strings", Strings{"one"}}},
                                 Symbolic({0, 3}, {}, ElementType::kInt64));
  ASSERT_TRUE(result.ok()) << result.status().Text();
  EXPECT_EQ((*result)[0].type(), ElementType::kString);
  EXPECT_EQ((*result)[0].extents(), (Extents{0, 3}));
}

}  // namespace
}  // namespace onnxifi::ops
