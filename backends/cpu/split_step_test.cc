// SPDX-License-Identifier: Apache-2.0
//
// Convolutions whose epilogue no kernel takes, over images that oneDNN does not take, and windows
// over padded views: that a kernel and the tile engine share them, with the reference's results.

#include "backends/cpu/split_step.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "backends/core/reference/device.h"
#include "backends/core/reference/random_step.h"
#include "backends/cpu/device.h"
#include "backends/cpu/processor/testing/stated_caches.h"

namespace onnxifi::cpu {
namespace {

using program::Buffer;
using program::Contract;
using program::Expr;
using tensor::ElementType;
using tensor::Extents;

constexpr ElementType kFloat = ElementType::kFloat32;

enum class Order : uint8_t { kPlanes, kChannelsLast };

// A convolution with `kernel` x `kernel` taps over images of `extent` x `extent`, of which the sums
// are added to a tensor, scaled per channel and added to a bias.
class Scaled {
 public:
  Scaled(int64_t batch, int64_t channels, int64_t group, int64_t extent, int64_t kernel,
         Order order)
      : domain_({batch, channels, extent, extent}) {
    Contract contract;
    contract.form = Contract::Form::kConv;
    contract.group = group;
    contract.inner = {channels / group, kernel, kernel};
    contract.a_spatial = {extent, extent};
    contract.pads_begin = {kernel / 2, kernel / 2};
    contract.strides = {1, 1};
    contract.dilations = {1, 1};
    std::vector<int64_t> image = {channels * extent * extent, extent * extent, extent, 1};
    if (order == Order::kChannelsLast) {
      image = {channels * extent * extent, 1, extent * channels, channels};
    }
    const int64_t size = batch * channels * extent * extent;
    const int64_t depth = channels / group * kernel * kernel;
    AddRead(size, Buffer::Kind::kTemporary, image);
    AddRead(channels * depth, Buffer::Kind::kConstant, {depth, kernel * kernel, kernel, 1});
    const int addend = AddRead(size, Buffer::Kind::kTemporary, image);
    const int scale = AddRead(channels, Buffer::Kind::kConstant, {0, 1, 0, 0});
    const int bias = AddRead(channels, Buffer::Kind::kConstant, {0, 1, 0, 0});
    program::ExprPool& pool = made_.program.exprs;
    const Expr sum = program::Accumulator(pool, kFloat) + Load(pool, kFloat, addend);
    contract.a_prologue = Load(pool, kFloat, 0).id();
    contract.b_prologue = Load(pool, kFloat, 1).id();
    contract.roots = {(sum * Load(pool, kFloat, scale) + Load(pool, kFloat, bias)).id()};
    step_.body = contract;
    step_.domain = {domain_.begin(), domain_.end()};
    step_.writes = {MakeView(size, Buffer::Kind::kTemporary, image)};
    made_.program.steps.push_back(std::move(step_));
  }

  const program::Step& step() const { return made_.program.steps[0]; }

  std::string Implementation(Device& device) const {
    return std::string(device.Select({made_.program, step()})->recipe->implementation());
  }
  void RemoveEpilogue() {
    made_.program.steps[0].As<Contract>()->roots = {
        program::Accumulator(made_.program.exprs, kFloat).id()};
  }
  // Windows end at the pixel that they are of; mirrored ones begin there.
  void MakeCausal(int64_t kernel, bool is_mirrored) {
    const int64_t pad = is_mirrored ? 0 : kernel - 1;
    made_.program.steps[0].As<Contract>()->pads_begin = {pad, pad};
  }
  void ForgetHeight() {
    made_.program.steps[0].domain[2] = made_.program.dims->NewSymbol("height", /*is_data=*/false);
  }
  void CheckRefused(const std::function<runtime::RecipeResult(const device::Facts&)>& select,
                    const std::string& reason) const {
    const runtime::RecipeResult refused = SplitEpilogue({made_.program, step()}, "split", select);
    ASSERT_FALSE(refused.ok());
    EXPECT_THAT(refused.status().Text(), testing::HasSubstr(reason));
  }

  void Check(Device& device, const std::string& detail) {
    device::Selection selection = *device.Select({made_.program, step()});
    EXPECT_EQ(selection.recipe->implementation(), "split epilogue");
    const auto kernel = device.Build(*selection.recipe);
    ASSERT_TRUE(kernel.ok()) << kernel.status().Text();
    std::vector<std::byte*> constants;
    for (size_t k = 0; k < made_.buffers.size(); ++k) {
      const bool is_constant = made_.program.buffers[k].kind == Buffer::Kind::kConstant;
      constants.push_back(is_constant ? made_.buffers[k].mutable_data() : nullptr);
    }
    const std::vector<int64_t> dims;
    const auto bound = (*kernel)->Bind(device::Bind(made_.program, step(), dims), constants);
    ASSERT_TRUE(bound.ok()) << bound.status().Text();
    EXPECT_THAT((*bound)->Detail(), testing::HasSubstr(detail));
    EXPECT_THAT((*bound)->Detail(), testing::Not(testing::HasSubstr("loops")));
    // The weights are packed; what the epilogue reads is read again.
    EXPECT_FALSE((*bound)->ReadsAtRun(1));
    for (const int read : {0, 2, 3, 4}) EXPECT_TRUE((*bound)->ReadsAtRun(read)) << read;

    reference::Device reference;
    const auto expected = RunStep(reference, made_);
    const auto actual = RunStep(device, made_);
    ASSERT_TRUE(expected.ok() && actual.ok()) << actual.status().Text();
    const auto result = static_cast<size_t>(step().writes[0].buffer);
    const auto* const x = reinterpret_cast<const float*>((*expected)[result].data());
    const auto* const y = reinterpret_cast<const float*>((*actual)[result].data());
    for (int64_t k = 0; k < tensor::ElementCount(domain_); ++k) ASSERT_NEAR(y[k], x[k], 2e-5) << k;
  }

 private:
  program::View MakeView(int64_t size, Buffer::Kind kind, const std::vector<int64_t>& strides) {
    Buffer buffer;
    buffer.kind = kind;
    buffer.type = kFloat;
    buffer.shape = {size};
    std::vector<float> values(static_cast<size_t>(size));
    std::normal_distribution<float> normal(0, 0.5F);
    for (float& value : values) value = normal(random_);
    tensor::Tensor tensor = tensor::Tensor::FromValues<float>(kFloat, {size}, values);
    if (kind == Buffer::Kind::kConstant) {
      buffer.index = static_cast<int>(made_.program.constants.size());
      made_.program.constants.push_back(tensor::Tensor::FromValues<float>(kFloat, {size}, values));
    }
    made_.buffers.push_back(std::move(tensor));
    program::View view;
    view.buffer = made_.program.AddBuffer(buffer);
    view.type = kFloat;
    for (const int64_t stride : strides) view.strides.emplace_back(stride);
    return view;
  }
  int AddRead(int64_t size, Buffer::Kind kind, const std::vector<int64_t>& strides) {
    step_.reads.push_back(MakeView(size, kind, strides));
    return static_cast<int>(step_.reads.size()) - 1;
  }

  std::mt19937 random_{11};
  const Extents domain_;
  reference::RandomStep made_;
  program::Step step_;
};

class SplitStepTest : public testing::Test {
 protected:
  void SetUp() override {
    auto device = Device::Create(std::make_shared<threads::ThreadPool>(2),
                                 base::Log(base::LogLevel::kWarning));
    ASSERT_TRUE(device.ok()) << device.status().Text();
    device_ = *std::move(device);
  }
  std::unique_ptr<Device> device_;
};

TEST_F(SplitStepTest, DepthwiseOverSmallImages) {
  for (const int64_t batch : {1, 3}) {
    for (const int64_t channels : {16, 37}) {
      SCOPED_TRACE(std::to_string(batch) + " images of " + std::to_string(channels));
      Scaled(batch, channels, channels, 6, 7, Order::kChannelsLast).Check(*device_, "AVX");
    }
  }
}

// oneDNN would leave windows that see less than half of their taps to loops.
TEST_F(SplitStepTest, DepthwiseOfCausalWindows) {
  for (const bool is_mirrored : {false, true}) {
    for (const int64_t kernel : {4, 7}) {
      SCOPED_TRACE(std::to_string(kernel) + (is_mirrored ? " taps after" : " taps before"));
      Scaled step(2, 24, 24, 11, kernel, Order::kChannelsLast);
      step.MakeCausal(kernel, is_mirrored);
      step.Check(*device_, "AVX");
    }
  }
}

// However many channels there are: oneDNN does not take such images.
TEST_F(SplitStepTest, DepthwiseTakesManyChannelsOfSmallImages) {
  const processor::StatedCaches caches(processor::kSmallCaches);
  Scaled(1, 600, 600, 6, 7, Order::kChannelsLast).Check(*device_, "AVX");
  Scaled sums(1, 600, 600, 6, 7, Order::kChannelsLast);
  sums.RemoveEpilogue();
  EXPECT_EQ(sums.Implementation(*device_), "depthwise");
}

TEST_F(SplitStepTest, GatheredOverSmallImages) {
  for (const Order order : {Order::kPlanes, Order::kChannelsLast}) {
    Scaled(2, 24, 1, 4, 5, order).Check(*device_, "AVX");
    Scaled(1, 12, 3, 3, 7, order).Check(*device_, "AVX");
  }
}

// Without an epilogue, or where sums alone are refused too.
TEST_F(SplitStepTest, RefusesWhatIsNoHelp) {
  Scaled made(1, 16, 16, 6, 7, Order::kChannelsLast);
  const auto refuse = [](const device::Facts&) -> runtime::RecipeResult {
    return base::Status(base::Code::kUnsupportedShape, "Not these sums.");
  };
  made.CheckRefused(refuse, "Not these sums.");
  Scaled late(1, 16, 16, 6, 7, Order::kChannelsLast);
  late.ForgetHeight();
  late.CheckRefused(refuse, "is known only once the inputs are");
  made.RemoveEpilogue();
  made.CheckRefused(refuse, "The sums have no epilogue.");
}

// A maximum over windows of 2 x 2 of a tensor with one more row and column of `fill`, which its
// view adds.
TEST_F(SplitStepTest, PadsForWindows) {
  for (const Order order : {Order::kPlanes, Order::kChannelsLast}) {
    constexpr int64_t kChannels = 19, kHeight = 9, kWidth = 37;
    reference::RandomStep made;
    program::Window window;
    window.in_spatial = {kHeight + 1, kWidth + 1};
    window.kernel = {2, 2};
    window.strides = window.dilations = {1, 1};
    window.pads_begin = window.pads_end = {0, 0};
    window.roots = {program::Accumulator(made.program.exprs, kFloat).id()};
    const Extents image =
        order == Order::kPlanes
            ? Extents{kChannels * kHeight * kWidth, kHeight * kWidth, kWidth, 1}
            : Extents{kChannels * kHeight * kWidth, 1, kWidth * kChannels, kChannels};
    const int64_t size = 2 * kChannels * kHeight * kWidth;
    program::Step step;
    std::mt19937 random(3);
    for (const bool is_write : {false, true}) {
      Buffer buffer;
      buffer.type = kFloat;
      buffer.shape = {size};
      std::vector<float> values(static_cast<size_t>(size));
      std::normal_distribution<float> normal(-1, 0.5F);
      for (float& value : values) value = normal(random);
      made.buffers.push_back(tensor::Tensor::FromValues<float>(kFloat, {size}, values));
      program::View view;
      view.buffer = made.program.AddBuffer(buffer);
      view.type = kFloat;
      for (const int64_t stride : image) view.strides.emplace_back(stride);
      if (!is_write) {
        view.guards = {{.coefficients = {0, 0, 1, 0}, .offset = 0, .extent = kHeight},
                       {.coefficients = {0, 0, 0, 1}, .offset = 0, .extent = kWidth}};
        view.fill = {.f = 0.25};
      }
      (is_write ? step.writes : step.reads).push_back(view);
    }
    step.body = window;
    step.domain = {2, kChannels, kHeight, kWidth};
    made.program.steps.push_back(std::move(step));

    const device::Selection selection = *device_->Select({made.program, made.program.steps[0]});
    EXPECT_EQ(selection.recipe->implementation(), "split padding");
    reference::Device reference;
    const auto expected = RunStep(reference, made);
    const auto actual = RunStep(*device_, made);
    ASSERT_TRUE(expected.ok() && actual.ok()) << actual.status().Text();
    const auto* const x = reinterpret_cast<const float*>((*expected)[1].data());
    const auto* const y = reinterpret_cast<const float*>((*actual)[1].data());
    int64_t filled = 0;
    for (int64_t k = 0; k < size; ++k) {
      ASSERT_EQ(y[k], x[k]) << k;
      if (y[k] == 0.25F) ++filled;
    }
    EXPECT_GT(filled, kChannels);
  }
}

}  // namespace
}  // namespace onnxifi::cpu
