// SPDX-License-Identifier: Apache-2.0
//
// TileBlock: a block of rows of bytes times a panel of columns in the tile registers of AMX: 16
// rows of 64 bytes each, of which one instruction multiplies two and adds the products to a third.
// One thread.

#ifndef ONNXIFI_BACKENDS_CPU_INTEGER_TILE_BLOCK_H_
#define ONNXIFI_BACKENDS_CPU_INTEGER_TILE_BLOCK_H_

#include <cstdint>

namespace onnxifi::integer {

// Of a tile: its rows, and the quads of bytes in each. Columns of a panel lie in two tiles side by
// side.
inline constexpr int64_t kTileRows = 16;
inline constexpr int64_t kTileQuads = 16;
inline constexpr int64_t kTileColumns = 16;
inline constexpr int64_t kMaxTileBlockRows = 2 * kTileRows;

struct TileBlock {
  // Where each of kTileRows or 2 * kTileRows rows begins; several may be the same.
  const uint8_t* const* rows;
  int row_tiles;     // 1 or 2
  int column_tiles;  // 1 or 2: of the panel, which is two wide
  // How far apart all rows of a tile lie, which are read where they are; 0: they do not, and are
  // copied.
  int64_t stride;
  // Quads of 32 columns. Behind the last quad may be anything up to kTileQuads quads, which is
  // read.
  const int8_t* panel;
  // Where the pieces of a row begin, from the row on, each of `piece_quads` quads.
  const int64_t* piece_offsets;
  int64_t pieces;
  int64_t piece_quads;
  // [row][16 * column_tiles]: what the sums begin with, and then the sums.
  int32_t* sums;
};

// How tiles are used: `multiply` between a `begin` and an `end` of the same thread.
struct TileFunctions {
  void (*begin)();
  void (*multiply)(const TileBlock& block);
  void (*end)();
};

}  // namespace onnxifi::integer

#endif  // ONNXIFI_BACKENDS_CPU_INTEGER_TILE_BLOCK_H_
