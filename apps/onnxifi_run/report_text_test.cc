// SPDX-License-Identifier: Apache-2.0
//
// Summaries and the text around them.

#include "apps/onnxifi_run/report_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>

namespace onnxifi::run {
namespace {

using onnx_file::DenseTensor;
using onnx_file::FileValue;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

DenseTensor Floats(const std::vector<float>& values) {
  DenseTensor tensor;
  tensor.name = "y";
  tensor.type = onnx_file::ElementType::kFloat32;
  tensor.extents = {static_cast<int64_t>(values.size())};
  tensor.bytes.resize(values.size() * sizeof(float));
  std::memcpy(tensor.bytes.data(), values.data(), tensor.bytes.size());
  return tensor;
}

FileValue TensorOf(const std::vector<float>& values) {
  FileValue value{.name = "y", .kind = FileValue::Kind::kTensor};
  value.tensor = Floats(values);
  return value;
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

// Labels and, per row, a map of classes: what scikit-learn's classifiers give.
TEST(ReportTextTest, PrintsTextsSequencesAndMaps) {
  FileValue labels{.name = "label", .kind = FileValue::Kind::kTensor};
  labels.tensor.type = onnx_file::ElementType::kString;
  labels.tensor.strings = {"a", "b", "a", "a", "a", "b", "b"};
  labels.tensor.extents = {7};
  FileValue rows{.name = "rows", .kind = FileValue::Kind::kSequence};
  for (int row = 0; row < 2; ++row) {
    FileValue& map = rows.elements.emplace_back();
    map.kind = FileValue::Kind::kMap;
    map.tensor.type = onnx_file::ElementType::kString;
    map.tensor.strings = {"a", "b"};
    map.tensor.extents = {2};
    map.elements = {TensorOf({0.25F}), TensorOf({1, 3})};
  }
  RunReport report;
  report.run_ms = {2};
  report.outputs = {labels, rows, FileValue{.name = "none"}};
  EXPECT_THAT(MakeText(report),
              HasSubstr("Output 'label' string [7]\n"
                        "  [\"a\", \"b\", \"a\", \"a\", \"a\", and 2 more]\n"
                        "Output 'rows' sequence of 2\n"
                        "  [{\"a\": 0.25, \"b\": [1, 3]}, {\"a\": 0.25, \"b\": [1, 3]}]\n"
                        "Output 'none' optional\n"
                        "  nothing\n"));
  const auto object = nlohmann::json::parse(MakeJson(report));
  const nlohmann::json& outputs = object["outputs"];
  EXPECT_EQ(outputs[0]["name"], "label");
  EXPECT_EQ(outputs[0]["first"].size(), 5u);
  EXPECT_EQ(outputs[1]["kind"], "sequence");
  EXPECT_EQ(outputs[1]["count"], 2);
  EXPECT_EQ(outputs[1]["first"][1]["first_keys"][1], "b");
  EXPECT_EQ(outputs[1]["first"][1]["first"][1]["first"][1], 3);
  EXPECT_EQ(outputs[2]["kind"], "nothing");
}

TEST(ReportTextTest, ComparesRunsOfTheSameTurn) {
  RunReport report;
  report.device_key = "auto";
  report.outputs = {TensorOf({1, 2})};
  // Ratios 0.5, 2 and 1.25: the slow second turn was slow for both.
  report.run_ms = {2, 40, 2.5};
  report.first_result.read_ms = 1;
  report.beside = {{"cpu:0", {.discover_ms = 3, .bind_ms = 4}, {4, 20, 2}}};
  EXPECT_THAT(MakeText(report), HasSubstr("Beside it on cpu:0: first result after 7.000 ms; median "
                                          "4.000 ms, best 2.000 ms; auto takes 1.250 times"));
  EXPECT_THAT(MakeJson(report), HasSubstr("\"ratio\": 1.25"));
}

TEST(ReportTextTest, TellsEveryPartOfTheTimeToTheFirstResult) {
  RunReport report;
  report.device_key = "cpu:0";
  report.run_ms = {2};
  report.first_result = {.probe_ms = 128,
                         .discover_ms = 1,
                         .read_ms = 2,
                         .init_backend_ms = 4,
                         .init_graph_ms = 8,
                         .infer_shapes_ms = 16,
                         .bind_ms = 32,
                         .first_run_ms = 64};
  EXPECT_EQ(report.first_result.total_ms(), 255);
  EXPECT_THAT(MakeText(report), HasSubstr("First result after 255.000 ms\n"
                                          "     128.000 ms  plugins tried in a child process "
                                          "(see --probe-limit)\n"
                                          "       1.000 ms  library opened, device found\n"
                                          "       2.000 ms  model and inputs read\n"
                                          "       4.000 ms  device initialised\n"
                                          "       8.000 ms  graph initialised\n"
                                          "      16.000 ms  shapes of the outputs inferred\n"
                                          "      32.000 ms  inputs and outputs bound\n"
                                          "      64.000 ms  first run\n"
                                          "1 run: median 2.000 ms, best 2.000 ms\n"));
  const auto object = nlohmann::json::parse(MakeJson(report));
  const nlohmann::json& times = object["first_result"];
  EXPECT_EQ(times.size(), 9u);
  EXPECT_EQ(times["total_ms"], 255);
  EXPECT_EQ(times["bind_ms"], 32);
  EXPECT_EQ(times["first_run_ms"], 64);
}

TEST(ReportTextTest, TextTellsADifference) {
  RunReport report;
  report.device_key = "cpu:0";
  report.outputs = {TensorOf({1, 2})};
  report.run_ms = {2, 1, 3};
  report.worst_ratios = {12};
  report.differences = {"Element 0 is 1 instead of 3."};
  EXPECT_FALSE(report.is_as_expected());
  const std::string text = MakeText(report);
  EXPECT_THAT(text, HasSubstr("median 2.000 ms, best 1.000 ms"));
  EXPECT_THAT(text, HasSubstr("NOT as expected"));
  EXPECT_THAT(MakeJson(report), HasSubstr("\"as_expected\": false"));
}

TEST(ReportTextTest, AnExplanationSaysWhereNodesAreAndWhy) {
  client::ModelAnswers answers;
  for (const char* const key : {"all:0", "some:0"}) {
    DeviceAnswer& device = answers.devices.emplace_back();
    device.device_key = key;
    for (const uint32_t node : {0U, 1U}) {
      NodeAnswer& answer = device.nodes.emplace_back();
      answer.verdict.node_index = node;
      answer.verdict.operator_type = node == 0 ? "Abs" : "Foo";
    }
  }
  DeviceAnswer& some = answers.devices[1];
  some.status = ONNXIFI_STATUS_UNSUPPORTED_OPERATOR;
  some.sentence = some.nodes[1].verdict.sentence = "Operator 'Foo' is unknown.";
  some.nodes[1].verdict.status = ONNXIFI_STATUS_UNSUPPORTED_OPERATOR;
  some.nodes[1].reason = 1;
  const std::string before = MakeExplanationText(answers, nullptr);
  EXPECT_THAT(before, HasSubstr("   yes    no [1]"));
  EXPECT_THAT(before, Not(HasSubstr("auto")));
  RunReport report;
  report.device_key = "auto";
  report.plan = GraphPlan();
  report.plan->islands = {{"some:0", {0}, {}}, {"all:0", {1}, {0}}};
  const std::string cut = MakeExplanationText(answers, &report);
  EXPECT_THAT(cut, HasSubstr("   here   no [1]"));
  EXPECT_THAT(cut, HasSubstr("all:0: runs 2 of 2 nodes, has 1 (1); runs the model.\n"
                             "some:0: runs 1 of 2 nodes, has 1 (0); not the model "
                             "(UNSUPPORTED_OPERATOR, [1]).\n"));
  EXPECT_THAT(cut, HasSubstr("auto cut the model into 2 islands. Where another device runs"));
  report.pinned = {{0, "some:0"}};
  const std::string pinned = MakeExplanationText(answers, &report);
  EXPECT_THAT(pinned, HasSubstr("placed on some:0 by the caller"));
  EXPECT_THAT(pinned, HasSubstr("Every other node is where it would be if none were placed."));
  EXPECT_THAT(pinned, Not(HasSubstr("expected to take longer")));
  report.pinned.clear();
  report.plan->islands = {{"all:0", {}, {}}};
  const std::string whole = MakeExplanationText(answers, &report);
  EXPECT_THAT(whole, HasSubstr("all:0: runs 2 of 2 nodes, has 2 (0 to 1); runs"));
  EXPECT_THAT(whole, HasSubstr("auto gave the model to all:0: the first of its order"));
  report.plan->islands[0].estimated_duration_ns = 1'500'000;
  EXPECT_THAT(MakeExplanationText(answers, &report),
              HasSubstr("auto gave the model to all:0: it is expected to take 1.500 ms"));
  report.pinned = {{0, "all:0"}};
  EXPECT_THAT(MakeExplanationText(answers, &report), HasSubstr("its nodes are placed there"));
  report.pinned.clear();
  report.has_placement = true;
  EXPECT_THAT(MakeExplanationText(answers, &report), HasSubstr("as the caller's placement says"));
  report.has_placement = false;
  report.plan->islands[0].estimated_duration_ns = 0;
  answers.devices[0].status = ONNXIFI_STATUS_FALLBACK;
  EXPECT_THAT(MakeExplanationText(answers, &report), HasSubstr("it emulates some of the nodes"));
  report.device_key = "all:0";
  EXPECT_THAT(MakeExplanationText(answers, &report), Not(HasSubstr("auto")));
}

}  // namespace
}  // namespace onnxifi::run
