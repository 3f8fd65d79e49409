// SPDX-License-Identifier: Apache-2.0
//
// Products of bfloat16 against float64: extents around blocks, panels and pairs, and what lies
// beside the result.

#include "backends/cpu/gemm/bfloat16_gemm.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>
#include <vector>

#include "backends/core/tensor/float_format.h"
#include "backends/cpu/gemm/gemm.h"

namespace onnxifi::gemm {
namespace {

constexpr float kUntouched = -777.0F;

float Rounded(float number) {
  return tensor::Bfloat16Format::Decode(tensor::Bfloat16Format::Encode(number));
}

std::vector<float> MakeNumbers(int64_t count, std::mt19937& random) {
  std::vector<float> numbers;
  for (int64_t k = 0; k < count; ++k) {
    numbers.push_back(Rounded(std::uniform_real_distribution<float>(-2, 2)(random)));
  }
  return numbers;
}

void Check(int64_t rows, int64_t depth, int64_t columns, bool adds) {
  SCOPED_TRACE(testing::Message() << rows << " x " << depth << " x " << columns << ", " << adds);
  std::mt19937 random(static_cast<unsigned>(rows * 97 + depth * 31 + columns));
  const int64_t a_stride = depth + 3, c_stride = columns + 2;
  const std::vector<float> a = MakeNumbers(rows * a_stride, random);
  const std::vector<float> b = MakeNumbers(depth * columns, random);
  std::vector<float> packed(static_cast<size_t>(PackedSize(depth, columns)));
  const int64_t panels = (columns + PanelColumns() - 1) / PanelColumns();
  PackPanels({b.data(), columns, 1}, depth, columns, 0, panels, packed.data());
  PairPanelRows(packed.data(), depth, columns);
  std::vector<float> narrow = a;
  RoundRows(narrow.data(), a_stride, depth, rows);
  std::vector<float> c(static_cast<size_t>(rows * c_stride), kUntouched);
  MultiplyBfloat16(
      {narrow.data(), a_stride, packed.data(), c.data(), c_stride, rows, depth, columns, adds});
  for (int64_t m = 0; m < rows; ++m) {
    for (int64_t n = 0; n < columns; ++n) {
      double sum = adds ? static_cast<double>(kUntouched) : 0, sizes = std::fabs(sum);
      for (int64_t k = 0; k < depth; ++k) {
        const double product = static_cast<double>(a[static_cast<size_t>(m * a_stride + k)]) *
                               static_cast<double>(b[static_cast<size_t>(k * columns + n)]);
        sum += product;
        sizes += std::fabs(product);
      }
      ASSERT_NEAR(c[static_cast<size_t>(m * c_stride + n)], sum,
                  sizes * 0x1p-24 * static_cast<double>(depth / 2 + 4))
          << m << ", " << n;
    }
    for (int64_t n = columns; n < c_stride; ++n) {
      ASSERT_EQ(c[static_cast<size_t>(m * c_stride + n)], kUntouched) << m << ", " << n;
    }
  }
}

TEST(Bfloat16GemmTest, MultipliesAnyExtents) {
  if (!HasBfloat16Gemm()) GTEST_SKIP() << "The processor has no such instruction.";
  for (const int64_t rows : {1, 2, 11, 12, 13, 25, 42}) {
    for (const int64_t depth : {1, 2, 7, 64, 129}) {
      for (const int64_t columns : {1, 15, 16, 17, 31, 32, 33, 100}) {
        Check(rows, depth, columns, /*adds=*/false);
        Check(rows, depth, columns, /*adds=*/true);
      }
    }
  }
}

// To the nearest, ties to even; NaN stays one.
TEST(Bfloat16GemmTest, RoundsAsTheTypeSays) {
  if (!HasBfloat16Gemm()) GTEST_SKIP() << "The processor has no such instruction.";
  std::mt19937 random(5);
  for (const int64_t count : {1, 2, 15, 16, 17, 40}) {
    std::vector<float> row = {1.00390625F, 1.01171875F, INFINITY, -0.0F, NAN};
    row.resize(static_cast<size_t>(count));
    for (size_t k = 5; k < row.size(); ++k) {
      row[k] = std::uniform_real_distribution<float>(-9, 9)(random);
    }
    const std::vector<float> given = row;
    RoundRows(row.data(), count, count, 1);
    for (int64_t k = 0; k < count + count % 2; ++k) {
      const uint32_t word = std::bit_cast<uint32_t>(row[static_cast<size_t>(k / 2)]);
      const auto code = static_cast<uint16_t>(k % 2 == 0 ? word : word >> 16);
      if (k == count) {
        EXPECT_EQ(code, 0);
      } else if (std::isnan(given[static_cast<size_t>(k)])) {
        EXPECT_TRUE(std::isnan(tensor::Bfloat16Format::Decode(code)));
      } else {
        EXPECT_EQ(code, tensor::Bfloat16Format::Encode(given[static_cast<size_t>(k)])) << k;
      }
    }
  }
}

TEST(Bfloat16GemmTest, IsNotUsedWhereItIsNotAllowed) {
  AllowBfloat16Gemm(false);
  EXPECT_FALSE(HasBfloat16Gemm());
  AllowBfloat16Gemm(true);
}

}  // namespace
}  // namespace onnxifi::gemm
