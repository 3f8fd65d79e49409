// SPDX-License-Identifier: Apache-2.0
//
// Cast between every two types against float64 in plain code, and the spellings of its attributes
// in old opsets.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backends/core/ops/testing/run_operator.h"

namespace onnxifi::ops {
namespace {

using tensor::ElementType;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(CastTest, SmallIntegersSurviveEveryPairOfTypes) {
  int pairs = 0;
  for (int from = 1; from < tensor::kElementTypeCount; ++from) {
    for (int to = 1; to < tensor::kElementTypeCount; ++to) {
      const auto a = *tensor::ElementTypeFromOnnx(from), b = *tensor::ElementTypeFromOnnx(to);
      const auto is_refused = [](ElementType type) {
        return type == ElementType::kString || tensor::IsComplex(type);
      };
      if (is_refused(a) || is_refused(b)) continue;
      // 1 is a number of every type.
      auto out = RunOperator({"Cast", 28, {{"to", int64_t{to}}}, {Given({3}, {1, 1, 1}, a)}});
      ASSERT_TRUE(out.ok()) << Name(a) << " to " << Name(b) << ": " << out.status().Text();
      EXPECT_EQ((*out)[0].type(), b);
      EXPECT_THAT(Numbers((*out)[0]), ElementsAre(1, 1, 1)) << Name(a) << " to " << Name(b);
      ++pairs;
    }
  }
  EXPECT_EQ(pairs, 25 * 25);
}

TEST(CastTest, VersionOneNamesTheType) {
  const std::pair<std::string, ElementType> spellings[] = {
      {"FLOAT", ElementType::kFloat32}, {"DOUBLE", ElementType::kFloat64},
      {"INT64", ElementType::kInt64},   {"FLOAT16", ElementType::kFloat16},
      {"BOOL", ElementType::kBool},     {"UINT8", ElementType::kUint8}};
  for (const auto& [name, type] : spellings) {
    auto out = RunOperator({"Cast", 1, {{"to", name}}, {Given({1}, {1}, ElementType::kInt32)}});
    ASSERT_TRUE(out.ok()) << name << ": " << out.status().Text();
    EXPECT_EQ((*out)[0].type(), type);
  }
}

TEST(CastTest, ScaleTypeRoundsAsAsked) {
  // 6 lies in the middle between the powers of two 4 and 8.
  const std::pair<std::string, double> modes[] = {{"up", 8}, {"down", 4}, {"nearest", 8}};
  for (const auto& [mode, expected] : modes) {
    auto out =
        RunOperator({"Cast", 24, {{"to", int64_t{24}}, {"round_mode", mode}}, {Given({1}, {6})}});
    ASSERT_TRUE(out.ok()) << out.status().Text();
    EXPECT_THAT(Numbers((*out)[0]), ElementsAre(expected)) << mode;
  }
}

TEST(CastTest, RefusesUnknownNumbers) {
  auto unknown = RunOperator({"Cast", 13, {{"to", int64_t{99}}}, {Given({1}, {6})}});
  ASSERT_FALSE(unknown.ok());
  EXPECT_EQ(unknown.status().code(), base::Code::kInvalidModel);
  EXPECT_THAT(std::string(unknown.status().sentence()), HasSubstr("(99)"));
}

TEST(BitCastTest, RefusesWidthsThatDiffer) {
  auto out = RunOperator({"BitCast", 26, {{"to", int64_t{7}}}, {Given({1}, {6})}});
  ASSERT_FALSE(out.ok());
  EXPECT_THAT(std::string(out.status().sentence()),
              HasSubstr("float (32 bits) differs from that of int64 (64"));
}

}  // namespace
}  // namespace onnxifi::ops
