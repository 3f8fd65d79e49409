// SPDX-License-Identifier: Apache-2.0
//
// Products of bytes against sums in 64-bit integers, on every instruction set of the processor,
// with and without instructions for bytes and tiles.

#include "backends/cpu/integer/byte_gemm.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "backends/cpu/integer/byte_packing.h"
#include "backends/cpu/integer/testing/imitated_tiles.h"

namespace onnxifi::integer {
namespace {

constexpr int32_t kUntouched = -777;

// kNarrow and kSome: of B at most 64, some of kSome's any; of A often 255.
enum class Values { kAny, kMax, kMin, kNarrow, kSome };

struct Case {
  int64_t rows, depth, columns;
  bool has_row_sums = false;
  bool is_transposed = false;  // B in memory
  uint8_t flip = 0;            // of B
  Values values = Values::kAny;
};

void Check(const Case& test) {
  std::mt19937 random(static_cast<uint32_t>(test.rows * 31 + test.depth * 7 + test.columns));
  const auto byte = [&](uint8_t smallest, uint8_t largest) {
    if (test.values == Values::kMax) return largest;
    if (test.values == Values::kMin) return smallest;
    return static_cast<uint8_t>(random());
  };
  const int64_t row_bytes = Quads(test.depth) * kQuad;
  const int64_t a_stride = row_bytes + 3;
  std::vector<uint8_t> a(static_cast<size_t>(test.rows * a_stride), 0xAB);
  for (int64_t r = 0; r < test.rows; ++r) {
    for (int64_t k = 0; k < test.depth; ++k) {
      const bool is_largest = test.values >= Values::kNarrow && random() % 2 == 0;
      a[static_cast<size_t>(r * a_stride + k)] = is_largest ? 255 : byte(0, 255);
    }
  }
  std::vector<uint8_t> b(static_cast<size_t>(test.depth * test.columns));
  for (uint8_t& element : b) {
    element = byte(0x80, 0x7F);
    const bool is_any =
        test.values < Values::kNarrow || (test.values == Values::kSome && random() % 100 == 0);
    if (!is_any) element = static_cast<uint8_t>((element % 129 - 64) ^ test.flip);
  }
  std::vector<int64_t> depth_offsets;
  for (int64_t k = 0; k < test.depth; ++k) {
    depth_offsets.push_back(test.is_transposed ? k : k * test.columns);
  }
  const ByteMatrix matrix = {
      b.data(), test.depth, test.columns, depth_offsets.data(), test.is_transposed ? test.depth : 1,
      test.flip};
  std::vector<int8_t> packed(static_cast<size_t>(PackedBytes(test.depth, test.columns)), 99);
  const int64_t padded = PaddedColumns(test.columns);
  std::vector<int32_t> column_sums(static_cast<size_t>(padded), kUntouched);
  PackPanels(matrix, 0, padded / PanelColumns(), packed.data(), column_sums.data());
  std::vector<int32_t> row_terms, row_sums, column_terms;
  for (int64_t r = 0; r < test.rows; ++r) {
    row_terms.push_back(static_cast<int32_t>(random() % 511) - 255);
    row_sums.push_back(static_cast<int32_t>(random()));
  }
  for (int64_t c = 0; c < padded; ++c) column_terms.push_back(static_cast<int32_t>(random() % 300));
  const int64_t c_stride = test.columns + 2;
  std::vector<int32_t> c(static_cast<size_t>(test.rows * c_stride), kUntouched);
  Multiply({a.data(), a_stride, packed.data(), c.data(), c_stride, test.rows, test.depth,
            test.columns, row_terms.data(), column_sums.data(),
            test.has_row_sums ? row_sums.data() : nullptr,
            test.has_row_sums ? column_terms.data() : nullptr});
  for (int64_t r = 0; r < test.rows; ++r) {
    for (int64_t column = 0; column < test.columns; ++column) {
      int64_t sum = 0, column_sum = 0;
      for (int64_t k = 0; k < test.depth; ++k) {
        const auto at = static_cast<size_t>(test.is_transposed ? column * test.depth + k
                                                               : k * test.columns + column);
        const auto factor = static_cast<int8_t>(b[at] ^ test.flip);
        sum += static_cast<int64_t>(a[static_cast<size_t>(r * a_stride + k)]) * factor;
        column_sum += factor;
      }
      ASSERT_EQ(column_sums[static_cast<size_t>(column)], column_sum) << column;
      sum += column_sum * row_terms[static_cast<size_t>(r)];
      if (test.has_row_sums) {
        sum += static_cast<int64_t>(row_sums[static_cast<size_t>(r)]) *
               column_terms[static_cast<size_t>(column)];
      }
      ASSERT_EQ(c[static_cast<size_t>(r * c_stride + column)],
                static_cast<int32_t>(static_cast<uint64_t>(sum)))
          << r << ", " << column;
    }
    for (int64_t gap = test.columns; gap < c_stride; ++gap) {
      ASSERT_EQ(c[static_cast<size_t>(r * c_stride + gap)], kUntouched) << "behind row " << r;
    }
  }
}

TEST(ByteGemmTest, MultipliesMatricesOfAnyExtents) {
  ForEachMultiplier([](const std::string& name) {
    SCOPED_TRACE(name);
    for (const int64_t rows : {1, 2, 3, 5, 7, 8, 13, 14, 15, 16, 17, 29, 32, 45, 75}) {
      for (const int64_t depth : {1, 3, 4, 5, 16, 64, 67, 129}) {
        for (const int64_t columns : {1, 7, 15, 16, 17, 31, 32, 33, 70}) {
          Check({rows, depth, columns, /*has_row_sums=*/(rows + depth + columns) % 2 == 0});
        }
      }
    }
  });
}

TEST(ByteGemmTest, TakesAMatrixInBothOrdersAndOfBothKinds) {
  ForEachMultiplier([](const std::string& name) {
    SCOPED_TRACE(name);
    for (const bool is_transposed : {false, true}) {
      for (const uint8_t flip : {0x00, 0x80}) {
        Check({9, 61, 83, true, is_transposed, flip});
        Check({9, 64, 48, false, is_transposed, flip});
      }
    }
  });
}

// Depths around a power of two, and a long one.
TEST(ByteGemmTest, MultipliesLongRows) {
  ForEachMultiplier([](const std::string& name) {
    SCOPED_TRACE(name);
    for (const int64_t rows : {1, 4, 7}) {
      for (const int64_t depth : {511, 512, 513, 530, 2051}) Check({rows, depth, 35});
    }
  });
}

TEST(ByteGemmTest, SplitsWhatIsTooLargeOff) {
  ForEachMultiplier([](const std::string& name) {
    SCOPED_TRACE(name);
    for (const Values values : {Values::kNarrow, Values::kSome}) {
      for (const int64_t rows : {1, 4, 5, 6, 11, 23}) {
        for (const int64_t depth : {1, 2, 7, 64, 147, 1030}) {
          for (const int64_t columns : {1, 8, 16, 33, 70}) {
            Check({rows, depth, columns, depth % 2 == 0, columns == 33,
                   static_cast<uint8_t>(rows % 2 == 0 ? 0x80 : 0), values});
          }
        }
      }
    }
  });
}

// 255 * -128 and 255 * 127, which instructions with 16-bit sums saturate.
TEST(ByteGemmTest, SaturatesNothing) {
  ForEachMultiplier([](const std::string& name) {
    SCOPED_TRACE(name);
    for (const Values values : {Values::kMax, Values::kMin}) {
      for (const int64_t depth : {2, 4, 1024, 70'000}) {
        Check({3, depth, 35, false, false, 0, values});
        Check({17, depth, 35, false, false, 0, values});
      }
    }
  });
}

// Rows of pieces in runs, and their sums, against rows of one piece.
TEST(ByteGemmTest, TakesPiecesOfRowsInRuns) {
  ForEachMultiplier([](const std::string& name) {
    SCOPED_TRACE(name);
    std::mt19937 random(11);
    for (const int64_t length : {1, 3, 4, 21, 66, 130, 1037}) {
      for (const int64_t run : {1, 6, 14, 31, 40}) {
        SCOPED_TRACE("pieces of " + std::to_string(length) + ", runs of " + std::to_string(run));
        constexpr int64_t kPieces = 3, kColumns = 37, kRows = 33;
        constexpr int64_t kStride = 5;  // pieces of neighbouring rows overlap
        const int64_t place = run / 2;
        const int64_t run_stride = run * kStride + 200;
        const int64_t offsets[kPieces] = {150, 0, 67};
        const int64_t depth = kPieces * length;
        const int64_t runs = (place + kRows) / run + 1;
        std::vector<uint8_t> a(static_cast<size_t>(runs * run_stride + 150 + length + kQuad));
        for (uint8_t& byte : a) byte = static_cast<uint8_t>(random());
        std::vector<uint8_t> b(static_cast<size_t>(depth * kColumns));
        for (uint8_t& byte : b) byte = static_cast<uint8_t>(random());
        std::vector<int64_t> depth_offsets;
        for (int64_t k = 0; k < depth; ++k) depth_offsets.push_back(k * kColumns);
        const ByteMatrix matrix = {b.data(), depth, kColumns, depth_offsets.data(), 1, 0, kPieces};
        std::vector<int8_t> packed(static_cast<size_t>(PackedBytes(depth, kColumns, kPieces)));
        const int64_t padded = PaddedColumns(kColumns);
        std::vector<int32_t> column_sums(static_cast<size_t>(padded));
        PackPanels(matrix, 0, padded / PanelColumns(), packed.data(), column_sums.data());
        const std::vector<int32_t> row_terms(kRows, -3);
        std::vector<int32_t> c(static_cast<size_t>(kRows * kColumns));
        ByteProduct product = {a.data() + place * kStride,
                               kStride,
                               packed.data(),
                               c.data(),
                               kColumns,
                               kRows,
                               depth,
                               kColumns,
                               row_terms.data(),
                               column_sums.data(),
                               nullptr,
                               nullptr};
        product.piece_offsets = offsets;
        product.pieces = kPieces;
        product.run = run;
        product.place = place;
        product.run_stride = run_stride;
        Multiply(product);
        std::vector<int32_t> row_sums(kRows);
        SumRows(product, row_sums.data());
        for (int64_t r = 0; r < kRows; ++r) {
          const int64_t row = (place + r) / run * run_stride + (place + r) % run * kStride;
          std::vector<int64_t> expected(kColumns);
          int32_t row_sum = 0;
          for (int64_t k = 0; k < depth; ++k) {
            const int64_t factor = a[static_cast<size_t>(row + offsets[k / length] + k % length)];
            row_sum += static_cast<int32_t>(factor);
            for (int64_t column = 0; column < kColumns; ++column) {
              const auto other = static_cast<int8_t>(b[static_cast<size_t>(k * kColumns + column)]);
              expected[static_cast<size_t>(column)] += (factor - 3) * other;
            }
          }
          ASSERT_EQ(row_sums[static_cast<size_t>(r)], row_sum) << "row " << r;
          for (int64_t column = 0; column < kColumns; ++column) {
            ASSERT_EQ(c[static_cast<size_t>(r * kColumns + column)],
                      expected[static_cast<size_t>(column)])
                << "row " << r << ", column " << column;
          }
        }
      }
    }
  });
}

TEST(ByteGemmTest, CopiesBytes) {
  ForEachMultiplier([](const std::string& name) {
    SCOPED_TRACE(name);
    std::mt19937 random(3);
    for (const int64_t count : {0, 1, 15, 16, 63, 64, 65, 1000}) {
      std::vector<uint8_t> bytes(static_cast<size_t>(count) + 1);
      for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random());
      std::vector<uint8_t> copy(bytes.size(), 0x11);
      CopyBytes(bytes.data(), count, 0x80, copy.data());
      for (size_t k = 0; k < static_cast<size_t>(count); ++k) {
        ASSERT_EQ(copy[k], bytes[k] ^ 0x80);
      }
      EXPECT_EQ(copy.back(), 0x11);
    }
  });
}

}  // namespace
}  // namespace onnxifi::integer
