// SPDX-License-Identifier: Apache-2.0
//
// RandomQuantizedMatrix: for tests: a QuantizedMatrix, and its weights in float64.

#ifndef ONNXIFI_BACKENDS_CPU_GEMM_TESTING_RANDOM_QUANTIZED_MATRIX_H_
#define ONNXIFI_BACKENDS_CPU_GEMM_TESTING_RANDOM_QUANTIZED_MATRIX_H_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "backends/cpu/gemm/quantized_matrix.h"

namespace onnxifi::gemm {

// The last of layout.matrices; numbers of the others and of what fills up a column are random, too,
// with scales of columns that there are not of 0.
class RandomQuantizedMatrix {
 public:
  explicit RandomQuantizedMatrix(const QuantizedLayout& layout)
      : layout_(layout), memory_(static_cast<size_t>(layout.size_bytes()) / sizeof(float) + 16) {
    auto* const bytes = reinterpret_cast<std::byte*>(memory_.data());
    std::byte* const first = bytes + (64 - reinterpret_cast<uintptr_t>(bytes) % 64) % 64;
    std::mt19937 random(static_cast<unsigned>(layout.depth * 31 + layout.columns));
    const int64_t group_bytes = layout.group_bytes();
    for (int64_t group = 0; group < layout.matrices * layout.groups(); ++group) {
      std::byte* const at = first + group * group_bytes;
      for (int64_t k = 0; k < group_bytes; ++k) at[k] = static_cast<std::byte>(random());
      const int64_t columns = layout.columns - group % layout.groups() * kQuantizedColumns;
      auto* const floats = reinterpret_cast<float*>(at);
      for (int64_t number = 0; number < layout.blocks(); ++number) {
        float* const scales = floats + layout.ScaleLine(number) * kQuantizedColumns;
        float* const zeros = floats + layout.ZeroLine(number) * kQuantizedColumns;
        for (int64_t n = 0; n < kQuantizedColumns; ++n) {
          scales[n] = n < columns ? static_cast<float>(random() % 100 + 1) / 800.0F : 0.0F;
          if (layout.has_zeros) zeros[n] = static_cast<float>(random() % 15) - 7.0F;
        }
      }
    }
    data_ = first + (layout.matrices - 1) * layout.matrix_bytes();
  }

  QuantizedMatrix view() const { return {layout_, data_}; }
  double At(int64_t k, int64_t n) const {
    const int64_t in_word = 32 / layout_.bits, number_of_block = k / layout_.block;
    const auto word = static_cast<uint32_t>(*view().Line(n, layout_.WordLine(k)));
    const uint32_t bits = word >> (k % in_word * layout_.bits);
    const int number =
        layout_.bits == 8 ? static_cast<int8_t>(bits) : static_cast<int>(bits & 15) - 8;
    const float zero = layout_.has_zeros ? FloatAt(n, layout_.ZeroLine(number_of_block)) : 0.0F;
    return (number - static_cast<double>(zero)) *
           static_cast<double>(FloatAt(n, layout_.ScaleLine(number_of_block)));
  }

 private:
  float FloatAt(int64_t column, int64_t line) const {
    return std::bit_cast<float>(*view().Line(column, line));
  }

  const QuantizedLayout layout_;
  std::vector<float> memory_;
  const std::byte* data_ = nullptr;
};

inline QuantizedLayout MakeLayout(int64_t depth, int64_t columns, int64_t block, int bits,
                                  bool has_zeros) {
  QuantizedLayout layout;
  layout.depth = depth;
  layout.columns = columns;
  layout.block = block;
  layout.bits = bits;
  layout.has_zeros = has_zeros;
  layout.matrices = 2;
  return layout;
}

}  // namespace onnxifi::gemm

#endif  // ONNXIFI_BACKENDS_CPU_GEMM_TESTING_RANDOM_QUANTIZED_MATRIX_H_
