// SPDX-License-Identifier: Apache-2.0
//
// MatrixVector: a few rows of W at a time, each read once from beginning to end.

#include "backends/cpu/gemm/matrix_vector.h"

#include <hwy/cache_control.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/gemm/matrix_vector.cc"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include <hwy/highway.h>

#include "backends/cpu/gemm/epilogue-inl.h"
#include "backends/cpu/gemm/partial-inl.h"

HWY_BEFORE_NAMESPACE();
namespace onnxifi::gemm {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using Tag = hn::ScalableTag<float>;
using Vec = hn::Vec<Tag>;

// As many rows of W at a time as there are registers for their sums.
#if HWY_TARGET <= HWY_AVX3 || HWY_ARCH_ARM_A64
constexpr int kRegistersOfSums = 24;
#else
constexpr int kRegistersOfSums = 12;
#endif
constexpr int RowsOfW(int vectors) { return std::clamp(kRegistersOfSums / vectors, 1, 4); }
constexpr int64_t kAhead = 256;  // floats of each row, fetched before they are used

// Y of rows [n, n + rows) of W, without the epilogue.
template <int vectors, int rows>
HWY_INLINE void MultiplyRows(const MatrixVector& product, int64_t n) {
  const Tag d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  Vec sum[rows][vectors];
#pragma GCC unroll 4
  for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 8
    for (int m = 0; m < vectors; ++m) sum[r][m] = hn::Zero(d);
  }
  const float* w = product.w + n * product.w_stride;
  int64_t k = 0;
  for (; k + lanes <= product.depth; k += lanes) {
    Vec x[vectors];
#pragma GCC unroll 8
    for (int m = 0; m < vectors; ++m) x[m] = hn::LoadU(d, product.x + m * product.x_stride + k);
#pragma GCC unroll 4
    for (int r = 0; r < rows; ++r) {
      const float* at = w + r * product.w_stride + k;
      hwy::Prefetch(at + kAhead);
      const Vec row = hn::LoadU(d, at);
#pragma GCC unroll 8
      for (int m = 0; m < vectors; ++m) sum[r][m] = hn::MulAdd(row, x[m], sum[r][m]);
    }
  }
  if (const int64_t rest = product.depth - k; rest > 0) {
    for (int r = 0; r < rows; ++r) {
      const Vec row = LoadFirst(d, w + r * product.w_stride + k, rest);
      for (int m = 0; m < vectors; ++m) {
        const Vec x = LoadFirst(d, product.x + m * product.x_stride + k, rest);
        sum[r][m] = hn::MulAdd(row, x, sum[r][m]);
      }
    }
  }
#pragma GCC unroll 8
  for (int m = 0; m < vectors; ++m) {
    float result[rows];
#pragma GCC unroll 4
    for (int r = 0; r < rows; ++r) result[r] = hn::GetLane(hn::SumOfLanes(d, sum[r][m]));
    std::memcpy(product.y + m * product.y_stride + n, result, sizeof(result));
  }
}

template <int vectors>
HWY_NOINLINE void MultiplyRange(const MatrixVector& product, int64_t first, int64_t end) {
  constexpr int kRows = RowsOfW(vectors);
  int64_t n = first;
  for (; n + kRows <= end; n += kRows) MultiplyRows<vectors, kRows>(product, n);
  for (; n < end; ++n) MultiplyRows<vectors, 1>(product, n);
}

using RangeFunction = void (*)(const MatrixVector&, int64_t, int64_t);

// By the number of vectors less one.
template <int... vectors>
constexpr std::array<RangeFunction, sizeof...(vectors)> Ranges(
    std::integer_sequence<int, vectors...> /*all*/) {
  return {MultiplyRange<vectors + 1>...};
}

void MultiplyVectorsOf(const MatrixVector& product, const Epilogue& epilogue, int64_t first,
                       int64_t end) {
  static constexpr auto kRanges = Ranges(std::make_integer_sequence<int, kMaxVectors>());
  kRanges[static_cast<size_t>(product.vectors - 1)](product, first, end);
  if (epilogue.IsNothing()) return;
  for (int64_t m = 0; m < product.vectors; ++m) {
    float* y = product.y + m * product.y_stride;
    FinishRow(Tag(), y, /*part_stride=*/0, /*parts=*/1, epilogue, epilogue.AddendOf(m), first, end,
              y);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace onnxifi::gemm
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace onnxifi::gemm {

HWY_EXPORT(MultiplyVectorsOf);

void MultiplyVectors(const MatrixVector& product, const Epilogue& epilogue, int64_t first,
                     int64_t end) {
  HWY_DYNAMIC_DISPATCH(MultiplyVectorsOf)(product, epilogue, first, end);
}

}  // namespace onnxifi::gemm
#endif
