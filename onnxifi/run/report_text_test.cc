// SPDX-License-Identifier: Apache-2.0
//
// Summaries and the text around them.

#include "onnxifi/run/report_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <limits>

namespace onnxifi::run {
namespace {

using onnx_file::DenseTensor;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

DenseTensor Floats(const std::vector<float>& values) {
  DenseTensor tensor;
  tensor.name = "y";
  tensor.type = onnx_file::ElementType::kFloat32;
  tensor.extents = {static_cast<int64_t>(values.size())};
  tensor.bytes.resize(values.size() * sizeof(float));
  std::memcpy(tensor.bytes.data(), values.data(), tensor.bytes.size());
  return tensor;
}

TEST(ReportTextTest, SummaryFindsTheLargestFiveInOrder) {
  const OutputSummary summary = Summarise(Floats({1, 9, 3, 7, 5, 8, 9}));
  EXPECT_THAT(summary.top, ElementsAre(1, 6, 5, 3, 4));
  EXPECT_EQ(summary.smallest, 1);
  EXPECT_EQ(summary.largest, 9);
  EXPECT_EQ(summary.mean, 6);
}

TEST(ReportTextTest, SummaryCountsWhatIsNotFinite) {
  const OutputSummary summary =
      Summarise(Floats({1, std::numeric_limits<float>::infinity(), std::nanf("")}));
  EXPECT_EQ(summary.not_finite_count, 2);
  EXPECT_THAT(summary.top, ElementsAre(0));
}

TEST(ReportTextTest, MedianOfEvenAndOddCounts) {
  EXPECT_EQ(MedianOf({5, 1, 3}), 3);
  EXPECT_EQ(MedianOf({4, 1, 3, 2}), 2.5);
}

TEST(ReportTextTest, TextTellsADifference) {
  RunReport report;
  report.device_key = "cpu:0";
  report.outputs = {Floats({1, 2})};
  report.run_ms = {2, 1, 3};
  report.worst_ratios = {12};
  report.differences = {"Element 0 is 1 instead of 3."};
  EXPECT_FALSE(report.is_as_expected());
  const std::string text = MakeText(report);
  EXPECT_THAT(text, HasSubstr("median 2.000 ms, best 1.000 ms"));
  EXPECT_THAT(text, HasSubstr("NOT as expected"));
  EXPECT_THAT(MakeJson(report), HasSubstr("\"as_expected\": false"));
}

TEST(ReportTextTest, NodeTableShowsReasons) {
  Explanation explanation;
  explanation.status = ONNXIFI_STATUS_UNSUPPORTED_OPERATOR;
  explanation.sentence = "Operator 'Foo' is unknown.";
  NodeVerdict node;
  node.operator_type = "Foo";
  node.status = ONNXIFI_STATUS_UNSUPPORTED_OPERATOR;
  node.sentence = "Operator 'Foo' is unknown.";
  explanation.nodes = {node};
  EXPECT_THAT(MakeNodeTable(explanation), HasSubstr("UNSUPPORTED_OPERATOR      Operator 'Foo'"));
}

}  // namespace
}  // namespace onnxifi::run
