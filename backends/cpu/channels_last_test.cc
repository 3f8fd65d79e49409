// SPDX-License-Identifier: Apache-2.0
//
// Channels-last temporaries on the CPU: that the device asks for them, that they are what lies
// between the convolutions of a compiled network, and that kernels take them as they lie.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "backends/core/execution/executor.h"
#include "backends/core/execution/testing/run_program.h"
#include "backends/core/graph/graph_builder.h"
#include "backends/core/plugin/pipeline.h"
#include "backends/core/reference/device.h"
#include "backends/cpu/device.h"

namespace onnxifi::cpu {
namespace {

using graph::Graph;
using graph::ValueId;
using graph::testing::GraphBuilder;
using program::Contract;
using program::Program;
using program::Step;
using program::View;
using tensor::ElementType;
using tensor::Extents;
using tensor::Tensor;
using testing::HasSubstr;
using testing::Not;
using Ints = std::vector<int64_t>;

constexpr ElementType kFloat = ElementType::kFloat32;

ValueId AddConvolution(GraphBuilder& builder, ValueId x, int64_t channels, int64_t kernel) {
  const std::vector<float> values(static_cast<size_t>(8 * channels * kernel * kernel), 0.1F);
  const ValueId w =
      builder.AddConstant(Tensor::FromValues<float>(kFloat, {8, channels, kernel, kernel}, values));
  return builder.AddNode("Conv", 11, {x, w},
                         {{"kernel_shape", Ints{kernel, kernel}}, {"pads", Ints(4, kernel / 2)}});
}

// x [1, 4, 8, 8] through three convolutions of eight channels: 3x3 and an activation, 5x5 and a sum
// with what it read, pooled, 3x3.
Graph MakeNetwork() {
  graph::Type type;
  type.kind = graph::Type::Kind::kTensor;
  type.element = kFloat;
  type.extents = {{1, ""}, {4, ""}, {8, ""}, {8, ""}};
  GraphBuilder builder;
  const ValueId x = builder.AddInput("x", type);
  const ValueId first = AddConvolution(builder, x, 4, 3);
  const ValueId active = builder.AddNode("Relu", 14, {first});
  const ValueId second = AddConvolution(builder, active, 8, 5);
  const ValueId sum = builder.AddNode("Add", 14, {second, active});
  const ValueId pooled = builder.AddNode(
      "MaxPool", 12, {sum},
      {{"kernel_shape", Ints{3, 3}}, {"strides", Ints{1, 1}}, {"pads", Ints{1, 1, 1, 1}}});
  return builder.Take({AddConvolution(builder, pooled, 8, 3)});
}

class ChannelsLastTest : public testing::Test {
 protected:
  void SetUp() override {
    auto device = Device::Create(std::make_shared<threads::ThreadPool>(2), base::Log());
    ASSERT_TRUE(device.ok()) << device.status().Text();
    device_ = *std::move(device);
    plugin::LoadTimes times;
    auto program = plugin::Compile(MakeNetwork(), *device_, base::Log(), times);
    ASSERT_TRUE(program.ok()) << program.status().Text();
    program_ = *std::move(program);
  }

  static bool IsConvolution(const Step& step) {
    const Contract* contract = step.As<Contract>();
    return contract != nullptr && contract->form == Contract::Form::kConv;
  }
  // Nothing that a caller sees and no weights.
  bool IsTemporary(const View& view) const {
    return program_->buffers[static_cast<size_t>(view.buffer)].kind ==
               program::Buffer::Kind::kTemporary &&
           view.buffer != program_->outputs[0].buffer;
  }

  std::unique_ptr<Device> device_;
  std::unique_ptr<Program> program_;
};

// The program is compiled for what the graph was initialised with, and no kernel overlooks it.
TEST_F(ChannelsLastTest, HasNoFastAlgorithmsWhereTheyAreSwitchedOff) {
  EXPECT_TRUE(program_->has_fast_algorithms);
  plugin::LoadTimes times;
  const auto exact = plugin::Compile(MakeNetwork(), *device_, base::Log(), times,
                                     /*has_fast_algorithms=*/false);
  ASSERT_TRUE(exact.ok()) << exact.status().Text();
  EXPECT_FALSE((*exact)->has_fast_algorithms);
}

TEST_F(ChannelsLastTest, TheDevicePrefersThemForConvolutions) {
  int convolutions = 0;
  for (const Step& step : program_->steps) {
    EXPECT_EQ(Selector().PrefersChannelsLast({*program_, step}), IsConvolution(step));
    EXPECT_EQ(device_->PrefersChannelsLast({*program_, step}), IsConvolution(step));
    convolutions += IsConvolution(step) ? 1 : 0;
  }
  EXPECT_EQ(convolutions, 3);
}

TEST_F(ChannelsLastTest, TheyLieBetweenConvolutions) {
  const program::Shape channels_last = {1, 64, 8};
  int views = 0;
  for (const Step& step : program_->steps) {
    std::vector<View> tensors = step.writes;
    for (size_t read = 0; read < step.reads.size(); ++read) {
      if (read != 1 || step.As<Contract>() == nullptr) tensors.push_back(step.reads[read]);
    }
    for (const View& view : tensors) {
      if (!IsTemporary(view)) continue;
      // The stride of the only image says nothing.
      EXPECT_EQ(program::Shape(view.strides.begin() + 1, view.strides.end()), channels_last);
      ++views;
    }
  }
  // Written and read: by both convolutions, by the second as its summand, and by the pooling.
  EXPECT_EQ(views, 7);
}

TEST_F(ChannelsLastTest, NoStepBetweenConvolutionsReordersThem) {
  plan::Counters counters;
  auto plan = plan::Plan::Create(*program_, *device_, counters);
  ASSERT_TRUE(plan.ok()) << plan.status().Text();
  const auto binding = (*plan)->Bind(0, /*symbols=*/{});
  ASSERT_TRUE(binding.ok()) << binding.status().Text();
  ASSERT_EQ((*plan)->stages().size(), 1u);
  int between = 0;
  for (size_t k = 0; k < program_->steps.size(); ++k) {
    const Step& step = program_->steps[k];
    if (!IsTemporary(step.reads[0]) || !IsTemporary(step.writes[0])) continue;
    EXPECT_THAT((*binding)->kernels[k]->Detail(), Not(HasSubstr("reorder")));
    if (!IsConvolution(step)) continue;
    EXPECT_THAT((*binding)->kernels[k]->Detail(), Not(HasSubstr("loops")));
    ++between;
  }
  EXPECT_EQ(between, 1);
}

// What several nodes make of one tensor is done before it is stored.
void ExpectProductsAlone(Graph graph, size_t count) {
  auto device = Device::Create(std::make_shared<threads::ThreadPool>(2), base::Log());
  ASSERT_TRUE(device.ok()) << device.status().Text();
  plugin::LoadTimes times;
  const auto program = plugin::Compile(std::move(graph), **device, base::Log(), times);
  ASSERT_TRUE(program.ok()) << program.status().Text();
  for (const Step& step : (*program)->steps) EXPECT_NE(step.As<Contract>(), nullptr);
  EXPECT_EQ((*program)->steps.size(), count);
}

graph::Type FloatsOf(std::vector<graph::Extent> extents) {
  graph::Type type;
  type.kind = graph::Type::Kind::kTensor;
  type.element = kFloat;
  type.extents = std::move(extents);
  return type;
}

TEST(FunctionTest, IsPartOfTheConvolutionThatItFollows) {
  GraphBuilder builder;
  ValueId x = builder.AddInput("x", FloatsOf({{1, ""}, {4, ""}, {8, ""}, {8, ""}}));
  x = AddConvolution(builder, x, 4, 3);
  x = builder.AddNode("Mul", 14, {x, builder.AddNode("Sigmoid", 13, {x})});
  ExpectProductsAlone(builder.Take({AddConvolution(builder, x, 8, 1)}), 2);
}

// Gelu as it was exported before there was an operator.
TEST(FunctionTest, IsPartOfTheProductThatItFollows) {
  GraphBuilder builder;
  const auto number = [&](float value) {
    return builder.AddConstant(Tensor::FromValues<float>(kFloat, {}, {&value, 1}));
  };
  const auto multiply = [&](ValueId x) {
    const std::vector<float> values(32 * 32, 0.1F);
    return builder.AddNode(
        "MatMul", 13,
        {x, builder.AddConstant(Tensor::FromValues<float>(kFloat, {32, 32}, values))});
  };
  ValueId x = multiply(builder.AddInput("x", FloatsOf({{20, ""}, {32, ""}})));
  const ValueId erf =
      builder.AddNode("Erf", 13, {builder.AddNode("Div", 14, {x, number(1.4142135F)})});
  const ValueId sum = builder.AddNode("Add", 14, {erf, number(1)});
  x = builder.AddNode("Mul", 14, {builder.AddNode("Mul", 14, {x, sum}), number(0.5F)});
  ExpectProductsAlone(builder.Take({multiply(x)}), 2);
}

Tensor Numbers(const Extents& extents) {
  std::vector<float> values(static_cast<size_t>(tensor::ElementCount(extents)));
  for (size_t k = 0; k < values.size(); ++k) {
    values[k] = 0.01F * static_cast<float>(static_cast<int>(k * 7919 % 61) - 30);
  }
  return Tensor::FromValues<float>(kFloat, extents, values);
}

// The graph's only output on a device; nothing it runs is a loop of oneDNN's own.
std::vector<float> RunOn(device::Device& device, const Graph& graph, const Tensor& input) {
  plugin::LoadTimes times;
  std::vector<float> result;
  const auto program = plugin::Compile(Graph(graph), device, base::Log(), times);
  EXPECT_TRUE(program.ok()) << program.status().Text();
  if (!program.ok()) return result;
  plan::Counters counters;
  const auto plan = plan::Plan::Create(**program, device, counters);
  EXPECT_TRUE(plan.ok()) << plan.status().Text();
  if (!plan.ok()) return result;
  execution::Executor executor(**plan);
  execution::TensorPlaces places(**program);
  const std::vector<Tensor> inputs = {input};
  const base::Status status = executor.Run(execution::AsInputs(inputs), places);
  EXPECT_TRUE(status.ok()) << status.Text();
  const auto binding = (*plan)->Bind(0, /*symbols=*/{});
  for (const auto& kernel : (*binding)->kernels) {
    EXPECT_THAT(kernel->Detail(), Not(HasSubstr("ref")));
  }
  const auto values = places.tensors[0].values<float>();
  result.assign(values.begin(), values.end());
  return result;
}

void ExpectAsOnReference(const Graph& graph, const Tensor& input) {
  auto device = Device::Create(std::make_shared<threads::ThreadPool>(2), base::Log());
  ASSERT_TRUE(device.ok()) << device.status().Text();
  reference::Device plain;
  const std::vector<float> expected = RunOn(plain, graph, input);
  const std::vector<float> found = RunOn(**device, graph, input);
  ASSERT_EQ(found.size(), expected.size());
  for (size_t k = 0; k < found.size(); ++k) ASSERT_NEAR(found[k], expected[k], 1e-5) << k;
}

ValueId Convolve(GraphBuilder& builder, ValueId x, int64_t in, int64_t out) {
  return builder.AddNode("Conv", 11, {x, builder.AddConstant(Numbers({out, in, 3, 3}))},
                         {{"pads", Ints{1, 1, 1, 1}}});
}

// oneDNN has no kernel of its own for that: what is written there goes through a tensor without
// gaps.
TEST(TransposedConvolutionTest, IsRightInAPartOfAConcatenation) {
  GraphBuilder builder;
  const ValueId x = builder.AddInput("x", FloatsOf({{1, ""}, {4, ""}, {6, ""}, {6, ""}}));
  const ValueId first = Convolve(builder, x, 4, 16);
  const auto up = [&] {
    return builder.AddNode(
        "ConvTranspose", 11,
        {first, builder.AddConstant(Numbers({16, 24, 2, 2})), builder.AddConstant(Numbers({24}))},
        {{"strides", Ints{2, 2}}});
  };
  const ValueId parts = builder.AddNode("Concat", 13, {up(), up()}, {{"axis", int64_t{1}}});
  ExpectAsOnReference(builder.Take({Convolve(builder, parts, 48, 5)}), Numbers({1, 4, 6, 6}));
}

// What a network transposes itself has its channels innermost as it is.
TEST(TransposedTest, StaysAsItIsBetweenConvolutions) {
  GraphBuilder builder;
  ValueId x = builder.AddInput("x", FloatsOf({{1, ""}, {4, ""}, {6, ""}, {10, ""}}));
  x = Convolve(builder, x, 4, 24);
  ValueId y = builder.AddNode("Transpose", 13, {x}, {{"perm", Ints{0, 2, 3, 1}}});
  y = builder.AddNode("LayerNormalization", 17, {y, builder.AddConstant(Numbers({24}))});
  y = builder.AddNode("MatMul", 13, {y, builder.AddConstant(Numbers({24, 24}))});
  y = builder.AddNode("Mul", 14, {y, builder.AddConstant(Numbers({24}))});
  y = builder.AddNode("Transpose", 13, {y}, {{"perm", Ints{0, 3, 1, 2}}});
  const Graph graph = builder.Take({Convolve(builder, builder.AddNode("Add", 14, {x, y}), 24, 5)});
  const Tensor input = Numbers({1, 4, 6, 10});
  ExpectAsOnReference(graph, input);

  auto device = Device::Create(std::make_shared<threads::ThreadPool>(2), base::Log());
  ASSERT_TRUE(device.ok()) << device.status().Text();
  plugin::LoadTimes times;
  const auto program = plugin::Compile(Graph(graph), **device, base::Log(), times);
  ASSERT_TRUE(program.ok()) << program.status().Text();
  int seen = 0;
  for (const Step& step : (*program)->steps) {
    const Contract* contract = step.As<Contract>();
    const bool is_row = step.As<program::Row>() != nullptr;
    const bool is_product = contract != nullptr && contract->form == Contract::Form::kMatMul;
    if (!is_row && !is_product) continue;
    EXPECT_EQ(step.reads[0].strides.back(), program::Dim(1)) << program::ToString(**program);
    EXPECT_EQ(step.writes[0].strides.back(), program::Dim(1)) << program::ToString(**program);
    ++seen;
  }
  EXPECT_EQ(seen, 2);
}

// Pixels are found once for all of their channels.
TEST(NearestPixelsTest, AreRightBetweenConvolutions) {
  for (const char* mode : {"asymmetric", "half_pixel", "align_corners"}) {
    for (const auto& [height, width] : {std::pair<int64_t, int64_t>{10, 14}, {4, 11}}) {
      GraphBuilder builder;
      const ValueId x = builder.AddInput("x", FloatsOf({{2, ""}, {4, ""}, {5, ""}, {7, ""}}));
      const ValueId first = Convolve(builder, x, 4, 21);
      const int64_t sizes[] = {2, 21, height, width};
      const ValueId resized = builder.AddNode(
          "Resize", 19,
          {first, graph::kNoValue, graph::kNoValue,
           builder.AddConstant(Tensor::FromValues<int64_t>(ElementType::kInt64, {4}, sizes))},
          {{"mode", std::string("nearest")},
           {"coordinate_transformation_mode", std::string(mode)}});
      SCOPED_TRACE(mode);
      ExpectAsOnReference(builder.Take({Convolve(builder, resized, 21, 5)}), Numbers({2, 4, 5, 7}));
    }
  }
}

}  // namespace
}  // namespace onnxifi::cpu
