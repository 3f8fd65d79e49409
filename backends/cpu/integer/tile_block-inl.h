// SPDX-License-Identifier: Apache-2.0
//
// MultiplyTiles: the loops of a block, for the tiles of a processor and for tests' imitation of
// them. Included by files that are compiled for instructions that not every processor has: nothing
// here is compiled for others as well.

#ifndef ONNXIFI_BACKENDS_CPU_INTEGER_TILE_BLOCK_INL_H_
#define ONNXIFI_BACKENDS_CPU_INTEGER_TILE_BLOCK_INL_H_

#include <cstdint>

#include "backends/cpu/integer/tile_block.h"

namespace onnxifi::integer {

// Tiles of sums come first, those of each tile of rows together; then two of rows, and two of
// columns. `Tiles` has Load<tile>(address, stride), Store<tile>(address, stride), Multiply<sums,
// rows, columns>(), and CopyRow(row, bytes, target), which fills a row of 64 bytes up with zeros.
template <class Tiles, int row_tiles, int column_tiles>
void MultiplyTiles(Tiles& tiles, const TileBlock& block) {
  constexpr int kRowsAt = 4, kColumnsAt = 6;
  constexpr int64_t kQuadBytes = 4;
  constexpr int64_t kRowBytes = kTileQuads * kQuadBytes;
  constexpr int64_t kPanelStride = 2 * kTileColumns * kQuadBytes;
  constexpr int64_t kSumStride = column_tiles * kTileColumns * kQuadBytes;
  auto* const sums = reinterpret_cast<uint8_t*>(block.sums);
  constexpr int64_t kBelow = kTileRows * kSumStride, kBeside = kTileColumns * kQuadBytes;
  tiles.template Load<0>(sums, kSumStride);
  if constexpr (column_tiles > 1) tiles.template Load<1>(sums + kBeside, kSumStride);
  if constexpr (row_tiles > 1) tiles.template Load<2>(sums + kBelow, kSumStride);
  if constexpr (row_tiles * column_tiles > 2) {
    tiles.template Load<3>(sums + kBelow + kBeside, kSumStride);
  }
  alignas(64) uint8_t copies[row_tiles][kTileRows * kRowBytes];
  const auto* columns = reinterpret_cast<const uint8_t*>(block.panel);
  for (int64_t piece = 0; piece < block.pieces; ++piece) {
    int64_t offset = block.piece_offsets[piece];
    for (int64_t left = block.piece_quads; left > 0; left -= kTileQuads) {
      const int64_t quads = left < kTileQuads ? left : kTileQuads;
      const bool is_direct = quads == kTileQuads && block.stride != 0;
      const auto rows_at = [&](int tile) -> const uint8_t* {
        const uint8_t* const* rows = block.rows + tile * kTileRows;
        if (is_direct) return rows[0] + offset;
        // What lies behind the last quad of columns meets zeros.
        for (int64_t r = 0; r < kTileRows; ++r) {
          tiles.CopyRow(rows[r] + offset, quads * kQuadBytes, copies[tile] + r * kRowBytes);
        }
        return copies[tile];
      };
      const int64_t stride = is_direct ? block.stride : kRowBytes;
      tiles.template Load<kColumnsAt>(columns, kPanelStride);
      tiles.template Load<kRowsAt>(rows_at(0), stride);
      tiles.template Multiply<0, kRowsAt, kColumnsAt>();
      if constexpr (column_tiles > 1) {
        tiles.template Load<kColumnsAt + 1>(columns + kBeside, kPanelStride);
        tiles.template Multiply<1, kRowsAt, kColumnsAt + 1>();
      }
      if constexpr (row_tiles > 1) {
        tiles.template Load<kRowsAt + 1>(rows_at(1), stride);
        tiles.template Multiply<2, kRowsAt + 1, kColumnsAt>();
        if constexpr (column_tiles > 1) {
          tiles.template Multiply<3, kRowsAt + 1, kColumnsAt + 1>();
        }
      }
      columns += quads * kPanelStride;
      offset += quads * kQuadBytes;
    }
  }
  tiles.template Store<0>(sums, kSumStride);
  if constexpr (column_tiles > 1) tiles.template Store<1>(sums + kBeside, kSumStride);
  if constexpr (row_tiles > 1) tiles.template Store<2>(sums + kBelow, kSumStride);
  if constexpr (row_tiles * column_tiles > 2) {
    tiles.template Store<3>(sums + kBelow + kBeside, kSumStride);
  }
}

template <class Tiles>
void MultiplyTiles(Tiles tiles, const TileBlock& block) {
  if (block.row_tiles > 1) {
    block.column_tiles > 1 ? MultiplyTiles<Tiles, 2, 2>(tiles, block)
                           : MultiplyTiles<Tiles, 2, 1>(tiles, block);
  } else {
    block.column_tiles > 1 ? MultiplyTiles<Tiles, 1, 2>(tiles, block)
                           : MultiplyTiles<Tiles, 1, 1>(tiles, block);
  }
}

}  // namespace onnxifi::integer

#endif  // ONNXIFI_BACKENDS_CPU_INTEGER_TILE_BLOCK_INL_H_
