// SPDX-License-Identifier: Apache-2.0
//
// StoreBytes: what an epilogue dequantizes is dequantized by those that read it, and the program
// computes the same on the reference; results that others read, or that are floats, stay.

#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <utility>
#include <vector>

#include "backends/core/execution/testing/run_on_numbers.h"
#include "backends/core/program/passes.h"
#include "backends/core/program/testing/program_maker.h"
#include "backends/core/program/verify.h"

namespace onnxifi::program {
namespace {

using execution::RunOnNumbers;
using enum tensor::ElementType;

bool AcceptAll(const Program&, const Step&, const Step&) { return true; }

Operand Number(ProgramMaker& maker, float value) {
  return maker.Constant(tensor::Tensor::FromValues<float>(kFloat32, {}, {&value, 1}));
}

// a x b, quantized and dequantized again as the end of the product; with `more`, plus 1 then.
// `zero_points` are 1 or one per column.
Operand QuantizedProduct(ProgramMaker& maker, bool more = false, float scale_of_all = 0.5F,
                         const std::vector<float>& zero_points = {3}) {
  const Operand product = maker.MatMul(maker.Input({6, 4}), maker.Input({4, 5}));
  Step& step = maker.program.steps.back();
  ExprPool& pool = maker.program.exprs;
  const auto read = static_cast<int>(step.reads.size());
  step.reads.push_back(BroadcastTo(Number(maker, scale_of_all), step.domain));
  const Expr scale = Load(pool, kFloat32, read);
  const Operand zero_point = maker.Constant(tensor::Tensor::FromValues<float>(
      kFloat32, {static_cast<int64_t>(zero_points.size())}, zero_points));
  step.reads.push_back(BroadcastTo(zero_point, step.domain));
  const Expr sum = Accumulator(pool, kFloat32);
  const Expr bytes = Cast(Unary(ExprOp::kRoundEven, sum / scale), kInt8);
  const Expr difference = Cast(bytes, kFloat32) - Load(pool, kFloat32, read + 1);
  Expr root = difference * scale;
  if (more) root = root + Like(root, 1);
  step.As<Contract>()->roots = {root.id()};
  return product;
}

Expr Square(ExprPool&, const std::vector<Expr>& loads) { return loads[0] * loads[0]; }
Expr Double(ExprPool&, const std::vector<Expr>& loads) { return loads[0] + loads[0]; }

// Whether the product stores bytes, once the program has computed the same as before.
bool StoresBytes(const std::function<void(ProgramMaker&)>& make,
                 const Accepts& accepts = AcceptAll) {
  ProgramMaker plain, stored;
  make(plain);
  make(stored);
  StoreBytes(stored.program, accepts);
  EXPECT_TRUE(Verify(stored.program).ok()) << ToString(stored.program);
  const std::vector<std::vector<float>> expected = RunOnNumbers(plain.program);
  EXPECT_EQ(RunOnNumbers(stored.program), expected) << ToString(stored.program);
  EXPECT_NE(expected.at(0), std::vector<float>(expected.at(0).size()));
  for (const Step& step : stored.program.steps) {
    if (step.As<Contract>() != nullptr) return step.writes[0].type == kInt8;
  }
  return false;
}

TEST(StoreBytesTest, HasEachReaderDequantize) {
  EXPECT_TRUE(StoresBytes([](ProgramMaker& maker) {
    const Operand x = QuantizedProduct(maker);
    maker.Output(maker.Map({6, 5}, {x}, Square));
    maker.Output(maker.Map({5, 6}, {Permute(x, {1, 0})}, Double));
  }));
}

// The largest of each three neighbours in a row of what a product has, at least of two of them.
Operand Largest(ProgramMaker& maker, const Operand& x, int64_t dilation = 1) {
  Window window;
  window.kind = Window::Kind::kMax;
  window.in_spatial = {x.shape[1]};
  window.kernel = {3};
  window.strides = {1};
  window.dilations = {dilation};
  window.pads_begin = {dilation};
  window.pads_end = {dilation};
  window.roots = {Accumulator(maker.program.exprs, kFloat32).id()};
  const Shape shape = {x.shape[0], 1, x.shape[1]};
  const Operand out = maker.Temporary(shape);
  maker.AddStep({shape, {InsertAxis(x, 1).view}, {out.view}, std::move(window)});
  return out;
}

TEST(StoreBytesTest, AMaximumIsThatOfTheBytes) {
  EXPECT_TRUE(StoresBytes([](ProgramMaker& maker) {
    const Operand x = QuantizedProduct(maker);
    maker.Output(Largest(maker, x));
    maker.Output(maker.Map({6, 5}, {x}, Square));
  }));
  EXPECT_FALSE(StoresBytes([](ProgramMaker& maker) {
    maker.Output(Largest(maker, QuantizedProduct(maker, /*more=*/false, /*scale_of_all=*/-0.5F)));
  })) << "smaller bytes are larger numbers";
  EXPECT_FALSE(StoresBytes([](ProgramMaker& maker) {
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    maker.Output(Largest(maker, QuantizedProduct(maker, /*more=*/false, kInfinity)));
  })) << "of the zero point it is NaN, which a larger byte does not exceed";
  EXPECT_FALSE(StoresBytes([](ProgramMaker& maker) {
    maker.Output(Largest(maker, QuantizedProduct(maker, false, 0.5F, {3, -7, 0, 20, 1})));
  })) << "a larger byte of another column may be a smaller number";
  EXPECT_FALSE(StoresBytes([](ProgramMaker& maker) {
    maker.Output(Largest(maker, QuantizedProduct(maker), /*dilation=*/2));
  })) << "a window may lie around the tensor";
}

TEST(StoreBytesTest, LeavesFloats) {
  EXPECT_FALSE(StoresBytes([](ProgramMaker& maker) {
    maker.Output(maker.Map({6, 5}, {QuantizedProduct(maker, /*more=*/true)}, Square));
  }));
}

TEST(StoreBytesTest, LeavesWhatOthersRead) {
  EXPECT_FALSE(StoresBytes([](ProgramMaker& maker) {
    const Operand x = QuantizedProduct(maker);
    maker.Output(maker.Map({6, 5}, {x}, Square));
    maker.Output(maker.SumRows(x));
  })) << "a sum";
  EXPECT_FALSE(StoresBytes([](ProgramMaker& maker) {
    const Operand x = QuantizedProduct(maker);
    maker.Output(maker.Map({3, 6, 5}, {x}, Square));
  })) << "a Map that reads each element three times";
  EXPECT_FALSE(StoresBytes([](ProgramMaker& maker) {
    const Operand x = QuantizedProduct(maker);
    maker.Output(x);
    maker.Output(maker.Map({6, 5}, {x}, Square));
  })) << "the caller";
}

TEST(StoreBytesTest, AsksTheDevice) {
  const auto refuses = [](const Program&, const Step&, const Step& after) {
    return after.As<Map>() == nullptr;
  };
  EXPECT_FALSE(StoresBytes(
      [](ProgramMaker& maker) {
        maker.Output(maker.Map({6, 5}, {QuantizedProduct(maker)}, Square));
      },
      refuses));
}

}  // namespace
}  // namespace onnxifi::program
