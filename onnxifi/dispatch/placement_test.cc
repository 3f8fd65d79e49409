// SPDX-License-Identifier: Apache-2.0
//
// Where a caller wants the nodes of a graph, and plans given back: what the auto device makes of
// them, and what it refuses.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <onnxifi/auto_device.h>
#include <onnxifi/sdk.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "onnxifi/testing/planned_sandbox.h"

namespace onnxifi::dispatch {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

Placement Want(uint32_t kind, std::vector<std::string> keys,
               std::vector<Placement::Group> groups = {}) {
  Placement placement;
  placement.kind = kind;
  placement.device_keys = std::move(keys);
  placement.groups = std::move(groups);
  return placement;
}

Placement Prefer(std::vector<std::string> keys) {
  return Want(ONNXIFI_SDK_PLACEMENT_PREFER, std::move(keys));
}
Placement Strict(std::vector<std::string> keys) {
  return Want(ONNXIFI_SDK_PLACEMENT_STRICT, std::move(keys));
}
Placement Pin(std::vector<Placement::Group> groups) {
  return Want(ONNXIFI_SDK_PLACEMENT_AUTO, {}, std::move(groups));
}
Placement PlanOf(std::vector<Placement::Group> islands) {
  return Want(ONNXIFI_SDK_PLACEMENT_PLAN, {}, std::move(islands));
}

// "a:0:03 b:0:1": each island's device and nodes.
std::string TextOf(const GraphPlan& plan) {
  std::string text;
  for (const PlanIsland& island : plan.islands) {
    text += (text.empty() ? "" : " ") + island.device_key + ":";
    for (const uint32_t node : island.nodes) text += std::to_string(node);
  }
  return text;
}

// Of 2, -4 and 6 this makes 4, 8 and 12, wherever it runs; see kChain.
class Placed {
 public:
  explicit Placed(PlannedSandbox& sandbox)
      : library_(sandbox.Open()),
        device_(*library_.FindDevice("auto")),
        backend_(*device_.InitBackend()) {}

  Result<Graph> Init(Placement placement, const std::string& text = kChain) const {
    return InitModel(ParseModel(text), std::move(placement));
  }
  Result<Graph> InitModel(const std::vector<std::byte>& model, Placement placement) const {
    GraphOptions options;
    options.placement = std::move(placement);
    return backend_.InitGraph(model, options);
  }

  // The plan of a graph that runs as it should, else the sentence.
  std::string Run(Placement placement) const {
    const auto graph = Init(std::move(placement));
    if (!graph.ok()) return graph.error().Text();
    std::vector<float> source = {2, -4, 6};
    std::vector<float> target(3);
    const Tensor x{"x", ONNXIFI_DATATYPE_FLOAT32, {1, 3}, source.data()};
    const Tensor y{"y", ONNXIFI_DATATYPE_FLOAT32, {1, 3}, target.data()};
    EXPECT_TRUE(graph->SetIO({&x, 1}, {&y, 1}));
    EXPECT_TRUE(graph->RunAndWait());
    EXPECT_THAT(target, ElementsAre(4, 8, 12));
    return TextOf(*graph->Plan());
  }

  // Status and sentence of a graph that is refused.
  Error Refusal(Placement placement, const std::string& text = kChain) const {
    const auto graph = Init(std::move(placement), text);
    EXPECT_FALSE(graph.ok());
    return graph.ok() ? Error{} : graph.error();
  }

  const Backend& backend() const { return backend_; }

 private:
  const Library library_;
  const Device device_;
  const Backend backend_;
};

// Nodes 0 to 4 of kChain: Abs Neg Sqrt Abs Sub; Sqrt has no reader.
PlannedSandbox& AddThree(PlannedSandbox& sandbox) {
  return sandbox.AddMock("all", "{}")
      .AddMock("neg", R"({"operators": ["Neg", "Sub"]})")
      .AddMock("some", R"({"operators": ["Abs", "Neg"]})");
}

TEST(Placement, PrefersDevicesInTheirOrder) {
  PlannedSandbox sandbox;
  const Placed placed(AddThree(sandbox));
  EXPECT_EQ(placed.Run(Want(ONNXIFI_SDK_PLACEMENT_AUTO, {})), "all:0:");
  EXPECT_EQ(placed.Run(Prefer({"neg:0"})), "all:0:03 neg:0:14");
  EXPECT_EQ(placed.Run(Prefer({"neg:0", "some:0"})), "some:0:03 neg:0:14");
  EXPECT_EQ(placed.Run(Prefer({"some:0", "neg:0"})), "some:0:013 neg:0:4");
  EXPECT_EQ(placed.Run(Prefer({"some:0"})), "some:0:013 all:0:4");
  EXPECT_EQ(placed.Run(Prefer({"all:0", "neg:0"})), "all:0:");
}

TEST(Placement, LeavesToOthersWhatAPreferredDeviceDoesNotKeep) {
  PlannedSandbox sandbox;
  sandbox.AddMock("all", "{}").AddMock("liar", R"({"operators": ["Abs", "Neg"], "lies": ["Neg"]})");
  const Placed placed(sandbox);
  EXPECT_EQ(placed.Run(Prefer({"liar:0"})), "liar:0:03 all:0:14");
}

TEST(Placement, KeepsTogetherWhatCannotBeCutWhateverIsPreferred) {
  PlannedSandbox sandbox;
  sandbox.AddMock("all", "{}").AddMock("maker", R"({"operators": ["SequenceConstruct", "Abs"]})");
  const Placed placed(sandbox);
  const auto graph = placed.Init(Prefer({"maker:0"}), R"(
    graph (float[3] x) => (float[3] y) {
      a = Abs(x)  s = SequenceConstruct(a, x)  i = Constant<value_int = 1>()
      b = SequenceAt(s, i)  y = Neg(b) })");
  ASSERT_TRUE(graph.ok()) << graph.error().Text();
  EXPECT_EQ(TextOf(*graph->Plan()), "maker:0:0 all:0:134");
}

TEST(Placement, IsStrictWhereItIsWantedSo) {
  PlannedSandbox sandbox;
  const Placed placed(AddThree(sandbox));
  EXPECT_EQ(placed.Run(Strict({"all:0"})), "all:0:");
  EXPECT_EQ(placed.Run(Strict({"some:0", "neg:0"})), "some:0:03 neg:0:14");
  // Every node that it refuses, each with its reason.
  const Error one = placed.Refusal(Strict({"some:0"}), R"(
    graph (float[3] x) => (float[3] y) { a = Exp(x)  b = Abs(a)  y = Sub(b, x) })");
  EXPECT_EQ(one.status, ONNXIFI_STATUS_UNSUPPORTED_OPERATOR);
  EXPECT_THAT(
      one.Text(),
      AllOf(HasSubstr("Device 'some:0', where the graph is wanted, does not run it."),
            HasSubstr("node 0 (Exp): Operator 'Exp' is not among"),
            HasSubstr("node 2 (Sub): Operator 'Sub' is not among"), Not(HasSubstr("(Abs)"))));
  const Error two = placed.Refusal(Strict({"some:0", "neg:0"}), R"(
    graph (float[3] x) => (float[3] y) { a = Exp(x)  b = Sin(a)  y = Sub(b, x) })");
  EXPECT_EQ(two.status, ONNXIFI_STATUS_UNSUPPORTED_OPERATOR);
  EXPECT_THAT(two.Text(), AllOf(HasSubstr("some:0, node 0 (Exp): Operator 'Exp' is not among"),
                                HasSubstr("neg:0, node 0 (Exp): Operator 'Exp' is not among"),
                                HasSubstr("some:0, node 1 (Sin): Operator 'Sin' is not among"),
                                HasSubstr("neg:0, node 1 (Sin): Operator 'Sin' is not among"),
                                Not(HasSubstr("all:0, node 2"))));
}

TEST(Placement, PinsNodesToDevices) {
  PlannedSandbox sandbox;
  const Placed placed(AddThree(sandbox));
  EXPECT_EQ(placed.Run(Pin({{"neg:0", {1}}})), "all:0:03 neg:0:1 all:0:4");
  // Whatever else is wanted.
  Placement placement = Prefer({"some:0"});
  placement.groups = {{"all:0", {3}}, {"neg:0", {1, 4}}};
  EXPECT_EQ(placed.Run(placement), "some:0:0 all:0:3 neg:0:14");
  placement = Strict({"all:0"});
  placement.groups = {{"some:0", {0}}};
  EXPECT_EQ(placed.Run(placement), "some:0:0 all:0:134");
}

// Ten nodes in a row, each of which reads what the one before it makes.
constexpr const char* kRow = R"(
  graph (float[64, 64] x) => (float[64, 64] y) {
    a = Abs(x)  b = Neg(a)  c = Abs(b)  d = Neg(c)  e = Abs(d)
    f = Neg(e)  g = Abs(f)  h = Neg(g)  i = Abs(h)  y = Neg(i)
  })";

TEST(Placement, APinMovesItsNodeAlone) {
  PlannedSandbox sandbox;
  sandbox.AddMock("first", "{}").AddMock("second", "{}").AddMock("third", "{}");
  const Placed placed(sandbox);
  const auto plan_of = [&](Placement placement) {
    const auto graph = placed.Init(std::move(placement), kRow);
    return graph.ok() ? TextOf(*graph->Plan()) : graph.error().Text();
  };
  EXPECT_EQ(plan_of(Pin({{"second:0", {4}}})), "first:0:0123 second:0:4 first:0:56789");
  EXPECT_EQ(plan_of(Pin({{"second:0", {0}}})), "second:0:0 first:0:123456789");
  EXPECT_EQ(plan_of(Pin({{"third:0", {9}}, {"second:0", {4, 5}}})),
            "first:0:0123 second:0:45 first:0:678 third:0:9");
  Placement preferred = Prefer({"second:0"});
  preferred.groups = {{"third:0", {4}}};
  EXPECT_EQ(plan_of(preferred), "second:0:0123 third:0:4 second:0:56789");
  Placement strict = Strict({"second:0"});
  strict.groups = {{"first:0", {4}}};
  EXPECT_EQ(plan_of(strict), "second:0:0123 first:0:4 second:0:56789");
}

TEST(Placement, TheModelMovesANodeAlone) {
  PlannedSandbox sandbox;
  sandbox.AddMock("first", "{}").AddMock("second", "{}");
  const Placed placed(sandbox);
  const std::vector<std::byte> bytes = ParseModel(kRow);
  onnx::ModelProto model;
  ASSERT_TRUE(model.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())));
  onnx::StringStringEntryProto& entry =
      *model.mutable_graph()->mutable_node(4)->add_metadata_props();
  entry.set_key("onnxifi.device");
  entry.set_value("second:0");
  const std::string text = model.SerializeAsString();
  const auto graph = placed.backend().InitGraph(std::as_bytes(std::span(text)));
  ASSERT_TRUE(graph.ok()) << graph.error().Text();
  EXPECT_EQ(TextOf(*graph->Plan()), "first:0:0123 second:0:4 first:0:56789");
}

// Nodes that nobody places are where they would be in a model that has to be cut anyway.
TEST(Placement, APinLeavesTheRestOfACutModelWhereItIs) {
  PlannedSandbox sandbox;
  sandbox.AddMock("abs", R"({"operators": ["Abs"]})").AddMock("neg", R"({"refused": ["Abs"]})");
  const Placed placed(sandbox.AddMock("spare", "{}"));
  const auto graph = placed.Init(Strict({"abs:0", "neg:0"}), kRow);
  ASSERT_TRUE(graph.ok()) << graph.error().Text();
  EXPECT_EQ(TextOf(*graph->Plan()),
            "abs:0:0 neg:0:1 abs:0:2 neg:0:3 abs:0:4 neg:0:5 abs:0:6 neg:0:7 abs:0:8 neg:0:9");
  Placement pinned = Strict({"abs:0", "neg:0"});
  pinned.groups = {{"spare:0", {4}}};
  const auto moved = placed.Init(pinned, kRow);
  ASSERT_TRUE(moved.ok()) << moved.error().Text();
  EXPECT_EQ(TextOf(*moved->Plan()),
            "abs:0:0 neg:0:1 abs:0:2 neg:0:3 spare:0:4 neg:0:5 abs:0:6 neg:0:7 abs:0:8 neg:0:9");
}

TEST(Placement, MovesWhatCannotBeCutFromAPinnedNodeWithIt) {
  PlannedSandbox sandbox;
  sandbox.AddMock("first", "{}")
      .AddMock("second", "{}")
      .AddMock("none", R"({"operators": ["Abs"]})");
  const Placed placed(sandbox);
  constexpr const char* kWithSequence = R"(
    graph (float[3] x) => (float[3] y) {
      a = Abs(x)  s = SequenceConstruct(a, x)  i = Constant<value_int = 1>()
      b = SequenceAt(s, i)  c = Neg(b)  y = Abs(c) })";
  // SequenceAt takes SequenceConstruct along, and Neg, which is needed by nothing of it, stays.
  const auto graph = placed.Init(Pin({{"second:0", {3}}}), kWithSequence);
  ASSERT_TRUE(graph.ok()) << graph.error().Text();
  const std::string plan = TextOf(*graph->Plan());
  const auto alone = placed.Init(Pin({{"second:0", {1}}}), kWithSequence);
  ASSERT_TRUE(alone.ok()) << alone.error().Text();
  EXPECT_EQ(TextOf(*alone->Plan()), plan);
  EXPECT_EQ(plan, "first:0:0 second:0:13 first:0:45");
  // Where that device does not take all of them, nobody has them.
  const auto refused = placed.Init(Pin({{"none:0", {3}}}), kWithSequence);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().Text(), HasSubstr("that have to stay together"));
}

TEST(Placement, RefusesAPinThatCannotBeKept) {
  PlannedSandbox sandbox;
  const Placed placed(AddThree(sandbox));
  const Error refused = placed.Refusal(Pin({{"neg:0", {0}}}));
  EXPECT_EQ(refused.status, ONNXIFI_STATUS_UNSUPPORTED_OPERATOR);
  EXPECT_THAT(
      refused.Text(),
      AllOf(HasSubstr("neg:0, node 0 (Abs): Operator 'Abs' is not among"),
            HasSubstr("all:0 and some:0, node 0 (Abs): The caller places the node on device "
                      "'neg:0'.")));
  for (const auto& [placement, sentence] : std::vector<std::pair<Placement, std::string>>{
           {Pin({{"gone:0", {0}}}), "The auto device has no device 'gone:0'; it has: all:0 neg:0"},
           {Pin({{"all:0", {9}}}), "Node 9 is placed on device 'all:0', and is none"},
           // Nobody reads it.
           {Pin({{"all:0", {2}}}), "Node 2 is placed on device 'all:0', and is none"},
           {Pin({{"all:0", {1}}, {"neg:0", {1}}}), "it is placed on device 'all:0' already"},
           {Pin({{"all:0", {}}}), "A part of the graph for device 'all:0' has no nodes."},
           {Prefer({"gone:1"}), "The auto device has no device 'gone:1'"},
           {Strict({"gone:2"}), "The auto device has no device 'gone:2'"},
           {Strict({"all:0", "gone:2"}), "The auto device has no device 'gone:2'"},
           {Prefer({}), "A placement on devices lists none."},
           {Want(ONNXIFI_SDK_PLACEMENT_AUTO, {"all:0"}), "lists devices, and is not of a kind"},
           {Want(4, {}, {{"all:0", {0}}}), "There is no placement of kind 4."}}) {
    const Error error = placed.Refusal(placement);
    EXPECT_EQ(error.status, ONNXIFI_STATUS_INVALID_PROPERTY) << sentence;
    EXPECT_THAT(error.Text(), HasSubstr(sentence));
  }
}

TEST(Placement, IsReadAsFarAsItGoes) {
  PlannedSandbox sandbox;
  const Placed placed(AddThree(sandbox));
  const auto model = ParseModel(kChain);
  const auto init_graph = [&](const onnxPlacement* placement) {
    const uint64_t list[] = {ONNXIFI_SDK_GRAPH_PROPERTY_PLACEMENT,
                             reinterpret_cast<uintptr_t>(placement), 0};
    onnxGraph graph = nullptr;
    const auto init = reinterpret_cast<onnxInitGraphFunction>(
        dlsym(dlopen((sandbox.folder() / "libonnxifi.so").c_str(), RTLD_NOW), "onnxInitGraph"));
    const auto release = reinterpret_cast<onnxReleaseGraphFunction>(
        dlsym(dlopen((sandbox.folder() / "libonnxifi.so").c_str(), RTLD_NOW), "onnxReleaseGraph"));
    const onnxStatus status =
        init(placed.backend().handle(), list, model.size(), model.data(), 0, nullptr, &graph);
    if (graph != nullptr) {
      EXPECT_EQ(release(graph), ONNXIFI_STATUS_SUCCESS);
    }
    return status;
  };
  EXPECT_EQ(init_graph(nullptr), ONNXIFI_STATUS_INVALID_PROPERTY);
  onnxPlacement placement = {};
  EXPECT_EQ(init_graph(&placement), ONNXIFI_STATUS_INVALID_PROPERTY);
  placement.struct_size = sizeof(size_t);
  placement.kind = 77;
  EXPECT_EQ(init_graph(&placement), ONNXIFI_STATUS_SUCCESS);
  placement.struct_size = sizeof(placement);
  EXPECT_EQ(init_graph(&placement), ONNXIFI_STATUS_INVALID_PROPERTY);
  placement.kind = ONNXIFI_SDK_PLACEMENT_STRICT;
  placement.device_count = 1;
  EXPECT_EQ(init_graph(&placement), ONNXIFI_STATUS_INVALID_PROPERTY);
  const char* keys[] = {nullptr};
  placement.device_keys = keys;
  EXPECT_EQ(init_graph(&placement), ONNXIFI_STATUS_INVALID_PROPERTY);
  keys[0] = "all:0";
  EXPECT_EQ(init_graph(&placement), ONNXIFI_STATUS_SUCCESS);
  placement.group_count = 1;
  EXPECT_EQ(init_graph(&placement), ONNXIFI_STATUS_INVALID_PROPERTY);
  const onnxDeviceNodes* groups[] = {nullptr};
  placement.groups = groups;
  EXPECT_EQ(init_graph(&placement), ONNXIFI_STATUS_INVALID_PROPERTY);
  onnxDeviceNodes group = {};
  groups[0] = &group;
  group.struct_size = sizeof(group);
  EXPECT_EQ(init_graph(&placement), ONNXIFI_STATUS_INVALID_PROPERTY);
  group.device_key = "neg:0";
  group.node_count = 1;
  EXPECT_EQ(init_graph(&placement), ONNXIFI_STATUS_INVALID_PROPERTY);
  const uint32_t node = 1;
  group.nodes = &node;
  EXPECT_EQ(init_graph(&placement), ONNXIFI_STATUS_SUCCESS);
}

// The model with the devices in its metadata.
std::vector<std::byte> WithPlaces(const std::vector<std::pair<int, std::string>>& places) {
  const std::vector<std::byte> bytes = ParseModel(kChain);
  onnx::ModelProto model;
  EXPECT_TRUE(model.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())));
  for (const auto& [node, key] : places) {
    onnx::StringStringEntryProto& entry =
        *model.mutable_graph()->mutable_node(node)->add_metadata_props();
    entry.set_key("onnxifi.device");
    entry.set_value(key);
  }
  const std::string text = model.SerializeAsString();
  const auto* data = reinterpret_cast<const std::byte*>(text.data());
  return {data, data + text.size()};
}

TEST(Placement, LeavesTheModelItsOwn) {
  PlannedSandbox sandbox;
  const Placed placed(AddThree(sandbox));
  const auto model = WithPlaces({{1, "neg:0"}, {3, "some:0"}});
  auto graph = placed.InitModel(model, Strict({"all:0"}));
  ASSERT_TRUE(graph.ok()) << graph.error().Text();
  EXPECT_EQ(TextOf(*graph->Plan()), "all:0:0 neg:0:1 some:0:3 all:0:4");
  graph = placed.InitModel(model, Pin({{"neg:0", {1}}, {"neg:0", {4}}}));
  ASSERT_TRUE(graph.ok()) << graph.error().Text();
  EXPECT_EQ(TextOf(*graph->Plan()), "all:0:0 some:0:3 neg:0:14");
  graph = placed.InitModel(model, Pin({{"all:0", {1}}}));
  ASSERT_FALSE(graph.ok());
  EXPECT_THAT(graph.error().Text(),
              HasSubstr("The caller places node 1 (Neg) on device 'all:0', and it is placed on"
                        " device 'neg:0' already."));
  graph = placed.InitModel(model, PlanOf({{"all:0", {}}}));
  ASSERT_FALSE(graph.ok());
  EXPECT_THAT(graph.error().Text(),
              AllOf(HasSubstr("The plan has node 1 (Neg) in island 0 on device 'all:0'"),
                    HasSubstr("The model places the node on device 'neg:0'.")));
}

TEST(GivenPlans, AreCarriedOutAsTheyAre) {
  PlannedSandbox sandbox;
  const Placed placed(AddThree(sandbox));
  // What no planner would make.
  for (const auto& [islands, text] :
       std::vector<std::pair<std::vector<Placement::Group>, std::string>>{
           {{{"all:0", {0}}, {"all:0", {1}}, {"all:0", {3}}, {"neg:0", {4}}},
            "all:0:0 all:0:1 all:0:3 neg:0:4"},
           {{{"some:0", {0, 1, 3}}, {"all:0", {4}}}, "some:0:013 all:0:4"},
           // In another order than they can run in.
           {{{"neg:0", {4}}, {"all:0", {3, 1, 0}}}, "all:0:013 neg:0:4"},
           {{{"all:0", {}}}, "all:0:"},
           {{{"all:0", {0, 1, 3, 4}}}, "all:0:"}}) {
    EXPECT_EQ(placed.Run(PlanOf(islands)), text);
  }
}

TEST(GivenPlans, MayBeAnyThatWasTold) {
  PlannedSandbox sandbox;
  const Placed placed(AddThree(sandbox));
  for (const Placement& placement : {Prefer({"neg:0"}), Prefer({"some:0", "neg:0"}),
                                     Pin({{"neg:0", {1}}, {"some:0", {3}}}), Strict({"all:0"})}) {
    const auto first = placed.Init(placement);
    ASSERT_TRUE(first.ok());
    const auto told = first->Plan();
    ASSERT_TRUE(told.ok());
    const auto again = placed.Init(Placement::Replay(*told));
    ASSERT_TRUE(again.ok()) << again.error().Text();
    const auto plan = again->Plan();
    ASSERT_TRUE(plan.ok());
    EXPECT_EQ(TextOf(*plan), TextOf(*told));
    ASSERT_EQ(plan->cuts.size(), told->cuts.size());
    for (size_t cut = 0; cut < told->cuts.size(); ++cut) {
      EXPECT_EQ(plan->cuts[cut].value_name, told->cuts[cut].value_name);
      EXPECT_EQ(plan->cuts[cut].from_island, told->cuts[cut].from_island);
      EXPECT_EQ(plan->cuts[cut].to_island, told->cuts[cut].to_island);
    }
    for (size_t island = 0; island < told->islands.size(); ++island) {
      EXPECT_EQ(plan->islands[island].after, told->islands[island].after);
      // Nothing was weighed.
      EXPECT_EQ(plan->islands[island].estimated_duration_ns, 0U);
    }
  }
}

TEST(GivenPlans, AreRefusedWithTheNodeAndTheDeviceThatDoNotFit) {
  PlannedSandbox sandbox;
  const Placed placed(AddThree(sandbox));
  struct Case {
    std::vector<Placement::Group> islands;
    onnxStatus status;
    std::vector<std::string> sentences;
  };
  const Case cases[] = {
      {{}, ONNXIFI_STATUS_INVALID_PROPERTY, {"The plan has no islands."}},
      {{{"gone:3", {}}},
       ONNXIFI_STATUS_INVALID_PROPERTY,
       {"The auto device has no device 'gone:3'"}},
      {{{"all:0", {0, 1}}, {"gone:3", {3, 4}}},
       ONNXIFI_STATUS_INVALID_PROPERTY,
       {"The auto device has no device 'gone:3'; it has: all:0 neg:0 some:0.",
        "in island 1 of the plan, with node 3 (Abs)"}},
      {{{"all:0", {0, 1}}, {"neg:0", {4}}},
       ONNXIFI_STATUS_INVALID_PROPERTY,
       {"The plan gives node 3 (Abs) to no device."}},
      {{{"all:0", {0, 1, 3}}, {"neg:0", {3, 4}}},
       ONNXIFI_STATUS_INVALID_PROPERTY,
       {"The plan has node 3 (Abs) twice, in island 0 and island 1 of the plan on device "
        "'neg:0'."}},
      {{{"all:0", {0, 1, 3, 3, 4}}},
       ONNXIFI_STATUS_INVALID_PROPERTY,
       {"The plan has node 3 (Abs) twice"}},
      {{{"all:0", {0, 1, 3}}, {"neg:0", {4, 4'000'000'000}}},
       ONNXIFI_STATUS_INVALID_PROPERTY,
       {"Node 4000000000 is in island 1 of the plan on device 'neg:0', and no plan of the model"}},
      {{{"all:0", {0, 1, 3}}, {"neg:0", {2, 4}}},
       ONNXIFI_STATUS_INVALID_PROPERTY,
       {"Node 2 is in island 1 of the plan on device 'neg:0'"}},
      {{{"some:0", {0, 1}}, {"neg:0", {3, 4}}},
       ONNXIFI_STATUS_UNSUPPORTED_OPERATOR,
       {"The plan has node 3 (Abs) in island 1 on device 'neg:0', which refuses it.",
        "Operator 'Abs' is not among"}},
      {{{"all:0", {0, 4}}, {"some:0", {1, 3}}},
       ONNXIFI_STATUS_INVALID_PROPERTY,
       {"The plan goes in a circle: ", "in island 0 on device 'all:0'",
        "in island 1 on device 'some:0'"}},
  };
  for (const Case& wrong : cases) {
    const Error error = placed.Refusal(PlanOf(wrong.islands));
    EXPECT_EQ(error.status, wrong.status) << wrong.sentences[0];
    for (const std::string& sentence : wrong.sentences) {
      EXPECT_THAT(error.Text(), HasSubstr(sentence));
    }
  }
}

TEST(GivenPlans, MayNotTearSequences) {
  PlannedSandbox sandbox;
  sandbox.AddMock("one", "{}").AddMock("two", "{}");
  const Placed placed(sandbox);
  const Error error = placed.Refusal(PlanOf({{"one:0", {0, 1}}, {"two:0", {3, 4}}}), R"(
    graph (float[3] x) => (float[3] y) {
      a = Abs(x)  s = SequenceConstruct(a, x)  i = Constant<value_int = 1>()
      b = SequenceAt(s, i)  y = Neg(b) })");
  EXPECT_EQ(error.status, ONNXIFI_STATUS_INVALID_PROPERTY);
  EXPECT_THAT(error.Text(),
              HasSubstr("The plan has node 1 (SequenceConstruct) in island 0 on device 'one:0' and"
                        " node 3 (SequenceAt) in island 1 on device 'two:0', and nothing carries"
                        " 's' from one to the other."));
}

TEST(GivenPlans, AreNotChangedWhereADeviceDoesNotKeepItsClaim) {
  PlannedSandbox sandbox;
  sandbox.AddMock("all", "{}").AddMock("liar", R"({"operators": ["Abs", "Neg"], "lies": ["Neg"]})");
  const Placed placed(sandbox);
  const Error error = placed.Refusal(PlanOf({{"liar:0", {0, 1, 3}}, {"all:0", {4}}}));
  EXPECT_EQ(error.status, ONNXIFI_STATUS_UNSUPPORTED_OPERATOR);
  EXPECT_THAT(error.Text(),
              AllOf(HasSubstr("on device 'liar:0'"), HasSubstr("which refuses node 1 (Neg)"),
                    Not(HasSubstr("refuses node 0")), Not(HasSubstr("refuses node 3"))));
  const Error whole = placed.Refusal(PlanOf({{"liar:0", {0}}}), R"(
    graph (float[3] x) => (float[3] y) { y = Neg(x) })");
  EXPECT_THAT(whole.Text(), HasSubstr("on device 'liar:0', to which the plan gives every node"));
}

TEST(GivenPlans, HaveOthersTakeOverWhenADeviceVanishes) {
  PlannedSandbox sandbox;
  sandbox.AddMock("all", "{}").AddMock("brief", R"({"vanishes_at_run": 2})");
  const Placed placed(sandbox);
  const auto graph = placed.Init(PlanOf({{"brief:0", {0, 1, 3}}, {"all:0", {4}}}));
  ASSERT_TRUE(graph.ok()) << graph.error().Text();
  std::vector<float> source = {2, -4, 6};
  std::vector<float> target(3);
  const Tensor x{"x", ONNXIFI_DATATYPE_FLOAT32, {1, 3}, source.data()};
  const Tensor y{"y", ONNXIFI_DATATYPE_FLOAT32, {1, 3}, target.data()};
  ASSERT_TRUE(graph->SetIO({&x, 1}, {&y, 1}));
  for (int run = 0; run < 3; ++run) {
    target.assign(3, 0);
    ASSERT_TRUE(graph->RunAndWait());
    EXPECT_THAT(target, ElementsAre(4, 8, 12));
  }
  // Told of several devices, it is no plan for another graph any more unless it is one device's.
  EXPECT_EQ(TextOf(*graph->Plan()), "all:0:013 all:0:4");
}

}  // namespace
}  // namespace onnxifi::dispatch
