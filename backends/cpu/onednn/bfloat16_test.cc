// SPDX-License-Identifier: Apache-2.0
//
// Products and convolutions of bfloat16, which a processor with instructions for them multiplies as
// they are: odd extents, operands of the epilogue, and results of either type, beside the
// reference's loops.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <utility>

#include "backends/cpu/onednn/recipe.h"
#include "backends/cpu/onednn/testing/one_step.h"

namespace onnxifi::onednn {
namespace {

using program::Contract;
using program::Expr;
using tensor::ElementType;
using testing::HasSubstr;
using testing::Not;

constexpr ElementType kNarrow = ElementType::kBfloat16;

class Bfloat16Test : public testing::Test {
 protected:
  void SetUp() override {
    if (!HasBfloat16Products()) GTEST_SKIP() << "The processor has no products of bfloat16.";
  }

  static void ExpectTaken(const OneStep& one, OneStep::Select select) {
    const OneStep::Outcome outcome = one.Run(select);
    EXPECT_THAT(outcome.detail, HasSubstr("bf16"));
    EXPECT_THAT(outcome.detail, Not(HasSubstr("loops")));
    EXPECT_EQ(outcome.different, 0) << outcome.detail;
  }
};

// Clip(A * B + summand), rounded.
OneStep MakeProduct(const Extents& batch, int64_t m, int64_t k, int64_t n, bool has_summand) {
  const auto extents = [&batch](int64_t rows, int64_t columns) {
    Extents all = batch;
    all.insert(all.end(), {rows, columns});
    return all;
  };
  OneStep one(kNarrow);
  Contract contract;
  contract.batch_axes = static_cast<int>(batch.size());
  contract.m_axes = contract.n_axes = 1;
  contract.inner = {k};
  contract.a_prologue = one.LoadOf(one.Read(extents(m, k))).id();
  contract.b_prologue = one.LoadOf(one.Read(extents(k, n))).id();
  Expr root = one.Accumulated();
  if (has_summand) root = root + one.LoadOf(one.Read(extents(m, n)));
  contract.roots = {one.Rounded(Maximum(root, Like(root, -3)))};
  one.Write(extents(m, n));
  one.step.body = std::move(contract);
  return one;
}

TEST_F(Bfloat16Test, ProductsAreTaken) {
  for (const bool has_summand : {false, true}) {
    ExpectTaken(MakeProduct({}, 13, 37, 29, has_summand), SelectMatMul);
    ExpectTaken(MakeProduct({}, 1, 129, 65, has_summand), SelectMatMul);
    ExpectTaken(MakeProduct({3}, 7, 5, 11, has_summand), SelectMatMul);
  }
}

// 1,000 summands of one have more digits than bfloat16: sums are float32 until they are stored.
TEST_F(Bfloat16Test, SumsAreFloat32) {
  ExpectTaken(MakeProduct({}, 5, 1001, 3, false), SelectMatMul);
}

// A convolution over two axes with a bias per channel.
OneStep MakeConvolution(int64_t channels, int64_t outputs, int64_t kernel, int64_t stride,
                        int64_t dilation, int64_t group) {
  const int64_t reach = (kernel - 1) * dilation + 1;
  const Extents in = {19, 23};
  OneStep one(kNarrow);
  Contract contract;
  contract.form = Contract::Form::kConv;
  contract.group = group;
  contract.inner = {channels / group, kernel, kernel};
  Extents result = {2, outputs};
  for (const int64_t extent : in) {
    result.push_back((extent + 2 * (reach / 2) - reach) / stride + 1);
    contract.a_spatial.emplace_back(extent);
    contract.pads_begin.emplace_back(reach / 2);
  }
  contract.strides = {stride, stride};
  contract.dilations = {dilation, dilation};
  contract.a_prologue = one.LoadOf(one.Read({2, channels, in[0], in[1]})).id();
  contract.b_prologue = one.LoadOf(one.Read({outputs, channels / group, kernel, kernel})).id();
  const int bias = one.Read({outputs}, {1});
  one.step.reads[static_cast<size_t>(bias)].strides = {0, 1, 0, 0};
  contract.roots = {one.Rounded(one.Accumulated() + one.LoadOf(bias))};
  one.Write(result);
  one.step.body = std::move(contract);
  return one;
}

TEST_F(Bfloat16Test, ConvolutionsAreTaken) {
  ExpectTaken(MakeConvolution(3, 17, 7, 2, 1, 1), SelectConvolution);
  ExpectTaken(MakeConvolution(24, 40, 3, 1, 2, 1), SelectConvolution);
  ExpectTaken(MakeConvolution(33, 31, 1, 1, 1, 1), SelectConvolution);
  ExpectTaken(MakeConvolution(5, 7, 3, 1, 1, 1), SelectConvolution);
  ExpectTaken(MakeConvolution(64, 64, 3, 1, 1, 2), SelectConvolution);
  ExpectTaken(MakeConvolution(40, 40, 3, 1, 1, 5), SelectConvolution);
  ExpectTaken(MakeConvolution(6, 6, 3, 1, 1, 2), SelectConvolution);
  ExpectTaken(MakeConvolution(12, 10, 3, 2, 1, 2), SelectConvolution);
  ExpectTaken(MakeConvolution(16, 16, 3, 2, 1, 16), SelectConvolution);
  ExpectTaken(MakeConvolution(5, 5, 3, 1, 1, 5), SelectConvolution);
  ExpectTaken(MakeConvolution(21, 21, 5, 1, 2, 21), SelectConvolution);
  ExpectTaken(MakeConvolution(4, 8, 3, 1, 1, 4), SelectConvolution);
}

// Elements that are not a multiple of four bytes from the start of a vector.
TEST_F(Bfloat16Test, RowsWithGapsAreTaken) {
  OneStep one(kNarrow);
  Contract contract;
  contract.m_axes = contract.n_axes = 1;
  contract.inner = {9};
  contract.a_prologue = one.LoadOf(one.Read({5, 9}, {11, 1})).id();
  contract.b_prologue = one.LoadOf(one.Read({9, 7}, {1, 9})).id();
  contract.roots = {one.Rounded(one.Accumulated())};
  one.Write({5, 7}, {9, 1});
  one.step.body = std::move(contract);
  ExpectTaken(one, SelectMatMul);
}

// Functions that oneDNN computes roughly are good enough for results of bfloat16.
TEST_F(Bfloat16Test, RoughFunctionsAreTaken) {
  const auto gelu = [](Expr x) {
    const Expr erf = Unary(program::ExprOp::kErf, x / Like(x, 1.4140625));
    return x * (erf + Like(x, 1)) * Like(x, 0.5);
  };
  const auto tanh = [](Expr x) { return Unary(program::ExprOp::kTanh, x); };
  for (const auto& function : {std::function<Expr(Expr)>(gelu), std::function<Expr(Expr)>(tanh)}) {
    OneStep one = MakeProduct({}, 9, 3, 33, false);
    one.step.As<Contract>()->roots = {one.Rounded(function(one.Accumulated()))};
    ExpectTaken(one, SelectMatMul);
  }
}

// What bfloat16 is in the middle of an epilogue a primitive would keep in float32.
TEST_F(Bfloat16Test, RoundingBetweenOperationsIsRefused) {
  OneStep one = MakeProduct({}, 4, 4, 4, false);
  const Expr sum = one.Accumulated();
  const Expr rounded = Cast(Cast(sum, kNarrow), ElementType::kFloat32);
  one.step.As<Contract>()->roots = {one.Rounded(rounded * Like(rounded, 3))};
  const runtime::RecipeResult recipe =
      SelectMatMul({one.program, one.step}, EdgePlacement::kInPrimitive, "tested");
  ASSERT_FALSE(recipe.ok());
  EXPECT_THAT(recipe.status().Text(), HasSubstr("operation cast"));
}

}  // namespace
}  // namespace onnxifi::onednn
