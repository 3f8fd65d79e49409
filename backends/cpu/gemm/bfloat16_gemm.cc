// SPDX-License-Identifier: Apache-2.0
//
// Bfloat16Gemm: blocks of up to twelve rows and a panel in registers, as Gemm has them; a step
// along the depth takes a pair of each row, which all columns of the panel meet.

#include "backends/cpu/gemm/bfloat16_gemm.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <string_view>
#include <utility>

#include "backends/cpu/gemm/gemm.h"
#include "backends/cpu/processor/processor.h"

#if defined(__x86_64__)
#include <immintrin.h>
// Highway 1.0 has no target with this instruction.
#define ONNXIFI_BFLOAT16_TARGET \
  __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")))
#endif

namespace onnxifi::gemm {
namespace {

std::atomic<bool> is_allowed_here = true;

}  // namespace

void AllowBfloat16Gemm(bool is_allowed) { is_allowed_here = is_allowed; }

#if defined(__x86_64__)

namespace {

constexpr int64_t kWidth = 32;  // of a panel, in floats
constexpr int64_t kLanes = 16;
constexpr int64_t kMaxRows = 12;

int64_t PairsOf(int64_t depth) { return (depth + 1) / 2; }

bool AskForInstruction() { return __builtin_cpu_supports("avx512bf16") != 0; }

// The pair of a row that begins with element 2 * `pair`.
ONNXIFI_BFLOAT16_TARGET inline __m512bh Broadcast(const float* row, int64_t pair) {
  int32_t both;
  std::memcpy(&both, row + pair, sizeof(both));
  return reinterpret_cast<__m512bh>(_mm512_set1_epi32(both));
}

template <int rows>
ONNXIFI_BFLOAT16_TARGET void MultiplyBlock(const Bfloat16Product& product, int64_t first_row,
                                           int64_t panel) {
  const int64_t first = panel * kWidth;
  const int64_t count = std::min(kWidth, product.columns - first);
  const uint32_t mask = count == kWidth ? ~0U : (1U << count) - 1;
  const auto low = static_cast<__mmask16>(mask);
  const auto high = static_cast<__mmask16>(mask >> kLanes);
  const float* const a = product.a + first_row * product.a_stride;
  const float* const b = product.b + panel * product.depth * kWidth;
  float* const c = product.c + first_row * product.c_stride + first;
  __m512 sums[rows][2];
#pragma GCC unroll 12
  for (int m = 0; m < rows; ++m) {
    const float* const of_row = c + m * product.c_stride;
    sums[m][0] = product.adds ? _mm512_maskz_loadu_ps(low, of_row) : _mm512_setzero_ps();
    sums[m][1] = product.adds ? _mm512_maskz_loadu_ps(high, of_row + kLanes) : _mm512_setzero_ps();
  }
  const int64_t pairs = PairsOf(product.depth);
  for (int64_t k = 0; k < pairs; ++k) {
    const auto b0 = reinterpret_cast<__m512bh>(_mm512_loadu_si512(b + k * kWidth));
    const auto b1 = reinterpret_cast<__m512bh>(_mm512_loadu_si512(b + k * kWidth + kLanes));
#pragma GCC unroll 12
    for (int m = 0; m < rows; ++m) {
      const __m512bh of_row = Broadcast(a + m * product.a_stride, k);
      sums[m][0] = _mm512_dpbf16_ps(sums[m][0], of_row, b0);
      sums[m][1] = _mm512_dpbf16_ps(sums[m][1], of_row, b1);
    }
  }
#pragma GCC unroll 12
  for (int m = 0; m < rows; ++m) {
    float* const of_row = c + m * product.c_stride;
    _mm512_mask_storeu_ps(of_row, low, sums[m][0]);
    _mm512_mask_storeu_ps(of_row + kLanes, high, sums[m][1]);
  }
}

using BlockFunction = void (*)(const Bfloat16Product&, int64_t, int64_t);

// By the number of rows less one.
template <int... rows>
constexpr std::array<BlockFunction, sizeof...(rows)> Blocks(
    std::integer_sequence<int, rows...> /*all*/) {
  return {MultiplyBlock<rows + 1>...};
}

}  // namespace

bool HasBfloat16Gemm() {
  static const bool has_it = AskForInstruction();
  return has_it && is_allowed_here && std::string_view(processor::VectorName()) == "AVX3" &&
         PanelColumns() == kWidth;
}

ONNXIFI_BFLOAT16_TARGET void PairPanelRows(float* panels, int64_t depth, int64_t columns) {
  const int64_t count = (columns + kWidth - 1) / kWidth;
  for (int64_t panel = 0; panel < count; ++panel) {
    float* const first = panels + panel * depth * kWidth;
    for (int64_t k = 0; k < depth; k += 2) {
      std::array<uint32_t, kWidth> even, odd = {};
      std::memcpy(even.data(), first + k * kWidth, sizeof(even));
      if (k + 1 < depth) std::memcpy(odd.data(), first + (k + 1) * kWidth, sizeof(odd));
      for (size_t n = 0; n < kWidth; ++n) even[n] = even[n] >> 16 | (odd[n] & 0xFFFF0000U);
      std::memcpy(first + k / 2 * kWidth, even.data(), sizeof(even));
    }
  }
}

ONNXIFI_BFLOAT16_TARGET void RoundRows(float* rows, int64_t stride, int64_t count,
                                       int64_t row_count) {
  for (int64_t m = 0; m < row_count; ++m) {
    float* const row = rows + m * stride;
    auto* const narrow = reinterpret_cast<std::byte*>(row);
    for (int64_t n = 0; n < count; n += kLanes) {
      const int64_t left = std::min(kLanes, count - n);
      const auto some = static_cast<__mmask16>((1U << left) - 1);
      // An odd number of them is filled up to a pair, which lies where floats were read already.
      const auto stored = static_cast<__mmask16>((1U << (left + left % 2)) - 1);
      const __m256bh rounded = _mm512_cvtneps_pbh(_mm512_maskz_loadu_ps(some, row + n));
      _mm256_mask_storeu_epi16(narrow + n * 2, stored, reinterpret_cast<__m256i>(rounded));
    }
  }
}

void MultiplyBfloat16(const Bfloat16Product& product) {
  static constexpr auto kBlocks = Blocks(std::make_integer_sequence<int, kMaxRows>());
  // Blocks of about as many rows each.
  const int64_t blocks = (product.rows + kMaxRows - 1) / kMaxRows;
  const int64_t panels = (product.columns + kWidth - 1) / kWidth;
  for (int64_t panel = 0; panel < panels; ++panel) {
    for (int64_t block = 0; block < blocks; ++block) {
      const int64_t first = product.rows * block / blocks;
      const int64_t rows = product.rows * (block + 1) / blocks - first;
      kBlocks[static_cast<size_t>(rows - 1)](product, first, panel);
    }
  }
}

#else

bool HasBfloat16Gemm() { return false; }
void PairPanelRows(float*, int64_t, int64_t) {}
void RoundRows(float*, int64_t, int64_t, int64_t) {}
void MultiplyBfloat16(const Bfloat16Product&) {}

#endif

}  // namespace onnxifi::gemm
