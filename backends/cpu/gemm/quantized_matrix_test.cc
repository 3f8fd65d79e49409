// SPDX-License-Identifier: Apache-2.0
//
// Products of few rows with numbers of 4 and 8 bits, and panels of them, against float64, on every
// instruction set of the processor.

#include "backends/cpu/gemm/quantized_matrix.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "backends/cpu/gemm/gemm.h"
#include "backends/cpu/gemm/testing/random_quantized_matrix.h"
#include "backends/cpu/gemm/testing/shifted_floats.h"
#include "backends/cpu/processor/testing/each_target.h"

namespace onnxifi::gemm {
namespace {

void Check(const QuantizedLayout& layout, int64_t rows, size_t shift, bool has_epilogue) {
  SCOPED_TRACE(testing::Message() << rows << " x " << layout.depth << " x " << layout.columns
                                  << ", blocks of " << layout.block << ", " << layout.bits
                                  << " bits, zeros " << layout.has_zeros);
  constexpr float kUntouched = -777.0F;
  const RandomQuantizedMatrix matrix(layout);
  const int64_t y_stride = layout.columns + 1;
  ShiftedFloats x(rows * layout.depth, shift, 1), bias(layout.columns, shift, 3);
  ShiftedFloats addend(rows * (layout.columns + 5), shift, 5), y(rows * y_stride, shift, 4);
  for (int64_t k = 0; k < rows * y_stride; ++k) y.Set(k, kUntouched);
  Epilogue epilogue;
  if (has_epilogue) {
    epilogue.bias = bias.data();
    epilogue.addend = addend.data();
    epilogue.addend_stride = layout.columns + 5;
    epilogue.activation = Activation::kClip;
    epilogue.low = -0.5F;
    epilogue.high = std::numeric_limits<float>::infinity();
  }
  std::vector<float> memory(static_cast<size_t>(rows * ArrangedSize(layout)) + 16, kUntouched);
  float* const arranged =
      memory.data() + (64 - reinterpret_cast<uintptr_t>(memory.data()) % 64) % 64 / sizeof(float);
  for (int64_t m = 0; m < rows; ++m) {
    ArrangeRow(layout, x.data() + m * layout.depth, arranged + m * ArrangedSize(layout));
  }
  const QuantizedProduct product = {matrix.view(), arranged, y.data(), y_stride, rows};
  MultiplyQuantized(product, epilogue, 0, layout.columns / 3);
  MultiplyQuantized(product, epilogue, layout.columns / 3, layout.columns);
  for (int64_t m = 0; m < rows; ++m) {
    for (int64_t n = 0; n < layout.columns; ++n) {
      double sum = has_epilogue ? static_cast<double>(bias.At(n)) : 0.0;
      double sizes = 1;
      for (int64_t k = 0; k < layout.depth; ++k) {
        const double of_x = static_cast<double>(x.At(m * layout.depth + k));
        sum += of_x * matrix.At(k, n);
        sizes += std::abs(of_x) * (layout.bits == 8 ? 16 : 2);
      }
      if (has_epilogue) {
        sum = std::max(sum + static_cast<double>(addend.At(m * (layout.columns + 5) + n)), -0.5);
      }
      ASSERT_NEAR(y.At(m * y_stride + n), sum, 1e-6 * sizes) << m << ", " << n;
    }
    ASSERT_EQ(y.At(m * y_stride + layout.columns), kUntouched);
  }
}

TEST(QuantizedMatrixTest, SumsEveryBlockDepthAndNumberOfRows) {
  processor::ForEachTarget([](const char* target) {
    SCOPED_TRACE(target);
    for (const int bits : {4, 8}) {
      for (const int64_t block : {16, 32, 64, 128}) {
        for (const bool has_zeros : {false, true}) {
          for (const int64_t depth : {1, 31, 128, 300, 1030}) {
            for (int64_t rows = 1; rows <= kMaxQuantizedRows; ++rows) {
              Check(MakeLayout(depth, depth == 300 ? 23 : 7, block, bits, has_zeros), rows,
                    /*shift=*/static_cast<size_t>(rows) % 4, /*has_epilogue=*/rows % 2 == 0);
            }
          }
        }
      }
    }
  });
}

TEST(QuantizedMatrixTest, DequantizesPanels) {
  processor::ForEachTarget([](const char* target) {
    SCOPED_TRACE(target);
    const int64_t width = PanelColumns();
    for (const int bits : {4, 8}) {
      for (const int64_t block : {16, 32, 64, 128}) {
        for (const int64_t depth : {201, 256}) {
          const QuantizedLayout layout = MakeLayout(depth, 5 + width, block, bits, block != 64);
          const RandomQuantizedMatrix matrix(layout);
          for (const int64_t count : {int64_t{3}, width}) {
            // What lies behind the panel stays as it is.
            std::vector<float> panel(static_cast<size_t>((depth + 1) * width), 77.0F);
            DequantizePanel(matrix.view(), /*first=*/5, count, panel.data());
            for (int64_t k = 0; k <= depth; ++k) {
              for (int64_t n = 0; n < width; ++n) {
                const double expected = k == depth ? 77 : n < count ? matrix.At(k, 5 + n) : 0;
                ASSERT_NEAR(panel[static_cast<size_t>(k * width + n)], expected,
                            1e-7 * std::abs(expected))
                    << k << ", " << n;
              }
            }
          }
        }
      }
    }
  });
}

// As measured: with columns of 256 numbers of 4 bits in blocks of 32, three rows took 1.5 times
// what panels took, and with columns of 64 even one took longer.
TEST(QuantizedMatrixTest, FewerRowsAreFewTheShorterTheColumns) {
  const auto most = [](int64_t depth, int64_t block, int bits) {
    return MostQuantizedRows(MakeLayout(depth, 32, block, bits, /*has_zeros=*/false));
  };
  EXPECT_EQ(most(64, 32, 4), 0);
  EXPECT_EQ(most(256, 32, 4), 2);
  EXPECT_EQ(most(4096, 32, 4), 4);
  EXPECT_EQ(most(64, 32, 8), 1);
  EXPECT_EQ(most(256, 32, 8), 4);
  EXPECT_EQ(most(4096, 128, 4), 6);
  EXPECT_EQ(most(4096, 128, 8), 6);
}

}  // namespace
}  // namespace onnxifi::gemm
