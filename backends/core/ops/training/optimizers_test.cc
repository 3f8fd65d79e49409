// SPDX-License-Identifier: Apache-2.0
//
// Adagrad, Adam and Momentum against loops in double precision: two tensors of different extents,
// first and later updates, every attribute off its default.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "backends/core/ops/testing/run_operator.h"

namespace onnxifi::ops {
namespace {

using tensor::ElementType;
using ::testing::HasSubstr;
using Numbers1 = std::vector<double>;
constexpr double kRate = 0.125;

Numbers1 Draw(size_t count, int seed, bool is_positive) {
  Numbers1 numbers;
  for (size_t k = 0; k < count; ++k) {
    const double x = std::sin(double(seed) + 1.3 * double(k));
    numbers.push_back(float(is_positive ? x * x + 0.1 : x));
  }
  return numbers;
}

struct OptimizerCase {
  std::string name;
  std::string op_type;
  std::map<std::string, graph::Attribute, std::less<>> attributes;
  int64_t updates = 0;
};

float Attribute(const OptimizerCase& c, const std::string& name, float fallback) {
  const auto found = c.attributes.find(name);
  return found == c.attributes.end() ? fallback : std::get<float>(found->second);
}

// X and the states of one element.
Numbers1 Expected(const OptimizerCase& c, double x, double g, double v, double h) {
  const double t = double(c.updates);
  g += Attribute(c, "norm_coefficient", 0) * x;
  const double epsilon = Attribute(c, "epsilon", 1e-6f);
  if (c.op_type == "Adagrad") {
    const double rate = kRate / (1 + t * Attribute(c, "decay_factor", 0));
    const double squares = v + g * g;
    return {x - rate * g / (std::sqrt(squares) + epsilon), squares};
  }
  if (c.op_type == "Adam") {
    const double alpha = Attribute(c, "alpha", 0.9f), beta = Attribute(c, "beta", 0.999f);
    const double momentum = alpha * v + (1 - alpha) * g;
    const double squares = beta * h + (1 - beta) * g * g;
    const double rate =
        t > 0 ? kRate * std::sqrt(1 - std::pow(beta, t)) / (1 - std::pow(alpha, t)) : kRate;
    const double next = x - rate * momentum / (std::sqrt(squares) + epsilon);
    return {(1 - Attribute(c, "norm_coefficient_post", 0)) * next, momentum, squares};
  }
  const double alpha = Attribute(c, "alpha", 0);
  const double momentum = alpha * v + (t > 0 ? Attribute(c, "beta", 0) : 1) * g;
  const bool is_nesterov = std::get<std::string>(c.attributes.at("mode")) == "nesterov";
  return {x - kRate * (is_nesterov ? g + alpha * momentum : momentum), momentum};
}

class OptimizerTest : public ::testing::TestWithParam<OptimizerCase> {};

TEST_P(OptimizerTest, UpdatesTensorsAndStates) {
  const OptimizerCase& c = GetParam();
  const std::vector<tensor::Extents> shapes{{3, 5}, {7}};
  const int kinds = c.op_type == "Adam" ? 4 : 3;
  OneNode node{c.op_type, 1, c.attributes};
  node.domain = "ai.onnx.preview.training";
  node.inputs = {Given({}, {kRate}), Given({}, {double(c.updates)}, ElementType::kInt64)};
  std::vector<std::vector<Numbers1>> data;  // by kind, tensor
  for (int kind = 0; kind < kinds; ++kind) {
    auto& tensors = data.emplace_back();
    for (const tensor::Extents& shape : shapes) {
      size_t count = 1;
      for (int64_t extent : shape) count *= size_t(extent);
      tensors.push_back(Draw(count, int(7 * data.size() + tensors.size()), kind >= 2));
      node.inputs.push_back(
          (kind == 1 ? Given : Symbolic)(shape, tensors.back(), ElementType::kFloat32));
    }
  }
  node.wanted.assign(size_t(kinds - 1) * 2, true);
  const auto out = RunOperator(node);
  ASSERT_TRUE(out.ok()) << out.status().Text();
  for (size_t tensor = 0; tensor < 2; ++tensor) {
    for (size_t k = 0; k < data[0][tensor].size(); ++k) {
      const Numbers1 expected = Expected(c, data[0][tensor][k], data[1][tensor][k],
                                         data[2][tensor][k], kinds == 4 ? data[3][tensor][k] : 0);
      for (size_t output = 0; output < expected.size(); ++output) {
        EXPECT_NEAR(Numbers((*out)[output * 2 + tensor])[k], expected[output],
                    1e-5 * std::max(1.0, std::abs(expected[output])))
            << tensor << " " << k << " " << output;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Operators, OptimizerTest,
                         ::testing::Values(OptimizerCase{"AdagradDefaults", "Adagrad", {}, 3},
                                           OptimizerCase{"Adagrad",
                                                         "Adagrad",
                                                         {{"norm_coefficient", 0.3f},
                                                          {"epsilon", 0.02f},
                                                          {"decay_factor", 0.1f}},
                                                         4},
                                           OptimizerCase{"AdamDefaults", "Adam", {}, 0},
                                           OptimizerCase{"AdamLater", "Adam", {}, 5},
                                           OptimizerCase{"Adam",
                                                         "Adam",
                                                         {{"norm_coefficient", 0.3f},
                                                          {"norm_coefficient_post", 0.2f},
                                                          {"alpha", 0.7f},
                                                          {"beta", 0.8f},
                                                          {"epsilon", 0.05f}},
                                                         2},
                                           OptimizerCase{"MomentumFirst",
                                                         "Momentum",
                                                         {{"mode", std::string("standard")},
                                                          {"norm_coefficient", 0.3f},
                                                          {"alpha", 0.7f},
                                                          {"beta", 0.4f}},
                                                         0},
                                           OptimizerCase{"MomentumLater",
                                                         "Momentum",
                                                         {{"mode", std::string("standard")},
                                                          {"norm_coefficient", 0.0f},
                                                          {"alpha", 0.7f},
                                                          {"beta", 0.4f}},
                                                         1},
                                           OptimizerCase{"Nesterov",
                                                         "Momentum",
                                                         {{"mode", std::string("nesterov")},
                                                          {"norm_coefficient", 0.1f},
                                                          {"alpha", 0.6f},
                                                          {"beta", 0.9f}},
                                                         6}),
                         [](const auto& info) { return info.param.name; });

TEST(OptimizerRefusalTest, CountsItsInputs) {
  OneNode node{"Adagrad", 1, {}, {Given({}, {1}), Given({}, {1}, ElementType::kInt64)}};
  node.domain = "ai.onnx.preview.training";
  for (int k = 0; k < 4; ++k) node.inputs.push_back(Given({1}, {1}));
  const auto out = RunOperator(node);
  ASSERT_FALSE(out.ok());
  EXPECT_THAT(out.status().Text(), HasSubstr("6 inputs, which are not R, T and 3"));
}

}  // namespace
}  // namespace onnxifi::ops
