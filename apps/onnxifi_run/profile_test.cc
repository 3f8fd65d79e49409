// SPDX-License-Identifier: Apache-2.0
//
// Profiles: medians over runs, what limits predict, and the three forms.

#include "apps/onnxifi_run/profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

namespace onnxifi::run {
namespace {

using testing::HasSubstr;
using testing::Not;

// A convolution bound by computing and a map bound by memory.
std::vector<StepRecord> MakeRun(uint64_t first_ns, uint64_t second_ns) {
  StepRecord convolution;
  convolution.node_index = 4;
  convolution.family = "Contract";
  convolution.implementation = "fast convolution";
  convolution.detail = "kernel:7";
  convolution.data_type = ONNXIFI_DATATYPE_FLOAT32;
  convolution.extents = {1, 64, 8, 9};
  convolution.start_ns = 1000;
  convolution.duration_ns = first_ns;
  convolution.flops = 3'000'000;
  convolution.read_bytes = 20'000;
  convolution.written_bytes = 10'000;
  StepRecord map;
  map.family = "Map";
  map.implementation = "loops";
  map.start_ns = 1000 + first_ns;
  map.duration_ns = second_ns;
  map.flops = 1000;
  map.read_bytes = 4'000'000;
  map.written_bytes = 2'000'000;
  map.rejected = {"It is too wide.\n  for wide loops"};
  return {convolution, map};
}

std::vector<NodeVerdict> MakeNodes() {
  NodeVerdict node;
  node.node_index = 4;
  node.operator_type = "Conv";
  node.node_name = "conv1";
  return {node};
}

Profile MakeTwoSteps(bool has_limits) {
  std::optional<machine::ThreadLimits> limits;
  // 100 GFLOP/s; 60 GB/s where 200 kB are moved, 20 beyond.
  if (has_limits) limits = machine::ThreadLimits{2, 100, 0, 30, {{100'000, 60}, {1'000'000, 20}}};
  auto profile =
      MakeProfile({MakeRun(90'000, 700'000), MakeRun(50'000, 300'000), MakeRun(60'000, 600'000)},
                  MakeNodes(), 0.75, 2, limits);
  EXPECT_TRUE(profile.ok());
  return *std::move(profile);
}

TEST(ProfileTest, TakesMediansAndNamesNodes) {
  const Profile profile = MakeTwoSteps(/*has_limits=*/false);
  ASSERT_EQ(profile.steps.size(), 2u);
  EXPECT_EQ(profile.steps[0].median_us, 60);
  EXPECT_EQ(profile.steps[0].best_us, 50);
  EXPECT_EQ(profile.steps[0].node, "Conv 'conv1'");
  EXPECT_EQ(profile.steps[1].node, "");
  EXPECT_DOUBLE_EQ(profile.steps[0].gflops, 50);
  EXPECT_DOUBLE_EQ(profile.steps[1].gigabytes_per_s, 10);
  EXPECT_DOUBLE_EQ(profile.steps_ms, 0.66);
}

TEST(ProfileTest, PredictsByTheLimitThatBinds) {
  const Profile profile = MakeTwoSteps(/*has_limits=*/true);
  EXPECT_DOUBLE_EQ(profile.steps[0].predicted_us, 30);
  EXPECT_EQ(profile.steps[0].bound, "compute");
  EXPECT_DOUBLE_EQ(profile.steps[1].predicted_us, 300);
  EXPECT_EQ(profile.steps[1].bound, "memory");
  EXPECT_EQ(MakeTwoSteps(/*has_limits=*/false).steps[0].bound, "");
}

TEST(ProfileTest, RefusesRunsOfDifferentSteps) {
  std::vector<StepRecord> shorter = MakeRun(1, 1);
  shorter.pop_back();
  const auto profile = MakeProfile({MakeRun(1, 1), shorter}, {}, 1, 1, std::nullopt);
  ASSERT_FALSE(profile.ok());
  EXPECT_THAT(profile.status().Text(), HasSubstr("had 2 steps, another 1"));
}

TEST(ProfileTest, TableShowsLongestFirstWithReasonsAndLimits) {
  const std::string table = MakeProfileTable(MakeTwoSteps(/*has_limits=*/true));
  EXPECT_LT(table.find("loops / -"), table.find("fast convolution (kernel:7) / Conv 'conv1'"));
  EXPECT_THAT(table, HasSubstr("1x64x8x9"));
  EXPECT_THAT(table, HasSubstr("50 % compute"));
  EXPECT_THAT(table, HasSubstr("  It is too wide. for wide loops\n"));
  EXPECT_THAT(table, HasSubstr("Limits of 2 threads: 100 GFLOP/s, 20.0 GB/s"));
  EXPECT_THAT(table, Not(HasSubstr("onnxifi_bench")));
  EXPECT_THAT(MakeProfileTable(MakeTwoSteps(/*has_limits=*/false)),
              HasSubstr("'onnxifi_bench --machine' measures them"));
}

TEST(ProfileTest, TellsTheStagesOfTheLoad) {
  Profile profile = MakeTwoSteps(/*has_limits=*/false);
  EXPECT_THAT(MakeProfileTable(profile), Not(HasSubstr("STAGE")));
  profile.load = {{"import", 1, 3'000'000}, {"constant_folding", 2, 6'250'000}};
  profile.load_ms = 12.5;
  const std::string table = MakeProfileTable(profile);
  EXPECT_THAT(table, testing::ContainsRegex("import +1 +3.000 +24 %"));
  EXPECT_THAT(table, testing::ContainsRegex("constant_folding +2 +6.250 +50 %"));
  EXPECT_THAT(table, testing::ContainsRegex("between the stages +3.250 +26 %"));
  const nlohmann::json object = MakeProfileJson(profile);
  EXPECT_EQ(object["load_ms"], 12.5);
  EXPECT_EQ(object["load"][1]["stage"], "constant_folding");
  EXPECT_EQ(object["load"][1]["count"], 2);
  EXPECT_EQ(object["load"][1]["ms"], 6.25);
}

TEST(ProfileTest, TellsWhatRoundedAndTheErrorsOfIt) {
  Profile profile = MakeTwoSteps(/*has_limits=*/false);
  EXPECT_THAT(MakeProfileTable(profile), Not(HasSubstr("rounded")));
  EXPECT_EQ(MakeProfileJson(profile)["precision"], "float32");
  profile.rounding.precision = ONNXIFI_SDK_PRECISION_FLOAT16;
  EXPECT_THAT(MakeProfileTable(profile),
              HasSubstr("may be rounded to float16; every step computed in float32.\n"));
  profile.steps[0].record.precision = ONNXIFI_SDK_PRECISION_TF32;
  profile.errors = {{"y", 0.00123}, {"chosen", std::numeric_limits<double>::infinity()}};
  const std::string table = MakeProfileTable(profile);
  EXPECT_THAT(table, HasSubstr("may be rounded to float16; 1 step rounded to tf32.\n"));
  EXPECT_THAT(table, HasSubstr("Output 'y': error against float32 0.00123 of |b| + rms(b)"));
  EXPECT_THAT(table, HasSubstr("Output 'chosen': error against float32 inf of"));
  const nlohmann::json object = nlohmann::json::parse(MakeProfileJson(profile).dump());
  EXPECT_EQ(object["precision"], "float16");
  EXPECT_EQ(object["steps"][0]["precision"], "tf32");
  EXPECT_EQ(object["steps"][1]["precision"], "float32");
  EXPECT_EQ(object["errors_against_float32"][0]["worst"], 0.00123);
  EXPECT_TRUE(object["errors_against_float32"][1]["worst"].is_null());
  EXPECT_EQ(object["dynamic_quantization"], false);
}

TEST(ProfileTest, TellsTheErrorsOfRowsThatMayBeRounded) {
  Profile profile = MakeTwoSteps(/*has_limits=*/false);
  profile.rounding.dynamic_quantization = true;
  profile.errors = {{"y", 0.25}};
  EXPECT_THAT(MakeProfileTable(profile),
              HasSubstr("Rows may be rounded to 8 bits; details of the steps tell where they are.\n"
                        "Output 'y': error against float32 0.25 of"));
  EXPECT_EQ(MakeProfileJson(profile)["dynamic_quantization"], true);
}

TEST(ProfileTest, TellsWhatRunsCostBesideTheirSteps) {
  Profile profile = MakeTwoSteps(/*has_limits=*/false);
  EXPECT_THAT(MakeProfileTable(profile), Not(HasSubstr("Since the load")));
  profile.counters.emplace();
  profile.counters->runs = 12;
  profile.counters->submissions = 25;
  profile.counters->recordings = 1;
  profile.counters->copies = 24;
  EXPECT_THAT(MakeProfileTable(profile),
              HasSubstr("\nSince the load: 12 runs, 25 submissions, 1 recording, 24 copies, "
                        "0 allocations, 0 waits.\n"));
  profile.counters->runs = 1;
  profile.counters->submissions = ~uint64_t{0};
  EXPECT_THAT(MakeProfileTable(profile), HasSubstr("1 run, unknown submissions, 1 recording"));
}

TEST(ProfileTest, JsonAndTraceHaveEveryStep) {
  const Profile profile = MakeTwoSteps(/*has_limits=*/true);
  const nlohmann::json object = MakeProfileJson(profile);
  ASSERT_EQ(object["steps"].size(), 2u);
  EXPECT_EQ(object["steps"][0]["median_us"], 60);
  EXPECT_EQ(object["steps"][0]["type"], "float");
  EXPECT_EQ(object["steps"][1]["rejected"][0], "It is too wide.\n  for wide loops");
  EXPECT_EQ(object["limits"]["main_memory_gigabytes_per_s"], 20);
  const nlohmann::json trace = nlohmann::json::parse(MakeTrace(profile));
  ASSERT_EQ(trace["traceEvents"].size(), 2u);
  // The last run, which started its second step where the first ended.
  EXPECT_EQ(trace["traceEvents"][1]["ts"], 61);
  EXPECT_EQ(trace["traceEvents"][1]["dur"], 600);
  EXPECT_EQ(trace["traceEvents"][0]["args"]["done by"], "fast convolution (kernel:7)");
}

}  // namespace
}  // namespace onnxifi::run
