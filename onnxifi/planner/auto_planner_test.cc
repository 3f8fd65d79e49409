// SPDX-License-Identifier: Apache-2.0
//
// AutoPlanner: devices are asked once for all nodes of a kind, and planning stays quick in large
// models. Plugins are opened here as libonnxifi opens them.

#include "onnxifi/planner/auto_planner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <onnx/onnx_pb.h>
#include <time.h>

#include <cstdio>
#include <limits>

#include "onnxifi/testing/mock_devices.h"

namespace onnxifi::planner {

using plugins::ClaimMemory;
using plugins::NodeReason;
using plugins::NodeReasons;

namespace {

using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;

std::unique_ptr<AutoPlanner> Ask(const MockDevices& devices, const std::string& model) {
  auto planner = AutoPlanner::Ask(devices.all(), Bytes(model), /*weights=*/{});
  EXPECT_TRUE(planner.ok()) << planner.status().Text();
  return *std::move(planner);
}

TEST(AutoPlanner, AsksADeviceOnceForAllNodesOfAKind) {
  for (const char* const file : {ONNXIFI_TEST_MOCK, ONNXIFI_TEST_PLAIN_MOCK}) {
    MockDevices devices;
    devices.Add("some", R"({"operators": ["Abs", "Sub"]})", file)
        .Add("all", "{}", ONNXIFI_TEST_MOCK);
    const auto first = Ask(devices, ParseMockModel(R"(
      graph (float[9, 9] x) => (float[9, 9] y) { a = Abs(x)  b = Neg(a)  y = Sub(b, a) })"));
    EXPECT_EQ(first->asked_count(), 2);
    // Other names, another order, more of the same.
    const auto second = Ask(devices, ParseMockModel(R"(
      graph (float[9, 9] in) => (float[9, 9] out) {
        n = Neg(in)  s = Sub(n, in)  t = Abs(s)  u = Abs(t)  out = Sub(u, t) })"));
    EXPECT_EQ(second->asked_count(), 0);
    EXPECT_THAT(second->ReasonsOf(0, 0), SizeIs(1));
    EXPECT_THAT(second->ReasonsOf(0, 1), SizeIs(0));
    EXPECT_THAT(second->ReasonsOf(1, 0), SizeIs(0));
    const auto third = Ask(devices, ParseMockModel(R"(
      graph (float[9, 8] x) => (float[9, 8] y) { a = Abs(x)  y = Sub(x, a) })"));
    EXPECT_EQ(third->asked_count(), 2);
  }
}

TEST(AutoPlanner, TellsReasonsWithTheNamesOfTheModelAtHand) {
  MockDevices devices;
  devices.Add("plain", R"({"operators": ["Abs", "NonZero"]})", ONNXIFI_TEST_PLAIN_MOCK);
  const auto reason = [&](const char* name) {
    const auto planner =
        Ask(devices, ParseMockModel("graph (float[9, 9] x) => (int64[2, n] " + std::string(name) +
                                    ") { " + name + " = NonZero(x) }"));
    const std::vector<base::Status> reasons = planner->ReasonsOf(0, 0);
    EXPECT_THAT(reasons, SizeIs(1));
    return reasons.empty() ? std::string() : reasons[0].Text();
  };
  EXPECT_THAT(reason("first"), HasSubstr("shape of 'first'"));
  EXPECT_THAT(reason("second"), testing::AllOf(HasSubstr("of 'second'"), Not(HasSubstr("first"))));
}

TEST(ClaimMemory, KeepsOnlyWhatIsSaidOfTheNode) {
  const auto refusal = [](base::Code code) {
    return std::make_shared<const NodeReasons>(1, NodeReason{code, "It is so."});
  };
  const auto question = [](uint64_t number) { return split::Digester().Add(number).Get(); };
  ClaimMemory memory;
  memory.Add(question(1), std::make_shared<const NodeReasons>(), 0);
  memory.Add(question(2), refusal(base::Code::kUnsupportedShape), 0);
  memory.Add(question(3), refusal(base::Code::kBackendUnavailable), 0);
  memory.Add(question(4), refusal(base::Code::kNoDeviceMemory), 0);
  EXPECT_NE(memory.Find(question(1), 0), nullptr);
  EXPECT_NE(memory.Find(question(2), 0), nullptr);
  EXPECT_EQ(memory.Find(question(3), 0), nullptr);
  EXPECT_EQ(memory.Find(question(4), 0), nullptr);
  EXPECT_TRUE(memory.FindAll(std::vector{question(2), question(1)}, 0));
  EXPECT_FALSE(memory.FindAll(std::vector{question(2), question(3)}, 0));
}

TEST(ClaimMemory, ForgetsWhatADeviceSaidBeforeItWent) {
  const auto claimed = std::make_shared<const NodeReasons>();
  const auto question = [](uint64_t number) { return split::Digester().Add(number).Get(); };
  ClaimMemory memory;
  memory.Add(question(1), claimed, 0);
  EXPECT_EQ(memory.Find(question(1), 1), nullptr);
  // An answer from before that comes late.
  memory.Add(question(2), claimed, 0);
  EXPECT_EQ(memory.Find(question(2), 1), nullptr);
  memory.Add(question(3), claimed, 2);
  EXPECT_TRUE(memory.FindAll(std::vector{question(3)}, 2));
  EXPECT_FALSE(memory.FindAll(std::vector{question(3)}, 3));
}

// Blocks as networks repeat them, of a few widths: chains, diamonds, values read far below.
std::string LargeModel(int node_count) {
  onnx::ModelProto model;
  model.set_ir_version(10);
  model.add_opset_import()->set_version(21);
  onnx::GraphProto& graph = *model.mutable_graph();
  graph.set_name("large");
  const auto declare = [](onnx::ValueInfoProto& info, const std::string& name) {
    info.set_name(name);
    onnx::TypeProto::Tensor& type = *info.mutable_type()->mutable_tensor_type();
    type.set_elem_type(onnx::TensorProto::FLOAT);
    type.mutable_shape()->add_dim()->set_dim_value(16);
    type.mutable_shape()->add_dim()->set_dim_value(128);
  };
  declare(*graph.add_input(), "v0");
  struct Kind {
    const char* name;
    bool is_binary;
  };
  constexpr Kind kKinds[] = {{"Abs", false},     {"Neg", false}, {"Exp", false},     {"Add", true},
                             {"Relu", false},    {"Mul", true},  {"Softmax", false}, {"Sub", true},
                             {"Sigmoid", false}, {"Max", true},  {"Tanh", false},    {"Min", true}};
  for (int node = 0; node < node_count; ++node) {
    onnx::NodeProto& added = *graph.add_node();
    const Kind& kind = kKinds[static_cast<size_t>(node) * 7 % std::size(kKinds)];
    added.set_op_type(kind.name);
    added.set_name("node" + std::to_string(node));
    added.add_input("v" + std::to_string(node));
    if (kind.is_binary) added.add_input("v" + std::to_string(std::max(0, node - 1 - node % 11)));
    added.add_output("v" + std::to_string(node + 1));
  }
  declare(*graph.add_output(), "v" + std::to_string(node_count));
  return model.SerializeAsString();
}

// Of this process: what others do to the machine does not count.
double CpuMilliseconds() {
  timespec now = {};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) * 1e-6;
}

double Milliseconds(std::chrono::nanoseconds time) {
  return std::chrono::duration<double, std::milli>(time).count();
}

struct Figures {
  double read_ms = std::numeric_limits<double>::max();
  double first_claims_ms = 0;
  double claims_ms = std::numeric_limits<double>::max();
  double plan_ms = std::numeric_limits<double>::max();
  // Claims that are known, and the plan, reading included; of the processor.
  double warm_ms = std::numeric_limits<double>::max();
  size_t islands = 0;
};

Figures Measure(const char* file, int node_count) {
  MockDevices devices;
  devices.Add("host", R"({"refused": ["Softmax", "Max"]})", file)
      .Add("odd", R"({"operators": ["Abs", "Exp", "Relu", "Softmax", "Sigmoid", "Tanh"]})", file)
      .Add("even", R"({"operators": ["Neg", "Add", "Mul", "Sub", "Max", "Min"]})", file)
      .Add("few", R"({"operators": ["Softmax", "Tanh", "Mul"]})", file);
  const std::string model = LargeModel(node_count);
  Figures figures;
  partition::Plan first_plan;
  for (int repeat = 0; repeat < 4; ++repeat) {
    const double before = CpuMilliseconds();
    const auto planner = Ask(devices, model);
    const double read = Milliseconds(planner->times().read);
    const double asked = Milliseconds(planner->times().claims);
    const double before_plan = CpuMilliseconds();
    const auto plan = planner->Plan();
    const double planned = CpuMilliseconds() - before_plan;
    EXPECT_TRUE(plan.ok());
    EXPECT_EQ(planner->asked_count(), repeat == 0 ? 4 : 0);
    figures.read_ms = std::min(figures.read_ms, read);
    figures.plan_ms = std::min(figures.plan_ms, planned);
    if (repeat == 0) {
      figures.first_claims_ms = asked;
      first_plan = *plan;
    } else {
      figures.claims_ms = std::min(figures.claims_ms, asked);
      figures.warm_ms = std::min(figures.warm_ms, before_plan + planned - before);
      EXPECT_EQ(plan->island_of, first_plan.island_of);
    }
  }
  figures.islands = first_plan.islands.size();
  return figures;
}

TEST(AutoPlanner, PlansLargeModelsInLittleMoreThanLinearTime) {
  for (const auto& [name, file] : {std::pair{"plugins of the SDK", ONNXIFI_TEST_MOCK},
                                   std::pair{"plain 1.0 plugins", ONNXIFI_TEST_PLAIN_MOCK}}) {
    double smaller_ms = 0;
    for (const int node_count : {1000, 10000}) {
      const Figures figures = Measure(file, node_count);
      std::printf(
          "%5d nodes x 4 %s: read %.1f ms, claims %.1f ms, again %.1f ms, plan %.1f ms, %zu "
          "islands\n",
          node_count, name, figures.read_ms, figures.first_claims_ms, figures.claims_ms,
          figures.plan_ms, figures.islands);
      EXPECT_GT(figures.islands, 1U);
      // n log n would be 13; a square 100. The rest is what caches may add, and a busy neighbour of
      // the core.
      if (node_count > 1000) {
        EXPECT_LT(figures.warm_ms, 40 * smaller_ms);
      }
      smaller_ms = figures.warm_ms;
    }
  }
}

}  // namespace
}  // namespace onnxifi::planner
