// SPDX-License-Identifier: Apache-2.0
//
// DoubleGemm against sums in long double, on every processor's code: heights around a block, every
// number of columns, strides either way, memory at any address.

#include "backends/cpu/gemm/double_gemm.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstring>
#include <random>
#include <vector>

#include "backends/cpu/processor/testing/each_target.h"

namespace onnxifi::gemm {
namespace {

// Doubles that lie a few bytes beside their own alignment.
class Shifted {
 public:
  explicit Shifted(size_t count) : bytes_(count * sizeof(double) + kShift) {}
  double* data() { return reinterpret_cast<double*>(bytes_.data() + kShift); }
  double At(int64_t k) const {
    double number;
    std::memcpy(&number, bytes_.data() + kShift + static_cast<size_t>(k) * sizeof(double),
                sizeof(number));
    return number;
  }
  void Set(int64_t k, double number) {
    std::memcpy(bytes_.data() + kShift + static_cast<size_t>(k) * sizeof(double), &number,
                sizeof(number));
  }

 private:
  static constexpr size_t kShift = 4;
  std::vector<std::byte> bytes_;
};

struct Case {
  int64_t rows, depth, columns;
  bool is_a_transposed, is_b_transposed, is_c_transposed;
};

void Check(const Case& test) {
  const auto& [rows, depth, columns, is_a_transposed, is_b_transposed, is_c_transposed] = test;
  std::mt19937_64 random(static_cast<uint64_t>(rows * 1000 + depth * 10 + columns));
  std::uniform_real_distribution<double> uniform(-1, 1);
  const auto draw = [&](int64_t count) {
    Shifted numbers(static_cast<size_t>(count + 1));
    for (int64_t k = 0; k < count; ++k) numbers.Set(k, uniform(random));
    return numbers;
  };
  constexpr int64_t kGap = 3;  // between rows of C
  Shifted a = draw(rows * depth);
  Shifted b = draw(depth * columns);
  Shifted c = draw((rows + kGap) * (columns + kGap));
  const Shifted before = c;
  const int64_t a_row = is_a_transposed ? 1 : depth, a_column = is_a_transposed ? rows : 1;
  const int64_t b_row = is_b_transposed ? 1 : columns, b_column = is_b_transposed ? depth : 1;
  const int64_t c_row = is_c_transposed ? 1 : columns + kGap;
  const int64_t c_column = is_c_transposed ? rows + kGap : 1;
  std::vector<double> packed(static_cast<size_t>(depth * DoubleColumns()), 7);
  PackDoubles({b.data(), b_row, b_column}, depth, columns, packed.data());
  for (const bool is_added : {false, true}) {
    MultiplyDoubles({{a.data(), a_row, a_column},
                     packed.data(),
                     c.data(),
                     c_row,
                     c_column,
                     rows,
                     depth,
                     columns,
                     is_added});
    std::vector<bool> is_result(static_cast<size_t>((rows + kGap) * (columns + kGap)), false);
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t n = 0; n < columns; ++n) {
        long double sum = 0;
        for (int64_t k = 0; k < depth; ++k) {
          sum += static_cast<long double>(a.At(r * a_row + k * a_column)) *
                 static_cast<long double>(b.At(k * b_row + n * b_column));
        }
        if (is_added) sum *= 2;
        const int64_t at = r * c_row + n * c_column;
        is_result[static_cast<size_t>(at)] = true;
        ASSERT_NEAR(c.At(at), static_cast<double>(sum), 1e-15 * static_cast<double>(depth + 1))
            << r << ", " << n;
      }
    }
    for (size_t k = 0; k < is_result.size(); ++k) {
      const auto at = static_cast<int64_t>(k);
      if (is_result[k]) continue;
      ASSERT_EQ(c.At(at), before.At(at));
    }
  }
}

TEST(DoubleGemmTest, AgreesWithLongSums) {
  processor::ForEachTarget([](const char* target) {
    SCOPED_TRACE(target);
    ASSERT_LE(DoubleColumns(), kMaxDoubleColumns);
    for (int64_t rows : {1, 2, 5, 6, 7, 11, 12, 13, 20}) {
      for (int64_t columns = 1; columns <= DoubleColumns(); ++columns) {
        for (int64_t depth : {0, 1, 3, 40}) {
          const bool odd = (rows + columns + depth) % 2 == 1;
          Check({rows, depth, columns, odd, columns % 2 == 1, rows % 2 == 1});
          Check({rows, depth, columns, !odd, rows % 2 == 1, false});
        }
      }
    }
  });
}

}  // namespace
}  // namespace onnxifi::gemm
