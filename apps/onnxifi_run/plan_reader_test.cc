// SPDX-License-Identifier: Apache-2.0
//
// PlanReader: what was written is read again; anything else is refused with a sentence.

#include "apps/onnxifi_run/plan_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <string>

#include "apps/onnxifi_run/plan_file.h"

namespace onnxifi::run {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::vector<onnx_file::NodeName> kModel = {
    {"first", "Conv"}, {"a<b", "Relu"}, {"", "Conv"}, {"last", "Add"}};

// As onnxifi_run writes it.
std::string Written() {
  GraphPlan plan;
  plan.islands = {{"gpu:0", {0, 2}, {}, 0, 1'500'000, 0, 2'250'000, 6},
                  {"cpu:0", {1}, {0}, 1'500'000, 20'000, 0, 0, ~uint64_t{0}},
                  {"gpu:0", {3}, {0, 1}, 1'520'000, 0, 0, 0, 0}};
  plan.cuts = {{"x", ONNXIFI_SDK_UNKNOWN, 0, 12, 0}, {"t", 0, 1, 20'000, 0}};
  std::vector<NodeVerdict> nodes;
  for (size_t index = 0; index < kModel.size(); ++index) {
    NodeVerdict& node = nodes.emplace_back();
    node.node_index = static_cast<uint32_t>(index);
    node.node_name = kModel[index].name;
    node.operator_type = kModel[index].operator_type;
  }
  return MakePlanJson(plan, nodes);
}

TEST(PlanReader, ReadsWhatWasWritten) {
  const auto placement = ParsePlan(Written(), kModel);
  ASSERT_TRUE(placement.ok()) << placement.status().Text();
  EXPECT_EQ(placement->kind, static_cast<uint32_t>(ONNXIFI_SDK_PLACEMENT_PLAN));
  ASSERT_EQ(placement->groups.size(), 3U);
  EXPECT_EQ(placement->groups[0].device_key, "gpu:0");
  EXPECT_THAT(placement->groups[0].nodes, ElementsAre(0, 2));
  EXPECT_EQ(placement->groups[1].device_key, "cpu:0");
  EXPECT_THAT(placement->groups[1].nodes, ElementsAre(1));
  EXPECT_THAT(placement->groups[2].nodes, ElementsAre(3));
}

TEST(PlanReader, NeedsDevicesAndNumbersAlone) {
  const auto placement = ParsePlan(
      R"({"islands": [{"device": "cpu:0", "nodes": [{"index": 3}]}, {"device": "x", "nodes": []}]})",
      kModel);
  ASSERT_TRUE(placement.ok()) << placement.status().Text();
  EXPECT_THAT(placement->groups[0].nodes, ElementsAre(3));
  EXPECT_TRUE(placement->groups[1].nodes.empty());
}

TEST(PlanReader, ReadsAFile) {
  const std::filesystem::path file =
      std::filesystem::path(::testing::TempDir()) / "onnxifi_read_plan.json";
  std::ofstream(file) << Written();
  EXPECT_TRUE(ReadPlan(file, kModel).ok());
  std::ofstream(file) << "{";
  const auto broken = ReadPlan(file, kModel);
  ASSERT_FALSE(broken.ok());
  EXPECT_THAT(broken.status().Text(), HasSubstr(file.string()));
  std::filesystem::remove(file);
  const auto missing = ReadPlan(file, kModel);
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.status().code(), base::Code::kInvalidName);
}

TEST(PlanReader, RefusesWhatIsNoPlanOfTheModel) {
  const std::string node = R"({"islands": [{"device": "cpu:0", "nodes": [%]}]})";
  const auto with = [&](const std::string& entry) {
    std::string text = node;
    return text.replace(text.find('%'), 1, entry);
  };
  struct Case {
    std::string text;
    std::string sentence;
  };
  const Case cases[] = {
      {"", "The plan is no JSON object."},
      {"[]", "The plan is no JSON object."},
      {"{", "The plan is no JSON object."},
      {Written() + "}", "The plan is no JSON object."},
      {"{}", "The plan has no list of 'islands'."},
      {R"({"islands": {"0": 1}})", "The plan has no list of 'islands'."},
      {R"({"islands": [7]})", "There is no 'device' in island 0 of the plan that is a text."},
      {R"({"islands": [{"nodes": []}]})", "There is no 'device' in island 0"},
      {R"({"islands": [{"device": 5, "nodes": []}]})", "There is no 'device' in island 0"},
      {R"({"islands": [{"device": "cpu:0"}]})", "There is no list of 'nodes' in island 0"},
      {R"({"islands": [{"device": "cpu:0", "nodes": {}}]})", "no list of 'nodes' in island 0"},
      {with("3"), "An entry among the nodes of island 0 of the plan on device 'cpu:0' has no"},
      {with("{}"), "An entry among the nodes of island 0"},
      {with(R"({"index": "3"})"), "An entry among the nodes of island 0"},
      {with(R"({"index": -1})"), "An entry among the nodes of island 0"},
      {with(R"({"index": 1.0})"), "An entry among the nodes of island 0"},
      {with(R"({"index": 4294967296})"), "An entry among the nodes of island 0"},
      {with(R"({"index": 18446744073709551616})"), "An entry among the nodes of island 0"},
      {with(R"({"index": 1e300})"), "An entry among the nodes of island 0"},
      {with(R"({"index": 3, "name": 3})"), "The name or operator of node 3 in island 0"},
      {with(R"({"index": 3, "operator": null})"), "The name or operator of node 3 in island 0"},
      {with(R"({"index": 4, "name": "five", "operator": "Abs"})"),
       "The plan has node 4 'five' (Abs) in island 0 of the plan on device 'cpu:0', and the model"
       " has 4 nodes."},
      {with(R"({"index": 3, "name": "lost", "operator": "Add"})"),
       "The plan has node 3 'lost' (Add) in island 0 of the plan on device 'cpu:0', and the model"
       " has node 3 'last' (Add) there: it is a plan of another model."},
      {with(R"({"index": 3, "name": "last", "operator": "Mul"})"), "a plan of another model"},
      {with(R"({"index": 3, "name": ""})"), "a plan of another model"},
      // Deeper than any plan, and than a reader's stack.
      {std::string(1'000'000, '['), "The plan is no JSON object."},
      {R"({"islands": )" + std::string(200, '[') + std::string(200, ']') + "}",
       "The plan is no JSON object."},
  };
  for (const Case& wrong : cases) {
    const auto placement = ParsePlan(wrong.text, kModel);
    ASSERT_FALSE(placement.ok()) << wrong.sentence;
    EXPECT_EQ(placement.status().code(), base::Code::kInvalidProperty);
    EXPECT_THAT(placement.status().Text(), HasSubstr(wrong.sentence));
  }
}

// Whatever bytes there are, they are a plan whose nodes the model has, or none.
TEST(PlanReader, SurvivesAnyBytes) {
  const std::string written = Written();
  const auto try_out = [](const std::string& text) {
    const auto placement = ParsePlan(text, kModel);
    if (!placement.ok()) {
      EXPECT_FALSE(placement.status().Text().empty());
      return false;
    }
    for (const Placement::Group& group : placement->groups) {
      for (const uint32_t node : group.nodes) EXPECT_LT(node, kModel.size());
    }
    return true;
  };
  // All but the line break at its end.
  for (size_t size = 0; size + 1 < written.size(); ++size) {
    EXPECT_FALSE(try_out(written.substr(0, size)));
  }
  std::mt19937 random(4);
  int refused = 0;
  for (int round = 0; round < 5'000; ++round) {
    std::string text = written;
    for (uint32_t change = 0; change <= random() % 4; ++change) {
      const size_t at = random() % text.size();
      switch (random() % 4) {
        case 0:
          text[at] = static_cast<char>(random());
          break;
        case 1:
          text.erase(at, random() % 9);
          break;
        case 2:
          text.insert(at, text.substr(random() % text.size(), random() % 40));
          break;
        default:
          text.insert(at, std::to_string(random()));
          break;
      }
    }
    if (!try_out(text)) ++refused;
  }
  EXPECT_GT(refused, 1'000);
  // Values of other types in the place of each value there is.
  const json plan = json::parse(written);
  const json others[] = {nullptr,
                         true,
                         -1,
                         1.5,
                         1e308,
                         ~uint64_t{0},
                         "text",
                         json::array(),
                         json::object(),
                         json::array({json::array()})};
  const json flat = plan.flatten();
  for (const auto& [path, value] : flat.items()) {
    for (json::json_pointer place(path); !place.empty(); place.pop_back()) {
      for (const json& other : others) {
        json changed = plan;
        changed[place] = other;
        try_out(changed.dump());
      }
    }
  }
}

}  // namespace
}  // namespace onnxifi::run
