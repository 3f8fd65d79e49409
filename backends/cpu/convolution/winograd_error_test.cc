// SPDX-License-Identifier: Apache-2.0
//
// The rounding errors of Winograd's algorithm on layers of networks in use, beside those of the
// kernel that does the same layer without it: both against float64, printed per layer. The
// interface promises a factor of 8 (ONNXIFI_SDK_GRAPH_PROPERTY_FAST_ALGORITHMS).

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backends/cpu/device.h"
#include "backends/cpu/processor/processor.h"

namespace onnxifi::cpu {
namespace {

using program::Buffer;
using program::Contract;
using tensor::ElementType;

constexpr ElementType kFloat = ElementType::kFloat32;
constexpr double kMaxError = 8;

// 3 x 3 with padding 1, of images of side x side pixels.
struct Layer {
  std::string_view network;
  int64_t in, out, side;
  int64_t batch = 1;
};

// Seeded numbers: activations as after a Relu, weights scaled after He.
class LayerStep {
 public:
  LayerStep(const Layer& layer, uint32_t seed) : layer_(layer) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal(0, 1);
    const auto draw = [&](int64_t count, float scale, bool is_positive) {
      std::vector<float> values(static_cast<size_t>(count));
      for (float& value : values) {
        value = scale * normal(random);
        if (is_positive) value = std::max(value, 0.0F);
      }
      return values;
    };
    const int64_t pixels = layer.side * layer.side;
    data_.push_back(draw(layer.batch * pixels * layer.in, 1, /*is_positive=*/true));
    data_.push_back(
        draw(layer.out * layer.in * 9, std::sqrt(2.0F / static_cast<float>(9 * layer.in)), false));
    data_.emplace_back(static_cast<size_t>(layer.batch * pixels * layer.out));
    AddBuffer(Buffer::Kind::kTemporary);
    AddBuffer(Buffer::Kind::kConstant);
    AddBuffer(Buffer::Kind::kTemporary);
    const auto pixel_view = [&](program::BufferId buffer, int64_t channels) {
      program::View view;
      view.buffer = buffer;
      view.type = kFloat;
      view.strides = {pixels * channels, 1, layer.side * channels, channels};
      return view;
    };
    program::View weights;
    weights.buffer = 1;
    weights.type = kFloat;
    weights.strides = {layer.in * 9, 9, 3, 1};
    Contract contract;
    contract.form = Contract::Form::kConv;
    contract.inner = {layer.in, 3, 3};
    contract.a_spatial = {layer.side, layer.side};
    contract.strides = {1, 1};
    contract.dilations = {1, 1};
    contract.pads_begin = {1, 1};
    contract.a_prologue = Load(program_.exprs, kFloat, 0).id();
    contract.b_prologue = Load(program_.exprs, kFloat, 1).id();
    contract.roots = {program::Accumulator(program_.exprs, kFloat).id()};
    step_.body = contract;
    step_.domain = {layer.batch, layer.out, layer.side, layer.side};
    step_.reads = {pixel_view(0, layer.in), weights};
    step_.writes = {pixel_view(2, layer.out)};
  }

  // Runs it and leaves the result; the name of what did it.
  std::string Run(Device& device, bool has_fast_algorithms) {
    program_.has_fast_algorithms = has_fast_algorithms;
    const auto selection = device.Select({program_, step_});
    EXPECT_TRUE(selection.ok()) << selection.status().Text();
    const auto kernel = device.Build(*selection->recipe);
    EXPECT_TRUE(kernel.ok()) << kernel.status().Text();
    std::vector<std::byte*> addresses;
    for (std::vector<float>& values : data_) {
      addresses.push_back(reinterpret_cast<std::byte*>(values.data()));
    }
    const std::vector<std::byte*> constants = {nullptr, addresses[1], nullptr};
    const std::vector<int64_t> dims(static_cast<size_t>(program_.dims->node_count()), 0);
    const auto bound = (*kernel)->Bind(device::Bind(program_, step_, dims), constants);
    EXPECT_TRUE(bound.ok()) << bound.status().Text();
    const base::Status status = (*bound)->Run(addresses);
    EXPECT_TRUE(status.ok()) << status.Text();
    return std::string(selection->recipe->implementation()) + " " + (*bound)->Detail();
  }

  std::string Implementation(const Device& device) const {
    const auto selection = device.Select({program_, step_});
    return selection.ok() ? std::string(selection->recipe->implementation())
                          : selection.status().Text();
  }

  // Root mean square over some elements of the first image, the same in each call.
  double Error() const {
    constexpr int kSamples = 3000;
    std::mt19937 random(1);
    const auto roll = [&](int64_t count) {
      return std::uniform_int_distribution<int64_t>(0, count - 1)(random);
    };
    double sum = 0;
    for (int sample = 0; sample < kSamples; ++sample) {
      const int64_t m = roll(layer_.out), y = roll(layer_.side), x = roll(layer_.side);
      const float found = data_[2][static_cast<size_t>((y * layer_.side + x) * layer_.out + m)];
      sum += std::pow(static_cast<double>(found) - Exact(m, y, x), 2);
    }
    return std::sqrt(sum / kSamples);
  }

 private:
  void AddBuffer(Buffer::Kind kind) {
    Buffer buffer;
    buffer.kind = kind;
    buffer.type = kFloat;
    const auto size = static_cast<int64_t>(data_[program_.buffers.size()].size());
    buffer.shape = {size};
    if (kind == Buffer::Kind::kConstant) {
      program_.constants.push_back(
          tensor::Tensor::FromValues<float>(kFloat, {size}, data_[program_.buffers.size()]));
    }
    program_.AddBuffer(buffer);
  }

  double Exact(int64_t m, int64_t y, int64_t x) const {
    double sum = 0;
    for (int64_t tap = 0; tap < 9; ++tap) {
      const int64_t in_y = y + tap / 3 - 1, in_x = x + tap % 3 - 1;
      if (in_y < 0 || in_y >= layer_.side || in_x < 0 || in_x >= layer_.side) continue;
      const float* pixel = &data_[0][static_cast<size_t>((in_y * layer_.side + in_x) * layer_.in)];
      for (int64_t c = 0; c < layer_.in; ++c) {
        sum += static_cast<double>(pixel[c]) *
               static_cast<double>(data_[1][static_cast<size_t>((m * layer_.in + c) * 9 + tap)]);
      }
    }
    return sum;
  }

  const Layer layer_;
  program::Program program_;
  program::Step step_;
  std::vector<std::vector<float>> data_;  // by buffer
};

TEST(WinogradErrorTest, IsWithinTheStatedFactorOfTheDirectKernelOnEveryLayer) {
  constexpr Layer kLayers[] = {
      {"VGG-19", 64, 64, 224},       {"VGG-19", 64, 128, 112},      {"VGG-19", 128, 128, 112},
      {"VGG-19", 128, 256, 56},      {"VGG-19", 256, 256, 56},      {"VGG-19", 256, 512, 28},
      {"VGG-19", 512, 512, 28},      {"ResNet-50", 64, 64, 56},     {"ResNet-50", 128, 128, 28},
      {"ResNet-50", 256, 256, 14},   {"Inception v1", 64, 192, 56}, {"Inception v1", 96, 128, 28},
      {"Inception v1", 96, 208, 14}, {"Inception v2", 64, 96, 28},  {"DenseNet-121", 128, 32, 56},
      {"DenseNet-121", 128, 32, 28}, {"SqueezeNet", 16, 64, 54},    {"SqueezeNet", 32, 128, 27},
      {"SqueezeNet", 64, 256, 13},
  };
  const auto device =
      Device::Create(std::make_shared<threads::ThreadPool>(2), base::Log(base::LogLevel::kWarning));
  ASSERT_TRUE(device.ok()) << device.status().Text();
  std::printf("%-13s %4s %4s %5s %9s %9s %6s  %s\n", "network", "in", "out", "side", "winograd",
              "direct", "factor", "kernels");
  int by_winograd = 0;
  uint32_t seed = 100;
  for (const Layer& layer : kLayers) {
    LayerStep step(layer, ++seed);
    const std::string direct_kernel = step.Run(**device, /*has_fast_algorithms=*/false);
    EXPECT_FALSE(direct_kernel.starts_with("winograd"));
    const double direct = step.Error();
    const std::string kernel = step.Run(**device, /*has_fast_algorithms=*/true);
    if (!kernel.starts_with("winograd")) continue;
    const double error = step.Error();
    ++by_winograd;
    std::printf("%-13s %4d %4d %5d %9.2g %9.2g %6.2f  %s; %s\n", std::string(layer.network).c_str(),
                static_cast<int>(layer.in), static_cast<int>(layer.out),
                static_cast<int>(layer.side), error, direct, error / direct, kernel.c_str(),
                direct_kernel.c_str());
    EXPECT_GT(error, 0);
    EXPECT_LT(error, kMaxError * direct);
  }
  EXPECT_GE(by_winograd, 10);
}

// Weights that are too many for the pixels of one image are not for those of many.
TEST(WinogradErrorTest, IsChosenByTheNumberOfImages) {
  const auto device =
      Device::Create(std::make_shared<threads::ThreadPool>(2), base::Log(base::LogLevel::kWarning));
  ASSERT_TRUE(device.ok()) << device.status().Text();
  EXPECT_EQ(LayerStep({"", 256, 256, 4, 64}, 1).Implementation(**device), "winograd");
  if (processor::MultiplyAddsPerCycle() < 16) return;  // reads weights as fast as it computes
  EXPECT_NE(LayerStep({"", 256, 256, 4, 1}, 1).Implementation(**device), "winograd");
}

}  // namespace
}  // namespace onnxifi::cpu
