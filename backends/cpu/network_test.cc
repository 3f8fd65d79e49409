// SPDX-License-Identifier: Apache-2.0
//
// Small networks on the CPU: what exporters write today is done in as few steps as it can be, and
// gives what the reference gives.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "backends/core/execution/executor.h"
#include "backends/core/execution/testing/run_program.h"
#include "backends/core/graph/testing/graph_builder.h"
#include "backends/core/plugin/pipeline.h"
#include "backends/core/reference/device.h"
#include "backends/cpu/device.h"
#include "backends/cpu/gemm/byte_blocks.h"

namespace onnxifi::cpu {
namespace {

using graph::Graph;
using graph::ValueId;
using graph::ValueIds;
using graph::testing::GraphBuilder;
using program::Contract;
using program::Step;
using tensor::ElementType;
using tensor::Extents;
using tensor::Tensor;
using testing::HasSubstr;
using testing::Not;
using Ints = std::vector<int64_t>;

constexpr ElementType kFloat = ElementType::kFloat32;

graph::Type FloatsOf(std::vector<graph::Extent> extents) {
  graph::Type type;
  type.kind = graph::Type::Kind::kTensor;
  type.element = kFloat;
  type.extents = std::move(extents);
  return type;
}

Tensor Numbers(const Extents& extents) {
  std::vector<float> values(static_cast<size_t>(tensor::ElementCount(extents)));
  for (size_t k = 0; k < values.size(); ++k) {
    values[k] = 0.01F * static_cast<float>(static_cast<int>(k * 7919 % 61) - 30);
  }
  return Tensor::FromValues<float>(kFloat, extents, values);
}

// The graph's only output on a device; nothing it runs is a loop of oneDNN's own, or the
// reference's loops in the place of a primitive.
std::vector<float> RunOn(device::Device& device, const Graph& graph, const Tensor& input) {
  plugin::LoadTimes times;
  std::vector<float> result;
  const auto program = plugin::Compile(Graph(graph), device, base::Log(), times);
  EXPECT_TRUE(program.ok()) << program.status().Text();
  if (!program.ok()) return result;
  plan::Counters counters;
  const auto plan = plan::Plan::Create(**program, device, counters);
  EXPECT_TRUE(plan.ok()) << plan.status().Text();
  if (!plan.ok()) return result;
  execution::Executor executor(**plan);
  execution::TensorOutputs places(**program);
  const std::vector<Tensor> inputs = {input};
  const base::Status status = executor.Run(execution::AsInputs(inputs), places);
  EXPECT_TRUE(status.ok()) << status.Text();
  const auto binding = (*plan)->Bind(0, /*symbols=*/{});
  for (const auto& kernel : (*binding)->kernels) {
    EXPECT_THAT(kernel->Detail(), Not(HasSubstr("ref")));
    EXPECT_THAT(kernel->Detail(), Not(HasSubstr("loops:")));
    EXPECT_THAT(kernel->Detail(), Not(HasSubstr("prologue loops")));
  }
  const auto values = places.tensors[0].values<float>();
  result.assign(values.begin(), values.end());
  return result;
}

void ExpectAsOnReference(const Graph& graph, const Tensor& input) {
  auto device = Device::Create(std::make_shared<threads::ThreadPool>(2), base::Log());
  ASSERT_TRUE(device.ok()) << device.status().Text();
  reference::Device plain;
  const std::vector<float> expected = RunOn(plain, graph, input);
  const std::vector<float> found = RunOn(**device, graph, input);
  ASSERT_EQ(found.size(), expected.size());
  for (size_t k = 0; k < found.size(); ++k) ASSERT_NEAR(found[k], expected[k], 1e-5) << k;
}

ValueId Convolve(GraphBuilder& builder, ValueId x, int64_t in, int64_t out) {
  return builder.AddNode("Conv", 11, {x, builder.AddConstant(Numbers({out, in, 3, 3}))},
                         {{"pads", Ints{1, 1, 1, 1}}});
}

// Codecs search the nearest of many vectors: distances are computed once, and searched where they
// lie.
TEST(ArgMaxTest, SearchesWhatTheStepBeforeHasComputed) {
  GraphBuilder builder;
  const ValueId x = builder.AddInput("x", FloatsOf({{8, ""}, {16, ""}}));
  const ValueId product =
      builder.AddNode("MatMul", 13, {x, builder.AddConstant(Numbers({16, 64}))});
  const ValueId distance = builder.AddNode(
      "Neg", 13, {builder.AddNode("Sub", 13, {builder.AddConstant(Numbers({8, 1})), product})});
  auto device = Device::Create(std::make_shared<threads::ThreadPool>(2), base::Log());
  ASSERT_TRUE(device.ok()) << device.status().Text();
  plugin::LoadTimes times;
  const auto program = plugin::Compile(
      builder.Take({builder.AddNode("ArgMax", 13, {distance}, {{"axis", int64_t{1}}})}), **device,
      base::Log(), times);
  ASSERT_TRUE(program.ok()) << program.status().Text();
  const Step& search = (*program)->steps.back();
  ASSERT_NE(search.As<program::Reduce>(), nullptr);
  const auto selected = (*device)->Select({**program, search});
  ASSERT_TRUE(selected.ok()) << selected.status().Text();
  EXPECT_EQ(selected->recipe->implementation(), "engine search");
}

// Words become rows of a table, which are normalised: as rows they are copied, as a part of the
// normalisation each element would be gathered.
TEST(EmbeddingTest, CopiesRowsBeforeTheyAreNormalised) {
  GraphBuilder builder;
  graph::Type words = FloatsOf({{8, ""}});
  words.element = ElementType::kInt64;
  const ValueId rows = builder.AddNode(
      "Gather", 13, {builder.AddConstant(Numbers({50, 64})), builder.AddInput("words", words)});
  const ValueId sums = builder.AddNode("Add", 13, {rows, builder.AddConstant(Numbers({8, 64}))});
  const ValueId result =
      builder.AddNode("LayerNormalization", 17, {sums, builder.AddConstant(Numbers({64}))});
  auto device = Device::Create(std::make_shared<threads::ThreadPool>(2), base::Log());
  ASSERT_TRUE(device.ok()) << device.status().Text();
  plugin::LoadTimes times;
  const auto program = plugin::Compile(builder.Take({result}), **device, base::Log(), times);
  ASSERT_TRUE(program.ok()) << program.status().Text();
  ASSERT_EQ((*program)->steps.size(), 2U);
  EXPECT_NE((*program)->steps[0].As<program::Map>(), nullptr);
  const auto selected = (*device)->Select({**program, (*program)->steps[1]});
  ASSERT_TRUE(selected.ok()) << selected.status().Text();
  EXPECT_EQ(selected->recipe->implementation(), "engine row");
}

// What is done for every element of the result takes 32 bits.
TEST(OneHotTest, WrapsEachIndexOnce) {
  GraphBuilder builder;
  graph::Type indices = FloatsOf({{4, ""}, {50, ""}});
  indices.element = ElementType::kInt64;
  const int64_t depth = 30;
  const float off_on[] = {0, 1};
  const ValueIds inputs = {
      builder.AddInput("i", indices),
      builder.AddConstant(Tensor::FromValues<int64_t>(ElementType::kInt64, {}, {&depth, 1})),
      builder.AddConstant(Tensor::FromValues<float>(kFloat, {2}, off_on))};
  auto device = Device::Create(std::make_shared<threads::ThreadPool>(2), base::Log());
  ASSERT_TRUE(device.ok()) << device.status().Text();
  plugin::LoadTimes times;
  const auto program =
      plugin::Compile(builder.Take({builder.AddNode("OneHot", 11, inputs, {{"axis", int64_t{1}}})}),
                      **device, base::Log(), times);
  ASSERT_TRUE(program.ok()) << program.status().Text();
  ASSERT_EQ((*program)->steps.size(), 2u);
  EXPECT_EQ((*program)->steps.back().reads[0].type, ElementType::kInt32);
}

TEST(LpPoolTest, IsAnAverageBetweenMaps) {
  for (const std::string type : {"LpPool", "GlobalLpPool"}) {
    GraphBuilder builder;
    const ValueId x = builder.AddInput("x", FloatsOf({{1, ""}, {8, ""}, {9, ""}, {9, ""}}));
    GraphBuilder::Attributes attributes;
    if (type == "LpPool") attributes["kernel_shape"] = Ints{3, 3};
    auto device = Device::Create(std::make_shared<threads::ThreadPool>(2), base::Log());
    ASSERT_TRUE(device.ok()) << device.status().Text();
    plugin::LoadTimes times;
    const auto program = plugin::Compile(
        builder.Take({builder.AddNode(type, type == "LpPool" ? 18 : 2, {x}, attributes)}), **device,
        base::Log(), times);
    ASSERT_TRUE(program.ok()) << program.status().Text();
    int averages = 0;
    for (const Step& step : (*program)->steps) {
      const auto* window = step.As<program::Window>();
      if (window == nullptr) continue;
      EXPECT_EQ(window->kind, program::Window::Kind::kAverage);
      ++averages;
    }
    EXPECT_EQ(averages, 1);
  }
}

// Linear attention appends a column of ones.
TEST(MatMulTest, ReadsPaddedMatricesInAPrimitive) {
  for (const bool is_first : {false, true}) {
    GraphBuilder builder;
    const ValueId x = builder.AddInput("x", FloatsOf({{8, ""}, {16, ""}, {16, ""}}));
    const std::vector<int64_t> before_and_after = {0, 0, 0, 0, is_first ? 1 : 0, is_first ? 0 : 1};
    const ValueId pads = builder.AddConstant(
        Tensor::FromValues<int64_t>(ElementType::kInt64, {6}, before_and_after));
    const float one = 1;
    const ValueId ones = builder.AddConstant(Tensor::FromValues<float>(kFloat, {}, {&one, 1}));
    const ValueId padded = builder.AddNode("Pad", 13, {x, pads, ones});
    const ValueIds factors = is_first ? ValueIds{padded, x} : ValueIds{x, padded};
    ExpectAsOnReference(builder.Take({builder.AddNode("MatMul", 13, factors)}),
                        Numbers({8, 16, 16}));
  }
}

// Several summed axes, which do not step through both factors as one; sums over one factor alone.
TEST(EinsumTest, IsAProductInOnePrimitive) {
  for (const std::string equation :
       {"abc,cbd->ad", "abc,dcb->ad", "abc,dcb->da", "abc,bcd->abd", "abc,cba->", "abc,dbe->ac"}) {
    GraphBuilder builder;
    const ValueId x = builder.AddInput("x", FloatsOf({{8, ""}, {8, ""}, {8, ""}}));
    ExpectAsOnReference(
        builder.Take({builder.AddNode("Einsum", 12, {x, x}, {{"equation", equation}})}),
        Numbers({8, 8, 8}));
  }
}

// What several nodes make of one tensor is done before it is stored.
void ExpectProductsAlone(Graph graph, size_t count) {
  auto device = Device::Create(std::make_shared<threads::ThreadPool>(2), base::Log());
  ASSERT_TRUE(device.ok()) << device.status().Text();
  plugin::LoadTimes times;
  const auto program = plugin::Compile(std::move(graph), **device, base::Log(), times);
  ASSERT_TRUE(program.ok()) << program.status().Text();
  for (const Step& step : (*program)->steps) EXPECT_NE(step.As<Contract>(), nullptr);
  EXPECT_EQ((*program)->steps.size(), count);
}

TEST(FunctionTest, IsPartOfTheConvolutionThatItFollows) {
  GraphBuilder builder;
  ValueId x = builder.AddInput("x", FloatsOf({{1, ""}, {4, ""}, {8, ""}, {8, ""}}));
  x = Convolve(builder, x, 4, 8);
  x = builder.AddNode("Mul", 14, {x, builder.AddNode("Sigmoid", 13, {x})});
  ExpectProductsAlone(builder.Take({Convolve(builder, x, 8, 8)}), 2);
}

// Gelu as it was exported before there was an operator.
TEST(FunctionTest, IsPartOfTheProductThatItFollows) {
  GraphBuilder builder;
  const auto number = [&](float value) {
    return builder.AddConstant(Tensor::FromValues<float>(kFloat, {}, {&value, 1}));
  };
  const auto multiply = [&](ValueId x) {
    const std::vector<float> values(32 * 32, 0.1F);
    return builder.AddNode(
        "MatMul", 13,
        {x, builder.AddConstant(Tensor::FromValues<float>(kFloat, {32, 32}, values))});
  };
  ValueId x = multiply(builder.AddInput("x", FloatsOf({{20, ""}, {32, ""}})));
  const ValueId erf =
      builder.AddNode("Erf", 13, {builder.AddNode("Div", 14, {x, number(1.4142135F)})});
  const ValueId sum = builder.AddNode("Add", 14, {erf, number(1)});
  x = builder.AddNode("Mul", 14, {builder.AddNode("Mul", 14, {x, sum}), number(0.5F)});
  ExpectProductsAlone(builder.Take({multiply(x)}), 2);
}

// The product takes the bounds, though no kernel takes what follows them.
TEST(FunctionTest, LeavesToAProductWhatItTakesAlone) {
  GraphBuilder builder;
  const ValueId x = builder.AddInput("x", FloatsOf({{20, ""}, {32, ""}}));
  ValueId y = builder.AddNode("MatMul", 13, {x, builder.AddConstant(Numbers({32, 32}))});
  y = builder.AddNode("Exp", 13, {builder.AddNode("Relu", 14, {y})});
  auto device = Device::Create(std::make_shared<threads::ThreadPool>(2), base::Log());
  ASSERT_TRUE(device.ok()) << device.status().Text();
  plugin::LoadTimes times;
  const auto program = plugin::Compile(builder.Take({y}), **device, base::Log(), times);
  ASSERT_TRUE(program.ok()) << program.status().Text();
  ASSERT_EQ((*program)->steps.size(), 2u);
  const Contract* product = (*program)->steps[0].As<Contract>();
  ASSERT_NE(product, nullptr);
  EXPECT_EQ((*program)->exprs[product->roots[0]].op, program::ExprOp::kMax);
}

// Rows [tokens, 2, 1, 32] times the matrices of the experts that each token has, as mixtures of
// experts are lowered. The matrices are [4, columns, 32], of bytes where `are_bytes`.
Graph Experts(int64_t tokens, bool are_bytes) {
  GraphBuilder builder;
  const ValueId x = builder.AddInput("x", FloatsOf({{tokens, ""}, {32, ""}}));
  const ValueId scores = builder.AddNode("MatMul", 13, {x, builder.AddConstant(Numbers({32, 4}))});
  const auto integers = [&](const Ints& values) {
    return builder.AddConstant(Tensor::FromValues<int64_t>(
        ElementType::kInt64, {static_cast<int64_t>(values.size())}, values));
  };
  const ValueIds top = builder.AddNodeOfMany("TopK", 11, {scores, integers({2})}, 2);
  ValueId weights;
  if (are_bytes) {
    std::vector<uint8_t> bytes(4 * 20 * 32);
    for (size_t k = 0; k < bytes.size(); ++k) bytes[k] = static_cast<uint8_t>(k * 41);
    const ValueId numbers =
        builder.AddConstant(Tensor::FromValues<uint8_t>(ElementType::kUint8, {4, 20, 32}, bytes));
    weights =
        builder.AddNode("DequantizeLinear", 23, {numbers, builder.AddConstant(Numbers({4, 20, 2}))},
                        {{"axis", int64_t{2}}, {"block_size", int64_t{16}}});
  } else {
    weights = builder.AddConstant(Numbers({4, 20, 32}));
  }
  const ValueId selected =
      builder.AddNode("Transpose", 13, {builder.AddNode("Gather", 13, {weights, top[1]})},
                      {{"perm", Ints{0, 1, 3, 2}}});
  const ValueId rows = builder.AddNode("Unsqueeze", 13, {x, integers({1, 2})});
  const ValueId product = builder.AddNode("MatMul", 13, {rows, selected});
  const ValueId factors = builder.AddNode("Unsqueeze", 13, {top[0], integers({2, 3})});
  return builder.Take({builder.AddNode("Mul", 14, {product, factors})});
}

TEST(ExpertsTest, MultiplyWithTheirMatricesWhereTheyLie) {
  for (const bool are_bytes : {false, true}) {
    for (const int64_t tokens : {1, 9}) {
      auto device = Device::Create(std::make_shared<threads::ThreadPool>(2), base::Log());
      ASSERT_TRUE(device.ok()) << device.status().Text();
      plugin::LoadTimes times;
      const auto program =
          plugin::Compile(Experts(tokens, are_bytes), **device, base::Log(), times);
      ASSERT_TRUE(program.ok()) << program.status().Text();
      int gathered = 0;
      for (const Step& step : (*program)->steps) {
        const auto selection = (*device)->Select({**program, step});
        ASSERT_TRUE(selection.ok());
        if (selection->recipe->implementation() != "rows times gathered matrices") continue;
        ++gathered;
        const auto* contract = step.As<Contract>();
        const auto& prologue = (*program)->exprs[contract->b_prologue];
        EXPECT_EQ(prologue.op, are_bytes ? program::ExprOp::kMul : program::ExprOp::kLoad);
      }
      EXPECT_EQ(gathered, 1) << program::ToString(**program);
      ExpectAsOnReference(Experts(tokens, are_bytes), Numbers({tokens, 32}));
    }
  }
}

// `rows` of 64 elements times 520 columns in 4 bits, of which the node says how exact A has to be.
Graph Blocks(int64_t rows, int64_t accuracy_level, int64_t columns) {
  GraphBuilder builder;
  std::vector<uint8_t> numbers(static_cast<size_t>(columns * 32));
  for (size_t k = 0; k < numbers.size(); ++k) numbers[k] = static_cast<uint8_t>(k * 41 + k / 7);
  const ValueIds inputs = {builder.AddInput("x", FloatsOf({{rows, ""}, {64, ""}})),
                           builder.AddConstant(Tensor::FromValues<uint8_t>(
                               ElementType::kUint8, {columns, 2, 16}, numbers)),
                           builder.AddConstant(Numbers({columns * 2}))};
  const ValueId y = builder.AddNode("MatMulNBits", 1, inputs,
                                    {{"K", int64_t{64}},
                                     {"N", columns},
                                     {"bits", int64_t{4}},
                                     {"block_size", int64_t{32}},
                                     {"accuracy_level", accuracy_level}});
  builder.LastNode().domain = "com.microsoft";
  return builder.Take({y});
}

// The same of ONNX's operators, with numbers in 4 bits.
Graph DequantizedBlocks(int64_t rows) {
  constexpr int64_t kColumns = 520;
  GraphBuilder builder;
  const ValueId x = builder.AddInput("x", FloatsOf({{rows, ""}, {64, ""}}));
  Tensor numbers = *Tensor::Allocate(ElementType::kInt4, {64, kColumns});
  for (int64_t k = 0; k < numbers.size_bytes(); ++k) {
    numbers.mutable_data()[k] = static_cast<std::byte>(k * 41 + k / 7);
  }
  const ValueId weights = builder.AddNode(
      "DequantizeLinear", 21,
      {builder.AddConstant(std::move(numbers)), builder.AddConstant(Numbers({2, kColumns}))},
      {{"axis", int64_t{0}}, {"block_size", int64_t{32}}});
  return builder.Take({builder.AddNode("MatMul", 13, {x, weights})});
}

TEST(BlocksTest, RoundSeveralRowsWhereTheModelPermitsIt) {
  if (!gemm::HasByteBlocks()) GTEST_SKIP() << "The processor multiplies no bytes.";
  auto device = Device::Create(std::make_shared<threads::ThreadPool>(2), base::Log());
  ASSERT_TRUE(device.ok()) << device.status().Text();
  const auto is_rounded = [&](const Graph& graph, const tensor::Permissions& permissions) {
    plugin::LoadTimes times;
    const auto program = plugin::Compile(Graph(graph), **device, base::Log(), times, permissions);
    EXPECT_TRUE(program.ok()) << program.status().Text();
    plan::Counters counters;
    const auto plan = plan::Plan::Create(**program, **device, counters);
    EXPECT_TRUE((*plan)->Prepare().ok());
    const auto binding = (*plan)->Bind(0, /*symbols=*/{});
    const auto& kernels = (*binding)->kernels;
    return std::ranges::any_of(kernels, [](const auto& kernel) {
      return kernel->Detail().find("rows rounded to bytes") != std::string::npos;
    });
  };
  const tensor::Permissions usual, exact_algorithms = {.has_fast_algorithms = false};
  EXPECT_TRUE(is_rounded(Blocks(3, 4, 520), usual));
  EXPECT_FALSE(is_rounded(Blocks(3, 4, 520), exact_algorithms));
  EXPECT_FALSE(is_rounded(Blocks(3, 1, 520), usual));
  const bool are_two_rounded = gemm::MinByteBlockRows() <= 2;
  EXPECT_EQ(is_rounded(Blocks(2, 4, 520), usual), are_two_rounded);
  EXPECT_FALSE(is_rounded(Blocks(3, 4, 500), usual));
  // The caller's permission is for every node.
  const tensor::Permissions caller = {.has_dynamic_quantization = true};
  EXPECT_TRUE(is_rounded(Blocks(3, 1, 520), caller));
  EXPECT_TRUE(is_rounded(DequantizedBlocks(3), caller));
  EXPECT_EQ(is_rounded(DequantizedBlocks(2), caller), are_two_rounded);
  EXPECT_FALSE(is_rounded(DequantizedBlocks(3), usual));
  const tensor::Permissions exact_caller = {.has_fast_algorithms = false,
                                            .has_dynamic_quantization = true};
  EXPECT_FALSE(is_rounded(DequantizedBlocks(3), exact_caller));
  // Level 1 is exact, and level 4 not far from it.
  reference::Device plain;
  for (const int64_t rows : {3, 9}) {
    const Tensor x = Numbers({rows, 64});
    const std::vector<float> exact = RunOn(plain, Blocks(rows, 4, 520), x);
    const std::vector<float> rounded = RunOn(**device, Blocks(rows, 4, 520), x);
    ASSERT_EQ(rounded.size(), exact.size());
    float most = 0;
    for (size_t k = 0; k < exact.size(); ++k)
      most = std::max(most, std::abs(rounded[k] - exact[k]));
    EXPECT_GT(most, 1e-4F);
    EXPECT_LT(most, 0.02F);
    ExpectAsOnReference(Blocks(rows, 1, 520), x);
  }
}

// oneDNN has no kernel of its own for that: what is written there goes through a tensor without
// gaps.
TEST(TransposedConvolutionTest, IsRightInAPartOfAConcatenation) {
  GraphBuilder builder;
  const ValueId x = builder.AddInput("x", FloatsOf({{1, ""}, {4, ""}, {6, ""}, {6, ""}}));
  const ValueId first = Convolve(builder, x, 4, 16);
  const auto up = [&] {
    return builder.AddNode(
        "ConvTranspose", 11,
        {first, builder.AddConstant(Numbers({16, 24, 2, 2})), builder.AddConstant(Numbers({24}))},
        {{"strides", Ints{2, 2}}});
  };
  const ValueId parts = builder.AddNode("Concat", 13, {up(), up()}, {{"axis", int64_t{1}}});
  ExpectAsOnReference(builder.Take({Convolve(builder, parts, 48, 5)}), Numbers({1, 4, 6, 6}));
}

// What a network transposes itself has its channels innermost as it is.
TEST(TransposedTest, StaysAsItIsBetweenConvolutions) {
  GraphBuilder builder;
  ValueId x = builder.AddInput("x", FloatsOf({{1, ""}, {4, ""}, {6, ""}, {10, ""}}));
  x = Convolve(builder, x, 4, 24);
  ValueId y = builder.AddNode("Transpose", 13, {x}, {{"perm", Ints{0, 2, 3, 1}}});
  y = builder.AddNode("LayerNormalization", 17, {y, builder.AddConstant(Numbers({24}))});
  y = builder.AddNode("MatMul", 13, {y, builder.AddConstant(Numbers({24, 24}))});
  y = builder.AddNode("Mul", 14, {y, builder.AddConstant(Numbers({24}))});
  y = builder.AddNode("Transpose", 13, {y}, {{"perm", Ints{0, 3, 1, 2}}});
  const Graph graph = builder.Take({Convolve(builder, builder.AddNode("Add", 14, {x, y}), 24, 5)});
  const Tensor input = Numbers({1, 4, 6, 10});
  ExpectAsOnReference(graph, input);

  auto device = Device::Create(std::make_shared<threads::ThreadPool>(2), base::Log());
  ASSERT_TRUE(device.ok()) << device.status().Text();
  plugin::LoadTimes times;
  const auto program = plugin::Compile(Graph(graph), **device, base::Log(), times);
  ASSERT_TRUE(program.ok()) << program.status().Text();
  int seen = 0;
  for (const Step& step : (*program)->steps) {
    const Contract* contract = step.As<Contract>();
    const bool is_row = step.As<program::Row>() != nullptr;
    const bool is_product = contract != nullptr && contract->form == Contract::Form::kMatMul;
    if (!is_row && !is_product) continue;
    EXPECT_EQ(step.reads[0].strides.back(), program::Dim(1)) << program::ToString(**program);
    EXPECT_EQ(step.writes[0].strides.back(), program::Dim(1)) << program::ToString(**program);
    ++seen;
  }
  EXPECT_EQ(seen, 2);
}

// Pixels are found once for all of their channels.
TEST(NearestPixelsTest, AreRightBetweenConvolutions) {
  for (const char* mode : {"asymmetric", "half_pixel", "align_corners"}) {
    for (const auto& [height, width] : {std::pair<int64_t, int64_t>{10, 14}, {4, 11}}) {
      GraphBuilder builder;
      const ValueId x = builder.AddInput("x", FloatsOf({{2, ""}, {4, ""}, {5, ""}, {7, ""}}));
      const ValueId first = Convolve(builder, x, 4, 21);
      const int64_t sizes[] = {2, 21, height, width};
      const ValueId resized = builder.AddNode(
          "Resize", 19,
          {first, graph::kNoValue, graph::kNoValue,
           builder.AddConstant(Tensor::FromValues<int64_t>(ElementType::kInt64, {4}, sizes))},
          {{"mode", std::string("nearest")},
           {"coordinate_transformation_mode", std::string(mode)}});
      SCOPED_TRACE(mode);
      ExpectAsOnReference(builder.Take({Convolve(builder, resized, 21, 5)}), Numbers({2, 4, 5, 7}));
    }
  }
}

}  // namespace
}  // namespace onnxifi::cpu
