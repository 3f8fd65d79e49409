// SPDX-License-Identifier: Apache-2.0
//
// Results survive the way from worker to parent.

#include "conformance/report/case_result.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace onnxifi::report {
namespace {

TEST(CaseResultTest, SurvivesTheLine) {
  CaseResult result;
  result.name = "test_add";
  result.group = "node";
  result.is_expanded = true;
  result.verdict = Verdict::kNotSupported;
  result.status = "UNSUPPORTED_SHAPE";
  result.sentence = "A \"quoted\" sentence\nwith a second line.";
  result.worst_ratio = 0.25;
  result.operators = {"Add", "Relu"};
  result.element_types = {"float", "int64"};
  result.step_families = {{"Map", "Host"}};
  result.cells = {{client::Function::kRunGraph, ONNXIFI_STATUS_INVALID_EVENT}};
  const std::string line = ToJsonLine(result);
  EXPECT_EQ(line.find('\n'), std::string::npos);
  const base::Result<CaseResult> read = FromJsonLine(line);
  ASSERT_TRUE(read.ok()) << read.status().Text();
  EXPECT_EQ(read->name, result.name);
  EXPECT_EQ(read->group, result.group);
  EXPECT_TRUE(read->is_expanded);
  EXPECT_EQ(read->verdict, result.verdict);
  EXPECT_EQ(read->status, result.status);
  EXPECT_EQ(read->sentence, result.sentence);
  EXPECT_EQ(read->worst_ratio, result.worst_ratio);
  EXPECT_EQ(read->operators, result.operators);
  EXPECT_EQ(read->element_types, result.element_types);
  EXPECT_EQ(read->step_families, result.step_families);
  EXPECT_EQ(read->cells, result.cells);
}

TEST(CaseResultTest, NoFamiliesAreNotTheSameAsUnknownOnes) {
  CaseResult result;
  EXPECT_FALSE(FromJsonLine(ToJsonLine(result))->step_families.has_value());
  result.step_families.emplace();
  const base::Result<CaseResult> read = FromJsonLine(ToJsonLine(result));
  ASSERT_TRUE(read->step_families.has_value());
  EXPECT_TRUE(read->step_families->empty());
}

TEST(CaseResultTest, AnInfiniteRatioStaysInfinite) {
  CaseResult result;
  result.worst_ratio = std::numeric_limits<double>::infinity();
  const base::Result<CaseResult> read = FromJsonLine(ToJsonLine(result));
  ASSERT_TRUE(read.ok());
  EXPECT_TRUE(std::isinf(read->worst_ratio));
}

TEST(CaseResultTest, BytesThatAreNoTextAreReplaced) {
  CaseResult result;
  result.sentence = "bad \xFF byte";
  const base::Result<CaseResult> read = FromJsonLine(ToJsonLine(result));
  ASSERT_TRUE(read.ok());
  EXPECT_NE(read->sentence.find("bad "), std::string::npos);
}

TEST(CaseResultTest, OtherTextIsRefused) {
  EXPECT_FALSE(FromJsonLine("hello").ok());
  EXPECT_FALSE(FromJsonLine("{}").ok());
  EXPECT_FALSE(FromJsonLine("{\"verdict\": \"splendid\"}").ok());
}

}  // namespace
}  // namespace onnxifi::report
