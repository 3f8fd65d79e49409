// SPDX-License-Identifier: Apache-2.0
//
// Products against sums in float64, on every instruction set of the processor.

#include "backends/cpu/gemm/gemm.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "backends/cpu/processor/processor.h"
#include "backends/cpu/processor/testing/each_target.h"

namespace onnxifi::gemm {
namespace {

constexpr float kUntouched = -777.0F;

std::vector<float> RandomFloats(int64_t count, uint32_t seed) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<float> uniform(-1.0F, 1.0F);
  std::vector<float> values(static_cast<size_t>(count));
  for (float& value : values) value = uniform(generator);
  return values;
}

float Activate(float x, const Epilogue& epilogue) {
  switch (epilogue.activation) {
    case Activation::kNone:
      return x;
    case Activation::kClip:
      return std::min(std::max(x, epilogue.low), epilogue.high);
    case Activation::kLeaky:
      return x < 0 ? epilogue.low * x : x;
    case Activation::kHardSwish:
      return x * std::max(0.0F, std::min(1.0F, epilogue.low * x + epilogue.high));
    case Activation::kLogistic:
      return 1 / (1 + std::exp(-x));
    case Activation::kSwish:
      return x / (1 + std::exp(-epilogue.low * x));
    case Activation::kGelu:
      return x / 2 * (1 + std::erf(x * std::sqrt(0.5F)));
    case Activation::kTanh:
      return std::tanh(x);
  }
  return x;
}

struct Case {
  int64_t rows, depth, columns;
  int64_t gap = 0;  // between rows of A, C and the addend
  bool has_bias = false, has_addend = false;
  Activation activation = Activation::kNone;
  float low = 0, high = 0;
  bool is_c_far = false;
};

// Panels of a matrix in any order of memory hold its elements, and 0 beyond its columns.
TEST(GemmTest, PacksAMatrixInAnyOrder) {
  processor::ForEachTarget([](const char* target) {
    SCOPED_TRACE(target);
    const std::vector<float> data = RandomFloats(9000, 12);
    for (const int64_t depth : {1, 4, 19, 64}) {
      for (const int64_t columns : {1, 5, 32, 45, 67}) {
        // Row by row, column by column, and with gaps either way.
        const Matrix matrices[] = {{data.data(), columns, 1},
                                   {data.data() + 1, 1, depth},
                                   {data.data() + 2, 1, depth + 3},
                                   {data.data() + 3, 2 * columns, 2}};
        const int64_t panels = (columns + PanelColumns() - 1) / PanelColumns();
        for (const Matrix& matrix : matrices) {
          std::vector<float> packed(static_cast<size_t>(PackedSize(depth, columns)), kUntouched);
          PackPanels(matrix, depth, columns, 0, panels, packed.data());
          for (int64_t column = 0; column < panels * PanelColumns(); ++column) {
            for (int64_t k = 0; k < depth; ++k) {
              const float expected =
                  column < columns
                      ? matrix.data[k * matrix.row_stride + column * matrix.column_stride]
                      : 0.0F;
              const int64_t at = column / PanelColumns() * depth * PanelColumns() +
                                 k * PanelColumns() + column % PanelColumns();
              ASSERT_EQ(packed[static_cast<size_t>(at)], expected)
                  << depth << " x " << columns << ", " << k << ", " << column;
            }
          }
        }
      }
    }
  });
}

void Check(const Case& test) {
  const int64_t a_stride = test.depth + test.gap, c_stride = test.columns + 2 * test.gap;
  const int64_t addend_stride = test.columns + 3 * test.gap;
  const std::vector<float> a = RandomFloats(test.rows * a_stride, 1);
  // B column by column: its transpose lies in memory.
  const std::vector<float> b = RandomFloats(test.depth * test.columns, 2);
  const std::vector<float> bias = RandomFloats(test.columns, 3);
  const std::vector<float> addend = RandomFloats(test.rows * addend_stride, 4);
  std::vector<float> c(static_cast<size_t>(test.rows * c_stride), kUntouched);
  const int64_t panels = (test.columns + PanelColumns() - 1) / PanelColumns();
  std::vector<float> packed(static_cast<size_t>(PackedSize(test.depth, test.columns)), kUntouched);
  PackPanels({b.data(), 1, test.depth}, test.depth, test.columns, 0, panels, packed.data());
  Epilogue epilogue;
  if (test.has_bias) epilogue.bias = bias.data();
  if (test.has_addend) epilogue.addend = addend.data();
  epilogue.addend_stride = addend_stride;
  epilogue.activation = test.activation;
  epilogue.low = test.low;
  epilogue.high = test.high;
  const Product product = {a.data(),  a_stride,   packed.data(), c.data(), c_stride,
                           test.rows, test.depth, test.columns,  {},       test.is_c_far};
  // In two parts, as two threads would.
  Multiply(product, epilogue, 0, panels / 2);
  Multiply(product, epilogue, panels / 2, panels);
  for (int64_t row = 0; row < test.rows; ++row) {
    for (int64_t column = 0; column < c_stride; ++column) {
      const float found = c[static_cast<size_t>(row * c_stride + column)];
      if (column >= test.columns) {
        ASSERT_EQ(found, kUntouched) << "row " << row << ", gap " << column;
        continue;
      }
      double sum = test.has_bias ? bias[static_cast<size_t>(column)] : 0.0;
      for (int64_t k = 0; k < test.depth; ++k) {
        sum += static_cast<double>(a[static_cast<size_t>(row * a_stride + k)]) *
               static_cast<double>(b[static_cast<size_t>(column * test.depth + k)]);
      }
      if (test.has_addend) sum += addend[static_cast<size_t>(row * addend_stride + column)];
      const float expected = Activate(static_cast<float>(sum), epilogue);
      const double bound = 0x1p-23 * static_cast<double>(test.depth + 3);
      ASSERT_NEAR(found, expected, bound) << "row " << row << ", column " << column;
    }
  }
}

TEST(GemmTest, SumsEveryNumberOfRowsAndColumns) {
  processor::ForEachTarget([](const char* target) {
    SCOPED_TRACE(target);
    // Of the last vector less than half, half and more.
    for (const int64_t columns : {5, 8, 24, 28, 37}) {
      for (int64_t rows = 1; rows <= 30; ++rows) Check({rows, 5, columns});
    }
    for (int64_t columns = 1; columns <= 70; ++columns) Check({9, 4, columns, /*gap=*/3});
    for (const int64_t depth : {1, 2, 3, 64, 300}) Check({17, depth, 33});
  });
}

// B and C that are prefetched: more than what counts as near, and C because it is said so.
TEST(GemmTest, PrefetchesTheNextPanel) {
  processor::ForEachTarget([](const char* target) {
    SCOPED_TRACE(target);
    // One, two and three vectors of columns, the last ones incomplete.
    for (const int64_t columns : {61, 70, 80, 93}) {
      Case test{33, processor::L2Floats() / 16 / columns + 1, columns, /*gap=*/1};
      test.has_bias = test.has_addend = test.is_c_far = true;
      Check(test);
    }
  });
}

// More rows than pass through the panels at a time.
TEST(GemmTest, SumsInChunksOfRows) {
  processor::ForEachTarget([](const char* target) {
    SCOPED_TRACE(target);
    Check({203, 700, 40, /*gap=*/1, /*has_bias=*/true, /*has_addend=*/true});
  });
}

// Such rows share a set of the L1 cache, and are multiplied from copies.
TEST(GemmTest, MultipliesRowsThatArePagesFromEachOther) {
  processor::ForEachTarget([](const char* target) {
    SCOPED_TRACE(target);
    for (const int64_t rows : {9, 14, 30, 100}) {
      for (const int64_t columns : {48, 64, 131}) {
        Check({rows, 1000, columns, /*gap=*/24, /*has_bias=*/true, /*has_addend=*/true});
        Check({rows, 1024, columns});
        Check({rows, 2048, columns});
      }
    }
    // More than is copied at a time, and than is copied.
    Check({20, 16 * 1024, 64});
    Check({10, 256 * 1024, 64});
  });
}

TEST(GemmTest, AddsAndActivatesBeforeItStores) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  processor::ForEachTarget([](const char* target) {
    SCOPED_TRACE(target);
    for (const bool has_bias : {false, true}) {
      for (const bool has_addend : {false, true}) {
        Check({15, 6, 39, 2, has_bias, has_addend});
        Check({15, 6, 39, 2, has_bias, has_addend, Activation::kClip, 0, kInfinity});
        Check({15, 6, 39, 2, has_bias, has_addend, Activation::kClip, -0.25F, 0.5F});
        Check({15, 6, 39, 2, has_bias, has_addend, Activation::kLeaky, 0.125F});
        Check({15, 6, 39, 2, has_bias, has_addend, Activation::kHardSwish, 0.25F, 0.5F});
        Check({15, 6, 39, 2, has_bias, has_addend, Activation::kLogistic});
        Check({15, 6, 39, 2, has_bias, has_addend, Activation::kSwish, 1.5F});
        Check({15, 6, 39, 2, has_bias, has_addend, Activation::kGelu});
        Check({13, 7, 21, 1, has_bias, has_addend, Activation::kTanh});
      }
    }
  });
}

TEST(GemmTest, KeepsNaNsThatItDoesNotClip) {
  processor::ForEachTarget([](const char* target) {
    SCOPED_TRACE(target);
    const float a[] = {std::numeric_limits<float>::quiet_NaN()};
    const float b[] = {1};
    std::vector<float> packed(static_cast<size_t>(PackedSize(1, 1)));
    PackPanels({b, 1, 1}, 1, 1, 0, 1, packed.data());
    for (const Activation activation : {Activation::kNone, Activation::kLeaky}) {
      float c[] = {0};
      Epilogue epilogue;
      epilogue.activation = activation;
      Multiply({a, 1, packed.data(), c, 1, 1, 1, 1, {}}, epilogue, 0, 1);
      EXPECT_TRUE(std::isnan(c[0]));
    }
  });
}

// Rows in three pieces, the last before the first.
TEST(GemmTest, ReadsRowsInPieces) {
  processor::ForEachTarget([](const char* target) {
    SCOPED_TRACE(target);
    const int64_t rows = 16, depth = 7, columns = 35, a_stride = 11;
    const std::vector<float> a = RandomFloats(rows * a_stride + 40, 8);
    const std::vector<float> b = RandomFloats(3 * depth * columns, 9);
    const int64_t pieces[] = {20, 33, 0};
    std::vector<float> packed(static_cast<size_t>(PackedSize(3 * depth, columns)));
    const int64_t panels = (columns + PanelColumns() - 1) / PanelColumns();
    for (int64_t piece = 0; piece < 3; ++piece) {
      PackRows({b.data() + piece * depth * columns, columns, 1}, depth, columns, piece * depth,
               3 * depth, 0, panels, packed.data());
    }
    std::vector<float> c(static_cast<size_t>(rows * columns));
    Multiply({a.data(), a_stride, packed.data(), c.data(), columns, rows, depth, columns, pieces},
             {}, 0, panels);
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t column = 0; column < columns; ++column) {
        double sum = 0;
        for (int64_t k = 0; k < 3 * depth; ++k) {
          sum += static_cast<double>(
                     a[static_cast<size_t>(row * a_stride + pieces[k / depth] + k % depth)]) *
                 static_cast<double>(b[static_cast<size_t>(k * columns + column)]);
        }
        ASSERT_NEAR(c[static_cast<size_t>(row * columns + column)], sum, 1e-5);
      }
    }
  });
}

// The same bits however rows and panels are divided.
TEST(GemmTest, RoundsTheSameInEveryDivision) {
  const int64_t rows = 41, depth = 50, columns = 70;
  const std::vector<float> a = RandomFloats(rows * depth, 5), b = RandomFloats(depth * columns, 6);
  std::vector<float> packed(static_cast<size_t>(PackedSize(depth, columns)));
  const int64_t panels = (columns + PanelColumns() - 1) / PanelColumns();
  PackPanels({b.data(), columns, 1}, depth, columns, 0, panels, packed.data());
  std::vector<float> whole(static_cast<size_t>(rows * columns)), parts = whole;
  Multiply({a.data(), depth, packed.data(), whole.data(), columns, rows, depth, columns, {}}, {}, 0,
           panels);
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t panel = panels; panel-- > 0;) {
      Multiply({a.data() + row * depth,
                depth,
                packed.data(),
                parts.data() + row * columns,
                columns,
                1,
                depth,
                columns,
                {}},
               {}, panel, panel + 1);
    }
  }
  EXPECT_EQ(whole, parts);
}

}  // namespace
}  // namespace onnxifi::gemm
