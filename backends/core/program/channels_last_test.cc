// SPDX-License-Identifier: Apache-2.0
//
// LayOutChannelsLast: every view of a buffer that is laid out anew meets the same elements as
// before, under one permutation of the buffer; and what cannot follow keeps its layout.

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "backends/core/program/passes.h"

namespace onnxifi::program {
namespace {

constexpr ElementType kFloat = ElementType::kFloat32;

bool IsConvolution(const Program& /*program*/, const Step& step) {
  const auto* contract = step.As<Contract>();
  return contract != nullptr && contract->form == Contract::Form::kConv;
}

class Builder {
 public:
  BufferId Temporary(const Shape& shape) {
    Buffer buffer;
    buffer.type = kFloat;
    buffer.shape = shape;
    return program.AddBuffer(std::move(buffer));
  }
  BufferId Input(const Shape& shape) {
    Buffer buffer;
    buffer.kind = Buffer::Kind::kInput;
    buffer.type = kFloat;
    buffer.shape = shape;
    buffer.index = static_cast<int>(program.inputs.size());
    const BufferId id = program.AddBuffer(std::move(buffer));
    program.inputs.push_back({"in" + std::to_string(id), id, shape});
    return id;
  }
  void Output(BufferId id) {
    program.outputs.push_back({"out", id, program.buffers[static_cast<size_t>(id)].shape});
  }
  Operand All(BufferId id) const {
    const Shape& shape = program.buffers[static_cast<size_t>(id)].shape;
    return {DenseView(id, kFloat, shape), shape};
  }
  // 1x1 convolution of x [N, C, H, W] to y [N, M, H, W].
  void Convolve(const Operand& x, const Operand& y) {
    const Shape weights = {y.shape[1], x.shape[1], 1, 1};
    Step step;
    step.domain = y.shape;
    step.reads = {x.view, DenseView(Input(weights), kFloat, weights)};
    step.writes = {y.view};
    Contract contract;
    contract.form = Contract::Form::kConv;
    contract.inner = {x.shape[1], 1, 1};
    contract.a_spatial = {x.shape[2], x.shape[3]};
    contract.strides = contract.dilations = {1, 1};
    contract.pads_begin = {0, 0};
    contract.a_prologue = Load(program.exprs, kFloat, 0).id();
    contract.b_prologue = Load(program.exprs, kFloat, 1).id();
    contract.roots = {Accumulator(program.exprs, kFloat).id()};
    step.body = std::move(contract);
    program.steps.push_back(std::move(step));
  }
  // x [N, M, K] times a matrix, to y [N, M, L].
  void Multiply(const Operand& x, const Operand& y) {
    const Shape matrix = {x.shape[2], y.shape[2]};
    Step step;
    step.domain = y.shape;
    step.reads = {x.view, DenseView(Input(matrix), kFloat, matrix)};
    step.reads[1].strides.insert(step.reads[1].strides.begin(), Dim(0));
    step.writes = {y.view};
    Contract contract;
    contract.form = Contract::Form::kMatMul;
    contract.batch_axes = contract.m_axes = contract.n_axes = 1;
    contract.inner = {x.shape[2]};
    contract.a_prologue = Load(program.exprs, kFloat, 0).id();
    contract.b_prologue = Load(program.exprs, kFloat, 1).id();
    contract.roots = {Accumulator(program.exprs, kFloat).id()};
    step.body = std::move(contract);
    program.steps.push_back(std::move(step));
  }
  void Copy(const Operand& x, const View& y) {
    Step step;
    step.domain = x.shape;
    step.reads = {x.view};
    step.writes = {y};
    step.body = Map{{Load(program.exprs, kFloat, 0).id()}};
    program.steps.push_back(std::move(step));
  }

  Program program;
};

// The views of each step; steps themselves are not copied.
struct Views {
  std::vector<View> reads, writes;
};
std::vector<Views> ViewsOf(const Program& program) {
  std::vector<Views> views;
  for (const Step& step : program.steps) views.push_back({step.reads, step.writes});
  return views;
}

// Addresses of a view over `extents`, in row-major order of its coordinates.
std::vector<int64_t> AddressesOf(const View& view, const std::vector<int64_t>& extents) {
  std::vector<int64_t> addresses = {view.offset.constant()};
  for (size_t axis = 0; axis < extents.size(); ++axis) {
    std::vector<int64_t> longer;
    for (const int64_t address : addresses) {
      for (int64_t k = 0; k < extents[axis]; ++k) {
        longer.push_back(address + k * view.strides[axis].constant());
      }
    }
    addresses = std::move(longer);
  }
  return addresses;
}

// Checks `now` against `before` under the permutation from [N, C, H, W] to [N, H, W, C].
void ExpectSameElements(const View& before, const View& now, const std::vector<int64_t>& extents,
                        const std::vector<int64_t>& tensor) {
  const std::vector<int64_t> old_addresses = AddressesOf(before, extents);
  const std::vector<int64_t> new_addresses = AddressesOf(now, extents);
  const int64_t c = tensor[1], h = tensor[2], w = tensor[3];
  for (size_t k = 0; k < old_addresses.size(); ++k) {
    const int64_t at = old_addresses[k];
    const int64_t x = at % w, y = at / w % h, channel = at / (w * h) % c, n = at / (w * h * c);
    ASSERT_EQ(new_addresses[k], ((n * h + y) * w + x) * c + channel) << "element " << k;
  }
}

// A convolution's result that Maps enlarge, along the height and then along the width, into what is
// the network's output or the image of another convolution.
struct Enlargement {
  explicit Enlargement(bool is_output, int64_t height = 8, int64_t width = 10) {
    const BufferId in = builder.Input({2, 3, 4, 5});
    image = builder.Temporary({2, 6, 4, 5});
    middle = builder.Temporary({2, 6, height, 5});
    result = builder.Temporary({2, 6, height, width});
    builder.Convolve(builder.All(in), builder.All(image));
    Enlarge(image, middle);
    Enlarge(middle, result);
    BufferId out = result;
    if (!is_output) {
      out = builder.Temporary({2, 4, height, width});
      builder.Convolve(builder.All(result), builder.All(out));
    }
    builder.Output(out);
    LayOutChannelsLast(builder.program, IsConvolution);
  }
  // Each element of y is one of x, of the channel; only the addresses matter here.
  void Enlarge(BufferId x, BufferId y) {
    Operand from = builder.All(x);
    const Operand to = builder.All(y);
    for (size_t axis = 2; axis < 4; ++axis) {
      if (!(from.shape[axis] == to.shape[axis])) from.view.strides[axis] = 0;
    }
    builder.Copy({from.view, to.shape}, to.view);
  }
  // By step: the stride of the channels.
  Dim ReadStride(size_t step) { return builder.program.steps[step].reads[0].strides[1]; }
  Dim WriteStride(size_t step) { return builder.program.steps[step].writes[0].strides[1]; }

  Builder builder;
  BufferId image = kNoBuffer, middle = kNoBuffer, result = kNoBuffer;
};

TEST(ChannelsLastTest, AMapThatEnlargesIntoThePlainOrderReadsACopy) {
  Enlargement enlargement(/*is_output=*/true);
  const std::vector<Step>& steps = enlargement.builder.program.steps;
  ASSERT_EQ(steps.size(), 4u);
  EXPECT_EQ(enlargement.WriteStride(0), Dim(1)) << "the convolution";
  EXPECT_EQ(enlargement.ReadStride(1), Dim(1));
  EXPECT_EQ(enlargement.WriteStride(1), Dim(1));
  ExpectSameElements(DenseView(0, kFloat, {2, 6, 8, 5}), steps[2].reads[0], {2, 6, 8, 5},
                     {2, 6, 8, 5});
  EXPECT_EQ(steps[2].reads[0].buffer, enlargement.middle);
  EXPECT_NE(steps[2].writes[0].buffer, enlargement.middle);
  EXPECT_EQ(enlargement.WriteStride(2), Dim(8 * 5));
  EXPECT_EQ(steps[3].reads[0].buffer, steps[2].writes[0].buffer);
  EXPECT_EQ(enlargement.ReadStride(3), Dim(8 * 5));
  EXPECT_EQ(enlargement.WriteStride(3), Dim(8 * 10));
}

TEST(ChannelsLastTest, WhatAConvolutionReadsIsEnlargedWithChannelsLast) {
  Enlargement enlargement(/*is_output=*/false);
  ASSERT_EQ(enlargement.builder.program.steps.size(), 4u);
  EXPECT_EQ(enlargement.WriteStride(1), Dim(1));
  EXPECT_EQ(enlargement.ReadStride(2), Dim(1));
  EXPECT_EQ(enlargement.WriteStride(2), Dim(1));
}

TEST(ChannelsLastTest, AMapOfAsManyElementsReadsNoCopy) {
  Enlargement enlargement(/*is_output=*/true, /*height=*/8, /*width=*/5);
  ASSERT_EQ(enlargement.builder.program.steps.size(), 3u);
  EXPECT_EQ(enlargement.WriteStride(1), Dim(1));
  EXPECT_EQ(enlargement.ReadStride(2), Dim(1));
}

TEST(ChannelsLastTest, ViewsMeetTheSameElementsAsBefore) {
  Builder builder;
  const BufferId in = builder.Input({2, 3, 4, 5});
  const BufferId a = builder.Temporary({2, 6, 4, 5});
  const BufferId b = builder.Temporary({2, 6, 2, 5});
  const BufferId c = builder.Temporary({2, 7, 2, 5});
  builder.Convolve(builder.All(in), builder.All(a));
  // Every second row of a, its channels in reverse pairs: [2, 3, 2, 2, 5] seen through strides.
  Operand rows = Slice(builder.All(a), 2, 1, 2, 2);
  Operand shuffled = Permute(*Reshape(rows, {2, 3, 2, 2, 5}), {0, 2, 1, 3, 4});
  const View copy = DenseView(b, kFloat, shuffled.shape);
  builder.Copy(shuffled, copy);
  builder.Convolve(builder.All(b), Slice(builder.All(c), 1, 2, 1, 5));
  const BufferId out = builder.Temporary({2, 4, 2, 5});
  builder.Convolve(builder.All(c), builder.All(out));
  builder.Output(out);
  const std::vector<Views> before = ViewsOf(builder.program);

  LayOutChannelsLast(builder.program, IsConvolution);

  const std::vector<Step>& now = builder.program.steps;
  ExpectSameElements(before[0].writes[0], now[0].writes[0], {2, 6, 4, 5}, {2, 6, 4, 5});
  ExpectSameElements(before[1].reads[0], now[1].reads[0], {2, 2, 3, 2, 5}, {2, 6, 4, 5});
  ExpectSameElements(before[1].writes[0], now[1].writes[0], {2, 2, 3, 2, 5}, {2, 6, 2, 5});
  ExpectSameElements(before[2].reads[0], now[2].reads[0], {2, 6, 2, 5}, {2, 6, 2, 5});
  ExpectSameElements(before[2].writes[0], now[2].writes[0], {2, 5, 2, 5}, {2, 7, 2, 5});
  ExpectSameElements(before[3].reads[0], now[3].reads[0], {2, 7, 2, 5}, {2, 7, 2, 5});
  // What a caller sees and what is constant keeps its order.
  EXPECT_EQ(now[0].reads, before[0].reads);
  EXPECT_EQ(now[3].writes, before[3].writes);
}

// A tensor [N, C, H, W] seen as [N, H * W, C].
View TokensOf(const Operand& tensor) {
  const int64_t c = tensor.shape[1].constant();
  const Dim space = tensor.shape[2] * tensor.shape[3];
  const Operand joined = *Reshape(tensor, {tensor.shape[0], c, space});
  return Permute(joined, {0, 2, 1}).view;
}

// As transformers with convolutions between their products have it.
TEST(ChannelsLastTest, TokensBecomePixelsAndPixelsTokens) {
  Builder builder;
  const BufferId in = builder.Input({2, 20, 3});
  const BufferId a = builder.Temporary({2, 3, 4, 5});
  const BufferId b = builder.Temporary({2, 6, 4, 5});
  const BufferId out = builder.Temporary({2, 20, 6});
  builder.Copy(builder.All(in), TokensOf(builder.All(a)));
  builder.Convolve(builder.All(a), builder.All(b));
  builder.Copy({TokensOf(builder.All(b)), {2, 20, 6}}, builder.All(out).view);
  builder.Output(out);
  const std::vector<Views> before = ViewsOf(builder.program);

  LayOutChannelsLast(builder.program, IsConvolution);

  const std::vector<Step>& now = builder.program.steps;
  ASSERT_EQ(now.size(), 3u);
  ExpectSameElements(before[0].writes[0], now[0].writes[0], {2, 20, 3}, {2, 3, 4, 5});
  ExpectSameElements(before[1].reads[0], now[1].reads[0], {2, 3, 4, 5}, {2, 3, 4, 5});
  ExpectSameElements(before[1].writes[0], now[1].writes[0], {2, 6, 4, 5}, {2, 6, 4, 5});
  ExpectSameElements(before[2].reads[0], now[2].reads[0], {2, 20, 6}, {2, 6, 4, 5});
  EXPECT_EQ(now[2].writes, before[2].writes);
}

// The tokens of a product are no channels, and stay as they are.
TEST(ChannelsLastTest, TokensOfAProductStayAsTheyAre) {
  Builder builder;
  const BufferId tokens = builder.Temporary({2, 20, 3});
  const BufferId a = builder.Temporary({2, 3, 4, 5});
  const BufferId b = builder.Temporary({2, 6, 4, 5});
  builder.Multiply(builder.All(builder.Input({2, 20, 7})), builder.All(tokens));
  const Operand pixels = Permute(*Reshape(builder.All(tokens), {2, 4, 5, 3}), {0, 3, 1, 2});
  builder.Copy(pixels, builder.All(a).view);
  builder.Convolve(builder.All(a), builder.All(b));
  builder.Output(b);
  const std::vector<Views> before = ViewsOf(builder.program);

  LayOutChannelsLast(builder.program, IsConvolution);

  const std::vector<Step>& now = builder.program.steps;
  EXPECT_EQ(now[0].writes, before[0].writes);
  EXPECT_EQ(now[1].reads, before[1].reads);
  ExpectSameElements(before[1].writes[0], now[1].writes[0], {2, 3, 4, 5}, {2, 3, 4, 5});
  ExpectSameElements(before[2].reads[0], now[2].reads[0], {2, 3, 4, 5}, {2, 3, 4, 5});
}

// Tokens that are not all of a row of pixels, and some behind it.
TEST(ChannelsLastTest, PartOfTheTokensMeetsTheSamePixels) {
  Builder builder;
  const BufferId in = builder.Input({2, 3, 4, 5});
  const BufferId a = builder.Temporary({2, 6, 4, 5});
  const BufferId out = builder.Temporary({2, 13, 6});
  builder.Convolve(builder.All(in), builder.All(a));
  const Operand tokens = {TokensOf(builder.All(a)), {2, 20, 6}};
  builder.Copy(Slice(tokens, 1, 3, 1, 13), builder.All(out).view);
  builder.Output(out);
  const std::vector<Views> before = ViewsOf(builder.program);

  LayOutChannelsLast(builder.program, IsConvolution);

  const std::vector<Step>& now = builder.program.steps;
  ExpectSameElements(before[0].writes[0], now[0].writes[0], {2, 6, 4, 5}, {2, 6, 4, 5});
  ExpectSameElements(before[1].reads[0], now[1].reads[0], {2, 13, 6}, {2, 6, 4, 5});
}

TEST(ChannelsLastTest, TheBatchMayBeUnknown) {
  Builder builder;
  const Dim n = builder.program.dims->NewSymbol("n", /*is_data=*/false);
  const BufferId in = builder.Input({n, 3, 4, 5});
  const BufferId a = builder.Temporary({n, 6, 4, 5});
  const BufferId out = builder.Temporary({n, 2, 4, 5});
  builder.Convolve(builder.All(in), builder.All(a));
  builder.Convolve(builder.All(a), builder.All(out));
  builder.Output(out);
  LayOutChannelsLast(builder.program, IsConvolution);
  const Shape expected = {120, 1, 30, 6};
  EXPECT_EQ(builder.program.steps[0].writes[0].strides, expected);
  EXPECT_EQ(builder.program.steps[1].reads[0].strides, expected);
}

// A reader that needs the plain order keeps the whole buffer in it.
TEST(ChannelsLastTest, CoordinatesThatGuardsBoundMeetTheSameElements) {
  Builder builder;
  const BufferId in = builder.Input({2, 3, 4, 5});
  const BufferId a = builder.Temporary({2, 6, 4, 5});
  const BufferId b = builder.Temporary({2, 6, 8, 5});
  const BufferId out = builder.Temporary({2, 2, 8, 5});
  builder.Convolve(builder.All(in), builder.All(a));
  // Rows of a at half of the row's number, as a nearest Resize reads them.
  builder.Copy(builder.All(b), DenseView(b, kFloat, {2, 6, 8, 5}));
  Step& resize = builder.program.steps.back();
  resize.reads = {builder.All(a).view};
  resize.reads[0].guards.push_back({{0, 0, 1, 0}, 0, 4});
  ExprPool& pool = builder.program.exprs;
  std::vector<Expr> at;
  for (int axis = 0; axis < 4; ++axis) at.push_back(Coordinate(pool, axis));
  at[2] = at[2] / IntConstant(pool, tensor::ElementType::kInt64, 2);
  resize.body = Map{{LoadAt(pool, kFloat, 0, at).id()}};
  builder.Convolve(builder.All(b), builder.All(out));
  builder.Output(out);
  const std::vector<Views> before = ViewsOf(builder.program);

  LayOutChannelsLast(builder.program, IsConvolution);

  const std::vector<Step>& now = builder.program.steps;
  ExpectSameElements(before[0].writes[0], now[0].writes[0], {2, 6, 4, 5}, {2, 6, 4, 5});
  ExpectSameElements(before[1].reads[0], now[1].reads[0], {2, 6, 4, 5}, {2, 6, 4, 5});
  EXPECT_EQ(now[1].reads[0].guards, before[1].reads[0].guards);
  ExpectSameElements(before[1].writes[0], now[1].writes[0], {2, 6, 8, 5}, {2, 6, 8, 5});
}

struct Obstacle {
  const char* name;
  std::function<void(Builder&, BufferId a)> add;
};

class ChannelsLastObstacleTest : public testing::TestWithParam<Obstacle> {};

TEST_P(ChannelsLastObstacleTest, KeepsTheLayout) {
  Builder builder;
  const BufferId in = builder.Input({2, 3, 4, 5});
  const BufferId a = builder.Temporary({2, 6, 4, 5});
  const BufferId out = builder.Temporary({2, 2, 4, 5});
  builder.Convolve(builder.All(in), builder.All(a));
  builder.Convolve(builder.All(a), builder.All(out));
  builder.Output(out);
  GetParam().add(builder, a);
  const std::vector<Views> before = ViewsOf(builder.program);
  LayOutChannelsLast(builder.program, IsConvolution);
  EXPECT_EQ(builder.program.steps[0].writes, before[0].writes);
  EXPECT_EQ(builder.program.steps[1].reads, before[1].reads);
}

INSTANTIATE_TEST_SUITE_P(
    All, ChannelsLastObstacleTest,
    testing::Values(
        Obstacle{"Flattened",
                 [](Builder& builder, BufferId a) {
                   const Operand flat = *Reshape(builder.All(a), {2, 120});
                   builder.Copy(flat, DenseView(builder.Temporary({2, 120}), kFloat, flat.shape));
                 }},
        Obstacle{"LoadedAtUnboundedCoordinates",
                 [](Builder& builder, BufferId a) {
                   ExprPool& pool = builder.program.exprs;
                   const Operand all = builder.All(a);
                   builder.Copy(all, DenseView(builder.Temporary(all.shape), kFloat, all.shape));
                   std::vector<Expr> at;
                   for (int axis = 0; axis < 4; ++axis) {
                     at.push_back(Coordinate(pool, axis) + Coordinate(pool, axis));
                   }
                   builder.program.steps.back().body = Map{{LoadAt(pool, kFloat, 0, at).id()}};
                 }},
        Obstacle{"Padded",
                 [](Builder& builder, BufferId a) {
                   const Operand padded =
                       *Pad(builder.All(a), {0, 0, 1, 1}, {0, 0, 1, 1}, tensor::Scalar{});
                   builder.Copy(padded,
                                DenseView(builder.Temporary(padded.shape), kFloat, padded.shape));
                 }},
        Obstacle{"AnOutputOfTheProgram", [](Builder& builder, BufferId a) { builder.Output(a); }}),
    [](const testing::TestParamInfo<Obstacle>& info) { return info.param.name; });

TEST(ChannelsLastTest, NothingMovesWhereNoStepPrefersIt) {
  Builder builder;
  const BufferId in = builder.Input({2, 3, 4, 5});
  const BufferId a = builder.Temporary({2, 6, 4, 5});
  builder.Convolve(builder.All(in), builder.All(a));
  builder.Copy(builder.All(a), DenseView(builder.Temporary({2, 6, 4, 5}), kFloat, {2, 6, 4, 5}));
  const std::vector<Views> before = ViewsOf(builder.program);
  LayOutChannelsLast(builder.program, [](const Program&, const Step&) { return false; });
  EXPECT_EQ(builder.program.steps[0].writes, before[0].writes);
  EXPECT_EQ(builder.program.steps[1].reads, before[1].reads);
}

}  // namespace
}  // namespace onnxifi::program
