// SPDX-License-Identifier: Apache-2.0
//
// RandomQuantizedMatrix: for tests: a QuantizedMatrix, and its weights in float64.

#ifndef ONNXIFI_BACKENDS_CPU_GEMM_TESTING_RANDOM_QUANTIZED_MATRIX_H_
#define ONNXIFI_BACKENDS_CPU_GEMM_TESTING_RANDOM_QUANTIZED_MATRIX_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "backends/cpu/gemm/quantized_matrix.h"

namespace onnxifi::gemm {

// A matrix of random numbers, scales and zeros; what lies between and behind them is NaN or ones.
class RandomQuantizedMatrix {
 public:
  explicit RandomQuantizedMatrix(const QuantizedLayout& layout)
      : layout_(layout), memory_(static_cast<size_t>(layout.size_bytes()) / sizeof(float) + 16) {
    auto* bytes = reinterpret_cast<std::byte*>(memory_.data());
    bytes += (64 - reinterpret_cast<uintptr_t>(bytes) % 64) % 64;
    std::memset(bytes, 0xFF, static_cast<size_t>(layout.scales_at()));
    data_ = bytes;
    std::mt19937 random(static_cast<unsigned>(layout.depth * 31 + layout.columns));
    const int64_t floats = layout.columns * layout.column_blocks();
    auto* scales = reinterpret_cast<float*>(bytes + layout.scales_at());
    auto* zeros = reinterpret_cast<float*>(bytes + layout.zeros_at());
    std::fill_n(scales, floats, 0.0F);
    if (layout.has_zeros) std::fill_n(zeros, floats, 0.0F);
    for (int64_t n = 0; n < layout.columns; ++n) {
      auto* numbers = reinterpret_cast<uint8_t*>(bytes) + n * layout.column_bytes();
      for (int64_t k = 0; k < layout.depth; ++k) {
        if (layout.bits == 8) {
          numbers[k] = static_cast<uint8_t>(random());
        } else {
          const int shift = k % 2 == 0 ? 0 : 4;
          numbers[k / 2] = static_cast<uint8_t>((numbers[k / 2] & ~(15 << shift)) |
                                                static_cast<int>(random() % 16) << shift);
        }
      }
      for (int64_t k = 0; k < layout.depth; k += layout.block) {
        const int64_t at = n * layout.column_blocks() + k / layout.block;
        scales[at] = static_cast<float>(random() % 100 + 1) / 800.0F;
        if (layout.has_zeros) zeros[at] = static_cast<float>(random() % 15) - 7.0F;
      }
    }
  }

  QuantizedMatrix view() const { return {layout_, data_}; }
  double At(int64_t k, int64_t n) const {
    const uint8_t* numbers = view().Numbers(n);
    const int number = layout_.bits == 8 ? static_cast<int8_t>(numbers[k])
                                         : (numbers[k / 2] >> (k % 2 == 0 ? 0 : 4) & 15) - 8;
    const int64_t block = k / layout_.block;
    const double zero = layout_.has_zeros ? static_cast<double>(view().Zeros(n)[block]) : 0.0;
    return (number - zero) * static_cast<double>(view().Scales(n)[block]);
  }

 private:
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
  return layout;
}

}  // namespace onnxifi::gemm

#endif  // ONNXIFI_BACKENDS_CPU_GEMM_TESTING_RANDOM_QUANTIZED_MATRIX_H_
