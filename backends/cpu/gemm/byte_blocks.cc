// SPDX-License-Identifier: Apache-2.0
//
// ByteBlocks: four bytes of a row are broadcast and multiplied with those of each column; a block's
// sums become floats times both scales. VNNI has one instruction for that; processors with AVX2
// alone have one that adds products in pairs. Words of eight numbers of 4 bits become two of four
// bytes once for many rows: the low halves of bytes come before the high ones, which is where the
// rows have their even and odd elements.

#include "backends/cpu/gemm/byte_blocks.h"

#include <algorithm>
#include <array>
#include <cfloat>
#include <cstring>
#include <utility>

#include "backends/cpu/processor/processor.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/gemm/byte_blocks.cc"
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

constexpr int64_t kQuad = 4;
constexpr int64_t kFloatBytes = sizeof(float);
#undef ONNXIFI_MULTIPLIES_BYTE_BLOCKS
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2
#define ONNXIFI_MULTIPLIES_BYTE_BLOCKS 1

// Where numbers of 4 and 8 bits have their zero when they are multiplied.
constexpr int32_t kMiddleOf4 = 8;
constexpr int32_t kMiddleOf8 = HWY_TARGET == HWY_AVX3 ? 128 : 0;

int32_t MiddleOf(const QuantizedLayout& layout) {
  return layout.bits == 4 ? kMiddleOf4 : kMiddleOf8;
}

using Tag = hn::ScalableTag<float>;
using Vec = hn::Vec<Tag>;
using IntTag = hn::ScalableTag<int32_t>;
using Ints = hn::Vec<IntTag>;

constexpr int64_t kLanes = HWY_MAX_BYTES / kFloatBytes;
// Of columns that are multiplied at a time.
constexpr int kVectors = 2;

bool CanMultiply(bool has_byte_products) { return HWY_TARGET == HWY_AVX2 || has_byte_products; }

int64_t MinRows() { return HWY_TARGET == HWY_AVX2 ? 1 : 3; }

// The `count` elements of a block, at most as many as it has.
void RoundBlock(const float* x, int64_t count, int64_t block, int bits, int8_t* bytes, float* scale,
                int32_t* sum) {
  const Tag d;
  const hn::Rebind<int8_t, Tag> d8;
  Vec largest = hn::Zero(d), not_finite = hn::Zero(d);
  for (int64_t k = 0; k < count; k += kLanes) {
    const Vec elements = LoadFirst(d, x + k, std::min(kLanes, count - k));
    largest = hn::Max(largest, hn::Abs(elements));
    not_finite = hn::MulAdd(elements, hn::Zero(d), not_finite);
  }
  // Of what is smaller, the inverse is infinite; it is rounded to 0.
  constexpr float kSteps = 127;
  constexpr float kSmallest = kSteps / FLT_MAX * 2;
  const float magnitude = hn::GetLane(hn::MaxOfLanes(d, largest));
  // 0, or NaN.
  const float strange = hn::GetLane(hn::SumOfLanes(d, not_finite));
  const bool is_rounded = strange == 0 && magnitude > kSmallest;
  *scale = is_rounded ? magnitude / kSteps : strange;
  const Vec inverse = hn::Set(d, is_rounded ? kSteps / magnitude : 0);
  Ints sums = hn::Zero(IntTag());
  for (int64_t k = 0; k < block; k += kLanes) {
    Ints rounded = hn::Zero(IntTag());
    if (k < count && is_rounded) {
      const Vec elements = LoadFirst(d, x + k, std::min(kLanes, count - k));
      rounded = hn::NearestInt(hn::Mul(elements, inverse));
    }
    sums = hn::Add(sums, rounded);
    auto of_bytes = hn::DemoteTo(d8, rounded);
    if (bits == 4) {
      constexpr int8_t kHalves[] = {0, 2, 4, 6, 1, 3, 5, 7, 8, 10, 12, 14, 9, 11, 13, 15};
      of_bytes = hn::TableLookupBytes(of_bytes, hn::LoadU(d8, kHalves));
    }
    hn::StoreU(of_bytes, d8, bytes + k);
  }
  *sum = hn::GetLane(hn::SumOfLanes(IntTag(), sums));
}

void RoundAll(const QuantizedLayout& layout, const float* x, std::byte* row) {
  const ByteRowLayout places(layout);
  auto* const bytes = reinterpret_cast<int8_t*>(row);
  auto* const scales = reinterpret_cast<float*>(row + places.scales_at());
  auto* const sums = reinterpret_cast<int32_t*>(row + places.sums_at());
  for (int64_t number = 0; number < places.blocks(); ++number) {
    const int64_t k = number * layout.block;
    RoundBlock(x + k, std::clamp<int64_t>(layout.depth - k, 0, layout.block), layout.block,
               layout.bits, bytes + k, scales + number, sums + number);
  }
}

// The numbers of words, as quads: one of 8 bits, or two of 4, which have no sign.
HWY_INLINE void TakeApart(Ints words, Ints (&column)[1][kVectors], int v) {
  column[0][v] =
      hn::Xor(words, hn::Set(IntTag(), static_cast<int32_t>(kMiddleOf8 == 0 ? 0U : 0x80808080U)));
}
HWY_INLINE void TakeApart(Ints words, Ints (&column)[2][kVectors], int v) {
  const Ints low = hn::Set(IntTag(), 0x0F0F0F0F);
  column[0][v] = hn::And(words, low);
  column[1][v] = hn::And(hn::ShiftRight<4>(words), low);
}

#if HWY_TARGET == HWY_AVX3

constexpr int kMaxRows = 6;

bool NeedsPanel(int64_t rows) { return rows > kMaxRows; }

template <int quads>
void FillPanelOf(const QuantizedMatrix& matrix, int64_t column, std::byte* panel) {
  const IntTag d;
  auto* to = reinterpret_cast<int32_t*>(panel);
  const int64_t in_block = matrix.layout.block_words();
  const int32_t* from = matrix.Line(column, 0);
  for (int64_t word = 0; word < matrix.layout.words(); ++word) {
    // Behind the words of a block lie its scales and zeros.
    if (word != 0 && word % in_block == 0) {
      from += (matrix.layout.block_lines() - in_block) * kQuantizedColumns;
    }
    Ints numbers[quads][kVectors];
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) {
      FetchAhead(from + v * kLanes);
      TakeApart(hn::Load(d, from + v * kLanes), numbers, v);
    }
    from += kQuantizedColumns;
#pragma GCC unroll 2
    for (int q = 0; q < quads; ++q) {
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) hn::Store(numbers[q][v], d, to + v * kLanes);
      to += kQuantizedColumns;
    }
  }
}

void FillPanel(const QuantizedMatrix& matrix, int64_t column, std::byte* panel) {
  matrix.layout.bits == 4 ? FillPanelOf<2>(matrix, column, panel)
                          : FillPanelOf<1>(matrix, column, panel);
}

// Of four unsigned bytes in each lane and four signed ones. Sums are passed by value: as operands
// of instructions that are written out, elements of an array would stay in memory.
template <bool has_sign>
HWY_INLINE Ints MultiplyAdd(Ints numbers, Ints quad, Ints sum) {
  __asm__("vpdpbusd %2, %1, %0" : "+v"(sum.raw) : "v"(numbers.raw), "v"(quad.raw));
  return sum;
}

#else

constexpr int kMaxRows = 4;

bool NeedsPanel(int64_t /*rows*/) { return false; }
void FillPanel(const QuantizedMatrix& /*matrix*/, int64_t /*column*/, std::byte* /*panel*/) {}

// Of four bytes in each lane, unsigned ones and signed ones, whose products are added in pairs in
// 16 bits. Of numbers with a sign the magnitude is multiplied, at most 128 times 127, and the
// signs move to the row.
template <bool has_sign>
HWY_INLINE Ints MultiplyAdd(Ints numbers, Ints quad, Ints sum) {
  auto unsigned_ones = numbers.raw, signed_ones = quad.raw;
  if constexpr (has_sign) {
    unsigned_ones = _mm256_abs_epi8(numbers.raw);
    signed_ones = _mm256_sign_epi8(quad.raw, numbers.raw);
  }
  const auto pairs = _mm256_maddubs_epi16(unsigned_ones, signed_ones);
  return hn::Add(sum, Ints{_mm256_madd_epi16(pairs, _mm256_set1_epi16(1))});
}

#endif  // HWY_AVX3

// Where the numbers of columns are: in a panel, or in the words of the matrix.
enum class Source { kPanel, kWordsOf4, kWordsOf8 };

template <int rows, bool has_zeros, Source source>
HWY_NOINLINE void MultiplyRows(const ByteBlockProduct& product, int64_t row, int64_t first_column) {
  constexpr int kQuads = source == Source::kWordsOf4 ? 2 : 1;
  const Tag d;
  const IntTag di;
  const QuantizedLayout& layout = product.matrix.layout;
  const ByteRowLayout in_row(layout);
  const int64_t stride = in_row.size_bytes();
  const std::byte* const first = product.rows + row * stride;
  const int32_t* line = product.matrix.Line(first_column, 0);
  const int32_t* numbers =
      source == Source::kPanel ? reinterpret_cast<const int32_t*>(product.panel) : line;
  const int64_t to_scales = layout.block_words() * kQuantizedColumns;
  const int64_t to_next = layout.block_lines() * kQuantizedColumns;
  const auto number_at = [&](int r, int64_t at) HWY_ATTR {
    int32_t number;
    std::memcpy(&number, first + r * stride + at, sizeof(number));
    return number;
  };
  const auto float_at = [&](int r, int64_t at) HWY_ATTR {
    float number;
    std::memcpy(&number, first + r * stride + at, sizeof(number));
    return number;
  };
  const int32_t middle = MiddleOf(layout);
  Vec total[rows][kVectors];
#pragma GCC unroll 8
  for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) total[r][v] = hn::Zero(d);
  }
  const int64_t blocks = in_row.blocks();
  int64_t at = 0;
  for (int64_t block = 0; block < blocks; ++block) {
    const int64_t of_block = block * kFloatBytes;
    Ints sum[rows][kVectors];
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r) {
      const Ints start = hn::Set(di, -middle * number_at(r, in_row.sums_at() + of_block));
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) sum[r][v] = start;
    }
    for (int64_t left = layout.block; left > 0; left -= kQuads * kQuad, at += kQuads * kQuad) {
      Ints column[kQuads][kVectors];
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) {
        const Ints words = hn::Load(di, numbers + v * kLanes);
        if constexpr (source == Source::kPanel) {
          column[0][v] = words;
        } else {
          FetchAhead(numbers + v * kLanes);
          TakeApart(words, column, v);
        }
      }
      numbers += kQuantizedColumns;
#pragma GCC unroll 2
      for (int q = 0; q < kQuads; ++q) {
#pragma GCC unroll 8
        for (int r = 0; r < rows; ++r) {
          const Ints quad = hn::Set(di, number_at(r, at + q * kQuad));
#pragma GCC unroll 2
          for (int v = 0; v < kVectors; ++v) {
            sum[r][v] = MultiplyAdd<source == Source::kWordsOf8>(column[q][v], quad, sum[r][v]);
          }
        }
      }
    }
    Vec scale[kVectors], zero[kVectors];
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) {
      const int32_t* const scales = line + to_scales + v * kLanes;
      scale[v] = hn::BitCast(d, hn::Load(di, scales));
      if constexpr (source != Source::kPanel) FetchAhead(scales);
      if constexpr (has_zeros) {
        const int32_t* const zeros = scales + kQuantizedColumns;
        zero[v] = hn::BitCast(d, hn::Load(di, zeros));
        if constexpr (source != Source::kPanel) FetchAhead(zeros);
      }
    }
    line += to_next;
    if constexpr (source != Source::kPanel) numbers = line;
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r) {
      const Vec of_row = hn::Set(d, float_at(r, in_row.scales_at() + of_block));
      Vec bytes_sum;
      if constexpr (has_zeros) {
        bytes_sum = hn::Set(d, static_cast<float>(number_at(r, in_row.sums_at() + of_block)));
      }
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) {
        Vec part = hn::ConvertTo(d, sum[r][v]);
        if constexpr (has_zeros) part = hn::NegMulAdd(zero[v], bytes_sum, part);
        total[r][v] = hn::MulAdd(part, hn::Mul(scale[v], of_row), total[r][v]);
      }
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < rows; ++r) {
    float* const y = product.y + (row + r) * product.y_stride;
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) {
      const int64_t column = first_column + v * kLanes;
      StoreFirst(d, total[r][v], y + column,
                 std::clamp<int64_t>(layout.columns - column, 0, kLanes));
    }
  }
}

using RowsFunction = void (*)(const ByteBlockProduct&, int64_t, int64_t);

// By the number of rows less one.
template <bool has_zeros, Source source, int... rows>
constexpr std::array<RowsFunction, sizeof...(rows)> Functions(
    std::integer_sequence<int, rows...> /*all*/) {
  return {MultiplyRows<rows + 1, has_zeros, source>...};
}

// By the source, without zeros and with them.
template <Source source>
constexpr std::array<std::array<RowsFunction, kMaxRows>, 2> FunctionsOf() {
  using Numbers = std::make_integer_sequence<int, kMaxRows>;
  return {Functions<false, source>(Numbers()), Functions<true, source>(Numbers())};
}

void MultiplyAll(const ByteBlockProduct& product, const Epilogue& epilogue) {
  static constexpr auto kOfPanels = FunctionsOf<Source::kPanel>();
  static constexpr auto kOf4 = FunctionsOf<Source::kWordsOf4>();
  static constexpr auto kOf8 = FunctionsOf<Source::kWordsOf8>();
  const QuantizedLayout& layout = product.matrix.layout;
  const auto& of_source = product.panel != nullptr ? kOfPanels : layout.bits == 4 ? kOf4 : kOf8;
  const auto& functions = of_source[layout.has_zeros ? 1 : 0];
  const int64_t end = std::min(product.column + kQuantizedColumns, layout.columns);
  for (int64_t row = 0; row < product.row_count;) {
    const int64_t left = product.row_count - row;
    const int64_t now = left >= 2 * kMaxRows || left == kMaxRows ? kMaxRows
                        : left > kMaxRows                        ? (left + 1) / 2
                                                                 : left;
    for (int64_t column = product.column; column < end; column += kVectors * kLanes) {
      functions[static_cast<size_t>(now - 1)](product, row, column);
    }
    for (int64_t r = row; r < row + now && !epilogue.IsNothing(); ++r) {
      float* const y = product.y + r * product.y_stride;
      FinishRow(Tag(), y, /*part_stride=*/0, /*parts=*/1, epilogue, epilogue.AddendOf(r),
                product.column, end, y);
    }
    row += now;
  }
}

#else

bool CanMultiply(bool /*has_byte_products*/) { return false; }
int64_t MinRows() { return 1; }
bool NeedsPanel(int64_t /*rows*/) { return false; }
void RoundAll(const QuantizedLayout& /*layout*/, const float* /*x*/, std::byte* /*row*/) {}
void FillPanel(const QuantizedMatrix& /*matrix*/, int64_t /*column*/, std::byte* /*panel*/) {}
void MultiplyAll(const ByteBlockProduct& /*product*/, const Epilogue& /*epilogue*/) {}

#endif  // ONNXIFI_MULTIPLIES_BYTE_BLOCKS

}  // namespace HWY_NAMESPACE
}  // namespace onnxifi::gemm
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace onnxifi::gemm {

HWY_EXPORT(CanMultiply);
HWY_EXPORT(MinRows);
HWY_EXPORT(NeedsPanel);
HWY_EXPORT(RoundAll);
HWY_EXPORT(FillPanel);
HWY_EXPORT(MultiplyAll);

bool HasByteBlocks() { return HWY_DYNAMIC_DISPATCH(CanMultiply)(processor::HasByteProducts()); }

int64_t MinByteBlockRows() { return HWY_DYNAMIC_DISPATCH(MinRows)(); }

bool NeedsBytePanel(int64_t rows) { return HWY_DYNAMIC_DISPATCH(NeedsPanel)(rows); }

void RoundRow(const QuantizedLayout& layout, const float* x, std::byte* row) {
  HWY_DYNAMIC_DISPATCH(RoundAll)(layout, x, row);
}

void FillBytePanel(const QuantizedMatrix& matrix, int64_t column, std::byte* panel) {
  HWY_DYNAMIC_DISPATCH(FillPanel)(matrix, column, panel);
}

void MultiplyByteBlocks(const ByteBlockProduct& product, const Epilogue& epilogue) {
  HWY_DYNAMIC_DISPATCH(MultiplyAll)(product, epilogue);
}

}  // namespace onnxifi::gemm
#endif
