// SPDX-License-Identifier: Apache-2.0
//
// Products of few rows with numbers of 4 and 8 bits, and panels of them, against float64, on every
// instruction set of the processor.

#include "backends/cpu/gemm/quantized_matrix.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "backends/cpu/gemm/gemm.h"
#include "backends/cpu/gemm/testing/quantized_product_case.h"
#include "backends/cpu/gemm/testing/random_quantized_matrix.h"
#include "backends/cpu/processor/testing/each_target.h"

namespace onnxifi::gemm {
namespace {

void Check(QuantizedProductCase tried) {
  SCOPED_TRACE(tried.Name());
  const QuantizedLayout& layout = tried.layout;
  std::vector<float> memory(static_cast<size_t>(tried.rows * ArrangedSize(layout)) + 16, -777.0F);
  float* const arranged =
      memory.data() + (64 - reinterpret_cast<uintptr_t>(memory.data()) % 64) % 64 / sizeof(float);
  for (int64_t m = 0; m < tried.rows; ++m) {
    ArrangeRow(layout, tried.x.data() + m * layout.depth, arranged + m * ArrangedSize(layout));
  }
  const QuantizedProduct product = {tried.matrix.view(), arranged, tried.y.data(), tried.y_stride,
                                    tried.rows};
  MultiplyQuantized(product, tried.epilogue, 0, layout.columns / 3);
  MultiplyQuantized(product, tried.epilogue, layout.columns / 3, layout.columns);
  tried.Expect(
      [&](int64_t m, int64_t k) { return static_cast<double>(tried.x.At(m * layout.depth + k)); });
}

TEST(QuantizedMatrixTest, SumsEveryBlockDepthAndNumberOfRows) {
  processor::ForEachTarget([](const char* target) {
    SCOPED_TRACE(target);
    for (const int bits : {4, 8}) {
      for (const int64_t block : {16, 32, 64, 128}) {
        for (const bool has_zeros : {false, true}) {
          for (const int64_t depth : {1, 31, 128, 300, 1030}) {
            for (int64_t rows = 1; rows <= kMaxQuantizedRows; ++rows) {
              Check({MakeLayout(depth, depth == 300 ? 23 : 7, block, bits, has_zeros), rows,
                     /*shift=*/static_cast<size_t>(rows) % 4, /*adds=*/rows % 2 == 0});
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
