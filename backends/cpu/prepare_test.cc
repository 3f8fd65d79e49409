// SPDX-License-Identifier: Apache-2.0
//
// Prepared plans on the CPU: kernels keep what they packed, not the weights they packed it from,
// and one graph is made ready while another runs on the same threads.

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <thread>
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
using tensor::ElementType;
using tensor::Extents;
using tensor::Tensor;
using Ints = std::vector<int64_t>;

constexpr ElementType kFloat = ElementType::kFloat32;

// Weights that turn to NaN when nobody holds them any more, in memory that stays.
class Weights {
 public:
  explicit Weights(uint32_t seed) : random_(seed) {}
  ~Weights() = default;
  Weights(const Weights&) = delete;
  Weights& operator=(const Weights&) = delete;

  Tensor Make(const Extents& extents) {
    auto& values = tensors_.emplace_back(
        std::make_unique<std::vector<float>>(static_cast<size_t>(tensor::ElementCount(extents))));
    std::uniform_real_distribution<float> draw(-0.5F, 0.5F);
    for (float& value : *values) value = draw(random_);
    std::shared_ptr<void> owner(values->data(), [this, all = values.get()](void*) {
      std::ranges::fill(*all, std::numeric_limits<float>::quiet_NaN());
      ++gone_;
    });
    return Tensor::Borrow(kFloat, extents, reinterpret_cast<const std::byte*>(values->data()),
                          std::move(owner));
  }
  int gone() const { return gone_; }

 private:
  std::mt19937 random_;
  std::vector<std::unique_ptr<std::vector<float>>> tensors_;
  std::atomic<int> gone_ = 0;
};

// x [1, 4, 12, 12] -> convolutions of 5 x 5, 3 x 3 (Winograd's), one per channel, 1 x 1 -> means ->
// a product -> y [1, 10].
Graph MakeNetwork(Weights& weights) {
  GraphBuilder builder;
  const auto add_weights = [&](const Extents& extents) {
    return builder.AddConstant(weights.Make(extents));
  };
  const auto add_convolution = [&](ValueId x, const Extents& extents, int64_t group) {
    const ValueId kernels = add_weights(extents);
    const ValueId bias = add_weights({extents[0]});
    return builder.AddNode("Conv", 11, {x, kernels, bias},
                           {{"kernel_shape", Ints{extents[2], extents[3]}},
                            {"group", group},
                            {"pads", Ints(4, extents[2] / 2)}});
  };
  graph::Type type;
  type.kind = graph::Type::Kind::kTensor;
  type.element = kFloat;
  type.extents = {{1, ""}, {4, ""}, {12, ""}, {12, ""}};
  ValueId value = builder.AddInput("x", type);
  value = add_convolution(value, {64, 4, 5, 5}, 1);
  value = builder.AddNode("Relu", 14, {value});
  value = add_convolution(value, {64, 64, 3, 3}, 1);
  value = add_convolution(value, {64, 1, 3, 3}, 64);
  value = add_convolution(value, {32, 64, 1, 1}, 1);
  value = builder.AddNode("GlobalAveragePool", 1, {value});
  value = builder.AddNode("Flatten", 13, {value}, {{"axis", int64_t{1}}});
  value = builder.AddNode("MatMul", 13, {value, add_weights({32, 96})});
  value = builder.AddNode("Tanh", 13, {value});
  return builder.Take({builder.AddNode("MatMul", 13, {value, add_weights({96, 10})})});
}

class Places : public execution::OutputAllocator {
 public:
  base::Result<std::byte*> Allocate(int, const Extents& extents) override {
    values.resize(static_cast<size_t>(tensor::ElementCount(extents)));
    return reinterpret_cast<std::byte*>(values.data());
  }
  std::vector<float> values;
};

// A network on the device, with what runs it.
struct Made {
  Made(uint32_t seed, Device& device, bool is_prepared) : weights(seed) {
    plugin::LoadTimes times;
    auto compiled = plugin::Compile(MakeNetwork(weights), device, base::Log(), times);
    EXPECT_TRUE(compiled.ok()) << compiled.status().Text();
    program = *std::move(compiled);
    auto created = plan::Plan::Create(*program, device, counters);
    EXPECT_TRUE(created.ok()) << created.status().Text();
    plan = *std::move(created);
    if (is_prepared) {
      for (Tensor& constant : program->constants) constant = {};
      const base::Status status = plan->Prepare();
      EXPECT_TRUE(status.ok()) << status.Text();
    }
    executor = std::make_unique<execution::Executor>(*plan);
  }

  std::vector<float> Run() const {
    std::vector<float> x(4 * 12 * 12);
    for (size_t k = 0; k < x.size(); ++k) x[k] = std::sin(static_cast<float>(k) * 0.37F);
    Places places;
    const execution::InputTensor input{reinterpret_cast<const std::byte*>(x.data()),
                                       {1, 4, 12, 12}};
    const base::Status status = executor->Run({&input, 1}, places);
    EXPECT_TRUE(status.ok()) << status.Text();
    return places.values;
  }

  Weights weights;
  plan::Counters counters;
  std::unique_ptr<program::Program> program;
  std::unique_ptr<plan::Plan> plan;
  std::unique_ptr<execution::Executor> executor;
};

class PrepareTest : public testing::Test {
 protected:
  void SetUp() override {
    auto device = Device::Create(std::make_shared<threads::ThreadPool>(3), base::Log());
    ASSERT_TRUE(device.ok()) << device.status().Text();
    device_ = *std::move(device);
  }
  std::unique_ptr<Device> device_;
};

TEST_F(PrepareTest, RunsWithoutTheWeightsThatItPacked) {
  const Made kept(7, *device_, /*is_prepared=*/false);
  const Made prepared(7, *device_, /*is_prepared=*/true);
  EXPECT_EQ(kept.weights.gone(), 0);
  // Those of the convolutions and of the first product, which writes to no caller's memory.
  EXPECT_GE(prepared.weights.gone(), 4);
  const std::vector<float> expected = kept.Run();
  ASSERT_EQ(expected.size(), 10u);
  for (const float value : expected) EXPECT_TRUE(std::isfinite(value));
  for (int run = 0; run < 3; ++run) EXPECT_EQ(prepared.Run(), expected);
}

TEST_F(PrepareTest, MakesAGraphReadyWhileAnotherRuns) {
  const Made running(11, *device_, /*is_prepared=*/true);
  const std::vector<float> expected = running.Run();
  const std::vector<float> expected_of_other = Made(12, *device_, /*is_prepared=*/true).Run();
  std::atomic<bool> is_done = false;
  int different = 0, runs = 0;
  std::thread runner([&] {
    while (!is_done || runs == 0) {
      different += running.Run() == expected ? 0 : 1;
      ++runs;
    }
  });
  for (int k = 0; k < 5; ++k) {
    const Made other(12, *device_, /*is_prepared=*/true);
    EXPECT_EQ(other.Run(), expected_of_other);
  }
  is_done = true;
  runner.join();
  EXPECT_EQ(different, 0) << "of " << runs;
}

}  // namespace
}  // namespace onnxifi::cpu
