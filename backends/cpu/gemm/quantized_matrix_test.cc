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
  const QuantizedProduct product = {tried.matrix.view(), tried.x.data(), layout.depth,
                                    tried.y.data(),      tried.y_stride, tried.rows};
  const int64_t middle = layout.columns / 2 / PanelColumns() * PanelColumns();
  MultiplyQuantized(product, tried.epilogue, 0, middle);
  MultiplyQuantized(product, tried.epilogue, middle, layout.columns);
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
            for (const int64_t rows : {1, 2, 3, 4, 5, 7, 9}) {
              Check({MakeLayout(depth, depth == 300 ? 70 : 7, block, bits, has_zeros), rows,
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
          for (const int64_t first : {int64_t{0}, width}) {
            // What lies behind the panel stays as it is.
            std::vector<float> panel(static_cast<size_t>((depth + 1) * width), 77.0F);
            DequantizePanel(matrix.view(), first, panel.data());
            for (int64_t k = 0; k <= depth; ++k) {
              for (int64_t n = 0; n < width; ++n) {
                const bool is_there = first + n < layout.columns;
                const double expected = k == depth ? 77 : is_there ? matrix.At(k, first + n) : 0;
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

}  // namespace
}  // namespace onnxifi::gemm
