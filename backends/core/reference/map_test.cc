// SPDX-License-Identifier: Apache-2.0
//
// Map on the reference: views with guards, transposes and broadcasts, packed and complex elements,
// loads at computed coordinates, against loops written out here.

#include <gtest/gtest.h>

#include <complex>
#include <cstdint>
#include <numeric>
#include <vector>

#include "backends/core/reference/testing/one_step.h"

namespace onnxifi::reference {
namespace {

using program::Expr;
using tensor::ElementType;

constexpr ElementType kFloat = ElementType::kFloat32;

std::vector<float> Ramp(int count) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), 1.0f);
  return values;
}

TEST(MapTest, AddsATransposedAndARepeatedOperand) {
  OneStep one;
  const std::vector<float> x = Ramp(5 * 300);
  const std::vector<float> bias = Ramp(5);
  const program::Shape domain = {300, 5};
  one.Read(kFloat, {5, 300}, x);
  one.Read(kFloat, {5}, bias);
  one.step.reads[0].strides = {1, 300};
  one.step.reads[1].strides = {0, 1};
  one.Write(kFloat, domain, std::vector<float>(1500));
  one.step.domain = domain;
  one.step.body = program::Map{{(Load(one.pool(), kFloat, 0) + Load(one.pool(), kFloat, 1)).id()}};
  const std::vector<float> out = one.Run<float>();
  for (int row = 0; row < 300; ++row) {
    for (int column = 0; column < 5; ++column) {
      ASSERT_EQ(out[row * 5 + column], x[column * 300 + row] + bias[column]);
    }
  }
}

TEST(MapTest, GuardsGiveTheFillAndTouchNoMemory) {
  OneStep one;
  const program::Shape inner = {3, 4};
  one.Read(kFloat, inner, Ramp(12));
  const program::Operand padded =
      *program::Pad({one.step.reads[0], inner}, {1, 2}, {2, 3}, tensor::Scalar{.f = -7});
  one.step.reads[0] = padded.view;
  one.step.domain = padded.shape;
  one.Write(kFloat, padded.shape, std::vector<float>(6 * 9));
  one.step.body = program::Map{{Load(one.pool(), kFloat, 0).id()}};
  const std::vector<float> out = one.Run<float>();
  for (int y = 0; y < 6; ++y) {
    for (int x = 0; x < 9; ++x) {
      const bool inside = y >= 1 && y < 4 && x >= 2 && x < 6;
      ASSERT_EQ(out[y * 9 + x], inside ? (y - 1) * 4 + (x - 2) + 1 : -7.0f);
    }
  }
}

TEST(MapTest, ReversedStepsWithGuardsKeepTheirOrder) {
  OneStep one;
  const program::Shape shape = {7};
  one.Read(kFloat, shape, Ramp(7));
  // Padded to 0 0 1..7 0, then every second element from the end: 0 6 4 2 0.
  program::Operand operand =
      *program::Pad({one.step.reads[0], shape}, {2}, {1}, tensor::Scalar{.f = 0});
  operand = program::Slice(operand, 0, 9, -2, 5);
  one.step.reads[0] = operand.view;
  one.step.domain = {5};
  one.Write(kFloat, {5}, std::vector<float>(5));
  one.step.body = program::Map{{Load(one.pool(), kFloat, 0).id()}};
  EXPECT_EQ(one.Run<float>(), (std::vector<float>{0, 6, 4, 2, 0}));
}

TEST(MapTest, GathersAndFillsOutsideTheGuard) {
  OneStep one;
  one.Read(ElementType::kInt64, {6}, std::vector<int64_t>{2, -1, 0, 3, INT64_MIN, INT64_MAX});
  one.Read(kFloat, {3}, std::vector<float>{10, 20, 30});
  one.step.reads[1].guards.push_back({{1}, 0, 3});
  one.step.reads[1].fill.f = -1;
  one.step.domain = {6};
  one.Write(kFloat, {6}, std::vector<float>(6));
  const Expr at[] = {Load(one.pool(), ElementType::kInt64, 0)};
  one.step.body = program::Map{{LoadAt(one.pool(), kFloat, 1, at).id()}};
  EXPECT_EQ(one.Run<float>(), (std::vector<float>{30, -1, 10, -1, -1, -1}));
}

TEST(MapTest, PackedElementsMoveAlone) {
  OneStep one;
  // 3 -4 5 -6 7 as int4, reversed into the odd elements of 0xff...
  one.Read(ElementType::kInt4, {5}, std::vector<uint8_t>{0xc3, 0xa5, 0x07});
  one.step.reads[0].offset = 4;
  one.step.reads[0].strides = {-1};
  one.step.domain = {5};
  one.Write(ElementType::kInt4, {10}, std::vector<uint8_t>(5, 0xff));
  one.step.writes[0].offset = 1;
  one.step.writes[0].strides = {2};
  one.step.body = program::Map{{Load(one.pool(), ElementType::kInt4, 0).id()}};
  EXPECT_EQ(one.Run<uint8_t>(), (std::vector<uint8_t>{0x7f, 0xaf, 0x5f, 0xcf, 0x3f}));
}

TEST(MapTest, ElementsInTwoBytesMoveAlone) {
  OneStep one;
  // Codes 1 0x3f 0x15 0x20 3, reversed into the odd elements of eleven of 0x3f.
  one.Read(ElementType::kFloat6E2M3, {5}, std::vector<uint8_t>{0xc1, 0x5f, 0x81, 0x03});
  one.step.reads[0].offset = 4;
  one.step.reads[0].strides = {-1};
  one.step.domain = {5};
  one.Write(ElementType::kFloat6E2M3, {11}, std::vector<uint8_t>(9, 0xff));
  one.step.writes[0].offset = 1;
  one.step.writes[0].strides = {2};
  one.step.body = program::Map{{Load(one.pool(), ElementType::kFloat6E2M3, 0).id()}};
  uint8_t expected[9] = {};
  int bit = 0;
  for (const int code : {0x3f, 3, 0x3f, 0x20, 0x3f, 0x15, 0x3f, 0x3f, 0x3f, 1, 0x3f}) {
    for (int k = 0; k < 6; ++k, ++bit) {
      expected[bit / 8] = static_cast<uint8_t>(expected[bit / 8] | (code >> k & 1) << bit % 8);
    }
  }
  expected[8] |= 0xfc;  // behind the last element
  EXPECT_EQ(one.Run<uint8_t>(), std::vector<uint8_t>(std::begin(expected), std::end(expected)));
}

TEST(MapTest, ComplexElementsAreSelected) {
  using Complex = std::complex<double>;
  OneStep one;
  one.Read(ElementType::kBool, {3}, std::vector<uint8_t>{1, 0, 2});
  one.Read(ElementType::kComplex128, {3}, std::vector<Complex>{{1, 2}, {3, 4}, {5, 6}});
  one.Read(ElementType::kComplex128, {3}, std::vector<Complex>{{-1, -2}, {-3, -4}, {-5, -6}});
  one.step.domain = {3};
  one.Write(ElementType::kComplex128, {3}, std::vector<Complex>(3));
  one.step.body = program::Map{{Select(Load(one.pool(), ElementType::kBool, 0),
                                       Load(one.pool(), ElementType::kComplex128, 1),
                                       Load(one.pool(), ElementType::kComplex128, 2))
                                    .id()}};
  EXPECT_EQ(one.Run<Complex>(), (std::vector<Complex>{{1, 2}, {-3, -4}, {5, 6}}));
}

TEST(MapTest, EmptyDomainsAndScalarsRun) {
  OneStep empty;
  empty.Read(kFloat, {0, 3}, std::vector<float>());
  empty.step.domain = {0, 3};
  empty.Write(kFloat, {0, 3}, std::vector<float>());
  empty.step.body = program::Map{{Load(empty.pool(), kFloat, 0).id()}};
  EXPECT_TRUE(empty.Run<float>().empty());

  OneStep scalar;
  scalar.Read(kFloat, {}, std::vector<float>{4});
  scalar.Write(kFloat, {}, std::vector<float>(1));
  scalar.step.body =
      program::Map{{Unary(program::ExprOp::kSqrt, Load(scalar.pool(), kFloat, 0)).id()}};
  EXPECT_EQ(scalar.Run<float>(), std::vector<float>{2});
}

TEST(MapTest, RefusesArithmeticOnComplexNumbers) {
  OneStep one;
  one.Read(ElementType::kComplex64, {1}, std::vector<std::complex<float>>(1));
  one.step.domain = {1};
  one.Write(ElementType::kComplex64, {1}, std::vector<std::complex<float>>(1));
  const Expr x = Load(one.pool(), ElementType::kComplex64, 0);
  one.step.body = program::Map{{(x + x).id()}};
  const base::Result<device::Selection> selection = Device().Select({one.program, one.step});
  ASSERT_FALSE(selection.ok());
  EXPECT_EQ(selection.status().code(), base::Code::kUnsupportedDatatype);
  EXPECT_EQ(selection.status().sentence(), "The operation add is not defined on complex64.");
}

}  // namespace
}  // namespace onnxifi::reference
