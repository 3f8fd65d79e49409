// SPDX-License-Identifier: Apache-2.0
//
// PlanFile: what each kind of file says of a plan of three islands.

#include "apps/onnxifi_run/plan_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

namespace onnxifi::run {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

NodeVerdict Node(uint32_t index, const char* name, const char* operator_type) {
  NodeVerdict node;
  node.node_index = index;
  node.node_name = name;
  node.operator_type = operator_type;
  return node;
}

const std::vector<NodeVerdict> kNodes = {Node(0, "first", "Conv"), Node(1, "a<b", "Relu"),
                                         Node(2, "", "Conv"), Node(3, "last", "Add")};

GraphPlan Plan() {
  GraphPlan plan;
  plan.islands = {{"gpu:0", {0, 2}, {}, 0, 1'500'000, 0, 2'250'000, 6},
                  {"cpu:0", {1}, {0}, 1'500'000, 20'000, 0, 0, ~uint64_t{0}},
                  {"gpu:0", {3}, {0, 1}, 1'520'000, 0, 0, 0, 0}};
  plan.cuts = {{"x", ONNXIFI_SDK_UNKNOWN, 0, 12, 0},
               {"t", 0, 1, 20'000, 0},
               {"u", 0, 1, 500, 0},
               {"v", 1, 2, 7, 4},
               {"y", 2, ONNXIFI_SDK_UNKNOWN, 12'345'678, 0}};
  return plan;
}

TEST(PlanFile, IsReadByProgramsAsJson) {
  const json plan = json::parse(MakePlanJson(Plan(), kNodes));
  ASSERT_EQ(plan["islands"].size(), 3U);
  EXPECT_EQ(plan["islands"][0]["device"], "gpu:0");
  EXPECT_EQ(plan["islands"][0]["nodes"][1]["index"], 2);
  EXPECT_EQ(plan["islands"][0]["nodes"][1]["operator"], "Conv");
  EXPECT_EQ(plan["islands"][0]["measured_us"], 2250.0);
  EXPECT_EQ(plan["islands"][1]["nodes"][0]["name"], "a<b");
  EXPECT_EQ(plan["islands"][2]["after"], json({0, 1}));
  ASSERT_EQ(plan["cuts"].size(), 5U);
  EXPECT_TRUE(plan["cuts"][0]["from"].is_null());
  EXPECT_EQ(plan["cuts"][0]["to"], 0);
  EXPECT_EQ(plan["cuts"][4]["bytes"], 12'345'678);
  EXPECT_EQ(plan["cuts"][3]["copies"], 4);
  EXPECT_EQ(plan["islands"][0]["copies"], 6);
  EXPECT_TRUE(plan["islands"][1]["copies"].is_null());
}

TEST(PlanFile, IsDrawnByGraphviz) {
  const std::string dot = MakePlanDot(Plan(), kNodes);
  EXPECT_THAT(dot, AllOf(HasSubstr("digraph plan"),
                         HasSubstr("island0 -> island1 [label = \"2 tensors, 20.5 kB\"]"),
                         HasSubstr("inputs -> island0 [label = \"1 tensor, 12 B\"]"),
                         HasSubstr("island2 -> outputs [label = \"1 tensor, 12.3 MB\"]"),
                         HasSubstr("island1 -> island2 [label = \"1 tensor, 7 B, 4 copies\"]"),
                         HasSubstr("label = \"3 islands, estimated 1.520 ms, measured 2.250 ms\""),
                         HasSubstr("2 nodes\\nConv 2\\nestimated 1.500 ms\\nmeasured 2.250 ms\\n"
                                   "6 copies of the device's")));
}

TEST(PlanFile, IsShownByBrowsers) {
  const std::string svg = MakePlanSvg(Plan(), kNodes);
  EXPECT_THAT(svg,
              AllOf(HasSubstr("<svg xmlns="), HasSubstr("measured 2.250 ms"),
                    HasSubstr("2 tensors, 20.5 kB"), HasSubstr("</svg>\n"), Not(HasSubstr("nan"))));
  // Wide enough for the longest line.
  EXPECT_THAT(svg, HasSubstr("width=\"184\""));
  // One color per device: two islands and a legend in the first, one and a legend in the second.
  const auto count = [&](const std::string& color) {
    int found = 0;
    for (size_t at = svg.find(color); at != std::string::npos; at = svg.find(color, at + 1))
      ++found;
    return found;
  };
  EXPECT_EQ(count("#56b4e9"), 3);
  EXPECT_EQ(count("#e69f00"), 2);
}

TEST(PlanFile, ShowsAGraphThatOneDeviceHasWhole) {
  GraphPlan plan;
  plan.islands = {{"cpu:0", {}, {}, 0, 0, 0, 0, 0}};
  EXPECT_THAT(MakePlanSvg(plan, kNodes),
              AllOf(HasSubstr("the whole model"), HasSubstr("Conv 2, Add 1, Relu 1")));
}

TEST(PlanFile, IsOfTheKindThatItsNameSays) {
  const std::filesystem::path file = std::filesystem::path(testing::TempDir()) / "onnxifi_plan.dot";
  ASSERT_TRUE(WritePlan(file, Plan(), kNodes).ok());
  std::ifstream stream(file);
  const std::string text(std::istreambuf_iterator<char>(stream), {});
  EXPECT_EQ(text, MakePlanDot(Plan(), kNodes));
  std::filesystem::remove(file);
  const base::Status refused = WritePlan("plan.png", Plan(), kNodes);
  GraphPlan unsound = Plan();
  unsound.islands[1].after = {1};
  EXPECT_EQ(WritePlan(file, unsound, kNodes).code(), base::Code::kInternalError);
  unsound = Plan();
  unsound.cuts[2].to_island = 3;
  EXPECT_EQ(WritePlan(file, unsound, kNodes).code(), base::Code::kInternalError);
  EXPECT_THAT(refused.Text(), HasSubstr("'plan.png' ends in none of .json, .dot and .svg"));
}

}  // namespace
}  // namespace onnxifi::run
