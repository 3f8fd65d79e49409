// SPDX-License-Identifier: Apache-2.0
//
// ByteGemm: a block of rows times two vectors of columns stays in registers over the whole depth.
// Four bytes of a row are broadcast, and multiplied with four bytes of each column. Processors with
// VNNI have one instruction for that; those with AMX have one for tiles of 16 rows (tile_block.h).
// Older ones have one that adds two products in 16 bits, where large columns would saturate: what
// is too large is split off when columns are packed, and multiplied by itself. Where that is much,
// and on other processors, bytes are taken apart into those at even and at odd places as 16-bit
// integers, whose products no instruction saturates.

#include "backends/cpu/integer/byte_gemm.h"

#include <hwy/cache_control.h>

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <utility>

#include "backends/cpu/integer/tile_block.h"
#include "backends/cpu/integer/used_tiles.h"
#include "backends/cpu/processor/processor.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/integer/byte_gemm.cc"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace onnxifi::integer {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using Tag = hn::ScalableTag<int32_t>;
using Tag8 = hn::ScalableTag<uint8_t>;
using Sums = hn::Vec<Tag>;

constexpr int kVectors = kPanelVectors;

int64_t Lanes() { return static_cast<int64_t>(hn::Lanes(Tag())); }

HWY_INLINE Sums BroadcastQuad(const uint8_t* address) {
  int32_t quad;
  std::memcpy(&quad, address, sizeof(quad));
  return hn::Set(Tag(), quad);
}

// How four unsigned bytes are multiplied with four signed ones and added up. A multiplier has a
// form of either operand that is made once and multiplied often.

#if HWY_TARGET == HWY_SCALAR

struct OneByOne {
  using Row = Sums;
  using Column = Sums;
  static constexpr int64_t kColumnBytes = kQuad;
  static constexpr int kRows = 4;
  static HWY_INLINE Row MakeRow(Sums quad) { return quad; }
  static HWY_INLINE Column MakeColumn(const int8_t* quad) {
    return BroadcastQuad(reinterpret_cast<const uint8_t*>(quad));
  }
  static HWY_INLINE Sums MultiplyAdd(Row row, Column column, Sums sum) {
    const auto a = static_cast<uint32_t>(hn::GetLane(row));
    const auto b = static_cast<uint32_t>(hn::GetLane(column));
    auto total = static_cast<uint32_t>(hn::GetLane(sum));
    for (int shift = 0; shift < 32; shift += 8) {
      const auto signed_byte = static_cast<int8_t>(b >> shift & 0xFF);
      total += static_cast<uint32_t>(static_cast<int32_t>(a >> shift & 0xFF) * signed_byte);
    }
    return hn::Set(Tag(), static_cast<int32_t>(total));
  }
};
using AnyMultiplier = OneByOne;

#else

using Tag16 = hn::ScalableTag<int16_t>;

HWY_INLINE Sums LoadQuads(const int8_t* address) {
  return hn::BitCast(Tag(), hn::LoadU(Tag8(), reinterpret_cast<const uint8_t*>(address)));
}

// The sum of products of two 16-bit integers, which fits.
HWY_INLINE Sums MultiplyPairs(hn::Vec<Tag16> a, hn::Vec<Tag16> b) {
#if HWY_TARGET == HWY_AVX3
  return Sums{_mm512_madd_epi16(a.raw, b.raw)};
#elif HWY_TARGET == HWY_AVX2
  return Sums{_mm256_madd_epi16(a.raw, b.raw)};
#elif HWY_TARGET == HWY_SSE4
  return Sums{_mm_madd_epi16(a.raw, b.raw)};
#else
  const Sums a_pairs = hn::BitCast(Tag(), a);
  const Sums b_pairs = hn::BitCast(Tag(), b);
  const Sums even = hn::Mul(hn::ShiftRight<16>(hn::ShiftLeft<16>(a_pairs)),
                            hn::ShiftRight<16>(hn::ShiftLeft<16>(b_pairs)));
  return hn::Add(even, hn::Mul(hn::ShiftRight<16>(a_pairs), hn::ShiftRight<16>(b_pairs)));
#endif
}

struct BySixteenBits {
  struct Row {
    hn::Vec<Tag16> even, odd;
  };
  struct Column {
    hn::Vec<Tag16> even, odd;
  };
  static constexpr int64_t kColumnBytes = kQuad;
#if HWY_TARGET == HWY_AVX3 || HWY_ARCH_ARM_A64
  static constexpr int kRows = 10;
#else
  static constexpr int kRows = 4;
#endif
  static HWY_INLINE Row MakeRow(Sums quads) {
    const auto bytes = hn::BitCast(hn::ScalableTag<uint16_t>(), quads);
    return {hn::BitCast(Tag16(), hn::And(bytes, hn::Set(hn::ScalableTag<uint16_t>(), 0xFF))),
            hn::BitCast(Tag16(), hn::ShiftRight<8>(bytes))};
  }
  static HWY_INLINE Column MakeColumn(const int8_t* quads) {
    const auto bytes = hn::BitCast(Tag16(), LoadQuads(quads));
    return {hn::ShiftRight<8>(hn::ShiftLeft<8>(bytes)), hn::ShiftRight<8>(bytes)};
  }
  static HWY_INLINE Sums MultiplyAdd(const Row& row, const Column& column, Sums sum) {
    return hn::Add(
        sum, hn::Add(MultiplyPairs(row.even, column.even), MultiplyPairs(row.odd, column.odd)));
  }
};

using AnyMultiplier = BySixteenBits;

// Of columns that were taken apart beforehand.
struct ByWideColumns : BySixteenBits {
  static constexpr int64_t kColumnBytes = 2 * kQuad;
  static HWY_INLINE Column MakeColumn(const int8_t* columns) {
    const Tag16 d;
    const auto* even = reinterpret_cast<const int16_t*>(columns);
    return {hn::LoadU(d, even), hn::LoadU(d, even + hn::Lanes(d))};
  }
};

#endif  // HWY_SCALAR

#undef ONNXIFI_HAS_PAIRS
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_SSE4
#define ONNXIFI_HAS_PAIRS 1
// Two products of neighbours in 16 bits, which hold those of columns whose neighbours are at most
// kMaxPair together.
struct ByPairs {
  using Row = Sums;
  using Column = Sums;
  static constexpr int64_t kColumnBytes = kQuad;
#if HWY_TARGET == HWY_AVX3
  static constexpr int kRows = 12;
#else
  static constexpr int kRows = 4;
#endif
  static HWY_INLINE Row MakeRow(Sums quads) { return quads; }
  static HWY_INLINE Column MakeColumn(const int8_t* quads) { return LoadQuads(quads); }
  static HWY_INLINE Sums MultiplyAdd(Row row, Column column, Sums sum) {
    const auto ones = hn::Set(Tag16(), 1);
#if HWY_TARGET == HWY_AVX3
    const hn::Vec<Tag16> pairs{_mm512_maddubs_epi16(row.raw, column.raw)};
#elif HWY_TARGET == HWY_AVX2
    const hn::Vec<Tag16> pairs{_mm256_maddubs_epi16(row.raw, column.raw)};
#else
    const hn::Vec<Tag16> pairs{_mm_maddubs_epi16(row.raw, column.raw)};
#endif
    return hn::Add(sum, MultiplyPairs(pairs, ones));
  }
};
#else
#define ONNXIFI_HAS_PAIRS 0
using ByPairs = AnyMultiplier;  // not used
#endif

#undef ONNXIFI_HAS_BYTE_PRODUCTS
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2
#define ONNXIFI_HAS_BYTE_PRODUCTS 1
// One instruction, which wraps and does not saturate. Written out, since neither Highway nor the
// features that it has this code compiled for know it.
struct ByBytes {
  using Row = Sums;
  using Column = Sums;
  static constexpr int64_t kColumnBytes = kQuad;
#if HWY_TARGET == HWY_AVX3
  static constexpr int kRows = 14;
#else
  static constexpr int kRows = 6;
#endif
  static HWY_INLINE Row MakeRow(Sums quads) { return quads; }
  static HWY_INLINE Column MakeColumn(const int8_t* quads) { return LoadQuads(quads); }
  static HWY_INLINE Sums MultiplyAdd(Row row, Column column, Sums sum) {
#if HWY_TARGET == HWY_AVX3
    __asm__("vpdpbusd %2, %1, %0" : "+v"(sum.raw) : "v"(row.raw), "v"(column.raw));
#else
    __asm__("%{vex%} vpdpbusd %2, %1, %0" : "+x"(sum.raw) : "x"(row.raw), "x"(column.raw));
#endif
    return sum;
  }
};
#else
#define ONNXIFI_HAS_BYTE_PRODUCTS 0
#endif

// Lanes [0, count) to `target`; nothing behind them is touched.
HWY_INLINE void StoreFirst(Sums sums, int64_t count, int32_t* target) {
  const Tag d;
  if (count >= Lanes()) return hn::StoreU(sums, d, target);
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2
  hn::BlendedStore(sums, hn::FirstN(d, static_cast<size_t>(count)), d, target);
#else
  HWY_ALIGN int32_t lanes[HWY_MAX_BYTES / sizeof(int32_t)];
  hn::Store(sums, d, lanes);
  std::memcpy(target, lanes, static_cast<size_t>(count) * sizeof(int32_t));
#endif
}

// The rows and columns of C that one call computes. Tables of columns are those of the panel.
struct Block {
  const uint8_t* a;
  int64_t a_stride;
  const int8_t* b;
  int32_t* c;
  int64_t c_stride;
  const int64_t* piece_offsets;
  int64_t pieces;
  int64_t piece_quads;
  int64_t columns;
  const int32_t* row_terms;
  const int32_t* column_sums;
  const int32_t* row_sums;
  const int32_t* column_terms;
  // Of each vector, quads of which something was split off.
  PanelExcess excess[kVectors];
};

template <class Multiplier, int rows, int vectors>
HWY_NOINLINE void MultiplyBlock(const Block& block) {
  const Tag d;
  const int64_t lanes = Lanes();
  Sums sum[rows][vectors];
#pragma GCC unroll 2
  for (int v = 0; v < vectors; ++v) {
    const Sums column_sums = hn::LoadU(d, block.column_sums + v * lanes);
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r) {
      sum[r][v] = hn::Mul(hn::Set(d, block.row_terms[r]), column_sums);
    }
    if (block.row_sums == nullptr) continue;
    const Sums column_terms = hn::LoadU(d, block.column_terms + v * lanes);
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r) {
      sum[r][v] = hn::Add(sum[r][v], hn::Mul(hn::Set(d, block.row_sums[r]), column_terms));
    }
  }
  // Rows in threes, so that one register addresses three of them.
  constexpr int kThrees = (rows + 2) / 3;
  const int64_t stride = block.a_stride;
  const uint8_t* a[kThrees];
  const int8_t* b = block.b;
  constexpr int64_t kColumnBytes = Multiplier::kColumnBytes;
  const int64_t b_step = kVectors * lanes * kColumnBytes;
  constexpr int64_t kAhead = 3072;  // bytes of the panel
  for (int64_t piece = 0; piece < block.pieces; ++piece) {
    const uint8_t* const first = block.a + block.piece_offsets[piece];
#pragma GCC unroll 8
    for (int t = 0; t < kThrees; ++t) a[t] = first + 3 * t * stride;
    for (int64_t left = block.piece_quads; left > 0; --left) {
      hwy::Prefetch(b + kAhead);
      if constexpr (HWY_MAX_BYTES * vectors * kColumnBytes > 64 * kQuad) {
        hwy::Prefetch(b + kAhead + 64);
      }
      typename Multiplier::Column column[vectors];
#pragma GCC unroll 2
      for (int v = 0; v < vectors; ++v) {
        column[v] = Multiplier::MakeColumn(b + v * lanes * kColumnBytes);
      }
#pragma GCC unroll 16
      for (int r = 0; r < rows; ++r) {
        const typename Multiplier::Row row =
            Multiplier::MakeRow(BroadcastQuad(a[r / 3] + (r % 3) * stride));
#pragma GCC unroll 2
        for (int v = 0; v < vectors; ++v) {
          sum[r][v] = Multiplier::MultiplyAdd(row, column[v], sum[r][v]);
        }
      }
      b += b_step;
#pragma GCC unroll 8
      for (int t = 0; t < kThrees; ++t) a[t] += kQuad;
    }
  }
  if constexpr (std::is_same_v<Multiplier, ByPairs>) {
#pragma GCC unroll 2
    for (int v = 0; v < vectors; ++v) {
      const PanelExcess& excess = block.excess[v];
      const int8_t* quads = excess.quads;
      int64_t piece = 0, first_quad = 0;
      for (int64_t k = 0; k < excess.count; ++k, quads += lanes * kQuad) {
        for (; excess.numbers[k] - first_quad >= block.piece_quads; ++piece) {
          first_quad += block.piece_quads;
        }
        const uint8_t* const first =
            block.a + block.piece_offsets[piece] + (excess.numbers[k] - first_quad) * kQuad;
        const typename Multiplier::Column column = Multiplier::MakeColumn(quads);
#pragma GCC unroll 16
        for (int r = 0; r < rows; ++r) {
          const auto row = Multiplier::MakeRow(BroadcastQuad(first + r * stride));
          sum[r][v] = Multiplier::MultiplyAdd(row, column, sum[r][v]);
        }
      }
    }
  }
#pragma GCC unroll 2
  for (int v = 0; v < vectors; ++v) {
    const int64_t count = std::min(lanes, block.columns - v * lanes);
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r) {
      StoreFirst(sum[r][v], count, block.c + r * block.c_stride + v * lanes);
    }
  }
}

// The function for each number of vectors and of rows.
using BlockFunction = void (*)(const Block&);
template <class Multiplier>
struct BlockFunctions {
  static constexpr int kRows = Multiplier::kRows;
  BlockFunction of[kVectors + 1][kRows + 1] = {};

  constexpr BlockFunctions() {
    Fill<1>(std::make_integer_sequence<int, kRows>());
    Fill<2>(std::make_integer_sequence<int, kRows>());
  }

 private:
  template <int vectors, int... rows>
  constexpr void Fill(std::integer_sequence<int, rows...> /*unused*/) {
    ((of[vectors][rows + 1] = MultiplyBlock<Multiplier, rows + 1, vectors>), ...);
  }
};

// Where the only piece of a row begins.
constexpr int64_t kAtRow = 0;

// What becomes of the sums of a panel.
struct Finish {
  const Requantization* how = nullptr;  // null: they stay where they are
  RequantizeFunction requantize = nullptr;
  SumBlock bytes{};  // of the panel
};

// Whole blocks of rows, and then what is left in one or two of about equal height.
template <class Multiplier>
void MultiplyPanel(Block block, const ByteProduct& product, int vectors, const Finish& finish) {
  static constexpr BlockFunctions<Multiplier> kFunctions;
  constexpr int64_t kRows = Multiplier::kRows;
  // Blocks whose sums are requantized together; each is few vectors where vectors are short.
  constexpr int64_t kHeldRows = (HWY_MAX_BYTES < 64 ? 2 : 1) * kRows;
  const BlockFunction* const functions = kFunctions.of[vectors];
  SumBlock bytes = finish.bytes;
  HWY_ALIGN int32_t sums[kHeldRows * kVectors * HWY_MAX_BYTES / sizeof(int32_t) + kSumSlack];
  if (finish.how != nullptr) {
    // Whole vectors: behind the last column are zeros.
    block.columns = block.c_stride = vectors * Lanes();
    bytes.sums = sums;
    bytes.sum_stride = block.c_stride;
    bytes.rows = 0;
    block.c = sums;
  }
  const int64_t run = product.run > 0 ? product.run : product.rows;
  int64_t place = product.place;
  const uint8_t* first_of_run = product.a - place * product.a_stride;
  for (int64_t left = product.rows; left > 0;) {
    const int64_t here = std::min(left, run - place);
    const int64_t now = here >= 2 * kRows || here == kRows ? kRows
                        : here > kRows                     ? (here + 1) / 2
                                                           : here;
    functions[now](block);
    block.c += now * block.c_stride;
    left -= now;
    if (finish.how != nullptr) {
      bytes.rows += now;
      if (left == 0 || bytes.rows + kRows > kHeldRows) {
        finish.requantize(*finish.how, bytes);
        bytes.result += bytes.rows * bytes.result_stride;
        if (bytes.added != nullptr) bytes.added += bytes.rows * bytes.added_stride;
        bytes.rows = 0;
        block.c = sums;
      }
    }
    place += now;
    if (place == run) {
      place = 0;
      first_of_run += product.run_stride;
    }
    block.a = first_of_run + place * block.a_stride;
    block.row_terms += now;
    if (block.row_sums != nullptr) block.row_sums += now;
  }
}

#if HWY_TARGET == HWY_AVX3
// Fewer rows, or fewer quads of a piece, are sooner done in vectors.
constexpr int64_t kMinTileRows = 8;
constexpr int64_t kMinTileQuads = 4;

bool AreWorthTiles(const ByteProduct& product, const PanelLayout& layout) {
  return product.rows >= kMinTileRows && layout.quads >= kMinTileQuads * product.pieces;
}

// What the sums of a block begin with.
void StartSums(const Block& block, int64_t rows, int vectors, int32_t* sums) {
  const Tag d;
  for (int64_t r = 0; r < rows; ++r) {
    for (int v = 0; v < vectors; ++v, sums += kTileColumns) {
      const int64_t column = v * kTileColumns;
      Sums sum = hn::Mul(hn::Set(d, block.row_terms[r]), hn::LoadU(d, block.column_sums + column));
      if (block.row_sums != nullptr) {
        const Sums terms = hn::LoadU(d, block.column_terms + column);
        sum = hn::Add(sum, hn::Mul(hn::Set(d, block.row_sums[r]), terms));
      }
      hn::Store(sum, d, sums);
    }
  }
}

// Blocks of rows in tiles. In a block that is not full, the last row stands for those that are
// missing; what is left after the last block is done in vectors.
void MultiplyPanelInTiles(Block block, const ByteProduct& product, int vectors, Finish finish,
                          const TileFunctions& tiles) {
  static_assert(kTileColumns == HWY_MAX_BYTES / sizeof(int32_t));
  HWY_ALIGN int32_t sums[kMaxTileBlockRows * kVectors * kTileColumns + kSumSlack];
  const uint8_t* rows[kMaxTileBlockRows];
  TileBlock tile_block = {
      rows, 0, vectors, 0, block.b, block.piece_offsets, block.pieces, block.piece_quads, sums};
  const int64_t run = product.run > 0 ? product.run : product.rows;
  int64_t place = product.place;
  const uint8_t* first_of_run = product.a - place * product.a_stride;
  int64_t left = product.rows;
  while (left >= kMinTileRows) {
    const int64_t now = std::min(left, kMaxTileBlockRows);
    const int64_t of_tiles = now > kTileRows ? kMaxTileBlockRows : kTileRows;
    const bool is_even = now == of_tiles && run - place >= now;
    for (int64_t r = 0; r < now; ++r) {
      rows[r] = first_of_run + place * product.a_stride;
      if (++place < run) continue;
      place = 0;
      first_of_run += product.run_stride;
    }
    std::fill(rows + now, rows + of_tiles, rows[now - 1]);
    tile_block.row_tiles = static_cast<int>(of_tiles / kTileRows);
    tile_block.stride = is_even ? product.a_stride : 0;
    StartSums(block, now, vectors, sums);
    std::fill(sums + now * vectors * kTileColumns, sums + of_tiles * vectors * kTileColumns, 0);
    tiles.multiply(tile_block);
    if (finish.how == nullptr) {
      for (int64_t r = 0; r < now; ++r, block.c += block.c_stride) {
        for (int v = 0; v < vectors; ++v) {
          StoreFirst(hn::Load(Tag(), sums + (r * vectors + v) * kTileColumns),
                     std::min(kTileColumns, block.columns - v * kTileColumns),
                     block.c + v * kTileColumns);
        }
      }
    } else {
      SumBlock& bytes = finish.bytes;
      bytes.sums = sums;
      bytes.sum_stride = vectors * kTileColumns;
      bytes.rows = now;
      finish.requantize(*finish.how, bytes);
      bytes.result += now * bytes.result_stride;
      if (bytes.added != nullptr) bytes.added += now * bytes.added_stride;
    }
    block.row_terms += now;
    if (block.row_sums != nullptr) block.row_sums += now;
    left -= now;
  }
  if (left == 0) return;
  ByteProduct rest = product;
  rest.place = place;
  block.a = rest.a = first_of_run + place * product.a_stride;
  rest.rows = left;
  if (rest.run == 0) rest.run = product.rows;
  MultiplyPanel<ByBytes>(block, rest, vectors, finish);
}
#endif

void MoveOn(int64_t columns, Finish& finish) {
  if (finish.how == nullptr) return;
  SumBlock& bytes = finish.bytes;
  bytes.first_column += columns;
  bytes.result += columns * finish.how->result_bytes();
  if (bytes.added != nullptr) bytes.added += columns;
}

void MultiplyRows(const ByteProduct& product, const PanelLayout& layout, const Requantization* how,
                  const SumBlock* bytes) {
  Finish finish;
  if (how != nullptr) finish = {how, FindRequantize(), *bytes};
  const int64_t lanes = Lanes();
  const int64_t panel_columns = kVectors * lanes;
  const int8_t* panel = product.b;
#if HWY_TARGET == HWY_AVX3
  const TileFunctions* tiles = layout.multiplier == MultiplierKind::kBytes ? UsedTiles() : nullptr;
  if (tiles != nullptr && !AreWorthTiles(product, layout)) tiles = nullptr;
  if (tiles != nullptr) tiles->begin();
#endif
  for (int64_t column = 0; column < product.columns;
       column += panel_columns, panel += layout.size_bytes()) {
    const int64_t columns = std::min(panel_columns, product.columns - column);
    Block block = {};
    block.a = product.a;
    block.a_stride = product.a_stride;
    block.b = panel;
    if (finish.how == nullptr) {
      block.c = product.c + column;
    } else {
      finish.bytes.columns = columns;
    }
    block.c_stride = product.c_stride;
    block.piece_offsets = product.piece_offsets != nullptr ? product.piece_offsets : &kAtRow;
    block.pieces = product.pieces;
    block.piece_quads = layout.quads / product.pieces;
    block.columns = columns;
    block.row_terms = product.row_terms;
    block.column_sums = product.column_sums + column;
    block.row_sums = product.row_sums;
    if (product.column_terms != nullptr) block.column_terms = product.column_terms + column;
    const int vectors = columns > lanes ? 2 : 1;
#if HWY_TARGET == HWY_AVX3
    if (tiles != nullptr) {
      MultiplyPanelInTiles(block, product, vectors, finish, *tiles);
      MoveOn(columns, finish);
      continue;
    }
#endif
#if ONNXIFI_HAS_BYTE_PRODUCTS
    if (layout.multiplier == MultiplierKind::kBytes) {
      MultiplyPanel<ByBytes>(block, product, vectors, finish);
      MoveOn(columns, finish);
      continue;
    }
#endif
#if ONNXIFI_HAS_PAIRS
    if (layout.multiplier == MultiplierKind::kPairs) {
      block.b = panel + layout.quads_at();
      for (int v = 0; v < kVectors; ++v) block.excess[v] = layout.ExcessOf(panel, v);
      if (!layout.IsWide(panel)) {
        MultiplyPanel<ByPairs>(block, product, vectors, finish);
      } else {
        MultiplyPanel<ByWideColumns>(block, product, vectors, finish);
      }
      MoveOn(columns, finish);
      continue;
    }
#endif
    MultiplyPanel<AnyMultiplier>(block, product, vectors, finish);
    MoveOn(columns, finish);
  }
#if HWY_TARGET == HWY_AVX3
  if (tiles != nullptr) tiles->end();
#endif
}

bool CanUseTiles() { return HWY_TARGET == HWY_AVX3; }

MultiplierKind ChooseMultiplier(bool has_byte_products) {
  if (ONNXIFI_HAS_BYTE_PRODUCTS && has_byte_products) return MultiplierKind::kBytes;
  return ONNXIFI_HAS_PAIRS ? MultiplierKind::kPairs : MultiplierKind::kAny;
}

int64_t RowsOfBlock(MultiplierKind kind) {
#if ONNXIFI_HAS_BYTE_PRODUCTS
  if (kind == MultiplierKind::kBytes) return ByBytes::kRows;
#endif
  return kind == MultiplierKind::kPairs ? ByPairs::kRows : AnyMultiplier::kRows;
}

}  // namespace HWY_NAMESPACE
}  // namespace onnxifi::integer
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace onnxifi::integer {
namespace {

HWY_EXPORT(Lanes);
HWY_EXPORT(MultiplyRows);
HWY_EXPORT(ChooseMultiplier);
HWY_EXPORT(RowsOfBlock);
HWY_EXPORT(CanUseTiles);

int64_t Panels(int64_t columns) { return (columns + PanelColumns() - 1) / PanelColumns(); }

MultiplierKind Multiplier() {
  return HWY_DYNAMIC_DISPATCH(ChooseMultiplier)(processor::HasByteProducts());
}

bool HasTiles() {
  return HWY_DYNAMIC_DISPATCH(CanUseTiles)() && Multiplier() == MultiplierKind::kBytes &&
         UsedTiles() != nullptr;
}

}  // namespace

PanelLayout LayoutOf(int64_t depth, int64_t pieces) {
  return {PanelColumns(), pieces * Quads(depth / pieces), Multiplier()};
}

int64_t PanelColumns() { return kPanelVectors * HWY_DYNAMIC_DISPATCH(Lanes)(); }

int64_t BlockRows() {
  if (HasTiles()) return kTileRows;
  return HWY_DYNAMIC_DISPATCH(RowsOfBlock)(Multiplier());
}

double MultiplyAddsPerSecond() {
  // Four bytes of each lane in two units at about 3 GHz, or in so many times as many instructions.
  const double lanes = static_cast<double>(HWY_DYNAMIC_DISPATCH(Lanes)());
  const MultiplierKind kind = Multiplier();
  const double times = kind == MultiplierKind::kBytes   ? 1
                       : kind == MultiplierKind::kPairs ? 2.5
                                                        : 4;
  constexpr double kOfTiles = 8;
  return (HasTiles() ? kOfTiles : 1) * lanes * 4 * 2 * 3e9 / times;
}

std::string MultiplierName() {
  const MultiplierKind kind = Multiplier();
  if (HasTiles()) return std::string(processor::VectorName()) + " with AMX";
  return std::string(processor::VectorName()) + (kind == MultiplierKind::kBytes ? " with VNNI"
                                                 : kind == MultiplierKind::kPairs
                                                     ? ", pairs in 16 bits"
                                                     : ", 16-bit products");
}

int64_t PaddedColumns(int64_t columns) { return Panels(columns) * PanelColumns(); }

int64_t PanelBytes(int64_t depth, int64_t pieces) { return LayoutOf(depth, pieces).size_bytes(); }

int64_t PackedBytes(int64_t depth, int64_t columns, int64_t pieces) {
  constexpr int64_t kLine = 64;
  // The last tile of a piece is read as a whole.
  const int64_t slack = HasTiles() ? (kTileQuads - 1) * PanelColumns() * kQuad : 0;
  return (Panels(columns) * PanelBytes(depth, pieces) + slack + kLine - 1) / kLine * kLine;
}

void Multiply(const ByteProduct& product) {
  HWY_DYNAMIC_DISPATCH(MultiplyRows)
  (product, LayoutOf(product.depth, product.pieces), nullptr, nullptr);
}

void MultiplyAndRequantize(const ByteProduct& product, const Requantization& how,
                           const SumBlock& bytes) {
  HWY_DYNAMIC_DISPATCH(MultiplyRows)
  (product, LayoutOf(product.depth, product.pieces), &how, &bytes);
}

}  // namespace onnxifi::integer
#endif
