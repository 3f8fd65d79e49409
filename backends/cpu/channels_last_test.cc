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
#include "backends/core/graph/testing/graph_builder.h"
#include "backends/core/plugin/pipeline.h"
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
  const auto exact =
      plugin::Compile(MakeNetwork(), *device_, base::Log(), times, {.has_fast_algorithms = false});
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
  ASSERT_EQ((*plan)->segments().size(), 1u);
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

}  // namespace
}  // namespace onnxifi::cpu
