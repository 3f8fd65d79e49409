// SPDX-License-Identifier: Apache-2.0
//
// Rows rounded to bytes, against the rows; and their products with numbers of 4 and 8 bits, against
// float64.

#include "backends/cpu/gemm/byte_blocks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "backends/cpu/gemm/testing/quantized_product_case.h"
#include "backends/cpu/gemm/testing/random_quantized_matrix.h"
#include "backends/cpu/processor/processor.h"
#include "backends/cpu/processor/testing/each_target.h"

namespace onnxifi::gemm {
namespace {

// Memory of 64 bytes' alignment, filled with ones.
class Aligned {
 public:
  explicit Aligned(int64_t size_bytes) : memory_(static_cast<size_t>(size_bytes) + 64) {
    std::memset(memory_.data(), 0xFF, memory_.size());
  }
  std::byte* data() {
    return memory_.data() + (64 - reinterpret_cast<uintptr_t>(memory_.data()) % 64) % 64;
  }

 private:
  std::vector<std::byte> memory_;
};

// Element k of a rounded row.
double RoundedAt(const QuantizedLayout& layout, const std::byte* row, int64_t k) {
  const ByteRowLayout places(layout);
  // Of eight, those at even places come first.
  const int64_t at = layout.bits == 8 ? k : k / 8 * 8 + k % 8 / 2 + (k % 2 == 0 ? 0 : 4);
  float scale;
  std::memcpy(&scale, row + places.scales_at() + k / layout.block * 4, sizeof(scale));
  return static_cast<double>(static_cast<int8_t>(row[at])) * static_cast<double>(scale);
}

template <class Body>
void ForEachProcessor(const Body& body) {
  int count = 0;
  processor::ForEachTarget([&](const char* target) {
    if (!HasByteBlocks()) return;
    SCOPED_TRACE(target);
    ++count;
    body();
  });
  if (count == 0) GTEST_SKIP() << "The processor multiplies no bytes.";
}

void Check(QuantizedProductCase tried) {
  SCOPED_TRACE(tried.Name());
  const QuantizedLayout& layout = tried.layout;
  const int64_t row_bytes = ByteRowLayout(layout).size_bytes();
  Aligned rounded(tried.rows * row_bytes), panel(BytePanelBytes(layout));
  for (int64_t m = 0; m < tried.rows; ++m) {
    std::byte* const row = rounded.data() + m * row_bytes;
    RoundRow(layout, tried.x.data() + m * layout.depth, row);
    for (int64_t k = 0; k < layout.depth; ++k) {
      double largest = 0;
      const int64_t first = k / layout.block * layout.block;
      for (int64_t j = first; j < std::min(first + layout.block, layout.depth); ++j) {
        largest =
            std::max(largest, std::abs(static_cast<double>(tried.x.At(m * layout.depth + j))));
      }
      ASSERT_NEAR(RoundedAt(layout, row, k), tried.x.At(m * layout.depth + k), largest / 253.9)
          << m << ", " << k;
    }
  }
  for (int64_t n = 0; n < layout.columns; n += kQuantizedColumns) {
    const bool has_panel = NeedsBytePanel(tried.rows);
    if (has_panel) FillBytePanel(tried.matrix.view(), n, panel.data());
    MultiplyByteBlocks({tried.matrix.view(), rounded.data(), tried.rows,
                        has_panel ? panel.data() : nullptr, n, tried.y.data(), tried.y_stride},
                       tried.epilogue);
  }
  tried.Expect(
      [&](int64_t m, int64_t k) { return RoundedAt(layout, rounded.data() + m * row_bytes, k); });
}

TEST(ByteBlocksTest, SumsEveryBlockDepthAndNumberOfRows) {
  ForEachProcessor([] {
    for (const int bits : {4, 8}) {
      for (const int64_t block : {16, 32, 64, 128}) {
        for (const bool has_zeros : {false, true}) {
          for (const int64_t depth : {1, 31, 128, 300, 1030}) {
            for (const int64_t rows : {1, 2, 3, 5, 6, 7, 11, 12, 14}) {
              const int64_t columns = depth == 300 ? 70 : rows % 2 == 0 ? 7 : 33;
              Check({MakeLayout(depth, columns, block, bits, has_zeros), rows,
                     /*shift=*/static_cast<size_t>(rows) % 4, /*adds=*/rows % 2 == 0});
            }
          }
        }
      }
    }
  });
}

// Elements of which a scale's inverse would be infinite; infinite ones and no numbers.
TEST(ByteBlocksTest, RoundsWhatIsTinyAndKeepsWhatIsNoNumber) {
  ForEachProcessor([] {
    const QuantizedLayout layout = MakeLayout(64, 3, 32, 4, /*has_zeros=*/false);
    const RandomQuantizedMatrix matrix(layout);
    const auto product_of = [&](float first, float second) {
      std::vector<float> x(64, 1e-42F);
      x[0] = first;
      x[40] = second;
      Aligned row(ByteRowLayout(layout).size_bytes());
      RoundRow(layout, x.data(), row.data());
      std::vector<float> y(3);
      MultiplyByteBlocks({matrix.view(), row.data(), 1, nullptr, 0, y.data(), 3}, {});
      return y;
    };
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    constexpr float kMaxFloat = std::numeric_limits<float>::max();
    for (const float y : product_of(0, 0)) EXPECT_EQ(y, 0);
    EXPECT_NEAR(product_of(0, 2)[1], 2 * matrix.At(40, 1), 1e-5);
    EXPECT_NEAR(product_of(kMaxFloat / 64, 0)[1] / kMaxFloat, matrix.At(0, 1) / 64, 1e-4);
    for (const float strange : {kInfinity, -kInfinity, std::nanf("")}) {
      for (const float y : product_of(1, strange)) EXPECT_TRUE(std::isnan(y)) << strange;
      for (const float y : product_of(strange, 1)) EXPECT_TRUE(std::isnan(y)) << strange;
    }
  });
}

}  // namespace
}  // namespace onnxifi::gemm
