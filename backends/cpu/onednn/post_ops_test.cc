// SPDX-License-Identifier: Apache-2.0
//
// Each operation of an epilogue under oneDNN's name, and how many of them it takes. That they
// compute the same is tested with the device.

#include "backends/cpu/onednn/post_ops.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace onnxifi::onednn {
namespace {

using dnnl::algorithm;
using epilogue::Kind;
using epilogue::Operation;
using program::Expr;
using tensor::ElementType;
using testing::HasSubstr;

dnnl::post_ops Appended(const std::vector<Operation>& operations) {
  std::vector<device::BoundView> views(operations.size());
  for (device::BoundView& view : views) view.strides = {3, 1};
  const base::Result<BoundPostOps> bound = BoundPostOps::Create(operations, views, {2, 3});
  EXPECT_TRUE(bound.ok()) << bound.status().Text();
  dnnl::primitive_attr attributes;
  bound->AddTo(attributes);
  return attributes.get_post_ops();
}

TEST(PostOpsTest, NamesEveryFunction) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  struct Case {
    Operation operation;
    algorithm name;
    float alpha, beta;
  };
  const Case cases[] = {
      {{Kind::kLinear, 2, 3}, algorithm::eltwise_linear, 2, 3},
      {{Kind::kClip, -1, 6}, algorithm::eltwise_clip, -1, 6},
      {{Kind::kClip, 0, 6}, algorithm::eltwise_clip, 0, 6},
      {{Kind::kClip, 0, kInfinity}, algorithm::eltwise_relu, 0, 0},
      {{Kind::kLeakyRelu, 0.25}, algorithm::eltwise_relu, 0.25, 0},
      {{Kind::kAbs}, algorithm::eltwise_abs, 0, 0},
      {{Kind::kSquare}, algorithm::eltwise_square, 0, 0},
      {{Kind::kLogistic}, algorithm::eltwise_logistic, 0, 0},
      {{Kind::kSwish, 1.5}, algorithm::eltwise_swish, 1.5, 0},
      {{Kind::kHardSwish, 0.25, 0.5}, algorithm::eltwise_hardswish, 0.25, 0.5},
  };
  for (const Case& expected : cases) {
    const dnnl::post_ops appended = Appended({expected.operation});
    ASSERT_EQ(appended.len(), 1);
    ASSERT_EQ(appended.kind(0), dnnl::primitive::kind::eltwise);
    algorithm name{};
    float alpha = -1, beta = -1;
    appended.get_params_eltwise(0, name, alpha, beta);
    EXPECT_EQ(name, expected.name);
    EXPECT_EQ(alpha, expected.alpha);
    EXPECT_EQ(beta, expected.beta);
  }
}

TEST(PostOpsTest, NamesEveryOperationWithATensorInOrder) {
  const std::pair<Kind, algorithm> cases[] = {
      {Kind::kAdd, algorithm::binary_add},      {Kind::kSubtract, algorithm::binary_sub},
      {Kind::kMultiply, algorithm::binary_mul}, {Kind::kDivide, algorithm::binary_div},
      {Kind::kMaximum, algorithm::binary_max},  {Kind::kMinimum, algorithm::binary_min},
  };
  std::vector<Operation> operations;
  for (const auto& [kind, name] : cases) operations.push_back({kind, 0, 0, /*read=*/2});
  const dnnl::post_ops appended = Appended(operations);
  ASSERT_EQ(appended.len(), 6);
  for (int k = 0; k < 6; ++k) {
    ASSERT_EQ(appended.kind(k), dnnl::primitive::kind::binary);
    algorithm name{};
    Desc desc;
    appended.get_params_binary(k, name, desc);
    EXPECT_EQ(name, cases[k].second);
  }
}

TEST(PostOpsTest, RefusesMoreThanFits) {
  program::Program program;
  program::Step step;
  program::Buffer buffer;
  buffer.type = ElementType::kFloat32;
  buffer.shape = {2, 3};
  step.reads = {program::DenseView(program.AddBuffer(buffer), buffer.type, buffer.shape)};
  Expr value = program::Accumulator(program.exprs, ElementType::kFloat32);
  for (int k = 0; k < 28; ++k) value = value + Load(program.exprs, ElementType::kFloat32, 0);
  EXPECT_TRUE(TranslatePostOps(program, step, value.id(), epilogue::ReadTypes::kFloat32).ok());
  value = value + Load(program.exprs, ElementType::kFloat32, 0);
  EXPECT_THAT(
      TranslatePostOps(program, step, value.id(), epilogue::ReadTypes::kFloat32).status().Text(),
      HasSubstr("more operations (29)"));
}

}  // namespace
}  // namespace onnxifi::onednn
