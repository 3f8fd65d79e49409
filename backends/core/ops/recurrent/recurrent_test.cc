// SPDX-License-Identifier: Apache-2.0
//
// LSTM, GRU and RNN against plain loops in double precision that follow ONNX's equations gate by
// gate: every attribute off its default, every version, symbolic extents.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "backends/core/ops/testing/run_operator.h"
#include "backends/core/program/passes.h"
#include "backends/core/program/verify.h"

namespace onnxifi::ops {
namespace {

using tensor::ElementType;
using ::testing::HasSubstr;
using Numbers1 = std::vector<double>;
using Function = std::function<double(double)>;

constexpr int kSteps = 5, kBatch = 3, kInputs = 4, kHidden = 6;

double Sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double Tanh(double x) { return std::tanh(x); }

// What is asked of one node. Tensors are [T][B][I], [D][G*H][I] and so on, whatever the layout.
struct Problem {
  std::string op_type;
  int directions = 1;
  bool is_reverse = false;
  bool is_batchwise = false;
  double clip = 0;
  bool option = false;  // linear_before_reset, input_forget
  std::vector<Function> functions = {};
  Numbers1 x, w, r, b, h, c, p;
  std::vector<int> lengths = {};

  int steps = kSteps;
  ElementType type = ElementType::kFloat32;

  int gates() const { return op_type == "LSTM" ? 4 : op_type == "GRU" ? 3 : 1; }
  double tolerance() const {
    return type == ElementType::kFloat64    ? 1e-12
           : type == ElementType::kFloat16  ? 2e-3
           : type == ElementType::kBfloat16 ? 1.6e-2
                                            : 2e-5;
  }
};

struct Answer {
  Numbers1 y = Numbers1();  // [T][D][B][H]
  Numbers1 h, c;            // [D][B][H]
};

double Get(const Numbers1& numbers, size_t k) { return numbers.empty() ? 0 : numbers.at(k); }

Answer Solve(const Problem& q) {
  const int gates = q.gates();
  const int per_direction = q.op_type == "LSTM" ? 3 : q.op_type == "GRU" ? 2 : 1;
  Answer out;
  out.y.assign(size_t(q.steps) * q.directions * kBatch * kHidden, 0);
  for (int d = 0; d < q.directions; ++d) {
    const auto f = [&](int k, double v) {
      if (q.clip > 0) v = std::clamp(v, -q.clip, q.clip);
      return q.functions[size_t(d * per_direction + k)](v);
    };
    for (int n = 0; n < kBatch; ++n) {
      Numbers1 h(kHidden), c(kHidden);
      for (int k = 0; k < kHidden; ++k) {
        h[k] = Get(q.h, (size_t(d) * kBatch + n) * kHidden + k);
        c[k] = Get(q.c, (size_t(d) * kBatch + n) * kHidden + k);
      }
      const int length = q.lengths.empty() ? q.steps : q.lengths[n];
      for (int s = 0; s < length; ++s) {
        const int t = q.is_reverse || d == 1 ? length - 1 - s : s;
        const auto in = [&](int g, int k) {
          double sum = Get(q.b, size_t(d) * 2 * gates * kHidden + g * kHidden + k);
          for (int i = 0; i < kInputs; ++i) {
            sum += q.x[(size_t(t) * kBatch + n) * kInputs + i] *
                   q.w[(size_t(d) * gates * kHidden + g * kHidden + k) * kInputs + i];
          }
          return sum;
        };
        const auto rec = [&](int g, int k, const Numbers1& state) {
          double sum = Get(q.b, (size_t(d) * 2 + 1) * gates * kHidden + g * kHidden + k);
          for (int i = 0; i < kHidden; ++i) {
            sum += state[i] * q.r[(size_t(d) * gates * kHidden + g * kHidden + k) * kHidden + i];
          }
          return sum;
        };
        const auto peep = [&](int g, int k) {
          return Get(q.p, size_t(d) * 3 * kHidden + g * kHidden + k);
        };
        Numbers1 next(kHidden), memory(kHidden);
        if (q.op_type == "RNN") {
          for (int k = 0; k < kHidden; ++k) next[k] = f(0, in(0, k) + rec(0, k, h));
        } else if (q.op_type == "GRU") {
          Numbers1 z(kHidden), reset(kHidden), scaled(kHidden);
          for (int k = 0; k < kHidden; ++k) {
            z[k] = f(0, in(0, k) + rec(0, k, h));
            reset[k] = f(0, in(1, k) + rec(1, k, h));
            scaled[k] = reset[k] * h[k];
          }
          for (int k = 0; k < kHidden; ++k) {
            const double sum = in(2, k) + (q.option ? reset[k] * rec(2, k, h) : rec(2, k, scaled));
            next[k] = (1 - z[k]) * f(1, sum) + z[k] * h[k];
          }
        } else {
          for (int k = 0; k < kHidden; ++k) {
            const double i = f(0, in(0, k) + rec(0, k, h) + peep(0, k) * c[k]);
            const double forget =
                q.option ? 1 - i : f(0, in(2, k) + rec(2, k, h) + peep(2, k) * c[k]);
            memory[k] = forget * c[k] + i * f(1, in(3, k) + rec(3, k, h));
            const double o = f(0, in(1, k) + rec(1, k, h) + peep(1, k) * memory[k]);
            next[k] = o * f(2, memory[k]);
          }
        }
        h = next;
        c = memory;
        for (int k = 0; k < kHidden; ++k) {
          out.y[((size_t(t) * q.directions + d) * kBatch + n) * kHidden + k] = h[k];
        }
      }
      out.h.insert(out.h.end(), h.begin(), h.end());
      out.c.insert(out.c.end(), c.begin(), c.end());
    }
  }
  return out;
}

Numbers1 Draw(size_t count, int seed, double scale) {
  Numbers1 numbers;
  for (size_t k = 0; k < count; ++k) {
    // As float32 has it, so that both sides see the same.
    numbers.push_back(float(scale * std::sin(double(seed) + 1.7 * double(k * k % 1013))));
  }
  return numbers;
}

// [A][B][rest] as [B][A][rest].
Numbers1 Swap(const Numbers1& numbers, size_t a, size_t b) {
  if (numbers.empty()) return {};
  const size_t rest = numbers.size() / (a * b);
  Numbers1 swapped(numbers.size());
  for (size_t m = 0; m < a; ++m) {
    for (size_t n = 0; n < b; ++n) {
      std::copy_n(numbers.begin() + ptrdiff_t((m * b + n) * rest), rest,
                  swapped.begin() + ptrdiff_t((n * a + m) * rest));
    }
  }
  return swapped;
}

void Fill(Problem& q, bool has_all) {
  const size_t d = size_t(q.directions), rows = size_t(q.gates()) * kHidden;
  q.x = Draw(size_t(q.steps) * kBatch * kInputs, 1, 1);
  q.w = Draw(d * rows * kInputs, 2, 0.6);
  q.r = Draw(d * rows * kHidden, 3, 0.5);
  if (!has_all) return;
  q.b = Draw(d * rows * 2, 4, 0.4);
  q.h = Draw(d * kBatch * kHidden, 5, 0.8);
  q.lengths = {q.steps, q.steps / 2, q.steps * 4 / 5};
  if (q.op_type != "LSTM") return;
  q.c = Draw(d * kBatch * kHidden, 6, 0.9);
  q.p = Draw(d * 3 * kHidden, 7, 0.7);
}

// Numbers that all types have.
void Coarsen(Problem& q) {
  for (Numbers1* numbers : {&q.x, &q.w, &q.r, &q.b, &q.h, &q.c, &q.p}) {
    for (double& number : *numbers) number = std::round(number * 64) / 64;
  }
}

void ExpectClose(const Numbers1& found, const Numbers1& expected, double tolerance,
                 const std::string& what) {
  ASSERT_EQ(found.size(), expected.size()) << what;
  for (size_t k = 0; k < found.size(); ++k) {
    ASSERT_NEAR(found[k], expected[k], tolerance) << what << " at " << k;
  }
}

void Check(const Problem& q, int version,
           std::map<std::string, graph::Attribute, std::less<>> attributes,
           NodeInput (*data)(tensor::Extents, const std::vector<double>&, ElementType)) {
  attributes["hidden_size"] = int64_t{kHidden};
  attributes["direction"] = std::string(q.directions == 2 ? "bidirectional"
                                        : q.is_reverse    ? "reverse"
                                                          : "forward");
  if (q.clip > 0) attributes["clip"] = float(q.clip);
  if (q.is_batchwise) attributes["layout"] = int64_t{1};
  if (q.option) {
    attributes[q.op_type == "GRU" ? "linear_before_reset" : "input_forget"] = int64_t{1};
  }
  const int64_t d = q.directions, rows = q.gates() * kHidden;
  const ElementType type = q.type;
  const auto state = [&](const Numbers1& numbers) {
    if (numbers.empty()) return Omitted();
    return q.is_batchwise ? data({kBatch, d, kHidden}, Swap(numbers, size_t(d), kBatch), type)
                          : data({d, kBatch, kHidden}, numbers, type);
  };
  OneNode node{q.op_type, version, attributes};
  node.inputs.push_back(q.is_batchwise
                            ? data({kBatch, q.steps, kInputs}, Swap(q.x, q.steps, kBatch), type)
                            : data({q.steps, kBatch, kInputs}, q.x, type));
  node.inputs.push_back(Constant({d, rows, kInputs}, q.w, type));
  node.inputs.push_back(data({d, rows, kHidden}, q.r, type));
  node.inputs.push_back(q.b.empty() ? Omitted() : Constant({d, 2 * rows}, q.b, type));
  node.inputs.push_back(
      q.lengths.empty()
          ? Omitted()
          : data({kBatch}, Numbers1(q.lengths.begin(), q.lengths.end()), ElementType::kInt32));
  node.inputs.push_back(state(q.h));
  node.wanted = {true, true};
  if (q.op_type == "LSTM") {
    node.inputs.push_back(state(q.c));
    node.inputs.push_back(q.p.empty() ? Omitted() : data({d, 3 * kHidden}, q.p, type));
    node.wanted.push_back(true);
  }
  Answer expected = Solve(q);
  tensor::Extents extents{q.steps, d, kBatch, kHidden};
  if (q.is_batchwise) {
    // [T * D][B][H] to [B][T][D][H].
    expected.y = Swap(expected.y, size_t(q.steps * d), kBatch);
    expected.h = Swap(expected.h, size_t(d), kBatch);
    expected.c = Swap(expected.c, size_t(d), kBatch);
    extents = {kBatch, q.steps, d, kHidden};
  }
  for (const bool is_scan : {false, true}) {
    SCOPED_TRACE(is_scan ? "as a scan over time" : "as a step");
    if (is_scan) {
      node.rewrite = [](program::Program& program) {
        program::ExpandRecurrent(
            program, [](const program::Program&, const program::Step&) { return false; });
        ASSERT_TRUE(program::Verify(program).ok()) << program::Verify(program).Text();
      };
    }
    const auto out = RunOperator(node);
    ASSERT_TRUE(out.ok()) << out.status().Text();
    EXPECT_EQ((*out)[0].type(), q.type);
    EXPECT_EQ((*out)[0].extents(), extents);
    ExpectClose(Numbers((*out)[0]), expected.y, q.tolerance(), "Y");
    ExpectClose(Numbers((*out)[1]), expected.h, q.tolerance(), "Y_h");
    if (q.op_type == "LSTM") ExpectClose(Numbers((*out)[2]), expected.c, q.tolerance(), "Y_c");
  }
}

std::vector<Function> Defaults(const Problem& q) {
  std::vector<Function> functions;
  for (int d = 0; d < q.directions; ++d) {
    if (q.op_type != "RNN") functions.emplace_back(Sigmoid);
    if (q.op_type == "LSTM") functions.emplace_back(Tanh);
    functions.emplace_back(Tanh);
  }
  return functions;
}

class RecurrentTest : public ::testing::TestWithParam<std::string> {};

TEST_P(RecurrentTest, OfEveryVersionTakesDefaults) {
  for (int version : {1, 3, 7, 14, 22}) {
    if (version == 3 && GetParam() != "GRU") continue;
    Problem q{.op_type = GetParam()};
    q.functions = Defaults(q);
    Fill(q, /*has_all=*/false);
    Check(q, version, {}, Given);
  }
}

TEST_P(RecurrentTest, TakesEveryInputInEveryDirectionAndLayout) {
  for (int direction = 0; direction < 3; ++direction) {
    for (bool is_batchwise : {false, true}) {
      for (bool option : {false, true}) {
        SCOPED_TRACE(direction * 4 + is_batchwise * 2 + option);
        Problem q{.op_type = GetParam(),
                  .directions = direction == 2 ? 2 : 1,
                  .is_reverse = direction == 1,
                  .is_batchwise = is_batchwise};
        if (q.op_type != "RNN") q.option = option;
        q.functions = Defaults(q);
        Fill(q, /*has_all=*/true);
        if (option) q.lengths = {5, 0, 1};
        Check(q, 22, {}, option ? Symbolic : Given);
      }
    }
  }
}

TEST_P(RecurrentTest, ClipsWhatActivationsGet) {
  Problem q{.op_type = GetParam(), .directions = 2, .clip = 0.3};
  q.functions = Defaults(q);
  Fill(q, /*has_all=*/true);
  Check(q, 14, {}, Symbolic);
}

TEST_P(RecurrentTest, TakesEveryFloatType) {
  for (const ElementType type :
       {ElementType::kFloat64, ElementType::kFloat16, ElementType::kBfloat16}) {
    for (const bool option : {false, true}) {
      SCOPED_TRACE(std::string(tensor::Name(type)));
      Problem q{.op_type = GetParam(), .directions = 2, .option = option && GetParam() != "RNN"};
      q.type = type;
      q.functions = Defaults(q);
      Fill(q, /*has_all=*/true);
      Coarsen(q);
      Check(q, 22, {}, option ? Symbolic : Given);
    }
  }
}

TEST_P(RecurrentTest, KeepsStatesWhereThereAreNoTimeSteps) {
  for (const bool is_batchwise : {false, true}) {
    Problem q{.op_type = GetParam(), .directions = 2, .is_batchwise = is_batchwise};
    q.steps = 0;
    q.functions = Defaults(q);
    Fill(q, /*has_all=*/true);
    Check(q, 22, {}, is_batchwise ? Symbolic : Given);
  }
}

TEST_P(RecurrentTest, GivesTheOutputsThatAreWantedAlone) {
  const auto f32 = ElementType::kFloat32;
  Problem q{.op_type = GetParam(), .directions = 2};
  q.functions = Defaults(q);
  Fill(q, /*has_all=*/false);
  const int64_t d = q.directions, rows = q.gates() * kHidden;
  const Answer expected = Solve(q);
  const std::vector<const Numbers1*> answers = {&expected.y, &expected.h, &expected.c};
  for (size_t only = 0; only < (q.op_type == "LSTM" ? 3u : 2u); ++only) {
    OneNode node{q.op_type, 22, {{"direction", std::string("bidirectional")}}};
    node.inputs = {Given({q.steps, kBatch, kInputs}, q.x, f32), Constant({d, rows, kInputs}, q.w),
                   Constant({d, rows, kHidden}, q.r)};
    node.wanted.assign(q.op_type == "LSTM" ? 3 : 2, false);
    node.wanted[only] = true;
    const auto out = RunOperator(node);
    ASSERT_TRUE(out.ok()) << out.status().Text();
    ASSERT_EQ(out->size(), 1u);
    ExpectClose(Numbers((*out)[0]), *answers[only], q.tolerance(), "output");
  }
}

INSTANTIATE_TEST_SUITE_P(Operators, RecurrentTest, ::testing::Values("RNN", "GRU", "LSTM"),
                         [](const auto& info) { return info.param; });

TEST(RecurrentActivationTest, TakesParametersInOrder) {
  const struct {
    std::string name;
    Function function;
    bool has_alpha, has_beta;
  } functions[] = {
      {"Affine", [](double x) { return 0.7 * x + 0.1; }, true, true},
      {"Elu", [](double x) { return x < 0 ? 0.7 * std::expm1(x) : x; }, true, false},
      {"HardSigmoid", [](double x) { return std::clamp(0.7 * x + 0.1, 0.0, 1.0); }, true, true},
      {"LeakyRelu", [](double x) { return x < 0 ? 0.7 * x : x; }, true, false},
      {"Relu", [](double x) { return std::max(x, 0.0); }, false, false},
      {"ScaledTanh", [](double x) { return 0.7 * std::tanh(0.1 * x); }, true, true},
      {"Softplus", [](double x) { return std::log1p(std::exp(x)); }, false, false},
      {"Softsign", [](double x) { return x / (1 + std::abs(x)); }, false, false},
      {"ThresholdedRelu", [](double x) { return x > 0.7 ? x : 0; }, true, false},
  };
  for (const auto& [name, function, has_alpha, has_beta] : functions) {
    SCOPED_TRACE(name);
    // Of an Affine in front, so that the function's own numbers are second ones.
    Problem q{.op_type = "GRU"};
    q.functions = {[](double x) { return 0.2 * x + 0.6; }, function};
    Fill(q, /*has_all=*/true);
    std::vector<float> alphas{0.2f}, betas{0.6f};
    if (has_alpha) alphas.push_back(0.7f);
    if (has_beta) betas.push_back(0.1f);
    Check(q, 22,
          {{"activations", std::vector<std::string>{"Affine", name}},
           {"activation_alpha", alphas},
           {"activation_beta", betas}},
          Given);
  }
}

TEST(RecurrentRefusalTest, SaysWhatDoesNotFit) {
  const auto status = [](std::map<std::string, graph::Attribute, std::less<>> attributes,
                         NodeInput recurrent) {
    return RunOperator({"RNN",
                        14,
                        std::move(attributes),
                        {Given({2, 1, 1}, {1, 2}), Given({1, 2, 1}, {1, 2}), std::move(recurrent)},
                        {true}})
        .status();
  };
  const NodeInput fits = Given({1, 2, 2}, {1, 2, 3, 4});
  EXPECT_TRUE(status({}, fits).ok());
  EXPECT_THAT(status({{"direction", std::string("sideways")}}, fits).Text(),
              HasSubstr("'sideways', not forward"));
  EXPECT_THAT(status({{"activations", std::vector<std::string>{"Sine"}}}, fits).Text(),
              HasSubstr("'Sine', which is not a function"));
  EXPECT_EQ(status({{"hidden_size", int64_t{3}}}, fits).code(), base::Code::kMismatchingShape);
  EXPECT_THAT(status({}, Symbolic({1, 2, 2}, {1, 2, 3, 4})).Text(),
              HasSubstr("hidden size is neither"));
}

}  // namespace
}  // namespace onnxifi::ops
