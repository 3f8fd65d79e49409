// SPDX-License-Identifier: Apache-2.0
//
// Evaluate and the reference's memory: whole programs at once, inputs that do not fit, requests
// that cannot be met.

#include "backends/core/reference/evaluate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "backends/core/reference/host_memory.h"

namespace onnxifi::reference {
namespace {

using program::Buffer;
using tensor::ElementType;
using tensor::Tensor;

constexpr ElementType kFloat = ElementType::kFloat32;

// out = (in + constant) * 2, in two steps.
program::Program MakeProgram() {
  program::Program p;
  const program::Shape shape = {2, 2};
  p.AddBuffer({Buffer::Kind::kInput, Buffer::Holds::kTensor, kFloat, shape, 0});
  p.AddBuffer({Buffer::Kind::kConstant, Buffer::Holds::kTensor, kFloat, shape, 0});
  p.AddBuffer({Buffer::Kind::kTemporary, Buffer::Holds::kTensor, kFloat, shape});
  p.AddBuffer({Buffer::Kind::kTemporary, Buffer::Holds::kTensor, kFloat, shape});
  p.inputs.push_back({"in", 0, shape});
  p.outputs.push_back({"out", 3, {4}});
  p.outputs.push_back({"same", 0, shape});
  const std::array<float, 4> constant = {10, 20, 30, 40};
  p.constants.push_back(Tensor::FromValues<float>(kFloat, {2, 2}, constant));
  auto add_step = [&](std::vector<program::View> reads, program::BufferId target,
                      program::Expr root) {
    program::Step step;
    step.domain = shape;
    step.reads = std::move(reads);
    step.writes = {program::DenseView(target, kFloat, shape)};
    step.body = program::Map{{root.id()}};
    p.steps.push_back(std::move(step));
  };
  const program::Expr x = Load(p.exprs, kFloat, 0);
  add_step({program::DenseView(0, kFloat, shape), program::DenseView(1, kFloat, shape)}, 2,
           x + Load(p.exprs, kFloat, 1));
  add_step({program::DenseView(2, kFloat, shape)}, 3, x * Like(x, 2));
  return p;
}

Tensor MakeInput(const tensor::Extents& extents) {
  const std::array<float, 4> values = {1, 2, 3, 4};
  return Tensor::FromValues<float>(kFloat, extents, values);
}

TEST(EvaluateTest, RunsAllSteps) {
  const program::Program p = MakeProgram();
  const Tensor inputs[] = {MakeInput({2, 2})};
  const base::Result<std::vector<Tensor>> outputs = Evaluate(p, inputs);
  ASSERT_TRUE(outputs.ok()) << outputs.status().Text();
  EXPECT_THAT((*outputs)[0].values<float>(), testing::ElementsAre(22, 44, 66, 88));
  EXPECT_EQ((*outputs)[0].extents(), tensor::Extents{4});
  EXPECT_THAT((*outputs)[1].values<float>(), testing::ElementsAre(1, 2, 3, 4));
}

TEST(EvaluateTest, RefusesWhatDoesNotFit) {
  const program::Program p = MakeProgram();
  EXPECT_EQ(Evaluate(p, {}).status().code(), base::Code::kInvalidSize);
  const Tensor wrong_shape[] = {MakeInput({4})};
  EXPECT_EQ(Evaluate(p, wrong_shape).status().code(), base::Code::kMismatchingShape);
  EXPECT_EQ(Evaluate(p, wrong_shape).status().sentence(), "Input 0 has extents [4], not [2, 2].");
  const std::array<int32_t, 4> integers = {};
  const Tensor wrong_type[] = {Tensor::FromValues<int32_t>(ElementType::kInt32, {2, 2}, integers)};
  EXPECT_EQ(Evaluate(p, wrong_type).status().code(), base::Code::kMismatchingDatatype);
}

TEST(EvaluateTest, RefusesSymbols) {
  program::Program p = MakeProgram();
  static_cast<void>(p.dims->NewSymbol("N", false));
  const Tensor inputs[] = {MakeInput({2, 2})};
  EXPECT_EQ(Evaluate(p, inputs).status().code(), base::Code::kUnsupportedShape);
}

TEST(HostMemoryTest, BlocksAreAligned) {
  HostMemory memory;
  for (const int64_t size : {int64_t{0}, int64_t{1}, int64_t{100}, int64_t{20} << 20}) {
    const base::Result<std::unique_ptr<device::Allocation>> block = memory.Allocate(size);
    ASSERT_TRUE(block.ok());
    EXPECT_EQ(reinterpret_cast<uintptr_t>((*block)->data()) % 64, 0u);
    EXPECT_EQ((*block)->size_bytes(), size);
  }
}

TEST(HostMemoryTest, RefusesWhatTheSystemHasNot) {
  HostMemory memory;
  for (const int64_t size : {INT64_MAX, int64_t{1} << 50, int64_t{-1}}) {
    const base::Result<std::unique_ptr<device::Allocation>> block = memory.Allocate(size);
    ASSERT_FALSE(block.ok());
    EXPECT_EQ(block.status().code(), base::Code::kNoSystemMemory);
    EXPECT_THAT(std::string(block.status().sentence()), testing::HasSubstr(std::to_string(size)));
  }
}

}  // namespace
}  // namespace onnxifi::reference
