// SPDX-License-Identifier: Apache-2.0
//
// QuantizedMatrix: each lane of a vector is a column. A word of eight numbers of 4 bits is shifted
// down for one after the other; a processor with tables of sixteen floats looks them up.

#include "backends/cpu/gemm/quantized_matrix.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/gemm/quantized_matrix.cc"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include <hwy/highway.h>

#include "backends/cpu/gemm/epilogue-inl.h"
#include "backends/cpu/gemm/partial-inl.h"
#include "backends/cpu/gemm/quantized_words-inl.h"

HWY_BEFORE_NAMESPACE();
namespace onnxifi::gemm {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using Tag = hn::CappedTag<float, 16>;
using Vec = hn::Vec<Tag>;
using IntTag = hn::RebindToSigned<Tag>;
using Ints = hn::Vec<IntTag>;

constexpr float kMiddle = 8;

int64_t Lanes() { return static_cast<int64_t>(hn::Lanes(Tag())); }

// The scales or zeros of a line.
HWY_INLINE Vec FloatsOf(const int32_t* line) {
  return hn::BitCast(Tag(), hn::LoadU(IntTag(), line));
}

// The numbers in the lowest 4 bits of each lane, whatever is above them.
HWY_INLINE Vec LowestOf(Ints lanes) {
#if HWY_TARGET == HWY_AVX3
  const Vec table = hn::Sub(hn::Iota(Tag(), 0), hn::Set(Tag(), kMiddle));
  return Vec{_mm512_permutexvar_ps(lanes.raw, table.raw)};
#else
  const IntTag d;
  return hn::Sub(hn::ConvertTo(Tag(), hn::And(lanes, hn::Set(d, 15))), hn::Set(Tag(), kMiddle));
#endif
}

// The numbers at `place` of the words.
template <int bits, int place>
HWY_INLINE Vec NumbersAt(Ints words) {
  if constexpr (bits == 8) {
    return hn::ConvertTo(Tag(), hn::ShiftRight<24>(hn::ShiftLeft<24 - 8 * place>(words)));
  } else if constexpr (place == 0) {
    return LowestOf(words);
  } else {
    return LowestOf(hn::ShiftRight<4 * place>(words));
  }
}

// Sums that are begun side by side, where few rows would wait for each other's.
constexpr int PartsOf(int rows) { return rows == 1 ? 4 : rows == 2 ? 2 : 1; }

// Adds the products of the words of one block, for `vectors` vectors of columns from `place` on.
template <int bits, int rows, int vectors, bool has_zeros, int place = 0>
HWY_INLINE void AddPlaces(const Ints (&words)[vectors], const Vec (&zero)[vectors],
                          const float* const (&x)[rows],
                          Vec (&part)[PartsOf(rows)][rows][vectors]) {
  const Tag d;
  Vec numbers[vectors];
#pragma GCC unroll 2
  for (int v = 0; v < vectors; ++v) {
    numbers[v] = NumbersAt<bits, place>(words[v]);
    if constexpr (has_zeros) numbers[v] = hn::Sub(numbers[v], zero[v]);
  }
#pragma GCC unroll 4
  for (int m = 0; m < rows; ++m) {
    const Vec of_row = hn::Set(d, FloatAt(x[m] + place));
#pragma GCC unroll 2
    for (int v = 0; v < vectors; ++v) {
      Vec& sum = part[place % PartsOf(rows)][m][v];
      sum = hn::MulAdd(numbers[v], of_row, sum);
    }
  }
  if constexpr (place + 1 < 32 / bits) {
    AddPlaces<bits, rows, vectors, has_zeros, place + 1>(words, zero, x, part);
  }
}

// `vectors` vectors of columns from column `n` on, all of one group.
template <int bits, int rows, int vectors, bool has_zeros>
HWY_INLINE void MultiplyVectors(const QuantizedProduct& product, int64_t row, int64_t n,
                                int64_t end) {
  constexpr int kInWord = 32 / bits, kParts = PartsOf(rows);
  const Tag d;
  const QuantizedMatrix& matrix = product.matrix;
  const int64_t lanes = Lanes(), block = matrix.layout.block, depth = matrix.layout.depth;
  const int64_t to_zeros = (matrix.layout.block_words() + 1) * kQuantizedColumns;
  const int32_t* line = matrix.Line(n, 0);
  Vec total[rows][vectors];
#pragma GCC unroll 4
  for (int m = 0; m < rows; ++m) {
#pragma GCC unroll 2
    for (int v = 0; v < vectors; ++v) total[m][v] = hn::Zero(d);
  }
  // The last elements of a row, where they fill no block.
  HWY_ALIGN float last[rows][kMaxQuantizedBlock];
  for (int64_t k = 0; k < depth; k += block) {
    const float* x[rows];
#pragma GCC unroll 4
    for (int m = 0; m < rows; ++m) {
      x[m] = product.x + (row + m) * product.x_stride + k;
      if (depth - k >= block) continue;
      std::fill_n(last[m], block, 0.0F);
      std::memcpy(last[m], x[m], static_cast<size_t>(depth - k) * sizeof(float));
      x[m] = last[m];
    }
    Vec part[kParts][rows][vectors], zero[vectors];
#pragma GCC unroll 4
    for (int p = 0; p < kParts; ++p) {
#pragma GCC unroll 4
      for (int m = 0; m < rows; ++m) {
#pragma GCC unroll 2
        for (int v = 0; v < vectors; ++v) part[p][m][v] = hn::Zero(d);
      }
    }
#pragma GCC unroll 2
    for (int v = 0; v < vectors; ++v) {
      zero[v] = has_zeros ? FloatsOf(line + to_zeros + v * lanes) : hn::Zero(d);
    }
    for (int64_t j = 0; j < block; j += kInWord) {
      Ints some[vectors];
#pragma GCC unroll 2
      for (int v = 0; v < vectors; ++v) {
        FetchAhead(line + v * lanes);
        some[v] = hn::LoadU(IntTag(), line + v * lanes);
      }
      line += kQuantizedColumns;
      AddPlaces<bits, rows, vectors, has_zeros>(some, zero, x, part);
#pragma GCC unroll 4
      for (int m = 0; m < rows; ++m) x[m] += kInWord;
    }
#pragma GCC unroll 2
    for (int v = 0; v < vectors; ++v) {
      FetchAhead(line + v * lanes);
      if constexpr (has_zeros) FetchAhead(line + kQuantizedColumns + v * lanes);
      const Vec scale = FloatsOf(line + v * lanes);
#pragma GCC unroll 4
      for (int m = 0; m < rows; ++m) {
        Vec sum = part[0][m][v];
#pragma GCC unroll 4
        for (int p = 1; p < kParts; ++p) sum = hn::Add(sum, part[p][m][v]);
        total[m][v] = hn::MulAdd(sum, scale, total[m][v]);
      }
    }
    line += (has_zeros ? 2 : 1) * kQuantizedColumns;
  }
#pragma GCC unroll 4
  for (int m = 0; m < rows; ++m) {
#pragma GCC unroll 2
    for (int v = 0; v < vectors; ++v) {
      StoreFirst(d, total[m][v], product.y + (row + m) * product.y_stride + n + v * lanes,
                 std::clamp<int64_t>(end - n - v * lanes, 0, lanes));
    }
  }
}

template <int bits, int rows, bool has_zeros>
HWY_NOINLINE void MultiplyRange(const QuantizedProduct& product, int64_t row, int64_t first,
                                int64_t end) {
  constexpr int kVectors = 2;
  for (int64_t n = first; n < end; n += kVectors * Lanes()) {
    MultiplyVectors<bits, rows, kVectors, has_zeros>(product, row, n, end);
  }
}

using RangeFunction = void (*)(const QuantizedProduct&, int64_t, int64_t, int64_t);

// Rows that are multiplied at a time.
constexpr int kMaxRows = 4;

// By the number of rows less one.
template <int bits, bool has_zeros, int... rows>
constexpr std::array<RangeFunction, sizeof...(rows)> Ranges(
    std::integer_sequence<int, rows...> /*all*/) {
  return {MultiplyRange<bits, rows + 1, has_zeros>...};
}

void MultiplyOf(const QuantizedProduct& product, const Epilogue& epilogue, int64_t first,
                int64_t end) {
  using Numbers = std::make_integer_sequence<int, kMaxRows>;
  static constexpr std::array kRanges = {Ranges<4, false>(Numbers()), Ranges<4, true>(Numbers()),
                                         Ranges<8, false>(Numbers()), Ranges<8, true>(Numbers())};
  const QuantizedLayout& layout = product.matrix.layout;
  const auto& of_rows = kRanges[(layout.bits == 8 ? 2 : 0) + (layout.has_zeros ? 1 : 0)];
  // All rows meet a group while it is in a cache.
  for (int64_t n = first; n < end;) {
    const int64_t group_end = std::min(end, (n / kQuantizedColumns + 1) * kQuantizedColumns);
    for (int64_t row = 0; row < product.rows;) {
      const int64_t left = product.rows - row;
      const int64_t now = left > kMaxRows && left < 2 * kMaxRows
                              ? (left + 1) / 2
                              : std::min<int64_t>(left, kMaxRows);
      of_rows[static_cast<size_t>(now - 1)](product, row, n, group_end);
      row += now;
    }
    n = group_end;
  }
  if (epilogue.IsNothing()) return;
  for (int64_t m = 0; m < product.rows; ++m) {
    float* y = product.y + m * product.y_stride;
    FinishRow(hn::ScalableTag<float>(), y, /*part_stride=*/0, /*parts=*/1, epilogue,
              epilogue.AddendOf(m), first, end, y);
  }
}

// The first `count` of the numbers that words hold, as weights of rows one below the other.
template <int bits, bool has_zeros, int place = 0>
HWY_INLINE void StorePlaces(Ints words, Vec zero, Vec scale, int64_t count, int64_t width,
                            float* to) {
  if (place >= count) return;
  Vec numbers = NumbersAt<bits, place>(words);
  if constexpr (has_zeros) numbers = hn::Sub(numbers, zero);
  hn::StoreU(hn::Mul(numbers, scale), Tag(), to + place * width);
  if constexpr (place + 1 < 32 / bits) {
    StorePlaces<bits, has_zeros, place + 1>(words, zero, scale, count, width, to);
  }
}

template <int bits, bool has_zeros>
void FillPanelOf(const QuantizedMatrix& matrix, int64_t first, float* panel) {
  constexpr int kInWord = 32 / bits;
  const Tag d;
  const int64_t lanes = Lanes(), width = 2 * lanes, depth = matrix.layout.depth;
  const int32_t* line = matrix.Line(first, 0);
  for (int64_t begin = 0; begin < depth; begin += matrix.layout.block) {
    const int32_t* const scales = line + matrix.layout.block_words() * kQuantizedColumns;
    const int32_t* const zeros = scales + kQuantizedColumns;
    const int64_t end = std::min(depth, begin + matrix.layout.block);
    for (int64_t k = begin; k < end; k += kInWord) {
      for (int64_t lane = 0; lane < width; lane += lanes) {
        FetchAhead(line + lane);
        const Vec zero = has_zeros ? FloatsOf(zeros + lane) : hn::Zero(d);
        StorePlaces<bits, has_zeros>(hn::LoadU(IntTag(), line + lane), zero,
                                     FloatsOf(scales + lane), std::min<int64_t>(kInWord, end - k),
                                     width, panel + k * width + lane);
      }
      line += kQuantizedColumns;
    }
    for (int64_t lane = 0; lane < width; lane += lanes) {
      FetchAhead(scales + lane);
      if constexpr (has_zeros) FetchAhead(zeros + lane);
    }
    line = (has_zeros ? zeros : scales) + kQuantizedColumns;
  }
}

void FillPanel(const QuantizedMatrix& matrix, int64_t first, float* panel) {
  const bool has_zeros = matrix.layout.has_zeros;
  if (matrix.layout.bits == 4) {
    has_zeros ? FillPanelOf<4, true>(matrix, first, panel)
              : FillPanelOf<4, false>(matrix, first, panel);
  } else {
    has_zeros ? FillPanelOf<8, true>(matrix, first, panel)
              : FillPanelOf<8, false>(matrix, first, panel);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace onnxifi::gemm
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace onnxifi::gemm {

HWY_EXPORT(FillPanel);
HWY_EXPORT(MultiplyOf);

void MultiplyQuantized(const QuantizedProduct& product, const Epilogue& epilogue, int64_t first,
                       int64_t end) {
  HWY_DYNAMIC_DISPATCH(MultiplyOf)(product, epilogue, first, end);
}

void DequantizePanel(const QuantizedMatrix& matrix, int64_t first, float* panel) {
  HWY_DYNAMIC_DISPATCH(FillPanel)(matrix, first, panel);
}

}  // namespace onnxifi::gemm
#endif
