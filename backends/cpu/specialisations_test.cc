// SPDX-License-Identifier: Apache-2.0
//
// Specialisations on the CPU: a shape that comes again is run by the kernels that the same graph
// with numbers has, gives the same results, and few are kept.

#include "backends/core/plugin/specialisations.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <future>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "backends/core/execution/executor.h"
#include "backends/core/execution/testing/run_program.h"
#include "backends/core/graph/testing/graph_builder.h"
#include "backends/core/plugin/compiled_graph.h"
#include "backends/core/plugin/pipeline.h"
#include "backends/core/plugin/task_queue.h"
#include "backends/cpu/device.h"

namespace onnxifi::cpu {
namespace {

using graph::Graph;
using graph::ValueId;
using graph::testing::GraphBuilder;
using plugin::Specialisation;
using plugin::Specialisations;
using tensor::ElementType;
using tensor::Extents;
using tensor::Tensor;
using Ints = std::vector<int64_t>;

constexpr ElementType kFloat = ElementType::kFloat32;
constexpr int64_t kChannels = 32;

Tensor Numbers(const Extents& extents) {
  std::vector<float> values(static_cast<size_t>(tensor::ElementCount(extents)));
  for (size_t k = 0; k < values.size(); ++k) {
    values[k] = 0.01F * static_cast<float>(static_cast<int>(k * 7919 % 61) - 30);
  }
  return Tensor::FromValues<float>(kFloat, extents, values);
}

template <typename T>
Tensor Scalar(ElementType type, T value) {
  return Tensor::FromValues<T>(type, {}, std::vector<T>{value});
}

enum class Network : uint8_t {
  kConvolutions,  // one after the other
  kNoisy,         // the same of random numbers, of one seed
  kQuantized,     // the same of bytes
  kSum,           // of an image and a number
};

Graph MakeGraph(const std::vector<graph::Extent>& size, Network network = Network::kConvolutions) {
  GraphBuilder builder;
  graph::Type type;
  type.kind = graph::Type::Kind::kTensor;
  type.element = kFloat;
  type.extents = {{1, ""}, {kChannels, ""}, size[0], size[1]};
  ValueId x = builder.AddInput("x", type);
  if (network == Network::kSum) {
    const ValueId one = builder.AddConstant(Numbers({1}));
    return builder.Take({builder.AddNode("Add", 14, {x, one})});
  }
  const bool is_quantized = network == Network::kQuantized;
  const auto quantize = [&](ValueId value) {
    if (!is_quantized) return value;
    const ValueId scale = builder.AddConstant(Scalar(kFloat, 0.02F));
    const ValueId zero = builder.AddConstant(Scalar(ElementType::kInt8, int8_t{3}));
    const ValueId quantized = builder.AddNode("QuantizeLinear", 13, {value, scale, zero});
    return builder.AddNode("DequantizeLinear", 13, {quantized, scale, zero});
  };
  x = quantize(x);
  if (network == Network::kNoisy) {
    x = builder.AddNode("RandomUniformLike", 1, {x}, {{"seed", 3.0F}});
  }
  for (int k = 0; k < (is_quantized ? 2 : 5); ++k) {
    if (is_quantized) {
      std::vector<int8_t> weights(size_t{kChannels * kChannels * 9});
      for (size_t n = 0; n < weights.size(); ++n) {
        weights[n] = static_cast<int8_t>(static_cast<int>(n * 7919 % 61) - 30);
      }
      const ValueId bytes = builder.AddConstant(
          Tensor::FromValues<int8_t>(ElementType::kInt8, {kChannels, kChannels, 3, 3}, weights));
      const ValueId scale = builder.AddConstant(Scalar(kFloat, 0.001F));
      const ValueId zero = builder.AddConstant(Scalar(ElementType::kInt8, int8_t{0}));
      const ValueId dequantized = builder.AddNode("DequantizeLinear", 13, {bytes, scale, zero});
      x = builder.AddNode("Conv", 11, {x, dequantized}, {{"pads", Ints{1, 1, 1, 1}}});
      x = quantize(builder.AddNode("Relu", 14, {x}));
      continue;
    }
    x = builder.AddNode("Conv", 11, {x, builder.AddConstant(Numbers({kChannels, kChannels, 3, 3}))},
                        {{"pads", Ints{1, 1, 1, 1}}});
    x = builder.AddNode("Relu", 14, {x});
  }
  return builder.Take({x});
}

class SpecialisationsTest : public testing::Test {
 protected:
  void Make(Network network = Network::kConvolutions) {
    auto device = Device::Create(std::make_shared<threads::ThreadPool>(2), base::Log());
    ASSERT_TRUE(device.ok()) << device.status().Text();
    device_ = *std::move(device);
    plugin::LoadTimes times;
    auto program = plugin::Compile(MakeGraph({{-1, "height"}, {-1, "width"}}, network), *device_,
                                   base::Log(), times);
    ASSERT_TRUE(program.ok()) << program.status().Text();
    program_ = *std::move(program);
    auto plan = plan::Plan::Create(*program_, *device_, counters_);
    ASSERT_TRUE(plan.ok()) << plan.status().Text();
    plan_ = *std::move(plan);
    specialisations_ =
        std::make_unique<Specialisations>(CompilerForShapes(network), *plan_, counters_);
  }

  Specialisations::Compile CompilerForShapes(Network network) {
    return [this, network](std::span<const Extents> inputs) {
      ++compiled_;
      if (while_compiling_) while_compiling_();
      plugin::LoadTimes nobody_asks;
      return plugin::Compile(MakeGraph({{inputs[0][2], ""}, {inputs[0][3], ""}}, network), *device_,
                             base::Log(), nobody_asks);
    };
  }

  std::shared_ptr<const Specialisation> ForRun(int64_t height, int64_t width) {
    const Extents extents[] = {{1, kChannels, height, width}};
    return specialisations_->ForRun({height, width}, extents);
  }

  std::shared_ptr<const Specialisation> ForBinding(int64_t height, int64_t width) {
    const Extents extents[] = {{1, kChannels, height, width}};
    return specialisations_->ForBinding({height, width}, extents);
  }

  static std::vector<std::string> Implementations(const plan::Plan& plan) {
    std::vector<std::string> names;
    for (size_t step = 0; step < plan.program().steps.size(); ++step) {
      names.emplace_back(plan.implementation(static_cast<int>(step)));
    }
    return names;
  }

  static std::vector<float> Run(execution::Executor& executor, const program::Program& program,
                                const Tensor& input) {
    execution::TensorOutputs places(program);
    const std::vector<Tensor> inputs = {input};
    const base::Status status = executor.Run(execution::AsInputs(inputs), places);
    EXPECT_TRUE(status.ok()) << status.Text();
    const auto values = places.tensors[0].values<float>();
    return {values.begin(), values.end()};
  }

  static void ExpectNear(std::span<const float> found, std::span<const float> expected) {
    ASSERT_EQ(found.size(), expected.size());
    for (size_t k = 0; k < found.size(); ++k) {
      ASSERT_NEAR(found[k], expected[k], 1e-3 * (1 + std::fabs(expected[k]))) << k;
    }
  }

  std::unique_ptr<Device> device_;
  std::unique_ptr<program::Program> program_;
  plan::Counters counters_;
  std::unique_ptr<plan::Plan> plan_;
  std::unique_ptr<Specialisations> specialisations_;
  int compiled_ = 0;
  std::function<void()> while_compiling_;
};

TEST_F(SpecialisationsTest, HaveTheKernelsAndTheResultsOfNumbers) {
  Make();
  EXPECT_EQ(ForRun(40, 36), nullptr);
  const std::shared_ptr<const Specialisation> made = ForRun(40, 36);
  ASSERT_NE(made, nullptr);
  EXPECT_EQ(ForRun(40, 36), made);
  EXPECT_EQ(compiled_, 1);
  // As of the graph with numbers, and others than with symbols.
  plugin::LoadTimes times;
  auto fixed = plugin::Compile(MakeGraph({{40, ""}, {36, ""}}), *device_, base::Log(), times);
  ASSERT_TRUE(fixed.ok()) << fixed.status().Text();
  const auto plan = plan::Plan::Create(**fixed, *device_, counters_);
  ASSERT_TRUE(plan.ok()) << plan.status().Text();
  EXPECT_EQ(Implementations(*made->plan), Implementations(**plan));
  EXPECT_NE(Implementations(*made->plan), Implementations(*plan_));
  execution::Executor general(*plan_);
  const Tensor image = Numbers({1, kChannels, 40, 36});
  const std::vector<float> expected = Run(general, *program_, image);
  const std::vector<float> found = Run(*made->executor, *made->program, image);
  ExpectNear(found, expected);
}

TEST_F(SpecialisationsTest, AreMadeForTheFirstBindingOfConvolutions) {
  Make();
  const std::shared_ptr<const Specialisation> first = ForBinding(40, 36);
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(ForRun(40, 36), first);
  // Any other shape has to come twice.
  EXPECT_EQ(ForBinding(44, 36), nullptr);
  EXPECT_EQ(ForRun(44, 36), nullptr);
  const std::shared_ptr<const Specialisation> second = ForRun(44, 36);
  ASSERT_NE(second, nullptr);
  EXPECT_EQ(ForBinding(44, 36), second);
  EXPECT_EQ(ForBinding(40, 36), first);
  EXPECT_EQ(compiled_, 2);
}

// A second thread would bind the general plan, which packs the weights again.
TEST_F(SpecialisationsTest, AreWaitedForByThoseWhoBindTheFirstShapeToo) {
  Make();
  std::future<std::shared_ptr<const Specialisation>> same, other;
  std::promise<void> has_begun;
  while_compiling_ = [&] {
    same = std::async(std::launch::async, [&] {
      has_begun.set_value();
      return ForBinding(40, 36);
    });
    has_begun.get_future().wait();
    other = std::async(std::launch::async, [this] { return ForBinding(44, 36); });
    EXPECT_EQ(other.get(), nullptr) << "another shape does not wait";
    EXPECT_EQ(same.wait_for(std::chrono::milliseconds(50)), std::future_status::timeout);
  };
  const std::shared_ptr<const Specialisation> first = ForBinding(40, 36);
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(same.get(), first);
  EXPECT_EQ(compiled_, 1);
}

TEST_F(SpecialisationsTest, AreGivenUpWhereTheGeneralPlanDoesTheRuns) {
  Make();
  const std::weak_ptr<const Specialisation> first = ForBinding(40, 36);
  EXPECT_FALSE(first.expired());
  specialisations_->Discard({40, 37});
  EXPECT_FALSE(first.expired());
  specialisations_->Discard({40, 36});
  EXPECT_TRUE(first.expired());
  specialisations_->Discard({40, 36});
  // It has to come again as any other shape, of which as many are kept as before.
  EXPECT_EQ(ForBinding(40, 36), nullptr);
  EXPECT_EQ(ForRun(40, 36), nullptr);
  EXPECT_NE(ForRun(40, 36), nullptr);
  EXPECT_EQ(compiled_, 2);
}

TEST_F(SpecialisationsTest, AreNotMadeForAFirstBindingWithoutConvolutions) {
  Make(Network::kSum);
  EXPECT_EQ(ForBinding(40, 36), nullptr);
  EXPECT_EQ(compiled_, 0);
}

// Whoever runs a shape of its own already has begun.
TEST_F(SpecialisationsTest, AreNotMadeForABindingBehindARun) {
  Make();
  EXPECT_EQ(ForRun(44, 36), nullptr);
  EXPECT_EQ(ForBinding(40, 36), nullptr);
  EXPECT_EQ(compiled_, 0);
}

TEST_F(SpecialisationsTest, GoOnWithTheDrawsOfTheGraph) {
  Make(Network::kNoisy);
  EXPECT_EQ(ForRun(40, 36), nullptr);
  const std::shared_ptr<const Specialisation> made = ForRun(40, 36);
  ASSERT_NE(made, nullptr);
  execution::Executor general(*plan_);
  const Tensor image = Numbers({1, kChannels, 40, 36});
  const auto difference = [](const std::vector<float>& a, const std::vector<float>& b) {
    float most = 0;
    for (size_t k = 0; k < a.size(); ++k) most = std::max(most, std::fabs(a[k] - b[k]));
    return most;
  };
  const std::vector<float> first = Run(general, *program_, image);
  const std::vector<float> second = Run(*made->executor, *made->program, image);
  const std::vector<float> third = Run(general, *program_, image);
  EXPECT_GT(difference(first, second), 1e-2);
  EXPECT_GT(difference(second, third), 1e-2);
  // From the beginning: the same numbers, by other kernels.
  program_->draws->next = 0;
  EXPECT_LT(difference(first, Run(*made->executor, *made->program, image)), 1e-3);
}

// Products of bytes have one implementation, which is faster where channels lie side by side.
TEST_F(SpecialisationsTest, AreMadeForAnotherOrderInMemory) {
  Make(Network::kQuantized);
  EXPECT_EQ(ForRun(40, 36), nullptr);
  const std::shared_ptr<const Specialisation> made = ForRun(40, 36);
  ASSERT_NE(made, nullptr);
  execution::Executor general(*plan_);
  const Tensor image = Numbers({1, kChannels, 40, 36});
  EXPECT_EQ(Run(*made->executor, *made->program, image), Run(general, *program_, image));
}

TEST_F(SpecialisationsTest, AreMadeOfShapesThatComeAgain) {
  Make();
  for (int64_t height = 20; height < 140; ++height) EXPECT_EQ(ForRun(height, 20), nullptr);
  EXPECT_EQ(compiled_, 0);
  // Of so many, the first are forgotten.
  EXPECT_EQ(ForRun(20, 20), nullptr);
  EXPECT_NE(ForRun(139, 20), nullptr);
  EXPECT_EQ(compiled_, 1);
}

TEST_F(SpecialisationsTest, AreFewAndNotMadeWithoutEnd) {
  Make();
  // More shapes than are kept, by turns: each time as many were made, they have to come twice as
  // often.
  constexpr int kRuns = 60, kShapes = 6;
  size_t found = 0;
  for (int run = 0; run < kRuns; ++run) {
    for (int64_t shape = 0; shape < kShapes; ++shape) {
      found += ForRun(20 + shape, 20) != nullptr ? 1 : 0;
    }
  }
  EXPECT_GT(found, kRuns);
  EXPECT_GE(compiled_, kShapes);
  EXPECT_LE(compiled_, 20);
}

TEST_F(SpecialisationsTest, AreNotMadeWhereKernelsAreTheSame) {
  Make(Network::kSum);
  for (int run = 0; run < 5; ++run) EXPECT_EQ(ForRun(40, 36), nullptr);
  EXPECT_EQ(ForRun(41, 36), nullptr);
  EXPECT_EQ(ForRun(41, 36), nullptr);
  EXPECT_EQ(compiled_, 1);
}

// With the weights that were packed for it.
TEST_F(SpecialisationsTest, TakeThePlaceOfTheGeneralPlansBinding) {
  Make();
  const std::weak_ptr<const plan::SegmentBinding> first = *plan_->Bind(0, {40, 36});
  const std::weak_ptr<const plan::SegmentBinding> other = *plan_->Bind(0, {40, 37});
  ForRun(40, 36);
  EXPECT_FALSE(first.expired());
  ASSERT_NE(ForRun(40, 36), nullptr);
  EXPECT_TRUE(first.expired());
  EXPECT_FALSE(other.expired());
}

// One that is in use outlives its place among those that are kept.
TEST_F(SpecialisationsTest, OutliveTheirPlace) {
  Make();
  ForRun(24, 24);
  const std::shared_ptr<const Specialisation> first = ForRun(24, 24);
  ASSERT_NE(first, nullptr);
  for (int run = 0; run < 40; ++run) {
    for (int64_t shape = 0; shape < 6; ++shape) ForRun(30 + shape, 24);
  }
  EXPECT_EQ(ForRun(24, 24), nullptr);
  EXPECT_EQ(Run(*first->executor, *first->program, Numbers({1, kChannels, 24, 24})).size(),
            size_t{kChannels * 24 * 24});
}

// What a graph of symbols keeps for shapes, behind its bindings.
class GraphOfShapesTest : public SpecialisationsTest {
 protected:
  GraphOfShapesTest() {
    Make();
    draws_ = program_->draws;
    abi::GraphProperties properties;
    properties.is_profiled = true;
    auto graph = plugin::CompiledGraph::Create(
        /*signature=*/{}, std::move(program_), {*device_, /*sharing=*/nullptr, worker_}, properties,
        plugin::LoadTimes(), /*is_emulated=*/false, CompilerForShapes(Network::kConvolutions));
    EXPECT_TRUE(graph.ok()) << graph.status().Text();
    graph_ = *std::move(graph);
  }
  ~GraphOfShapesTest() override { graph_->Close(); }

  struct BoundImage {
    Tensor image;
    std::vector<float> result;
    std::shared_ptr<const abi::Binding> binding;
  };

  std::unique_ptr<BoundImage> BindImage(int64_t height, int64_t width) {
    auto bound = std::make_unique<BoundImage>();
    const Extents extents = {1, kChannels, height, width};
    bound->image = Numbers(extents);
    bound->result.resize(static_cast<size_t>(tensor::ElementCount(extents)));
    abi::TensorDescriptor x = {.name = "x",
                               .data_type = ONNXIFI_DATATYPE_FLOAT32,
                               .shape = {extents.begin(), extents.end()},
                               .buffer = reinterpret_cast<onnxPointer>(bound->image.data())};
    abi::TensorDescriptor y = x;
    y.name = "y";
    y.buffer = reinterpret_cast<onnxPointer>(bound->result.data());
    auto binding = graph_->Bind({.inputs = {x}, .outputs = {y}});
    EXPECT_TRUE(binding.ok()) << binding.status().Text();
    bound->binding = *std::move(binding);
    return bound;
  }

  // By what the steps of a run were done.
  std::vector<std::string> Run(const BoundImage& bound) {
    auto event = graph_->Run(bound.binding, /*input=*/nullptr);
    EXPECT_TRUE(event.ok()) << event.status().Text();
    EXPECT_TRUE((*event)->Wait().ok());
    const auto profile = graph_->Profile();
    EXPECT_TRUE(profile.ok()) << profile.status().Text();
    std::vector<std::string> names;
    for (const abi::StepRecord& step : *profile) names.emplace_back(step.implementation);
    return names;
  }

  plugin::Worker worker_;
  std::shared_ptr<const program::DrawCount> draws_;  // of the programs of all its shapes
  std::unique_ptr<plugin::CompiledGraph> graph_;
};

// Two pixels are over before another thread begins.
TEST_F(GraphOfShapesTest, KeepsNoPlanForATinyFirstShape) {
  const auto before = draws_.use_count();
  const auto tiny = BindImage(1, 2);
  EXPECT_EQ(compiled_, 1);
  EXPECT_EQ(draws_.use_count(), before);
  Run(*tiny);
}

TEST_F(GraphOfShapesTest, KeepsThePlanOfAFirstShape) {
  const auto before = draws_.use_count();
  const auto image = BindImage(40, 36);
  EXPECT_EQ(compiled_, 1);
  EXPECT_EQ(draws_.use_count(), before + 1);
}

// The general plan runs what was bound to a plan that is gone.
TEST_F(GraphOfShapesTest, BindingsOutliveThePlanOfTheirShape) {
  const auto first = BindImage(40, 36);
  const std::vector<std::string> by_own_plan = Run(*first);
  const std::vector<float> expected = first->result;
  EXPECT_EQ(Run(*first), by_own_plan);
  std::vector<std::unique_ptr<BoundImage>> others;
  for (int64_t shape = 0; shape < 6; ++shape) others.push_back(BindImage(30 + shape, 24));
  for (int run = 0; run < 40; ++run) {
    for (const auto& other : others) Run(*other);
  }
  std::ranges::fill(first->result, 0.0F);
  EXPECT_NE(Run(*first), by_own_plan);
  ExpectNear(first->result, expected);
}

}  // namespace
}  // namespace onnxifi::cpu
