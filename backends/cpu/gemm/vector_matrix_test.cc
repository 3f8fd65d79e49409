// SPDX-License-Identifier: Apache-2.0
//
// Products of few rows with a matrix whose columns lie next to each other against sums in float64,
// on every instruction set of the processor, in parts and at odd addresses.

#include "backends/cpu/gemm/vector_matrix.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <vector>

#include "backends/cpu/gemm/matrix_vector.h"
#include "backends/cpu/gemm/testing/shifted_floats.h"
#include "backends/cpu/processor/testing/each_target.h"

namespace onnxifi::gemm {
namespace {

constexpr float kUntouched = -777.0F;

struct Case {
  int64_t vectors, depth, columns;
  int64_t parts = 1;
  size_t shift = 0;  // bytes
  bool has_epilogue = false;
};

void Check(const Case& test) {
  const auto [vectors, depth, columns, parts, shift, has_epilogue] = test;
  const int64_t x_stride = depth + 3, w_stride = columns + 2, y_stride = columns + 1;
  const int64_t sums_stride = columns + 4, part_stride = vectors * sums_stride + 1;
  ShiftedFloats x(vectors * x_stride, shift, 1), w(depth * w_stride, shift, 2);
  ShiftedFloats bias(columns, shift, 3), addend(vectors * w_stride, shift, 4);
  ShiftedFloats y(vectors * y_stride, shift, 5);
  std::vector<float> sums(static_cast<size_t>(parts * part_stride), kUntouched);
  for (int64_t k = 0; k < vectors * y_stride; ++k) y.Set(k, kUntouched);
  Epilogue epilogue;
  if (has_epilogue) {
    epilogue.bias = bias.data();
    epilogue.addend = addend.data();
    epilogue.addend_stride = w_stride;
    epilogue.activation = Activation::kClip;
    epilogue.low = -0.5F;
    epilogue.high = 2.5F;
  }
  const VectorMatrix product = {x.data(), x_stride, w.data(), w_stride, vectors};
  for (int64_t part = 0; part < parts; ++part) {
    const int64_t first_k = part * depth / parts, end_k = (part + 1) * depth / parts;
    float* const of_part = sums.data() + part * part_stride;
    SumRows(product, first_k, end_k, 0, columns / 3, of_part, sums_stride);
    SumRows(product, first_k, end_k, columns / 3, columns, of_part, sums_stride);
  }
  const PartialSums partial = {sums.data(), sums_stride, part_stride, parts};
  FinishSums(partial, epilogue, vectors, 0, columns / 2, y.data(), y_stride);
  FinishSums(partial, epilogue, vectors, columns / 2, columns, y.data(), y_stride);
  for (int64_t m = 0; m < vectors; ++m) {
    for (int64_t n = 0; n < columns; ++n) {
      double sum = 0;
      for (int64_t k = 0; k < depth; ++k) {
        sum += static_cast<double>(x.At(m * x_stride + k)) *
               static_cast<double>(w.At(k * w_stride + n));
      }
      if (has_epilogue) {
        sum += static_cast<double>(bias.At(n)) + static_cast<double>(addend.At(m * w_stride + n));
        sum = std::clamp(sum, -0.5, 2.5);
      }
      ASSERT_NEAR(y.At(m * y_stride + n), sum, 1e-6 * static_cast<double>(depth + 4))
          << vectors << " x " << depth << " x " << columns << " at " << m << ", " << n;
    }
    ASSERT_EQ(y.At(m * y_stride + columns), kUntouched);
    ASSERT_EQ(sums[static_cast<size_t>(m * sums_stride + columns)], kUntouched);
  }
}

TEST(VectorMatrixTest, SumsEveryNumberOfVectorsRowsAndColumns) {
  processor::ForEachTarget([](const char* target) {
    SCOPED_TRACE(target);
    for (int64_t vectors = 1; vectors <= kMaxVectors; ++vectors) {
      for (const bool has_epilogue : {false, true}) {
        for (const int64_t depth : {1, 3, 8, 31, 100}) {
          for (const int64_t columns : {1, 2, 5, 19, 37, 96}) {
            Check({.vectors = vectors,
                   .depth = depth,
                   .columns = columns,
                   .has_epilogue = has_epilogue});
          }
        }
      }
    }
  });
}

TEST(VectorMatrixTest, AddsUpTheSumsOfParts) {
  processor::ForEachTarget([](const char* target) {
    SCOPED_TRACE(target);
    for (const int64_t parts : {2, 3, 5}) {
      Check({.vectors = 1, .depth = 37, .columns = 45, .parts = parts});
      Check({.vectors = 3, .depth = 37, .columns = 45, .parts = parts, .has_epilogue = true});
    }
  });
}

TEST(VectorMatrixTest, TakesMemoryOfAnyAlignment) {
  processor::ForEachTarget([](const char* target) {
    SCOPED_TRACE(target);
    for (const size_t shift : {1, 2, 3}) {
      Check({.vectors = 2,
             .depth = 21,
             .columns = 37,
             .parts = 2,
             .shift = shift,
             .has_epilogue = true});
    }
  });
}

// Threads divide columns as they are; what a result is must not depend on it.
TEST(VectorMatrixTest, GivesAColumnTheSameSumWhereverItsRangeBegins) {
  constexpr int64_t kDepth = 53, kColumns = 70;
  ShiftedFloats x(kDepth, 0, 1), w(kDepth * kColumns, 0, 2);
  const VectorMatrix product = {x.data(), kDepth, w.data(), kColumns, 1};
  std::vector<float> whole(kColumns), pieces(kColumns);
  SumRows(product, 0, kDepth, 0, kColumns, whole.data(), kColumns);
  for (int64_t first = 0; first < kColumns; first += 7) {
    SumRows(product, 0, kDepth, first, first + 7, pieces.data(), kColumns);
  }
  EXPECT_EQ(whole, pieces);
}

}  // namespace
}  // namespace onnxifi::gemm
