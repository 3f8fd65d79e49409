// SPDX-License-Identifier: Apache-2.0
//
// NodeTable: what a person finds in it, of small models and of large ones.

#include "client/node_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace onnxifi::client {
namespace {

using testing::HasSubstr;
using testing::Not;

NodeAnswer Node(uint32_t index, const char* operator_type, uint32_t reason = 0,
                const std::string& sentence = "") {
  NodeAnswer answer;
  answer.verdict.node_index = index;
  answer.verdict.operator_type = operator_type;
  answer.verdict.node_name = "the " + std::string(operator_type);
  answer.verdict.domain = "ai.onnx";
  if (reason > 0) answer.verdict.status = ONNXIFI_STATUS_UNSUPPORTED_OPERATOR;
  answer.verdict.sentence = sentence;
  answer.reason = reason;
  return answer;
}

NodeAnswer Given(uint32_t index) {
  NodeAnswer answer = Node(index, "Constant");
  answer.role = ONNXIFI_SDK_NODE_GIVEN;
  return answer;
}

// Node 2 is refused by "some:0" for two reasons, and by "one:0" for one of them.
ModelAnswers ThreeDevices() {
  ModelAnswers answers;
  answers.devices.resize(3);
  DeviceAnswer& all = answers.devices[0];
  all.device_key = "all:0";
  all.nodes = {Node(0, "Abs"), Node(1, "Exp"), Node(2, "Exp"), Given(3), Node(4, "Exp")};
  DeviceAnswer& some = answers.devices[1];
  some.device_key = "some:0";
  some.status = ONNXIFI_STATUS_UNSUPPORTED_OPERATOR;
  some.sentence = "No Exp here.\n  at node 1";
  some.nodes = {Node(0, "Abs"),
                Node(1, "Exp", 1, "No Exp here."),
                Node(2, "Exp", 1, "No Exp here."),
                Node(2, "Exp", 2, "Nor so wide.\n  asked alone"),
                Given(3),
                Node(4, "Exp", 1, "No Exp here.")};
  DeviceAnswer& one = answers.devices[2];
  one.device_key = "one:0";
  one.nodes_told = ONNXIFI_SDK_NODES_ASKED_ALONE;
  one.status = ONNXIFI_STATUS_INTERNAL_ERROR;
  one.nodes = {Node(0, "Abs"), Node(1, "Exp"), Node(2, "Exp", 2, "Nor so wide.\n  asked alone"),
               Given(3), Node(4, "Exp")};
  answers.chosen.emplace().device_key = "auto";
  return answers;
}

TEST(NodeTable, TellsWhoRunsWhatAndEveryReasonOnce) {
  EXPECT_EQ(
      MakeNodeTable(ThreeDevices(), {}),
      "4 nodes; 1 more that no device is asked about: constants, shapes that the model fixes, "
      "what nobody reads.\n"
      "\n"
      "NODE  OPERATOR  NAME     all:0  some:0    one:0\n"
      "1     Exp       the Exp  yes    no [1]    yes\n"
      "2     Exp       the Exp  yes    no [1,2]  no [2]\n"
      "4     Exp       the Exp  yes    no [1]    yes\n"
      "\n"
      "OPERATOR  NODES  all:0  some:0  one:0\n"
      "Exp       3      all    none    2 of 3\n"
      "\n"
      "[1] UNSUPPORTED_OPERATOR, Exp, 3 nodes (1 to 2, 4) on some:0\n"
      "    No Exp here.\n"
      "[2] UNSUPPORTED_OPERATOR, Exp, 1 node (2) on some:0 and one:0\n"
      "    Nor so wide.\n"
      "      asked alone\n"
      "\n"
      "all:0: runs 4 of 4 nodes; runs the model.\n"
      "some:0: runs 1 of 4 nodes; not the model (UNSUPPORTED_OPERATOR, [1]).\n"
      "one:0: runs 3 of 4 nodes, each asked by itself; not the model (INTERNAL_ERROR):\n"
      "    It gives no reason.\n"
      "auto: runs the model.\n");
}

TEST(NodeTable, ListsEveryNodeWhereThatIsAsked) {
  const std::string table = MakeNodeTable(ThreeDevices(), {.lists_all = true});
  EXPECT_THAT(table, HasSubstr("\n0     Abs       the Abs       yes    yes       yes\n"));
  EXPECT_THAT(table, HasSubstr("\n3     Constant  the Constant  given  given     given\n"));
  EXPECT_THAT(table, HasSubstr("\nAbs       1      all    all     all\n"));
}

TEST(NodeTable, TellsWhichDeviceHasANode) {
  GraphPlan plan;
  plan.islands = {{"one:0", {0, 1}, {}}, {"all:0", {2, 4}, {0}}};
  const ModelAnswers answers = ThreeDevices();
  const auto device_of = DevicesOfNodes(plan, answers);
  const std::string table = MakeNodeTable(answers, {.device_of = device_of});
  EXPECT_THAT(table, HasSubstr("\n1     Exp       the Exp  yes    no [1]    here\n"
                               "2     Exp       the Exp  here   no [1,2]  no [2]\n"));
  EXPECT_THAT(table, HasSubstr("all:0: runs 4 of 4 nodes, has 2 (2, 4); runs"));
  EXPECT_THAT(table, HasSubstr("some:0: runs 1 of 4 nodes, has none; not"));
  // One that a device has whole names no nodes.
  plan.islands = {{"all:0", {}, {}}};
  EXPECT_EQ(
      DevicesOfNodes(plan, answers),
      (std::map<uint32_t, std::string>{{0, "all:0"}, {1, "all:0"}, {2, "all:0"}, {4, "all:0"}}));
}

TEST(NodeTable, TellsOfDevicesThatTellNoNodes) {
  ModelAnswers answers = ThreeDevices();
  answers.devices[2].nodes.clear();
  answers.devices[2].sentence = "It is broken.";
  const std::string table = MakeNodeTable(answers, {});
  EXPECT_THAT(table, HasSubstr("\n1     Exp       the Exp  yes    no [1]    -\n"));
  EXPECT_THAT(table, HasSubstr("\nExp       3      all    none    -\n"));
  EXPECT_THAT(table, HasSubstr("one:0: tells of no nodes; not the model (INTERNAL_ERROR):\n"
                               "    It is broken.\n"));
  ModelAnswers none;
  none.devices = {answers.devices[2]};
  EXPECT_EQ(MakeNodeTable(none, {}),
            "one:0: tells of no nodes; not the model (INTERNAL_ERROR):\n    It is broken.\n");
}

// One device refuses every node, for as many reasons, of as many operators; the other none.
ModelAnswers Large(uint32_t count) {
  ModelAnswers answers;
  answers.devices.resize(2);
  answers.devices[0].device_key = "all:0";
  answers.devices[1].device_key = "none:0";
  answers.devices[1].status = ONNXIFI_STATUS_UNSUPPORTED_OPERATOR;
  answers.devices[1].sentence = "Line.";
  for (int line = 0; line < 50; ++line) answers.devices[1].sentence += "\n  another";
  for (uint32_t node = 0; node < count; ++node) {
    const std::string number = std::to_string(node);
    answers.devices[0].nodes.push_back(Node(node, ("Op" + number).c_str()));
    answers.devices[1].nodes.push_back(
        Node(node, ("Op" + number).c_str(), node + 1, "Reason " + number + "."));
  }
  return answers;
}

TEST(NodeTable, SaysWhatItLeavesOut) {
  const ModelAnswers answers = Large(10'000);
  const std::string table = MakeNodeTable(answers, {});
  EXPECT_LT(std::ranges::count(table, '\n'), 250);
  EXPECT_THAT(table, HasSubstr("\n9960 more that a device refuses (onnxifi_info --ops MODEL "
                               "--verbose lists all).\n"));
  EXPECT_THAT(table, HasSubstr("\n9960 operators more that a device refuses ("));
  EXPECT_THAT(table, HasSubstr("\n9960 reasons more ("));
  EXPECT_THAT(table, HasSubstr("\n    and 43 more lines ("));
  // What the rows point to is there.
  EXPECT_THAT(table, HasSubstr("no [40]"));
  EXPECT_THAT(table, HasSubstr("[40] UNSUPPORTED_OPERATOR, Op39, 1 node (39) on none:0\n"));
  const std::string all = MakeNodeTable(answers, {.lists_all = true});
  EXPECT_THAT(all, HasSubstr("Reason 9999."));
  EXPECT_THAT(all, Not(HasSubstr(" more")));
}

TEST(NodeTable, ShortensListsOfNodesAndNames) {
  ModelAnswers answers;
  DeviceAnswer& device = answers.devices.emplace_back();
  device.device_key = "odd:0";
  for (uint32_t node = 0; node < 40; ++node) {
    device.nodes.push_back(node % 2 == 0 ? Node(node, "Abs") : Node(node, "Abs", 1, "Odd."));
    device.nodes.back().verdict.node_name =
        "/a/very/long/name/that/goes/on/and/on/until/it/ends/in/node" + std::to_string(node);
  }
  const std::string table = MakeNodeTable(answers, {});
  EXPECT_THAT(table, HasSubstr("20 nodes (1, 3, 5, 7, 9, 11, 13, 15 and 12 more) on odd:0"));
  EXPECT_THAT(table, HasSubstr("/a/very/long...on/and/on/until/it/ends/in/node39"));
  EXPECT_THAT(MakeNodeTable(answers, {.lists_all = true}), HasSubstr("37, 39) on odd:0"));
}

TEST(NodeJson, HasEverything) {
  const auto object = MakeNodeJson(ThreeDevices(), {{1, "one:0"}});
  EXPECT_EQ(object["devices"].size(), 3U);
  EXPECT_EQ(object["devices"][1]["key"], "some:0");
  EXPECT_EQ(object["devices"][1]["status"], "UNSUPPORTED_OPERATOR");
  EXPECT_EQ(object["devices"][1]["runs_model"], false);
  EXPECT_EQ(object["devices"][1]["runs_count"], 1);
  EXPECT_EQ(object["devices"][1]["node_count"], 4);
  EXPECT_EQ(object["devices"][2]["nodes_told"], "asked alone");
  EXPECT_EQ(object["auto"]["runs_model"], true);
  EXPECT_EQ(object["nodes"].size(), 5U);
  EXPECT_EQ(object["nodes"][2]["refuses"]["some:0"], nlohmann::json({1, 2}));
  EXPECT_EQ(object["nodes"][2]["runs"], nlohmann::json({"all:0"}));
  EXPECT_EQ(object["nodes"][1]["device"], "one:0");
  EXPECT_EQ(object["nodes"][3]["is_work"], false);
  EXPECT_EQ(object["reasons"][1]["nodes"]["one:0"], nlohmann::json({2}));
  EXPECT_EQ(object["reasons"][0]["nodes"]["some:0"], nlohmann::json({1, 2, 4}));
  EXPECT_EQ(object["reasons"][0]["sentence"], "No Exp here.");
}

}  // namespace
}  // namespace onnxifi::client
