// SPDX-License-Identifier: Apache-2.0
//
// TwinText: a sentence per physical device, by where nodes are and who else has kernels for them.

#include "apps/onnxifi_run/twin_text.h"

#include <gtest/gtest.h>

namespace onnxifi::run {
namespace {

// Devices a:0, b:0 and c:0, of which the first two are one; each with the nodes that it runs of 0
// and 1.
client::ModelAnswers MakeAnswers(const std::vector<std::vector<bool>>& runs) {
  client::ModelAnswers answers;
  for (size_t device = 0; device < runs.size(); ++device) {
    DeviceAnswer& answer = answers.devices.emplace_back();
    answer.device_key = std::string(1, static_cast<char>('a' + device)) + ":0";
    answer.physical_device = device < 2 ? 1 : 0;
    for (uint32_t node = 0; node < 2; ++node) {
      NodeAnswer& told = answer.nodes.emplace_back();
      told.verdict.node_index = node;
      told.verdict.status =
          runs[device][node] ? ONNXIFI_STATUS_SUCCESS : ONNXIFI_STATUS_UNSUPPORTED_OPERATOR;
    }
  }
  return answers;
}

GraphPlan MakePlan(const char* first, const char* second) {
  GraphPlan plan;
  plan.islands = {{first, {0}, {}}, {second, {1}, {0}}};
  return plan;
}

TEST(TwinText, SaysWhatAutoDoesNotDo) {
  const auto answers = MakeAnswers({{true, true}, {true, true}, {true, true}});
  const std::string rule =
      "a:0 and b:0 are one physical device; auto cuts no model between them without a measured"
      " gain.\n";
  EXPECT_EQ(MakeTwinText(answers, MakePlan("a:0", "c:0"), /*is_placed=*/false), rule);
  GraphPlan whole;
  whole.islands = {{"a:0", {}, {}}};
  EXPECT_EQ(MakeTwinText(answers, whole, /*is_placed=*/false), rule);
}

TEST(TwinText, SaysWhyAModelIsCutBetweenTwins) {
  const std::string start = "a:0 and b:0 are one physical device; the model is cut between them ";
  const GraphPlan plan = MakePlan("a:0", "b:0");
  const auto all = MakeAnswers({{true, true}, {true, true}, {true, true}});
  EXPECT_EQ(MakeTwinText(all, plan, /*is_placed=*/true), start + "as nodes are placed.\n");
  EXPECT_EQ(MakeTwinText(all, plan, /*is_placed=*/false),
            start + "because runs were measured to take a tenth less so.\n");
  const auto forced = MakeAnswers({{true, false}, {true, true}, {true, false}});
  EXPECT_EQ(MakeTwinText(forced, plan, /*is_placed=*/false),
            start + "for nodes that no other device has kernels for.\n");
}

TEST(TwinText, IsEmptyWhereDevicesAreOthers) {
  auto answers = MakeAnswers({{true, true}, {true, true}});
  for (DeviceAnswer& device : answers.devices) device.physical_device = 0;
  EXPECT_EQ(MakeTwinText(answers, MakePlan("a:0", "b:0"), /*is_placed=*/false), "");
  // A number of its own.
  answers.devices[0].physical_device = 3;
  EXPECT_EQ(MakeTwinText(answers, MakePlan("a:0", "b:0"), /*is_placed=*/false), "");
}

TEST(TwinText, ListsAllOfThem) {
  auto answers = MakeAnswers({{true, true}, {true, true}, {true, true}});
  answers.devices[2].physical_device = 1;
  EXPECT_EQ(MakeTwinText(answers, MakePlan("c:0", "c:0"), /*is_placed=*/false),
            "a:0, b:0 and c:0 are one physical device; auto cuts no model between them without a"
            " measured gain.\n");
}

}  // namespace
}  // namespace onnxifi::run
