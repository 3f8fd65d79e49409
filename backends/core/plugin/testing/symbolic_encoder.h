// SPDX-License-Identifier: Apache-2.0
//
// For tests of plugins: a model with a symbolic number of tokens, made ready for a device, which
// runs it for any number of them; and what the reference makes of the same tokens.

#ifndef ONNXIFI_BACKENDS_CORE_PLUGIN_TESTING_SYMBOLIC_ENCODER_H_
#define ONNXIFI_BACKENDS_CORE_PLUGIN_TESTING_SYMBOLIC_ENCODER_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "backends/core/execution/host_boundary.h"
#include "backends/core/execution/testing/run_program.h"
#include "backends/core/graph/testing/graph_builder.h"
#include "backends/core/plan/plan.h"
#include "backends/core/plugin/pipeline.h"
#include "backends/core/reference/device.h"

namespace onnxifi::plugin {

// One layer of an encoder over tokens of 16 floats: attention with one head, a residual, layer
// normalisation, and two products with a rectifier between them.
class SymbolicEncoder {
 public:
  // `device` outlives it.
  explicit SymbolicEncoder(device::Device& device) { Prepare(device); }

  base::Result<tensor::Tensor> Run(const tensor::Tensor& tokens) {
    execution::TensorOutputs outputs(*program_);
    ONNXIFI_RETURN_IF_ERROR(boundary_->Run(execution::AsInputs({tokens}), outputs));
    return std::move(outputs.tensors[0]);
  }

  static tensor::Tensor Tokens(int64_t count) {
    return Seeded({count, kWidth}, static_cast<uint32_t>(count));
  }
  bool is_ready() const { return boundary_ != nullptr; }

 private:
  static constexpr int64_t kWidth = 16;
  static constexpr int64_t kInner = 40;

  static tensor::Tensor Seeded(const tensor::Extents& extents, uint32_t seed) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<float> value(-0.5F, 0.5F);
    std::vector<float> values(static_cast<size_t>(tensor::ElementCount(extents)));
    for (float& element : values) element = value(random);
    return tensor::Tensor::FromValues<float>(tensor::ElementType::kFloat32, extents, values);
  }

  static graph::Graph MakeGraph() {
    graph::testing::GraphBuilder builder;
    graph::Type type;
    type.kind = graph::Type::Kind::kTensor;
    type.element = tensor::ElementType::kFloat32;
    type.extents = {graph::Extent{-1, "tokens"}, graph::Extent{kWidth, ""}};
    uint32_t seed = 1000;
    const auto weights = [&](const tensor::Extents& extents) {
      return builder.AddConstant(Seeded(extents, seed++));
    };
    const auto product = [&](graph::ValueId left, graph::ValueId right) {
      return builder.AddNode("MatMul", 13, {left, right});
    };
    const graph::ValueId x = builder.AddInput("tokens", type);
    const graph::ValueId queries = product(x, weights({kWidth, kWidth}));
    const graph::ValueId keys = product(x, weights({kWidth, kWidth}));
    const graph::ValueId values = product(x, weights({kWidth, kWidth}));
    const graph::ValueId turned =
        builder.AddNode("Transpose", 13, {keys}, {{"perm", std::vector<int64_t>{1, 0}}});
    const graph::ValueId shares =
        builder.AddNode("Softmax", 13, {product(queries, turned)}, {{"axis", int64_t{-1}}});
    const graph::ValueId seen = builder.AddNode("Add", 14, {x, product(shares, values)});
    const graph::ValueId normal =
        builder.AddNode("LayerNormalization", 17, {seen, weights({kWidth}), weights({kWidth})});
    const graph::ValueId inner =
        builder.AddNode("Relu", 14, {product(normal, weights({kWidth, kInner}))});
    return builder.Take(
        {builder.AddNode("Add", 14, {product(inner, weights({kInner, kWidth})), normal})});
  }

  void Prepare(device::Device& device) {
    auto program = Compile(MakeGraph(), device, base::Log(), times_);
    ASSERT_TRUE(program.ok()) << program.status().Text();
    program_ = *std::move(program);
    auto plan = plan::Plan::Create(*program_, device, counters_);
    ASSERT_TRUE(plan.ok()) << plan.status().Text();
    plan_ = *std::move(plan);
    executor_ = std::make_unique<execution::Executor>(*plan_);
    auto boundary = execution::HostBoundary::Create(*executor_);
    ASSERT_TRUE(boundary.ok()) << boundary.status().Text();
    boundary_ = *std::move(boundary);
  }

  LoadTimes times_;
  plan::Counters counters_;
  std::unique_ptr<program::Program> program_;
  std::unique_ptr<plan::Plan> plan_;
  std::unique_ptr<execution::Executor> executor_;
  std::unique_ptr<execution::HostBoundary> boundary_;
};

// Fifty numbers of tokens in turn give what the reference gives, and the device has no kernel after
// them that it did not have after the first. `kernel_count`: of the device so far.
inline void ExpectFiftyLengthsOfTheSameKernels(device::Device& device,
                                               const std::function<int64_t()>& kernel_count) {
  constexpr int64_t kFirst = 70;
  reference::Device reference;
  SymbolicEncoder expected(reference);
  SymbolicEncoder tested(device);
  ASSERT_TRUE(expected.is_ready() && tested.is_ready());
  int64_t kernels = 0;
  for (int64_t count = kFirst; count < kFirst + 50; ++count) {
    const tensor::Tensor tokens = SymbolicEncoder::Tokens(count);
    const auto right = expected.Run(tokens);
    const auto given = tested.Run(tokens);
    ASSERT_TRUE(right.ok()) << right.status().Text();
    ASSERT_TRUE(given.ok()) << given.status().Text();
    ASSERT_EQ(given->extents(), right->extents());
    const auto* const wanted = reinterpret_cast<const float*>(right->data());
    const auto* const results = reinterpret_cast<const float*>(given->data());
    for (int64_t k = 0; k < right->element_count(); ++k) {
      ASSERT_NEAR(results[k], wanted[k], 1e-4) << count << " tokens, element " << k;
    }
    if (count == kFirst) kernels = kernel_count();
    ASSERT_GT(kernels, 0);
    ASSERT_EQ(kernel_count(), kernels) << count << " tokens";
  }
}

}  // namespace onnxifi::plugin

#endif  // ONNXIFI_BACKENDS_CORE_PLUGIN_TESTING_SYMBOLIC_ENCODER_H_
