// SPDX-License-Identifier: Apache-2.0
//
// QuantizedMatrix: each lane of a vector of numbers of 4 bits holds eight neighbours, which are
// shifted down one after the other; a processor with tables of sixteen floats looks them up. A row
// of X is arranged so that a vector of it meets the same place of all lanes.

#include "backends/cpu/gemm/quantized_matrix.h"

#include <hwy/cache_control.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "backends/cpu/transpose/transpose.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/gemm/quantized_matrix.cc"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include <hwy/highway.h>

#include "backends/cpu/gemm/epilogue-inl.h"
#include "backends/cpu/gemm/partial-inl.h"

HWY_BEFORE_NAMESPACE();
namespace onnxifi::gemm {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// A chunk is whole vectors of numbers of either width.
using Tag = hn::CappedTag<float, 16>;
using Vec = hn::Vec<Tag>;
using IntTag = hn::RebindToSigned<Tag>;
using Ints = hn::Vec<IntTag>;
using ByteTag = hn::Rebind<int8_t, Tag>;

constexpr int kInLane = 8;  // numbers of 4 bits
constexpr float kMiddle = 8;

int64_t Lanes() { return static_cast<int64_t>(hn::Lanes(Tag())); }

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

template <int place>
HWY_INLINE Vec NumbersAt(Ints lanes) {
  if constexpr (place == 0) return LowestOf(lanes);
  return LowestOf(hn::ShiftRight<4 * place>(lanes));
}

// What blocks have for the lanes of a vector of numbers of 4 bits, whose first is number `k` of a
// column.
class LaneNumbers {
 public:
  explicit LaneNumbers(int64_t block) : block_(block), is_one_(block >= kInLane * Lanes()) {
    HWY_ALIGN int32_t places[HWY_MAX_BYTES / sizeof(int32_t)];
    for (int64_t lane = 0; lane < Lanes(); ++lane) {
      places[lane] = is_one_ ? 0 : static_cast<int32_t>(kInLane * lane / block);
    }
    places_ = hn::Load(IntTag(), places);
  }
  HWY_INLINE Vec At(const float* numbers, int64_t k) const {
    const Tag d;
    const float* first = numbers + k / block_;
    if (is_one_) return hn::Set(d, *first);
    return hn::TableLookupLanes(hn::LoadU(d, first), hn::IndicesFromVec(d, places_));
  }

 private:
  const int64_t block_;
  const bool is_one_;
  Ints places_;
};

// The sum of eight vectors of numbers, less `zeros` if there are some, with those of each of `rows`
// rows at `x`.
template <int rows, bool has_zeros, int place = 0>
HWY_INLINE void AddPlaces(Ints lanes, Vec zeros, const float* x, int64_t x_stride, Vec* even,
                          Vec* odd) {
  const Tag d;
  Vec numbers = NumbersAt<place>(lanes);
  if constexpr (has_zeros) numbers = hn::Sub(numbers, zeros);
#pragma GCC unroll 4
  for (int m = 0; m < rows; ++m) {
    const Vec of_row = hn::Load(d, x + m * x_stride + place * static_cast<int64_t>(hn::Lanes(d)));
    Vec& sum = place % 2 == 0 ? even[m] : odd[m];
    sum = place < 2 ? hn::Mul(numbers, of_row) : hn::MulAdd(numbers, of_row, sum);
  }
  if constexpr (place + 1 < kInLane) {
    AddPlaces<rows, has_zeros, place + 1>(lanes, zeros, x, x_stride, even, odd);
  }
}

// How many columns on memory is fetched that columns are read from: as many as are multiplied at a
// time, or more, where these are few bytes beside what a thread reads while one line is on its way.
// A distance of less than the columns at hand would fetch, of short ones, what is read at the same
// time.
HWY_INLINE int64_t ColumnsAhead(const QuantizedLayout& layout, int64_t columns) {
  constexpr int64_t kBytesAhead = 16384;
  return (std::max(columns, kBytesAhead / layout.column_bytes()) + columns - 1) / columns * columns;
}

// The last columns have none behind them, and such an address is no pointer's.
HWY_INLINE void FetchBehind(const void* at, int64_t bytes) {
  hwy::Prefetch(reinterpret_cast<const uint8_t*>(reinterpret_cast<uintptr_t>(at) +
                                                 static_cast<uintptr_t>(bytes)));
}

// Fetches what blocks from number `first` on have in the columns that come later, once per line of
// the cache: of each column that is only a few lines, which a processor does not foresee.
template <int columns>
HWY_INLINE void FetchBlocks(const float* const (&of_columns)[columns], int64_t first,
                            int64_t bytes) {
  if (first % QuantizedLayout::kLineFloats != 0) return;
#pragma GCC unroll 4
  for (int c = 0; c < columns; ++c) FetchBehind(of_columns[c] + first, bytes);
}

// Sums of `columns` columns, in lanes.
template <int rows, int columns, bool has_zeros>
HWY_INLINE void AddNibbles(const QuantizedProduct& product, int64_t n, int64_t x_stride,
                           Vec (&sum)[columns][rows]) {
  const IntTag di;
  const QuantizedMatrix& matrix = product.matrix;
  const LaneNumbers of_blocks(matrix.layout.block);
  const int64_t step = kInLane * Lanes();
  const int64_t depth = matrix.layout.padded_depth();
  const int64_t ahead = ColumnsAhead(matrix.layout, columns);
  const int64_t bytes_ahead = ahead * matrix.layout.column_bytes();
  const int64_t blocks_ahead = ahead * matrix.layout.block_bytes();
  const uint8_t* numbers[columns];
  const float* scales[columns];
  const float* zeros[columns];
#pragma GCC unroll 4
  for (int c = 0; c < columns; ++c) {
    numbers[c] = matrix.Numbers(n + c);
    scales[c] = matrix.Scales(n + c);
    zeros[c] = has_zeros ? matrix.Zeros(n + c) : nullptr;
  }
  for (int64_t k = 0; k < depth; k += step) {
    FetchBlocks(scales, k / matrix.layout.block, blocks_ahead);
    if (has_zeros) FetchBlocks(zeros, k / matrix.layout.block, blocks_ahead);
#pragma GCC unroll 4
    for (int c = 0; c < columns; ++c) {
      const uint8_t* at = numbers[c] + k / 2;
      FetchBehind(at, bytes_ahead);
      const Ints lanes = hn::LoadU(di, reinterpret_cast<const int32_t*>(at));
      Vec even[rows], odd[rows];
      const Vec zero = has_zeros ? of_blocks.At(zeros[c], k) : hn::Zero(Tag());
      AddPlaces<rows, has_zeros>(lanes, zero, product.x + k, x_stride, even, odd);
      const Vec scale = of_blocks.At(scales[c], k);
#pragma GCC unroll 4
      for (int m = 0; m < rows; ++m) {
        sum[c][m] = hn::MulAdd(hn::Add(even[m], odd[m]), scale, sum[c][m]);
      }
    }
  }
}

template <int rows, int columns, bool has_zeros>
HWY_INLINE void AddBytes(const QuantizedProduct& product, int64_t n, int64_t x_stride,
                         Vec (&sum)[columns][rows]) {
  const Tag d;
  const QuantizedMatrix& matrix = product.matrix;
  const int64_t block = matrix.layout.block;
  const int64_t lanes = Lanes();
  const int64_t depth = matrix.layout.padded_depth();
  const int64_t ahead = ColumnsAhead(matrix.layout, columns);
  const int64_t bytes_ahead = ahead * matrix.layout.column_bytes();
  const int64_t blocks_ahead = ahead * matrix.layout.block_bytes();
  const float* scales[columns];
  const float* zeros[columns];
#pragma GCC unroll 4
  for (int c = 0; c < columns; ++c) {
    scales[c] = matrix.Scales(n + c);
    zeros[c] = has_zeros ? matrix.Zeros(n + c) : nullptr;
  }
  for (int64_t k = 0, number = 0; k < depth; k += block, ++number) {
    FetchBlocks(scales, number, blocks_ahead);
    if (has_zeros) FetchBlocks(zeros, number, blocks_ahead);
#pragma GCC unroll 4
    for (int c = 0; c < columns; ++c) {
      const auto* at = reinterpret_cast<const int8_t*>(matrix.Numbers(n + c)) + k;
      FetchBehind(at, bytes_ahead);
      if (block > 64) FetchBehind(at + 64, bytes_ahead);
      Vec part[rows];
#pragma GCC unroll 4
      for (int m = 0; m < rows; ++m) part[m] = hn::Zero(d);
      const Vec zero = hn::Set(d, has_zeros ? zeros[c][number] : 0.0F);
      for (int64_t j = 0; j < block; j += lanes) {
        Vec numbers = hn::ConvertTo(d, hn::PromoteTo(IntTag(), hn::LoadU(ByteTag(), at + j)));
        if constexpr (has_zeros) numbers = hn::Sub(numbers, zero);
#pragma GCC unroll 4
        for (int m = 0; m < rows; ++m) {
          part[m] = hn::MulAdd(numbers, hn::Load(d, product.x + m * x_stride + k + j), part[m]);
        }
      }
      const Vec scale = hn::Set(d, scales[c][number]);
#pragma GCC unroll 4
      for (int m = 0; m < rows; ++m) sum[c][m] = hn::MulAdd(part[m], scale, sum[c][m]);
    }
  }
}

template <int rows, int columns>
HWY_INLINE void MultiplyColumns(const QuantizedProduct& product, int64_t n) {
  const Tag d;
  const QuantizedLayout& layout = product.matrix.layout;
  const int64_t x_stride = layout.padded_depth();
  Vec sum[columns][rows];
#pragma GCC unroll 4
  for (int c = 0; c < columns; ++c) {
#pragma GCC unroll 4
    for (int m = 0; m < rows; ++m) sum[c][m] = hn::Zero(d);
  }
  if (layout.bits == 4) {
    layout.has_zeros ? AddNibbles<rows, columns, true>(product, n, x_stride, sum)
                     : AddNibbles<rows, columns, false>(product, n, x_stride, sum);
  } else {
    layout.has_zeros ? AddBytes<rows, columns, true>(product, n, x_stride, sum)
                     : AddBytes<rows, columns, false>(product, n, x_stride, sum);
  }
#pragma GCC unroll 4
  for (int m = 0; m < rows; ++m) {
    float result[columns];
#pragma GCC unroll 4
    for (int c = 0; c < columns; ++c) result[c] = hn::GetLane(hn::SumOfLanes(d, sum[c][m]));
    std::memcpy(product.y + m * product.y_stride + n, result, sizeof(result));
  }
}

template <int rows>
HWY_NOINLINE void MultiplyRange(const QuantizedProduct& product, int64_t first, int64_t end) {
  constexpr int kColumns = rows == 1 ? 4 : rows == 2 ? 2 : 1;
  int64_t n = first;
  for (; n + kColumns <= end; n += kColumns) MultiplyColumns<rows, kColumns>(product, n);
  for (; n < end; ++n) MultiplyColumns<rows, 1>(product, n);
}

using RangeFunction = void (*)(const QuantizedProduct&, int64_t, int64_t);

// By the number of rows less one.
template <int... rows>
constexpr std::array<RangeFunction, sizeof...(rows)> Ranges(
    std::integer_sequence<int, rows...> /*all*/) {
  return {MultiplyRange<rows + 1>...};
}

void MultiplyOf(const QuantizedProduct& product, const Epilogue& epilogue, int64_t first,
                int64_t end) {
  static constexpr auto kRanges =
      Ranges(std::make_integer_sequence<int, static_cast<int>(kMaxQuantizedRows)>());
  kRanges[static_cast<size_t>(product.rows - 1)](product, first, end);
  if (epilogue.IsNothing()) return;
  for (int64_t m = 0; m < product.rows; ++m) {
    float* y = product.y + m * product.y_stride;
    FinishRow(hn::ScalableTag<float>(), y, /*part_stride=*/0, /*parts=*/1, epilogue,
              epilogue.AddendOf(m), first, end, y);
  }
}

// Places of lanes side by side: element kInLane * lane + place of each step to place * lanes +
// lane.
void Arrange(const QuantizedLayout& layout, const float* x, float* arranged) {
  const int64_t lanes = Lanes();
  const int64_t step = layout.bits == 4 ? kInLane * lanes : 1;
  int64_t whole = layout.bits == 4 ? layout.depth / step * step : layout.depth;
  if (layout.bits != 4) std::memcpy(arranged, x, static_cast<size_t>(whole) * sizeof(float));
  for (int64_t k = 0; layout.bits == 4 && k < whole; k += step) {
    for (int64_t lane = 0; lane < lanes; ++lane) {
      float eight[kInLane];
      std::memcpy(eight, x + k + kInLane * lane, sizeof(eight));
      for (int place = 0; place < kInLane; ++place)
        arranged[k + place * lanes + lane] = eight[place];
    }
  }
  std::fill(arranged + whole, arranged + layout.padded_depth(), 0.0F);
  for (int64_t k = whole; k < layout.depth; ++k) {
    const int64_t at = k % step;
    arranged[k - at + at % kInLane * lanes + at / kInLane] = FloatAt(x + k);
  }
}

// Of a chunk of the columns of a panel: the lanes that hold the numbers, and what blocks have, each
// side by side, as the panel has its columns.
struct PanelChunk {
  static constexpr int64_t kWidth = 2 * HWY_MAX_BYTES / static_cast<int64_t>(sizeof(float));
  static constexpr int64_t kMaxWords = kQuantizedChunk / 4;
  static constexpr int64_t kMaxBlocks = kQuantizedChunk / 16;

  HWY_ALIGN int32_t words[kMaxWords * kWidth] = {};
  // Columns beyond the matrix are zeros.
  HWY_ALIGN float scales[kMaxBlocks * kWidth] = {};
  HWY_ALIGN float zeros[kMaxBlocks * kWidth] = {};
};

// The number of 8 bits at `place`, of the four in each lane.
template <int place>
HWY_INLINE Vec ByteAt(Ints lanes) {
  return hn::ConvertTo(Tag(), hn::ShiftRight<24>(hn::ShiftLeft<24 - 8 * place>(lanes)));
}

// The first `count` of the numbers that lanes hold, as weights of rows one below the other.
template <int bits, int place = 0>
HWY_INLINE void StorePlaces(Ints lanes, Vec zero, Vec scale, int64_t count, int64_t width,
                            float* to) {
  if (place >= count) return;
  const Vec number = [&] {
    if constexpr (bits == 4) {
      return NumbersAt<place>(lanes);
    } else {
      return ByteAt<place>(lanes);
    }
  }();
  hn::StoreU(hn::Mul(hn::Sub(number, zero), scale), Tag(), to + place * width);
  if constexpr (place + 1 < 32 / bits) {
    StorePlaces<bits, place + 1>(lanes, zero, scale, count, width, to);
  }
}

template <int bits>
HWY_INLINE void FillPanelOf(const QuantizedMatrix& matrix, int64_t first, int64_t count,
                            float* panel) {
  constexpr int kInWord = 32 / bits;
  constexpr int64_t kWords = kQuantizedChunk / kInWord;
  constexpr auto kFloatBytes = static_cast<int64_t>(sizeof(float));
  const Tag d;
  const QuantizedLayout& layout = matrix.layout;
  const int64_t width = 2 * Lanes();
  const auto side_by_side = [&](const void* from, int64_t stride, int64_t rows, void* to) {
    transpose::Transpose(static_cast<const std::byte*>(from), stride, static_cast<std::byte*>(to),
                         width, rows, count, kFloatBytes);
  };
  PanelChunk chunk;
  for (int64_t k = 0; k < layout.depth; k += kQuantizedChunk) {
    const int64_t blocks = kQuantizedChunk / layout.block;
    const int64_t number = k / layout.block;
    side_by_side(matrix.Numbers(first) + k * bits / 8, layout.column_bytes() / kFloatBytes, kWords,
                 chunk.words);
    side_by_side(matrix.Scales(first) + number, layout.column_blocks(), blocks, chunk.scales);
    if (layout.has_zeros) {
      side_by_side(matrix.Zeros(first) + number, layout.column_blocks(), blocks, chunk.zeros);
    }
    for (int64_t word = 0; word < kWords && k + word * kInWord < layout.depth; ++word) {
      const int64_t row = k + word * kInWord;
      const int64_t of_block = word * kInWord / layout.block * width;
      for (int64_t lane = 0; lane < width; lane += Lanes()) {
        StorePlaces<bits>(
            hn::Load(IntTag(), chunk.words + word * width + lane),
            hn::Load(d, chunk.zeros + of_block + lane), hn::Load(d, chunk.scales + of_block + lane),
            std::min<int64_t>(kInWord, layout.depth - row), width, panel + row * width + lane);
      }
    }
  }
}

void FillPanel(const QuantizedMatrix& matrix, int64_t first, int64_t count, float* panel) {
  matrix.layout.bits == 4 ? FillPanelOf<4>(matrix, first, count, panel)
                          : FillPanelOf<8>(matrix, first, count, panel);
}

}  // namespace HWY_NAMESPACE
}  // namespace onnxifi::gemm
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace onnxifi::gemm {

HWY_EXPORT(Arrange);
HWY_EXPORT(FillPanel);
HWY_EXPORT(MultiplyOf);

int64_t ArrangedSize(const QuantizedLayout& layout) { return layout.padded_depth(); }

void ArrangeRow(const QuantizedLayout& layout, const float* x, float* arranged) {
  HWY_DYNAMIC_DISPATCH(Arrange)(layout, x, arranged);
}

void MultiplyQuantized(const QuantizedProduct& product, const Epilogue& epilogue, int64_t first,
                       int64_t end) {
  HWY_DYNAMIC_DISPATCH(MultiplyOf)(product, epilogue, first, end);
}

int64_t MostQuantizedRows(const QuantizedLayout& layout) {
  // What a column takes beside its numbers (adding up lanes, finding its blocks) weighs the more
  // the fewer numbers it has, and a panel takes it once for all rows. Short blocks take more of it.
  // Measured with 1 to 16 rows, depths of 64 to 11008 and blocks of 32 and 128.
  const bool is_long = layout.block >= 64;
  const int64_t worth = layout.depth * layout.bits * (is_long ? 2 : 1) / 512;
  return std::min<int64_t>(worth, is_long ? 6 : 4);
}

void DequantizePanel(const QuantizedMatrix& matrix, int64_t first, int64_t count, float* panel) {
  HWY_DYNAMIC_DISPATCH(FillPanel)(matrix, first, count, panel);
}

}  // namespace onnxifi::gemm
#endif
