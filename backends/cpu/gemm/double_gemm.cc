// SPDX-License-Identifier: Apache-2.0
//
// DoubleGemm: a block of rows times two vectors of columns stays in registers over the whole depth.

#include "backends/cpu/gemm/double_gemm.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/gemm/double_gemm.cc"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace onnxifi::gemm {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

constexpr int kVectors = 2;  // of columns
// Registers for the sums: 12 of 16; the others hold two vectors of B and an element of A.
constexpr int kRows = 6;

using Tag = hn::CappedTag<double, kMaxDoubleColumns / kVectors>;
using Vec = hn::Vec<Tag>;

int64_t ColumnsOfTarget() { return kVectors * static_cast<int64_t>(hn::Lanes(Tag())); }

template <int rows>
HWY_NOINLINE void MultiplyRows(const DoubleProduct& product, int64_t first) {
  const Tag d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto row_stride = product.a.row;
  Vec sum[rows][kVectors];
#pragma GCC unroll 8
  for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) sum[r][v] = hn::Zero(d);
  }
  const double* a = product.a.data + first * row_stride;
  const double* b = product.b;
  for (int64_t k = 0; k < product.depth; ++k) {
    const Vec left = hn::LoadU(d, b);
    const Vec right = hn::LoadU(d, b + lanes);
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r) {
      const Vec element = hn::Set(d, DoubleAt(a + r * row_stride));
      sum[r][0] = hn::MulAdd(element, left, sum[r][0]);
      sum[r][1] = hn::MulAdd(element, right, sum[r][1]);
    }
    a += product.a.column;
    b += kVectors * lanes;
  }
  if (product.c_column == 1 && product.columns == kVectors * lanes && !product.is_added) {
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r) {
      double* const c = product.c + (first + r) * product.c_row;
      hn::StoreU(sum[r][0], d, c);
      hn::StoreU(sum[r][1], d, c + lanes);
    }
    return;
  }
  HWY_ALIGN double block[kMaxDoubleColumns] = {};
  for (int r = 0; r < rows; ++r) {
    for (int v = 0; v < kVectors; ++v) hn::Store(sum[r][v], d, block + v * lanes);
    double* const c = product.c + (first + r) * product.c_row;
    for (int64_t n = 0; n < product.columns; ++n) {
      double* const to = c + n * product.c_column;
      const double number = product.is_added ? DoubleAt(to) + block[n] : block[n];
      std::memcpy(to, &number, sizeof(number));
    }
  }
}

template <int... rows>
constexpr auto RowFunctions(std::integer_sequence<int, rows...> /*all*/) {
  return std::array<void (*)(const DoubleProduct&, int64_t), sizeof...(rows)>{
      MultiplyRows<rows + 1>...};
}

void MultiplyHere(const DoubleProduct& product) {
  static constexpr auto kFunctions = RowFunctions(std::make_integer_sequence<int, kRows>());
  for (int64_t row = 0; row < product.rows;) {
    const int64_t left = product.rows - row;
    // The last two blocks are of about the same height.
    const int64_t rows = left >= 2 * kRows || left == kRows ? kRows
                         : left > kRows                     ? (left + 1) / 2
                                                            : left;
    kFunctions[static_cast<size_t>(rows - 1)](product, row);
    row += rows;
  }
}

void PackHere(const DoubleMatrix& b, int64_t depth, int64_t columns, double* packed) {
  const int64_t width = ColumnsOfTarget();
  for (int64_t k = 0; k < depth; ++k, packed += width) {
    const double* row = b.data + k * b.row;
    if (b.column == 1) {
      std::memcpy(packed, row, static_cast<size_t>(columns) * sizeof(double));
    } else {
      for (int64_t n = 0; n < columns; ++n) packed[n] = DoubleAt(row + n * b.column);
    }
    std::fill(packed + columns, packed + width, 0.0);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace onnxifi::gemm
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace onnxifi::gemm {

HWY_EXPORT(ColumnsOfTarget);
HWY_EXPORT(MultiplyHere);
HWY_EXPORT(PackHere);

int64_t DoubleColumns() { return HWY_DYNAMIC_DISPATCH(ColumnsOfTarget)(); }

void PackDoubles(const DoubleMatrix& b, int64_t depth, int64_t columns, double* packed) {
  HWY_DYNAMIC_DISPATCH(PackHere)(b, depth, columns, packed);
}

void MultiplyDoubles(const DoubleProduct& product) { HWY_DYNAMIC_DISPATCH(MultiplyHere)(product); }

}  // namespace onnxifi::gemm
#endif
