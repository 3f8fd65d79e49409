// SPDX-License-Identifier: Apache-2.0
//
// QuantizedProductCase: for tests: rows at any address times a random matrix of few bits, with or
// without an epilogue, and the expectation in float64.

#ifndef ONNXIFI_BACKENDS_CPU_GEMM_TESTING_QUANTIZED_PRODUCT_CASE_H_
#define ONNXIFI_BACKENDS_CPU_GEMM_TESTING_QUANTIZED_PRODUCT_CASE_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "backends/cpu/gemm/epilogue.h"
#include "backends/cpu/gemm/testing/random_quantized_matrix.h"
#include "backends/cpu/gemm/testing/shifted_floats.h"

namespace onnxifi::gemm {

class QuantizedProductCase {
 public:
  // Addresses are `shift` bytes beyond those of floats.
  QuantizedProductCase(const QuantizedLayout& of, int64_t row_count, size_t shift, bool adds)
      : layout(of),
        rows(row_count),
        has_epilogue(adds),
        matrix(of),
        y_stride(of.columns + 1),
        x(rows * of.depth, shift, 1),
        y(rows * y_stride, shift, 4),
        bias_(of.columns, shift, 3),
        addend_(rows * addend_stride(), shift, 5) {
    for (int64_t k = 0; k < rows * y_stride; ++k) y.Set(k, kUntouched);
    if (!has_epilogue) return;
    epilogue.bias = bias_.data();
    epilogue.addend = addend_.data();
    epilogue.addend_stride = addend_stride();
    epilogue.activation = Activation::kClip;
    epilogue.low = kLow;
    epilogue.high = std::numeric_limits<float>::infinity();
  }

  std::string Name() const {
    return std::to_string(rows) + " x " + std::to_string(layout.depth) + " x " +
           std::to_string(layout.columns) + ", blocks of " + std::to_string(layout.block) + ", " +
           std::to_string(layout.bits) + " bits" + (layout.has_zeros ? ", zeros" : "");
  }

  // Against the sums of x_at(m, k) times the weights; what lies behind a row of y is untouched.
  template <class Element>
  void Expect(const Element& x_at) {
    for (int64_t m = 0; m < rows; ++m) {
      for (int64_t n = 0; n < layout.columns; ++n) {
        double sum = has_epilogue ? static_cast<double>(bias_.At(n)) : 0.0;
        double sizes = 1;
        for (int64_t k = 0; k < layout.depth; ++k) {
          const double of_x = x_at(m, k);
          sum += of_x * matrix.At(k, n);
          sizes += std::abs(of_x) * (layout.bits == 8 ? 16 : 2);
        }
        if (has_epilogue) {
          sum = std::max(sum + static_cast<double>(addend_.At(m * addend_stride() + n)),
                         static_cast<double>(kLow));
        }
        ASSERT_NEAR(y.At(m * y_stride + n), sum, 1e-6 * sizes) << m << ", " << n;
      }
      ASSERT_EQ(y.At(m * y_stride + layout.columns), kUntouched);
    }
  }

  const QuantizedLayout layout;
  const int64_t rows;
  const bool has_epilogue;
  const RandomQuantizedMatrix matrix;
  const int64_t y_stride;
  ShiftedFloats x, y;
  Epilogue epilogue;

 private:
  static constexpr float kUntouched = -777.0F, kLow = -0.5F;
  int64_t addend_stride() const { return layout.columns + 5; }

  ShiftedFloats bias_, addend_;
};

}  // namespace onnxifi::gemm

#endif  // ONNXIFI_BACKENDS_CPU_GEMM_TESTING_QUANTIZED_PRODUCT_CASE_H_
