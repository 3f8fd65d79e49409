// SPDX-License-Identifier: Apache-2.0
//
// OrderSpatialAxes: convolutions and windows compute the same on the reference along the axes that
// it leaves them, in the order that the test names.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "backends/core/execution/testing/run_on_numbers.h"
#include "backends/core/program/passes.h"
#include "backends/core/program/testing/program_maker.h"
#include "backends/core/program/verify.h"

namespace onnxifi::program {
namespace {

using execution::RunOnNumbers;
using enum tensor::ElementType;

// By spatial axis; two images of `channels` channels each.
struct Sizes {
  Shape in, kernel;
  std::vector<int64_t> strides, dilations;
  Dims pads_begin;
  Shape out;
  int64_t channels = 6, group = 1, outputs = 4;
};

Shape Joined(Shape shape, const Shape& spatial) {
  shape.insert(shape.end(), spatial.begin(), spatial.end());
  return shape;
}

// With a summand for each output channel and a factor for each element.
void MakeConvolution(Contract::Form form, const Sizes& sizes, ProgramMaker& maker) {
  const bool is_transposed = form == Contract::Form::kConvTranspose;
  const Dim of_group(sizes.channels / sizes.group);
  const Operand image = maker.Input(Joined({2, sizes.channels}, sizes.in));
  const Operand weights = maker.Input(
      is_transposed ? Joined({sizes.channels, sizes.outputs / sizes.group}, sizes.kernel)
                    : Joined({sizes.outputs, of_group}, sizes.kernel));
  const Operand result = maker.Temporary(Joined({2, sizes.outputs}, sizes.out));
  const Operand factor = maker.Input(result.shape);
  const Operand bias = maker.Input(Joined({sizes.outputs}, Shape(sizes.out.size(), Dim(1))));
  ExprPool& pool = maker.program.exprs;
  Contract contract;
  contract.form = form;
  contract.inner = Joined({of_group}, sizes.kernel);
  contract.a_spatial = sizes.in;
  contract.strides = sizes.strides;
  contract.dilations = sizes.dilations;
  contract.pads_begin = sizes.pads_begin;
  contract.group = sizes.group;
  contract.a_prologue = Load(pool, kFloat32, 0).id();
  contract.b_prologue = Load(pool, kFloat32, 1).id();
  contract.roots = {
      ((Accumulator(pool, kFloat32) + Load(pool, kFloat32, 3)) * Load(pool, kFloat32, 2)).id()};
  maker.AddStep({result.shape,
                 {image.view, weights.view, factor.view, BroadcastTo(bias, result.shape)},
                 {result.view},
                 std::move(contract)});
  maker.Output(result);
}

void MakeWindow(Window::Kind kind, const Sizes& sizes, bool has_positions, ProgramMaker& maker) {
  const Operand image = maker.Input(Joined({2, sizes.channels}, sizes.in));
  const Operand result = maker.Temporary(Joined({2, sizes.channels}, sizes.out));
  ExprPool& pool = maker.program.exprs;
  Window window;
  window.kind = kind;
  window.in_spatial = sizes.in;
  window.kernel = Dims(sizes.kernel.begin(), sizes.kernel.end());
  window.strides = sizes.strides;
  window.dilations = sizes.dilations;
  window.pads_begin = sizes.pads_begin;
  window.pads_end = sizes.pads_begin;
  window.roots = {Accumulator(pool, kFloat32).id()};
  std::vector<View> writes = {result.view};
  maker.Output(result);
  if (has_positions) {
    const Operand positions = maker.Temporary(result.shape, kInt64);
    writes.push_back(positions.view);
    window.roots.push_back(window.roots[0]);
    maker.Output(positions);
  }
  maker.AddStep({result.shape, {image.view}, writes, std::move(window)});
}

// The spatial extents of the result after the pass, "1x5"; what is computed is the same.
template <typename Make>
std::string Ordered(const Make& make) {
  ProgramMaker plain, ordered;
  make(plain);
  make(ordered);
  OrderSpatialAxes(ordered.program);
  const base::Status verdict = Verify(ordered.program);
  EXPECT_TRUE(verdict.ok()) << verdict.Text();
  const auto expected = RunOnNumbers(plain.program);
  EXPECT_EQ(RunOnNumbers(ordered.program), expected) << ToString(ordered.program);
  EXPECT_NE(expected.at(0), std::vector<float>(expected.at(0).size()));
  std::string extents;
  const Shape& domain = ordered.program.steps.back().domain;
  for (size_t axis = 2; axis < domain.size(); ++axis) {
    extents += (extents.empty() ? "" : "x") + domain[axis].ToString();
  }
  return extents;
}

std::string OrderedConvolution(const Sizes& sizes, Contract::Form form = Contract::Form::kConv) {
  return Ordered([&](ProgramMaker& maker) { MakeConvolution(form, sizes, maker); });
}

std::string OrderedWindow(Window::Kind kind, const Sizes& sizes, bool has_positions = false) {
  return Ordered([&](ProgramMaker& maker) { MakeWindow(kind, sizes, has_positions, maker); });
}

// Nine elements by a kernel of 3 with a dilation of 2 and a pad of 1, with a stride of 2.
const Sizes kAlongTheFirst{{9, 1}, {3, 1}, {2, 1}, {2, 1}, {1, 0}, {4, 1}};

TEST(OrderSpatialAxesTest, IdleAxesGoOutward) {
  EXPECT_EQ(OrderedConvolution(kAlongTheFirst), "1x4");
  Sizes grouped = kAlongTheFirst;
  grouped.group = 2;
  EXPECT_EQ(OrderedConvolution(grouped), "1x4");
  // What an idle axis says of strides and dilations does not matter.
  Sizes odd = kAlongTheFirst;
  odd.strides = {2, 3};
  odd.dilations = {2, 5};
  EXPECT_EQ(OrderedConvolution(odd), "1x4");
  const Sizes transposed{{4, 1}, {3, 1}, {2, 1}, {1, 1}, {1, 0}, {7, 1}};
  EXPECT_EQ(OrderedConvolution(transposed, Contract::Form::kConvTranspose), "1x7");
}

TEST(OrderSpatialAxesTest, ThreeAxesBecomeTwo) {
  EXPECT_EQ(OrderedConvolution({{5, 1, 6}, {2, 1, 3}, {1, 1, 1}, {1, 1, 1}, {0, 0, 0}, {4, 1, 4}}),
            "4x4");
  EXPECT_EQ(OrderedConvolution({{5, 1, 1}, {2, 1, 1}, {1, 1, 1}, {1, 1, 1}, {0, 0, 0}, {4, 1, 1}}),
            "1x4");
  EXPECT_EQ(OrderedConvolution({{1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {0, 0, 0}, {1, 1, 1}}),
            "1x1");
}

TEST(OrderSpatialAxesTest, DepthwiseAlongOneAxisGetsAnother) {
  Sizes sizes{{9}, {3}, {1}, {2}, {1}, {7}};
  EXPECT_EQ(OrderedConvolution(sizes), "7");
  sizes.group = sizes.outputs = sizes.channels;
  EXPECT_EQ(OrderedConvolution(sizes), "1x7");
}

TEST(OrderSpatialAxesTest, AxesThatSayMoreStay) {
  EXPECT_EQ(OrderedConvolution({{9, 1}, {3, 3}, {1, 1}, {1, 1}, {0, 1}, {7, 1}}), "7x1");
  EXPECT_EQ(OrderedConvolution({{9, 3}, {3, 3}, {1, 1}, {1, 1}, {0, 0}, {7, 1}}), "7x1");
  EXPECT_EQ(OrderedConvolution({{9, 1}, {3, 1}, {1, 1}, {1, 1}, {0, 1}, {7, 3}}), "7x3");
  EXPECT_EQ(OrderedConvolution({{1, 9}, {1, 3}, {1, 1}, {1, 1}, {0, 0}, {1, 7}}), "1x7");
}

TEST(OrderSpatialAxesTest, WindowsToo) {
  EXPECT_EQ(OrderedWindow(Window::Kind::kMax, kAlongTheFirst), "1x4");
  EXPECT_EQ(OrderedWindow(Window::Kind::kMax, kAlongTheFirst, /*has_positions=*/true), "1x4");
  EXPECT_EQ(OrderedWindow(Window::Kind::kAverage, kAlongTheFirst), "1x4");
  EXPECT_EQ(OrderedWindow(Window::Kind::kLp, kAlongTheFirst), "1x4");
}

// An epilogue that asks for its coordinates would get those of other axes.
TEST(OrderSpatialAxesTest, CoordinatesKeepTheirAxes) {
  EXPECT_EQ(Ordered([](ProgramMaker& maker) {
              MakeConvolution(Contract::Form::kConv, kAlongTheFirst, maker);
              ExprPool& pool = maker.program.exprs;
              auto* contract = maker.program.steps.back().As<Contract>();
              const Expr along = Cast(Coordinate(pool, 2), kFloat32);
              contract->roots = {(Accumulator(pool, kFloat32) * along).id()};
            }),
            "4x1");
}

}  // namespace
}  // namespace onnxifi::program
