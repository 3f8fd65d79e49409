// SPDX-License-Identifier: Apache-2.0
//
// BytePacking: four rows of columns that lie side by side are interleaved in vector registers,
// others byte by byte.

#include "backends/cpu/integer/byte_packing.h"

#include <algorithm>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/integer/byte_packing.cc"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace onnxifi::integer {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using Tag8 = hn::ScalableTag<uint8_t>;

// Where the only piece of a row begins.
constexpr int64_t kAtRow = 0;

// Four rows of B, of which `count` <= 4 are there, to quads of `columns` columns.
void InterleaveRows(const uint8_t* const* rows, int count, int64_t columns, uint8_t flip,
                    uint8_t* target) {
  int64_t column = 0;
#if HWY_TARGET != HWY_SCALAR
  const hn::CappedTag<uint8_t, 16> d;
  const hn::RepartitionToWide<decltype(d)> d16;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  if (lanes == 16 && count == 4) {
    const auto flips = hn::Set(d, flip);
    for (; column + lanes <= columns; column += lanes) {
      const auto load = [&](int k)
                            HWY_ATTR { return hn::Xor(hn::LoadU(d, rows[k] + column), flips); };
      const auto r0 = load(0), r1 = load(1), r2 = load(2), r3 = load(3);
      const auto low01 = hn::BitCast(d16, hn::InterleaveLower(d, r0, r1));
      const auto low23 = hn::BitCast(d16, hn::InterleaveLower(d, r2, r3));
      const auto high01 = hn::BitCast(d16, hn::InterleaveUpper(d, r0, r1));
      const auto high23 = hn::BitCast(d16, hn::InterleaveUpper(d, r2, r3));
      uint8_t* to = target + column * kQuad;
      hn::StoreU(hn::BitCast(d, hn::InterleaveLower(d16, low01, low23)), d, to);
      hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(d16, low01, low23)), d, to + 16);
      hn::StoreU(hn::BitCast(d, hn::InterleaveLower(d16, high01, high23)), d, to + 32);
      hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(d16, high01, high23)), d, to + 48);
    }
  }
#endif
  for (; column < columns; ++column) {
    for (int k = 0; k < static_cast<int>(kQuad); ++k) {
      target[column * kQuad + k] =
          k < count ? static_cast<uint8_t>(rows[k][column] ^ flip) : uint8_t{0};
    }
  }
}

// Adds the elements of each of `columns` quads to the column's sum.
void AddQuads(const int8_t* quads, int64_t columns, int32_t* sums) {
  for (int64_t column = 0; column < columns; ++column) {
    int32_t sum = 0;
    for (int k = 0; k < static_cast<int>(kQuad); ++k) sum += quads[column * kQuad + k];
    sums[column] += sum;
  }
}

void Copy(const uint8_t* source, int64_t count, uint8_t flip, uint8_t* target) {
  const Tag8 d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto flips = hn::Set(d, flip);
  int64_t k = 0;
  for (; k + lanes <= count; k += lanes) {
    hn::StoreU(hn::Xor(hn::LoadU(d, source + k), flips), d, target + k);
  }
  for (; k < count; ++k) target[k] = static_cast<uint8_t>(source[k] ^ flip);
}

#if HWY_TARGET != HWY_SCALAR
// The first `count` bytes of a vector, and zeros. Nothing behind them is read.
HWY_INLINE hn::Vec<Tag8> LoadFirst(const uint8_t* bytes, int64_t count) {
  const Tag8 d;
#if HWY_TARGET == HWY_AVX3
  return hn::MaskedLoad(hn::FirstN(d, static_cast<size_t>(count)), d, bytes);
#else
  HWY_ALIGN uint8_t lanes[HWY_MAX_BYTES] = {};
  std::memcpy(lanes, bytes, static_cast<size_t>(count));
  return hn::Load(d, lanes);
#endif
}
#endif

// Of pieces of `length` bytes.
int32_t SumPieces(const uint8_t* row, const int64_t* offsets, int64_t pieces, int64_t length) {
  uint64_t sum = 0;
#if HWY_TARGET == HWY_SCALAR
  for (int64_t piece = 0; piece < pieces; ++piece) {
    for (int64_t k = 0; k < length; ++k) sum += row[offsets[piece] + k];
  }
#else
  const Tag8 d;
  const hn::Repartition<uint64_t, Tag8> d64;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  auto sums = hn::Zero(d64);
  for (int64_t piece = 0; piece < pieces; ++piece) {
    const uint8_t* const bytes = row + offsets[piece];
    int64_t k = 0;
    for (; k + lanes <= length; k += lanes) {
      sums = hn::Add(sums, hn::SumsOf8(hn::LoadU(d, bytes + k)));
    }
    if (k < length) {
      sums = hn::Add(sums, hn::SumsOf8(LoadFirst(bytes + k, length - k)));
    }
  }
  sum = hn::GetLane(hn::SumOfLanes(d64, sums));
#endif
  return static_cast<int32_t>(static_cast<uint32_t>(sum));
}

void SumAllRows(const ByteProduct& product, int32_t* sums) {
  const int64_t* const offsets = product.piece_offsets != nullptr ? product.piece_offsets : &kAtRow;
  const int64_t length = product.depth / product.pieces;
  const int64_t run = product.run > 0 ? product.run : product.rows;
  int64_t place = product.place;
  const uint8_t* first_of_run = product.a - place * product.a_stride;
  for (int64_t r = 0; r < product.rows; ++r) {
    sums[r] = SumPieces(first_of_run + place * product.a_stride, offsets, product.pieces, length);
    if (++place < run) continue;
    place = 0;
    first_of_run += product.run_stride;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace onnxifi::integer
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace onnxifi::integer {
namespace {

HWY_EXPORT(InterleaveRows);
HWY_EXPORT(AddQuads);
HWY_EXPORT(Copy);
HWY_EXPORT(SumAllRows);

// The quad of `columns` columns from `column` on, its elements less than four at the end of a
// piece.
void PackQuads(const ByteMatrix& b, int64_t quad, int64_t column, int64_t columns,
               uint8_t* target) {
  const int64_t length = b.depth / b.pieces;
  const int64_t piece = quad / Quads(length), in_piece = quad % Quads(length) * kQuad;
  const auto count = static_cast<int>(std::min(kQuad, length - in_piece));
  const int64_t* offsets = b.depth_offsets + piece * length + in_piece;
  const uint8_t* rows[kQuad] = {};
  for (int k = 0; k < count; ++k) rows[k] = b.data + offsets[k] + column * b.column_stride;
  if (b.column_stride == 1) {
    HWY_DYNAMIC_DISPATCH(InterleaveRows)(rows, count, columns, b.flip, target);
    return;
  }
  for (int64_t c = 0; c < columns; ++c) {
    for (int k = 0; k < static_cast<int>(kQuad); ++k) {
      target[c * kQuad + k] =
          k < count ? static_cast<uint8_t>(rows[k][c * b.column_stride] ^ b.flip) : uint8_t{0};
    }
  }
}

}  // namespace

void PackPanels(const ByteMatrix& b, int64_t first_panel, int64_t end_panel, int8_t* packed,
                int32_t* column_sums) {
  const PanelLayout layout = LayoutOf(b.depth, b.pieces);
  const int64_t width = layout.columns;
  for (int64_t panel = first_panel; panel < end_panel; ++panel) {
    const int64_t columns = std::min(width, b.columns - panel * width);
    int8_t* const first = packed + panel * layout.size_bytes();
    int8_t* target = first + layout.quads_at();
    int32_t* sums = column_sums + panel * width;
    std::fill_n(sums, width, 0);
    for (int64_t quad = 0; quad < layout.quads; ++quad, target += width * kQuad) {
      PackQuads(b, quad, panel * width, columns, reinterpret_cast<uint8_t*>(target));
      std::memset(target + columns * kQuad, 0, static_cast<size_t>((width - columns) * kQuad));
      HWY_DYNAMIC_DISPATCH(AddQuads)(target, columns, sums);
    }
    layout.Finish(first);
  }
}

void CopyBytes(const uint8_t* source, int64_t count, uint8_t flip, uint8_t* target) {
  HWY_DYNAMIC_DISPATCH(Copy)(source, count, flip, target);
}

void SumRows(const ByteProduct& product, int32_t* sums) {
  HWY_DYNAMIC_DISPATCH(SumAllRows)(product, sums);
}

}  // namespace onnxifi::integer
#endif
