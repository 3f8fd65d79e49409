// SPDX-License-Identifier: Apache-2.0
//
// CausalConvWithState against loops in double precision: with and without bias and state, inputs
// shorter than the kernel, extents known only when it runs; and what it refuses.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "backends/core/ops/testing/run_operator.h"

namespace onnxifi::ops {
namespace {

using tensor::ElementType;
using ::testing::HasSubstr;

constexpr int kBatch = 2, kChannels = 3;

std::vector<double> Draw(int count, int seed) {
  std::vector<double> numbers;
  for (int k = 0; k < count; ++k) {
    numbers.push_back(float(std::sin(double(seed) + 1.3 * double(k * k % 211))));
  }
  return numbers;
}

struct CausalConvCase {
  int length, kernel;
  bool has_bias, has_state;
  std::string activation;
};

class CausalConvTest : public ::testing::TestWithParam<CausalConvCase> {};

TEST_P(CausalConvTest, EqualsLoops) {
  const CausalConvCase& c = GetParam();
  const int before = c.kernel - 1;
  const auto x = Draw(kBatch * kChannels * c.length, 1);
  const auto w = Draw(kChannels * c.kernel, 2);
  const auto bias = Draw(kChannels, 3);
  const auto state = Draw(kBatch * kChannels * before, 4);
  std::vector<double> expected, expected_state;
  for (int n = 0; n < kBatch; ++n) {
    for (int channel = 0; channel < kChannels; ++channel) {
      const int row = n * kChannels + channel;
      std::vector<double> line(size_t(before), 0);
      if (c.has_state) {
        line.assign(state.begin() + row * before, state.begin() + (row + 1) * before);
      }
      line.insert(line.end(), x.begin() + row * c.length, x.begin() + (row + 1) * c.length);
      for (int at = 0; at < c.length; ++at) {
        double sum = c.has_bias ? bias[size_t(channel)] : 0;
        for (int k = 0; k < c.kernel; ++k) {
          sum += line[size_t(at + k)] * w[size_t(channel * c.kernel + k)];
        }
        expected.push_back(c.activation == "none" ? sum : sum / (1 + std::exp(-sum)));
      }
      expected_state.insert(expected_state.end(), line.end() - before, line.end());
    }
  }
  // All known, all symbols, and weights as models have them: beside inputs that are symbols.
  const std::pair<decltype(&Given), decltype(&Given)> forms[] = {
      {Given, Given}, {Symbolic, Symbolic}, {Symbolic, Constant}};
  for (const auto& [form, form_of_weights] : forms) {
    const auto type = ElementType::kFloat32;
    OneNode node{"CausalConvWithState",
                 27,
                 {{"activation", c.activation}},
                 {form({kBatch, kChannels, c.length}, x, type),
                  form_of_weights({kChannels, 1, c.kernel}, w, type),
                  c.has_bias ? form_of_weights({kChannels}, bias, type) : Omitted(),
                  c.has_state ? form({kBatch, kChannels, before}, state, type) : Omitted()},
                 {true, true}};
    const auto out = RunOperator(node);
    ASSERT_TRUE(out.ok()) << out.status().Text();
    ASSERT_EQ((*out)[0].extents(), (tensor::Extents{kBatch, kChannels, c.length}));
    const std::vector<double> found = Numbers((*out)[0]);
    for (size_t at = 0; at < expected.size(); ++at) {
      ASSERT_NEAR(found[at], expected[at], 2e-6) << at;
    }
    ASSERT_EQ((*out)[1].extents(), (tensor::Extents{kBatch, kChannels, before}));
    EXPECT_EQ(Numbers((*out)[1]), expected_state);
  }
}

INSTANTIATE_TEST_SUITE_P(Forms, CausalConvTest,
                         ::testing::Values(CausalConvCase{7, 4, false, false, "none"},
                                           CausalConvCase{7, 4, true, true, "silu"},
                                           CausalConvCase{1, 4, false, true, "none"},
                                           CausalConvCase{2, 5, true, false, "swish"},
                                           CausalConvCase{5, 1, false, true, "silu"},
                                           CausalConvCase{5, 1, true, false, "none"}));

TEST(CausalConvTypeTest, RoundsSumsBeforeTheFunction) {
  for (const auto& form : {Given, Symbolic}) {
    const auto type = ElementType::kFloat16;
    const auto out =
        RunOperator({"CausalConvWithState",
                     27,
                     {{"activation", std::string("silu")}},
                     {form({1, 1, 2}, {1, 1}, type), form({1, 1, 2}, {0x1p-11, 1}, type)},
                     {true, true}});
    ASSERT_TRUE(out.ok()) << out.status().Text();
    // The second sum is a tie, which rounds to 1; the function of the tie is 0.7314453125.
    EXPECT_THAT(Numbers((*out)[0]), ::testing::ElementsAre(0.73095703125, 0.73095703125));
    EXPECT_THAT(Numbers((*out)[1]), ::testing::ElementsAre(1));
  }
}

TEST(CausalConvRefusalTest, RefusesWhatDoesNotFit) {
  struct Case {
    tensor::Extents weight, bias, state;
    const char* sentence;
  };
  for (const Case& c :
       {Case{{2, 1, 3}, {3}, {1, 3, 2}, "channels of the input and of the weight differ"},
        Case{{3, 2, 3}, {3}, {1, 3, 2}, "middle extent of the weight and 1 differ"},
        Case{{3, 1, 0}, {3}, {1, 3, 2}, "and needs at least 1"},
        Case{{3, 1, 3}, {2}, {1, 3, 2}, "length of input 2 and the number of channels differ"},
        Case{{3, 1, 3}, {1}, {1, 3, 2}, "length of input 2 and the number of channels differ"},
        Case{{3, 1, 3}, {3}, {1, 3, 3}, "length of past_state and the kernel's less 1 differ"},
        Case{{3, 1, 3}, {3}, {2, 3, 2}, "Extents of axis 0 differ"}}) {
    for (const auto& form : {Given, Symbolic}) {
      const auto drawn = [&](const tensor::Extents& extents) {
        return form(extents, Draw(int(tensor::ElementCount(extents)), 1), ElementType::kFloat32);
      };
      const auto out =
          RunOperator({"CausalConvWithState",
                       27,
                       {},
                       {drawn({1, 3, 4}), drawn(c.weight), drawn(c.bias), drawn(c.state)},
                       {true, true}});
      ASSERT_FALSE(out.ok()) << c.sentence;
      EXPECT_THAT(out.status().Text(), HasSubstr(c.sentence));
    }
  }
  const auto out = RunOperator({"CausalConvWithState",
                                27,
                                {{"activation", std::string("tanh")}},
                                {Given({1, 1, 1}, {1}), Given({1, 1, 1}, {1})}});
  ASSERT_FALSE(out.ok());
  EXPECT_EQ(out.status().code(), base::Code::kInvalidModel);
  EXPECT_THAT(out.status().Text(), HasSubstr("'tanh' is not none, silu or swish"));
}

}  // namespace
}  // namespace onnxifi::ops
