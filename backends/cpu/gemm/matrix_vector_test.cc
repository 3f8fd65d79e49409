// SPDX-License-Identifier: Apache-2.0
//
// Products of few rows with a matrix against sums in float64, on every instruction set of the
// processor, at odd addresses.

#include "backends/cpu/gemm/matrix_vector.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <limits>

#include "backends/cpu/gemm/testing/shifted_floats.h"
#include "backends/cpu/processor/testing/each_target.h"

namespace onnxifi::gemm {
namespace {

void Check(int64_t vectors, int64_t depth, int64_t columns, size_t shift, bool has_epilogue) {
  constexpr float kUntouched = -777.0F;
  const int64_t x_stride = depth + 3, w_stride = depth + 2, y_stride = columns + 1;
  ShiftedFloats x(vectors * x_stride, shift, 1), w(columns * w_stride, shift, 2),
      bias(columns, shift, 3);
  ShiftedFloats addend(vectors * (columns + 5), shift, 5);
  ShiftedFloats y(vectors * y_stride, shift, 4);
  for (int64_t k = 0; k < vectors * y_stride; ++k) y.Set(k, kUntouched);
  Epilogue epilogue;
  if (has_epilogue) {
    epilogue.bias = bias.data();
    epilogue.addend = addend.data();
    epilogue.addend_stride = columns + 5;
    epilogue.activation = Activation::kClip;
    epilogue.low = -0.5F;
    epilogue.high = std::numeric_limits<float>::infinity();
  }
  const MatrixVector product = {x.data(), x_stride, w.data(), w_stride,
                                y.data(), y_stride, vectors,  depth};
  MultiplyVectors(product, epilogue, 0, columns / 3);
  MultiplyVectors(product, epilogue, columns / 3, columns);
  for (int64_t m = 0; m < vectors; ++m) {
    for (int64_t n = 0; n < columns; ++n) {
      double sum = has_epilogue ? static_cast<double>(bias.At(n)) : 0.0;
      for (int64_t k = 0; k < depth; ++k) {
        sum += static_cast<double>(x.At(m * x_stride + k)) *
               static_cast<double>(w.At(n * w_stride + k));
      }
      if (has_epilogue) {
        sum = std::max(sum + static_cast<double>(addend.At(m * (columns + 5) + n)), -0.5);
      }
      ASSERT_NEAR(y.At(m * y_stride + n), sum, 1e-6 * static_cast<double>(depth + 4))
          << vectors << " x " << depth << " x " << columns << " at " << m << ", " << n;
    }
    ASSERT_EQ(y.At(m * y_stride + columns), kUntouched);
  }
}

TEST(MatrixVectorTest, SumsEveryNumberOfVectorsRowsAndElements) {
  processor::ForEachTarget([](const char* target) {
    SCOPED_TRACE(target);
    for (int64_t vectors = 1; vectors <= kMaxVectors; ++vectors) {
      for (const bool has_epilogue : {false, true}) {
        for (const int64_t depth : {1, 3, 16, 31, 100}) {
          for (const int64_t columns : {1, 2, 5, 19, 37}) {
            Check(vectors, depth, columns, /*shift=*/0, has_epilogue);
          }
        }
      }
    }
  });
}

TEST(MatrixVectorTest, TakesMemoryOfAnyAlignment) {
  processor::ForEachTarget([](const char* target) {
    SCOPED_TRACE(target);
    for (const size_t shift : {1, 2, 3}) Check(2, 37, 21, shift, /*has_epilogue=*/true);
  });
}

}  // namespace
}  // namespace onnxifi::gemm
