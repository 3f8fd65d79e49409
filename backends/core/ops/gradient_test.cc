// SPDX-License-Identifier: Apache-2.0
//
// Gradient against the difference quotient of the function, in double precision.

#include "backends/core/ops/gradient.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "backends/core/graph/testing/graph_builder.h"
#include "backends/core/ops/testing/run_operator.h"

namespace onnxifi::ops {
namespace {

using graph::ValueId;
using graph::ValueIds;
using graph::testing::GraphBuilder;
using tensor::ElementType;
using tensor::Tensor;
using ::testing::HasSubstr;
using Doubles = std::vector<double>;
// y's elements from those of the inputs.
using Function = std::function<Doubles(const std::vector<Doubles>&)>;
// Adds nodes from the inputs to y, which it returns.
using Build = std::function<ValueId(GraphBuilder&, const ValueIds&)>;

graph::Type TypeOf(const tensor::Extents& extents, bool is_symbolic) {
  graph::Type type;
  type.kind = graph::Type::Kind::kTensor;
  type.element = ElementType::kFloat64;
  type.extents.emplace();
  for (int64_t extent : extents) type.extents->push_back({is_symbolic ? -1 : extent, ""});
  return type;
}

struct Problem {
  std::vector<tensor::Extents> extents;
  std::vector<Doubles> values;
  Build build;
  Function function;
};

base::Result<std::vector<Tensor>> RunGradient(const Problem& problem, bool is_symbolic) {
  GraphBuilder builder("g");
  ValueIds inputs;
  std::vector<Tensor> tensors;
  std::vector<std::string> names;
  for (size_t k = 0; k < problem.extents.size(); ++k) {
    names.push_back("x" + std::to_string(k));
    inputs.push_back(builder.AddInput(names.back(), TypeOf(problem.extents[k], is_symbolic)));
    tensors.push_back(MakeTensor(ElementType::kFloat64, problem.extents[k], problem.values[k]));
  }
  const ValueId y = problem.build(builder, inputs);
  const std::string name = "t" + std::to_string(y);  // as the builder names what it makes
  const ValueIds gradients = builder.AddNodeOfMany(
      "Gradient", 1, inputs, static_cast<int>(inputs.size()), {{"xs", names}, {"y", name}});
  builder.LastNode().domain = "ai.onnx.preview.training";
  builder.SetOutputs(gradients);
  return RunGraph(builder.Take(), tensors);
}

double SumOf(const Doubles& numbers) {
  double sum = 0;
  for (const double number : numbers) sum += number;
  return sum;
}

void CheckGradient(const Problem& problem, bool is_symbolic = false) {
  const auto out = RunGradient(problem, is_symbolic);
  ASSERT_TRUE(out.ok()) << out.status().Text();
  constexpr double kStep = 1e-6;
  for (size_t input = 0; input < problem.values.size(); ++input) {
    const Doubles found = Numbers((*out)[input]);
    ASSERT_EQ(found.size(), problem.values[input].size());
    EXPECT_EQ((*out)[input].extents(), problem.extents[input]);
    for (size_t at = 0; at < found.size(); ++at) {
      std::vector<Doubles> ahead = problem.values, behind = problem.values;
      ahead[input][at] += kStep;
      behind[input][at] -= kStep;
      const double slope =
          (SumOf(problem.function(ahead)) - SumOf(problem.function(behind))) / (2 * kStep);
      EXPECT_NEAR(found[at], slope, 1e-7 * (1 + std::abs(slope))) << input << ", " << at;
    }
  }
}

Doubles Draw(size_t count, double low, double high) {
  Doubles numbers;
  for (size_t k = 0; k < count; ++k) {
    numbers.push_back(low + (high - low) * static_cast<double>(k * 7919 % 101) / 101);
  }
  return numbers;
}

// a[2, 3] * b[3] - b, divided by a.
Problem Broadcast() {
  return {.extents = {{2, 3}, {3}},
          .values = {Draw(6, 0.5, 2), Draw(3, -2, -0.5)},
          .build =
              [](GraphBuilder& builder, const ValueIds& x) {
                const ValueId product = builder.AddNode("Mul", 14, {x[0], x[1]});
                const ValueId difference = builder.AddNode("Sub", 14, {product, x[1]});
                return builder.AddNode("Div", 14, {difference, x[0]});
              },
          .function =
              [](const std::vector<Doubles>& x) {
                Doubles y;
                for (size_t k = 0; k < 6; ++k) {
                  y.push_back((x[0][k] * x[1][k % 3] - x[1][k % 3]) / x[0][k]);
                }
                return y;
              }};
}

TEST(GradientTest, BroadcastAxesAreSummed) {
  CheckGradient(Broadcast());
  // Only a run tells what is broadcast.
  CheckGradient(Broadcast(), /*is_symbolic=*/true);
}

TEST(GradientTest, AValueThatIsReadTwiceAddsUp) {
  CheckGradient({.extents = {{5}},
                 .values = {Draw(5, 0.3, 1.2)},
                 .build =
                     [](GraphBuilder& builder, const ValueIds& x) {
                       const ValueId square = builder.AddNode("Mul", 14, {x[0], x[0]});
                       const ValueId sine = builder.AddNode("Sin", 7, {square});
                       return builder.AddNode("Add", 14, {sine, x[0]});
                     },
                 .function =
                     [](const std::vector<Doubles>& x) {
                       Doubles y;
                       for (const double value : x[0]) y.push_back(std::sin(value * value) + value);
                       return y;
                     }});
}

TEST(GradientTest, ProductsOfMatrices) {
  CheckGradient(
      {.extents = {{2, 3}, {3, 4}},
       .values = {Draw(6, -1, 1), Draw(12, -1, 1)},
       .build =
           [](GraphBuilder& builder, const ValueIds& x) {
             return builder.AddNode("Tanh", 13, {builder.AddNode("MatMul", 13, {x[0], x[1]})});
           },
       .function =
           [](const std::vector<Doubles>& x) {
             Doubles y;
             for (size_t row = 0; row < 2; ++row) {
               for (size_t column = 0; column < 4; ++column) {
                 double sum = 0;
                 for (size_t k = 0; k < 3; ++k) {
                   sum += x[0][row * 3 + k] * x[1][k * 4 + column];
                 }
                 y.push_back(std::tanh(sum));
               }
             }
             return y;
           }});
}

// The function of a graph without Gradient in it, which is y's: ONNX's own cases check that.
Function RunBy(const Build& build, const std::vector<tensor::Extents>& extents) {
  return [=](const std::vector<Doubles>& values) {
    GraphBuilder builder("g");
    ValueIds inputs;
    std::vector<Tensor> tensors;
    for (size_t k = 0; k < extents.size(); ++k) {
      inputs.push_back(builder.AddInput("x" + std::to_string(k), TypeOf(extents[k], false)));
      tensors.push_back(MakeTensor(ElementType::kFloat64, extents[k], values[k]));
    }
    builder.SetOutputs({build(builder, inputs)});
    const auto out = RunGraph(builder.Take(), tensors);
    EXPECT_TRUE(out.ok()) << out.status().Text();
    return out.ok() ? Numbers(out->front()) : Doubles();
  };
}

struct OperatorCase {
  std::string name;
  std::vector<tensor::Extents> extents;
  // y before it is squared, so that what comes back to it differs by element.
  Build build;
  double low = -1, high = 1;
};

class GradientOfTest : public ::testing::TestWithParam<OperatorCase> {};

TEST_P(GradientOfTest, EqualsTheDifferenceQuotient) {
  const OperatorCase& c = GetParam();
  const Build build = [&](GraphBuilder& builder, const ValueIds& x) {
    const ValueId y = c.build(builder, x);
    return builder.AddNode("Mul", 14, {y, y});
  };
  std::vector<Doubles> values;
  for (const tensor::Extents& extents : c.extents) {
    values.push_back(Draw(static_cast<size_t>(tensor::ElementCount(extents)), c.low, c.high));
  }
  const Problem problem{c.extents, values, build, RunBy(build, c.extents)};
  for (const bool is_symbolic : {false, true}) CheckGradient(problem, is_symbolic);
}

using Attributes = GraphBuilder::Attributes;

Build Apply(std::string op_type, int version, Attributes attributes = {}) {
  return [=](GraphBuilder& builder, const ValueIds& x) {
    return builder.AddNode(op_type, version, x, attributes);
  };
}

// With a second input, int64 and constant.
Build ApplyTo(std::string op_type, int version, Doubles numbers, Attributes attributes = {}) {
  return [=](GraphBuilder& builder, const ValueIds& x) {
    const ValueId second = builder.AddConstant(
        MakeTensor(ElementType::kInt64, {static_cast<int64_t>(numbers.size())}, numbers));
    return builder.AddNode(op_type, version, {x[0], second}, attributes);
  };
}

const Attributes kGemmTransposed = {
    {"alpha", 0.5F}, {"beta", -2.0F}, {"transA", int64_t{1}}, {"transB", int64_t{1}}};
const std::vector<int64_t> kTurned = {1, 2, 0}, kFirstAndLast = {0, -1}, kFirst = {0};

const OperatorCase kOperatorCases[] = {
    {"abs", {{5}}, Apply("Abs", 13)},
    {"add", {{2, 1, 3}, {4, 1}}, Apply("Add", 14)},
    {"erf", {{5}}, Apply("Erf", 13)},
    {"flatten", {{2, 3, 2}}, Apply("Flatten", 13, {{"axis", int64_t{2}}})},
    {"gemm", {{2, 3}, {3, 4}}, Apply("Gemm", 13, {{"alpha", 1.5F}})},
    {"gemm_bias", {{2, 3}, {3, 4}, {4}}, Apply("Gemm", 13)},
    {"gemm_a", {{3, 2}, {3, 4}, {2, 1}}, Apply("Gemm", 13, {{"transA", int64_t{1}}})},
    {"gemm_b", {{2, 3}, {4, 3}, {1, 4}}, Apply("Gemm", 13, {{"transB", int64_t{1}}})},
    {"gemm_transposed", {{3, 2}, {4, 3}, {2, 4}}, Apply("Gemm", 13, kGemmTransposed)},
    {"leaky_relu", {{6}}, Apply("LeakyRelu", 16, {{"alpha", 0.25F}})},
    {"log_softmax", {{2, 3, 4}}, Apply("LogSoftmax", 13, {{"axis", int64_t{1}}})},
    {"pow", {{3}, {2, 3}}, Apply("Pow", 15), 0.5, 2},
    {"square", {{3}}, ApplyTo("Pow", 15, {2})},
    {"cube", {{3}}, ApplyTo("Pow", 15, {3})},
    {"power_0_of_zero", {{3}}, ApplyTo("Pow", 15, {0}), 0, 1},
    {"reciprocal", {{4}}, Apply("Reciprocal", 13), 0.5, 2},
    {"reduce_mean", {{2, 3, 4}}, Apply("ReduceMean", 11, {{"axes", kFirstAndLast}})},
    {"reduce_mean_of_input", {{2, 3}}, ApplyTo("ReduceMean", 18, {1}, {{"keepdims", int64_t{0}}})},
    {"reduce_sum", {{2, 3}}, ApplyTo("ReduceSum", 13, {-2}, {{"keepdims", int64_t{0}}})},
    {"reduce_sum_of_all", {{2, 3}}, Apply("ReduceSum", 13, {{"keepdims", int64_t{0}}})},
    {"reshape", {{2, 6}}, ApplyTo("Reshape", 14, {3, -1})},
    {"softmax", {{3, 4}}, Apply("Softmax", 13)},
    {"softplus", {{5}}, Apply("Softplus", 1)},
    {"squeeze", {{1, 3, 1}}, ApplyTo("Squeeze", 13, {0})},
    {"transpose", {{2, 3, 4}}, Apply("Transpose", 13, {{"perm", kTurned}})},
    {"transpose_all", {{2, 3, 4}}, Apply("Transpose", 13)},
    {"unsqueeze", {{2, 3}}, Apply("Unsqueeze", 11, {{"axes", kFirst}})},
};

INSTANTIATE_TEST_SUITE_P(Operators, GradientOfTest, ::testing::ValuesIn(kOperatorCases),
                         [](const auto& info) { return info.param.name; });

TEST(GradientTest, WhatYDoesNotDependOnHasZeros) {
  Problem problem = Broadcast();
  problem.build = [](GraphBuilder& builder, const ValueIds& x) {
    return builder.AddNode("Exp", 13, {x[0]});
  };
  problem.function = [](const std::vector<Doubles>& x) {
    Doubles y;
    for (const double value : x[0]) y.push_back(std::exp(value));
    return y;
  };
  CheckGradient(problem);
}

TEST(GradientTest, AnOperatorWithoutDerivativeIsRefusedByName) {
  Problem problem = Broadcast();
  problem.build = [](GraphBuilder& builder, const ValueIds& x) {
    return builder.AddNode("Floor", 13, {builder.AddNode("Mul", 14, {x[0], x[1]})});
  };
  const auto out = RunGradient(problem, /*is_symbolic=*/false);
  ASSERT_FALSE(out.ok());
  EXPECT_EQ(out.status().code(), base::Code::kUnsupportedOperator) << out.status().Text();
  EXPECT_THAT(out.status().Text(), HasSubstr("Floor"));
}

}  // namespace
}  // namespace onnxifi::ops
