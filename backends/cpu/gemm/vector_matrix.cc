// SPDX-License-Identifier: Apache-2.0
//
// VectorMatrix: some rows of W are added to the sums at a time, which stay in a cache: for one or
// two vectors as many as their factors have registers; for more, as many as pay for loading and
// storing the sums of a few columns, with factors from memory.

#include "backends/cpu/gemm/vector_matrix.h"

#include <algorithm>
#include <array>
#include <utility>

#include "backends/cpu/gemm/matrix_vector.h"  // kMaxVectors

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/gemm/vector_matrix.cc"
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

// As many rows of W at a time as there are registers for their factors beside a sum of each vector.
#if HWY_TARGET <= HWY_AVX3 || HWY_ARCH_ARM_A64
constexpr int kRegisters = 30;
#else
constexpr int kRegisters = 14;
#endif
constexpr int RowsAtOnce(int vectors) { return std::clamp((kRegisters - vectors) / vectors, 1, 8); }
// Fewer than so many rows do not pay for the sums.
constexpr int kFewRows = 6;
constexpr int64_t kManyRows = 16;

// Adds rows [k, k + rows) of W, times their factors, to the sums.
template <int vectors, int rows>
HWY_INLINE void AddRows(const VectorMatrix& product, int64_t k, int64_t first, int64_t end,
                        float* sums, int64_t stride) {
  const Tag d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  Vec x[vectors][rows];
#pragma GCC unroll 8
  for (int m = 0; m < vectors; ++m) {
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r)
      x[m][r] = hn::Set(d, FloatAt(product.x + m * product.x_stride + k + r));
  }
  const float* w = product.w + k * product.w_stride;
  int64_t n = first;
  for (; n + lanes <= end; n += lanes) {
    Vec sum[vectors];
#pragma GCC unroll 8
    for (int m = 0; m < vectors; ++m) sum[m] = hn::LoadU(d, sums + m * stride + n);
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r) {
      const Vec row = hn::LoadU(d, w + r * product.w_stride + n);
#pragma GCC unroll 8
      for (int m = 0; m < vectors; ++m) sum[m] = hn::MulAdd(x[m][r], row, sum[m]);
    }
#pragma GCC unroll 8
    for (int m = 0; m < vectors; ++m) hn::StoreU(sum[m], d, sums + m * stride + n);
  }
  if (const int64_t count = end - n; count > 0) {
    for (int m = 0; m < vectors; ++m) {
      Vec sum = LoadFirst(d, sums + m * stride + n, count);
      for (int r = 0; r < rows; ++r) {
        sum = hn::MulAdd(x[m][r], LoadFirst(d, w + r * product.w_stride + n, count), sum);
      }
      StoreFirst(d, sum, sums + m * stride + n, count);
    }
  }
}

// Vectors of columns of which all sums have registers, beside those of W and a factor.
constexpr int ColumnsAtOnce(int vectors) {
  constexpr int kAll = HWY_TARGET <= HWY_AVX3 || HWY_ARCH_ARM_A64 ? 32 : 16;
  return std::clamp((kAll - 1) / (vectors + 1), 1, 4);
}

// Adds `rows` rows of W from row k on to the sums of `vectors` vectors from `first` on, of
// `columns` vectors of columns from n on.
template <int vectors, int columns>
HWY_INLINE void AddToColumns(const VectorMatrix& product, int64_t k, int64_t rows, int64_t n,
                             float* sums, int64_t stride) {
  const Tag d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  Vec sum[vectors][columns];
#pragma GCC unroll 8
  for (int m = 0; m < vectors; ++m) {
#pragma GCC unroll 4
    for (int c = 0; c < columns; ++c) sum[m][c] = hn::LoadU(d, sums + m * stride + n + c * lanes);
  }
  const float* w = product.w + k * product.w_stride + n;
  for (int64_t r = 0; r < rows; ++r, w += product.w_stride) {
    Vec row[columns];
#pragma GCC unroll 4
    for (int c = 0; c < columns; ++c) row[c] = hn::LoadU(d, w + c * lanes);
#pragma GCC unroll 8
    for (int m = 0; m < vectors; ++m) {
      const Vec x = hn::Set(d, FloatAt(product.x + m * product.x_stride + k + r));
#pragma GCC unroll 4
      for (int c = 0; c < columns; ++c) sum[m][c] = hn::MulAdd(x, row[c], sum[m][c]);
    }
  }
#pragma GCC unroll 8
  for (int m = 0; m < vectors; ++m) {
#pragma GCC unroll 4
    for (int c = 0; c < columns; ++c) hn::StoreU(sum[m][c], d, sums + m * stride + n + c * lanes);
  }
}

// Adds `rows` rows of W from row k on to all sums.
template <int vectors>
HWY_INLINE void AddManyRows(const VectorMatrix& product, int64_t k, int64_t rows, int64_t first,
                            int64_t end, float* sums, int64_t stride) {
  constexpr int kColumns = ColumnsAtOnce(vectors);
  const auto lanes = static_cast<int64_t>(hn::Lanes(Tag()));
  int64_t n = first;
  for (; n + kColumns * lanes <= end; n += kColumns * lanes) {
    AddToColumns<vectors, kColumns>(product, k, rows, n, sums, stride);
  }
  for (; n + lanes <= end; n += lanes) {
    AddToColumns<vectors, 1>(product, k, rows, n, sums, stride);
  }
  if (n == end) return;
  for (int64_t r = 0; r < rows; ++r) AddRows<vectors, 1>(product, k + r, n, end, sums, stride);
}

template <int vectors>
HWY_NOINLINE void SumRowsOf(const VectorMatrix& product, int64_t first_k, int64_t end_k,
                            int64_t first, int64_t end, float* sums, int64_t stride) {
  constexpr int kRows = RowsAtOnce(vectors);
  for (int m = 0; m < vectors; ++m)
    std::fill(sums + m * stride + first, sums + m * stride + end, 0.0F);
  int64_t k = first_k;
  if constexpr (kRows < kFewRows) {
    for (; k < end_k; k += kManyRows) {
      AddManyRows<vectors>(product, k, std::min(kManyRows, end_k - k), first, end, sums, stride);
    }
    return;
  }
  for (; k + kRows <= end_k; k += kRows) {
    AddRows<vectors, kRows>(product, k, first, end, sums, stride);
  }
  for (; k < end_k; ++k) AddRows<vectors, 1>(product, k, first, end, sums, stride);
}

using SumFunction = void (*)(const VectorMatrix&, int64_t, int64_t, int64_t, int64_t, float*,
                             int64_t);

// By the number of vectors less one.
template <int... vectors>
constexpr std::array<SumFunction, sizeof...(vectors)> Sums(
    std::integer_sequence<int, vectors...> /*all*/) {
  return {SumRowsOf<vectors + 1>...};
}

void SumRowsOfAny(const VectorMatrix& product, int64_t first_k, int64_t end_k, int64_t first,
                  int64_t end, float* sums, int64_t stride) {
  static constexpr auto kSums = Sums(std::make_integer_sequence<int, kMaxVectors>());
  kSums[static_cast<size_t>(product.vectors - 1)](product, first_k, end_k, first, end, sums,
                                                  stride);
}

void FinishSumsOf(const PartialSums& partial, const Epilogue& epilogue, int64_t vectors,
                  int64_t first, int64_t end, float* y, int64_t y_stride) {
  for (int64_t m = 0; m < vectors; ++m) {
    FinishRow(Tag(), partial.sums + m * partial.stride, partial.part_stride, partial.parts,
              epilogue, epilogue.AddendOf(m), first, end, y + m * y_stride);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace onnxifi::gemm
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace onnxifi::gemm {

HWY_EXPORT(SumRowsOfAny);
HWY_EXPORT(FinishSumsOf);

void SumRows(const VectorMatrix& product, int64_t first_k, int64_t end_k, int64_t first,
             int64_t end, float* sums, int64_t stride) {
  HWY_DYNAMIC_DISPATCH(SumRowsOfAny)(product, first_k, end_k, first, end, sums, stride);
}

void FinishSums(const PartialSums& partial, const Epilogue& epilogue, int64_t vectors,
                int64_t first, int64_t end, float* y, int64_t y_stride) {
  HWY_DYNAMIC_DISPATCH(FinishSumsOf)(partial, epilogue, vectors, first, end, y, y_stride);
}

}  // namespace onnxifi::gemm
#endif
