// SPDX-License-Identifier: Apache-2.0
//
// GraphDecision: each outcome, and what leads to it. Devices are mocks, which are asked and never
// initialised.

#include "onnxifi/planner/graph_decision.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "onnxifi/testing/mock_devices.h"

namespace onnxifi::planner {
namespace {

using testing::HasSubstr;
using testing::MatchesRegex;
using Outcome = GraphDecision::Outcome;
using Kind = PlacementRequest::Kind;

constexpr const char* kAbsThenNeg = R"(
  graph (float[2, 3] x) => (float[2, 3] y) { a = Abs(x)  y = Neg(a) })";

// One device for each operator; AddClaimant adds one for both.
class GraphDecisionTest : public testing::Test {
 protected:
  GraphDecisionTest() : model_(ParseMockModel(kAbsThenNeg)) {
    devices_.Add("abs", R"({"operators": ["Abs"]})").Add("neg", R"({"operators": ["Neg"]})");
  }

  void AddClaimant() { devices_.Add("both", R"({"operators": ["Abs", "Neg"]})"); }

  GraphQuestion Question(Kind kind = Kind::kAuto, std::vector<std::string> devices = {}) const {
    GraphQuestion question;
    question.model = Bytes(model_);
    question.placement.kind = kind;
    question.placement.devices = std::move(devices);
    return question;
  }

  GraphDecision DecideOn(const GraphQuestion& question) {
    CostSource costs;
    costs.is_used = [this] { return uses_costs_; };
    costs.teach = [this](AutoPlanner& /*planner*/) { ++taught_count_; };
    return Decide(devices_.all(), question, costs);
  }

  MockDevices devices_;
  const std::string model_;
  bool uses_costs_ = false;
  int taught_count_ = 0;
};

TEST_F(GraphDecisionTest, GivesTheModelToTheFirstDeviceThatClaimsEveryNode) {
  AddClaimant();
  const GraphDecision decision = DecideOn(Question());
  ASSERT_EQ(decision.outcome, Outcome::kClaimant);
  EXPECT_EQ(decision.devices.front()->key(), "both:0");
  EXPECT_TRUE(decision.refusal.ok());
  EXPECT_EQ(taught_count_, 0);
}

TEST_F(GraphDecisionTest, CutsWhatNoDeviceClaimsWhole) {
  const GraphDecision decision = DecideOn(Question());
  ASSERT_EQ(decision.outcome, Outcome::kIslands);
  EXPECT_EQ(decision.planner->Plan()->islands.size(), 2U);
}

TEST_F(GraphDecisionTest, RefusesWithTheReasonsOfAllDevices) {
  const std::string model =
      ParseMockModel("graph (float[2] x) => (float[2] y) { a = Abs(x)  y = Exp(a) }");
  GraphQuestion question = Question();
  question.model = Bytes(model);
  for (const bool uses_costs : {false, true}) {
    uses_costs_ = uses_costs;
    const GraphDecision decision = DecideOn(question);
    ASSERT_EQ(decision.outcome, Outcome::kRefused);
    EXPECT_EQ(decision.refusal.code(), base::Code::kUnsupportedOperator);
    EXPECT_THAT(decision.refusal.Text(), HasSubstr("abs:0 claims 1 of 2 nodes"));
    EXPECT_THAT(decision.refusal.Text(), HasSubstr("neg:0 claims 0 of 2 nodes"));
    EXPECT_THAT(decision.refusal.Text(), HasSubstr("Nor do several together"));
  }
}

TEST_F(GraphDecisionTest, TellsOnceWhatAllDevicesSay) {
  GraphQuestion question = Question();
  question.model = Bytes("no model");
  const GraphDecision unread = DecideOn(question);
  ASSERT_EQ(unread.outcome, Outcome::kRefused);
  EXPECT_EQ(unread.refusal.code(), base::Code::kInvalidProtobuf);
  EXPECT_THAT(unread.refusal.Text(),
              MatchesRegex("No device runs the whole model\\. The model is not valid "
                           "protobuf: [^\n]*\n  the answer of abs:0 and neg:0"));
}

TEST_F(GraphDecisionTest, GoesByAPlanWhereCostsAreKnown) {
  AddClaimant();
  uses_costs_ = true;
  const GraphDecision decision = DecideOn(Question());
  ASSERT_EQ(decision.outcome, Outcome::kPlan);
  EXPECT_EQ(decision.planner->Plan()->islands.size(), 1U);
  EXPECT_EQ(taught_count_, 1);
  // No plan carries a weight of an unknown type.
  GraphQuestion question = Question();
  question.weights.reset();
  EXPECT_EQ(DecideOn(question).outcome, Outcome::kClaimant);
}

TEST_F(GraphDecisionTest, KeepsTheModelWholeOnTheOnlyDeviceThatIsWanted) {
  AddClaimant();
  const GraphDecision decision = DecideOn(Question(Kind::kStrict, {"abs:0"}));
  ASSERT_EQ(decision.outcome, Outcome::kWhole);
  ASSERT_EQ(decision.devices.size(), 1U);
  EXPECT_EQ(decision.devices.front()->key(), "abs:0");
  EXPECT_TRUE(decision.refusal.ok());
}

TEST_F(GraphDecisionTest, PlansForAPreference) {
  const GraphDecision decision = DecideOn(Question(Kind::kPrefer, {"neg:0"}));
  ASSERT_EQ(decision.outcome, Outcome::kPlan);
  EXPECT_EQ(decision.planner->Plan()->islands.size(), 2U);
  EXPECT_EQ(taught_count_, 1);
}

TEST_F(GraphDecisionTest, TriesTheModelWholeWhereAPreferenceHasNoPlan) {
  const std::string model = ParseMockModel("graph (float[2] x) => (float[2] y) { y = Exp(x) }");
  GraphQuestion question = Question(Kind::kPrefer, {"neg:0"});
  question.model = Bytes(model);
  const GraphDecision decision = DecideOn(question);
  ASSERT_EQ(decision.outcome, Outcome::kWhole);
  ASSERT_EQ(decision.devices.size(), 2U);
  EXPECT_EQ(decision.devices.front()->key(), "neg:0");
  EXPECT_FALSE(decision.refusal.ok());
}

TEST_F(GraphDecisionTest, RefusesADeviceThatIsNotThere) {
  const GraphDecision decision = DecideOn(Question(Kind::kPrefer, {"gpu:0"}));
  ASSERT_EQ(decision.outcome, Outcome::kRefused);
  EXPECT_EQ(decision.refusal.code(), base::Code::kInvalidProperty);
  EXPECT_THAT(decision.refusal.Text(), HasSubstr("The auto device has no device 'gpu:0'"));
}

TEST_F(GraphDecisionTest, RefusesNodesThatCannotBePlaced) {
  GraphQuestion question = Question();
  question.placement.groups.push_back({"neg:0", {1}});
  EXPECT_EQ(DecideOn(question).outcome, Outcome::kPlan);
  // The device refuses the node.
  question.placement.groups.front().nodes = {0};
  EXPECT_EQ(DecideOn(question).outcome, Outcome::kRefused);
  question.placement.groups.front().nodes = {1};
  question.weights.reset();
  EXPECT_EQ(DecideOn(question).refusal.code(), base::Code::kUnsupportedDatatype);
  question.takes_values = true;
  const GraphDecision decision = DecideOn(question);
  EXPECT_EQ(decision.outcome, Outcome::kRefused);
  EXPECT_THAT(decision.refusal.Text(), HasSubstr("stays whole"));
}

TEST_F(GraphDecisionTest, WeighsNoPlanThatIsGiven) {
  GraphQuestion question = Question(Kind::kPlan);
  question.placement.groups = {{"abs:0", {0}}, {"neg:0", {1}}};
  const GraphDecision decision = DecideOn(question);
  ASSERT_EQ(decision.outcome, Outcome::kPlan);
  EXPECT_TRUE(decision.planner->has_given_plan());
  EXPECT_EQ(taught_count_, 0);
}

TEST_F(GraphDecisionTest, LetsADeviceEmulateWhatNoneHasKernelsFor) {
  MockDevices devices;
  devices.Add("abs", R"({"operators": ["Abs"]})")
      .Add("emulator", R"({"operators": ["Abs", "Neg"], "emulated": ["Neg"]})");
  const GraphDecision cut = DecideByOrder(devices.all(), Question());
  EXPECT_NE(cut.planner, nullptr);
  EXPECT_EQ(cut.Verdict().code(), base::Code::kFallback);
  // No plan carries the caller's weights.
  GraphQuestion question = Question();
  question.weights.reset();
  const GraphDecision whole = DecideByOrder(devices.all(), question);
  ASSERT_EQ(whole.outcome, Outcome::kEmulated);
  ASSERT_EQ(whole.devices.size(), 1U);
  EXPECT_EQ(whole.devices.front()->key(), "emulator:0");
  EXPECT_EQ(whole.Verdict().code(), base::Code::kFallback);
  question.takes_values = true;
  const GraphDecision values = DecideByOrder(devices.all(), question);
  EXPECT_EQ(values.outcome, Outcome::kEmulated);
  EXPECT_EQ(values.Verdict().code(), base::Code::kFallback);
  // What has kernels is not emulated.
  devices.Add("neg", R"({"operators": ["Neg"]})");
  const GraphDecision together = DecideByOrder(devices.all(), Question());
  EXPECT_EQ(together.outcome, Outcome::kIslands);
  EXPECT_TRUE(together.Verdict().ok()) << together.Verdict().Text();
}

TEST_F(GraphDecisionTest, LeavesNothingOfAGraphOfValuesToSeveral) {
  const base::Status refusal(base::Code::kUnsupportedOperator, "The device breaks its claim.");
  EXPECT_EQ(DecideTogether(devices_.all(), Question(), refusal, RefusalOf::kWithWeights).outcome,
            Outcome::kIslands);
  GraphQuestion question = Question();
  question.takes_values = true;
  const GraphDecision decision =
      DecideTogether(devices_.all(), question, refusal, RefusalOf::kWithWeights);
  ASSERT_EQ(decision.outcome, Outcome::kRefused);
  EXPECT_EQ(decision.refusal.Text(), refusal.Text());
}

}  // namespace
}  // namespace onnxifi::planner
