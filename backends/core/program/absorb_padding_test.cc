// SPDX-License-Identifier: Apache-2.0
//
// AbsorbPadding: convolutions and windows over padded views compute the same on the reference with
// padding of their own; what a step cannot say stays in the view.

#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "backends/core/execution/testing/run_on_numbers.h"
#include "backends/core/program/passes.h"
#include "backends/core/program/testing/program_maker.h"
#include "backends/core/program/verify.h"

namespace onnxifi::program {
namespace {

using execution::RunOnNumbers;
using enum tensor::ElementType;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Padded {
  Dims before = {0, 0, 2, 1}, after = {0, 0, 0, 1};
  double fill = 0;
  Dims pads_begin = {0, 1}, pads_end = {0, 0};
  Dims kernel = {3, 4};
  std::vector<int64_t> strides = {2, 1}, dilations = {1, 2};
  bool count_include_pad = true;
  bool has_positions = false;
  tensor::ElementType type = kFloat32;
  Expr (*of_map)(Expr x) = nullptr;  // what gives the image, of an input
};

constexpr int64_t kImages = 2, kChannels = 3, kHeight = 7, kWidth = 8;

// An image of odd extents and its surroundings.
Operand PadImage(const Padded& of, ProgramMaker& maker) {
  tensor::Scalar fill{};
  if (tensor::IsFloat(of.type)) {
    fill.f = of.fill;
  } else {
    fill.i = static_cast<int64_t>(of.fill);
  }
  Operand image = maker.Input({kImages, kChannels, kHeight, kWidth});
  if (of.of_map || of.type != kFloat32) {
    ExprPool& pool = maker.program.exprs;
    const Expr x = Load(pool, kFloat32, 0);
    const Expr root = of.of_map ? of.of_map(x) : Cast(x * Like(x, 40), of.type);
    const Operand mapped = maker.Temporary(image.shape, of.type);
    maker.AddStep({image.shape, {image.view}, {mapped.view}, Map{{root.id()}}});
    image = mapped;
  }
  return *Pad(image, of.before, of.after, fill);
}

Dim ExtentOf(const Padded& of, const Operand& image, size_t k) {
  const Dim reach = Dim(of.dilations[k]) * (of.kernel[k] - 1) + 1;
  return FloorDiv(image.shape[k + 2] + of.pads_begin[k] + of.pads_end[k] - reach,
                  Dim(of.strides[k])) +
         1;
}

void MakeConvolution(const Padded& of, ProgramMaker& maker) {
  const Operand image = PadImage(of, maker);
  const Operand weights = maker.Input({5, kChannels, of.kernel[0], of.kernel[1]});
  ExprPool& pool = maker.program.exprs;
  Contract contract;
  contract.form = Contract::Form::kConv;
  contract.inner = {kChannels, of.kernel[0], of.kernel[1]};
  contract.a_spatial = {image.shape[2], image.shape[3]};
  contract.strides = of.strides;
  contract.dilations = of.dilations;
  contract.pads_begin = of.pads_begin;
  contract.a_prologue = Load(pool, kFloat32, 0).id();
  contract.b_prologue = Load(pool, kFloat32, 1).id();
  contract.roots = {Accumulator(pool, kFloat32).id()};
  const Operand result =
      maker.Temporary({kImages, 5, ExtentOf(of, image, 0), ExtentOf(of, image, 1)});
  maker.AddStep({result.shape, {image.view, weights.view}, {result.view}, std::move(contract)});
  maker.Output(result);
}

void MakeWindow(Window::Kind kind, const Padded& of, ProgramMaker& maker) {
  const Operand image = PadImage(of, maker);
  ExprPool& pool = maker.program.exprs;
  Window window;
  window.kind = kind;
  window.in_spatial = {image.shape[2], image.shape[3]};
  window.kernel = of.kernel;
  window.strides = of.strides;
  window.dilations = of.dilations;
  window.pads_begin = of.pads_begin;
  window.pads_end = of.pads_end;
  window.count_include_pad = of.count_include_pad;
  window.accumulator = of.type;
  window.roots = {Cast(Accumulator(pool, of.type), kFloat32).id()};
  const Operand result =
      maker.Temporary({kImages, kChannels, ExtentOf(of, image, 0), ExtentOf(of, image, 1)});
  std::vector<View> writes = {result.view};
  maker.Output(result);
  if (of.has_positions) {
    const Operand positions = maker.Temporary(result.shape, kInt64);
    writes.push_back(positions.view);
    window.roots.push_back(window.roots[0]);
  }
  maker.AddStep({result.shape, {image.view}, writes, std::move(window)});
}

// Whether the view is whole after the pass; what is computed is the same either way.
template <typename Make>
bool IsAbsorbed(const Make& make) {
  ProgramMaker plain, absorbed;
  make(plain);
  make(absorbed);
  AbsorbPadding(absorbed.program);
  const base::Status verdict = Verify(absorbed.program);
  EXPECT_TRUE(verdict.ok()) << verdict.Text();
  const auto expected = RunOnNumbers(plain.program);
  EXPECT_EQ(RunOnNumbers(absorbed.program), expected) << ToString(absorbed.program);
  EXPECT_NE(expected.at(0), std::vector<float>(expected.at(0).size()));
  return absorbed.program.steps.back().reads[0].guards.empty();
}

bool TakesConvolution(const Padded& of) {
  return IsAbsorbed([&](ProgramMaker& maker) { MakeConvolution(of, maker); });
}

bool TakesWindow(Window::Kind kind, const Padded& of) {
  return IsAbsorbed([&](ProgramMaker& maker) { MakeWindow(kind, of, maker); });
}

TEST(AbsorbPaddingTest, ConvolutionsPadByThemselves) {
  EXPECT_TRUE(TakesConvolution({}));
  EXPECT_TRUE(TakesConvolution({.before = {0, 0, 0, 0}, .after = {0, 0, 1, 1}}));
  EXPECT_TRUE(TakesConvolution({.before = {0, 0, 0, 3}, .after = {0, 0, 2, 0}}));
  // A crop is no padding.
  EXPECT_TRUE(TakesConvolution({.before = {0, 0, -1, 1}, .after = {0, 0, 0, 1}}));
}

TEST(AbsorbPaddingTest, ConvolutionsLeaveWhatTheyCannotSay) {
  EXPECT_FALSE(TakesConvolution({.fill = 1}));
  // Channels and images.
  EXPECT_FALSE(TakesConvolution({.before = {1, 0, 0, 0}, .after = {-1, 0, 1, 0}}));
  // Windows that see nothing but padding.
  EXPECT_FALSE(TakesConvolution({.before = {0, 0, 3, 0}}));
  EXPECT_FALSE(TakesConvolution({.after = {0, 0, 3, 0}}));
  EXPECT_FALSE(TakesConvolution({.before = {0, 0, 2, 0}, .pads_begin = {1, 0}}));
}

TEST(AbsorbPaddingTest, MaximaTakeMinusInfinity) {
  EXPECT_TRUE(TakesWindow(Window::Kind::kMax, {.fill = -kInfinity}));
  EXPECT_FALSE(TakesWindow(Window::Kind::kMax, {.fill = 0}));
  EXPECT_FALSE(TakesWindow(Window::Kind::kMax, {.fill = -kInfinity, .has_positions = true}));
}

TEST(AbsorbPaddingTest, MaximaTakeZerosAroundWhatIsNeverNegative) {
  const Padded of{.dilations = {1, 1}, .of_map = [](Expr x) { return Maximum(x, Like(x, 0)); }};
  const auto takes = [&](auto change) {
    Padded changed = of;
    change(changed);
    return TakesWindow(Window::Kind::kMax, changed);
  };
  EXPECT_TRUE(takes([](Padded&) {}));
  EXPECT_TRUE(takes([](Padded& p) {
    p.of_map = [](Expr x) { return Minimum(Maximum(Like(x, 0), x), Like(x, 0.5)); };
  }));
  EXPECT_FALSE(takes([](Padded& p) {
    p.of_map = [](Expr x) { return Minimum(Maximum(x, Like(x, 0)), Like(x, -0.5)); };
  }));
  EXPECT_FALSE(takes([](Padded& p) { p.of_map = [](Expr x) { return x - Like(x, 9); }; }));
  // Windows between whose elements the image may lie.
  EXPECT_FALSE(takes([](Padded& p) { p.dilations = {1, 2}; }));
  EXPECT_FALSE(takes([](Padded& p) { p.fill = 1; }));
}

TEST(AbsorbPaddingTest, MaximaOfIntegersTakeTheLowest) {
  EXPECT_TRUE(TakesWindow(Window::Kind::kMax, {.fill = -128, .type = kInt8}));
  EXPECT_FALSE(TakesWindow(Window::Kind::kMax, {.fill = 0, .type = kInt8}));
  EXPECT_TRUE(TakesWindow(Window::Kind::kMax, {.fill = 0, .type = kUint8}));
  EXPECT_FALSE(TakesWindow(Window::Kind::kMax, {.fill = 1, .type = kUint8}));
}

TEST(AbsorbPaddingTest, MeansCountTheZeros) {
  EXPECT_TRUE(TakesWindow(Window::Kind::kAverage, {}));
  EXPECT_TRUE(
      TakesWindow(Window::Kind::kAverage, {.pads_begin = {0, 0}, .count_include_pad = false}));
  EXPECT_FALSE(TakesWindow(Window::Kind::kAverage, {.count_include_pad = false}));
  EXPECT_FALSE(TakesWindow(Window::Kind::kAverage, {.fill = 1}));
}

// Its windows lie along the channels; it has neither strides nor padding.
TEST(AbsorbPaddingTest, LeavesLocalResponses) {
  EXPECT_FALSE(IsAbsorbed([](ProgramMaker& maker) {
    const Operand image = PadImage({}, maker);
    Window window;
    window.kind = Window::Kind::kLrn;
    window.in_spatial = {image.shape[2], image.shape[3]};
    window.kernel = {3};
    window.accumulator = kFloat32;
    window.roots = {Accumulator(maker.program.exprs, kFloat32).id()};
    const Operand result = maker.Temporary(image.shape);
    maker.Output(result);
    maker.AddStep({image.shape, {image.view}, {result.view}, std::move(window)});
  }));
}

TEST(AbsorbPaddingTest, LeavesNorms) { EXPECT_FALSE(TakesWindow(Window::Kind::kLp, {})); }

}  // namespace
}  // namespace onnxifi::program
