// SPDX-License-Identifier: Apache-2.0
//
// MapTiles: a Map whose reads lie in memory along another axis than its writes, as transpositions
// do: a group takes a tile of both axes, loads it along the one, hands it over in shared memory and
// stores it along the other, so that neighbouring items have neighbouring elements each time. For
// generate.cc, which asks, and map_tiles.cc, which writes the kernel, alone.

#ifndef ONNXIFI_BACKENDS_CORE_CODEGEN_MAP_TILES_H_
#define ONNXIFI_BACKENDS_CORE_CODEGEN_MAP_TILES_H_

#include "backends/core/codegen/family.h"

namespace onnxifi::codegen {

// Sets the tile of the form, and the numbers below, where tiles serve: a read and a write lie along
// different axes, both longer than a few elements. For devices whose items are the lanes.
void SetMapTile(const LoopFacts& facts, const device::BoundStep& step,
                const Capabilities& capabilities, LoopNest& loops);

// Of LoopNest::given, for a Map whose form has a tile.
enum MapTileNumber : int { kMapTiles, kTilesAlongReads, kTilesAlongWrites };

// The kernel of such a Map.
Launch WriteMapOfTiles(Writer& writer, const Source& source);

}  // namespace onnxifi::codegen

#endif  // ONNXIFI_BACKENDS_CORE_CODEGEN_MAP_TILES_H_
