// SPDX-License-Identifier: Apache-2.0
//
// UsedTiles: which tiles multiply bytes here, if any.

#ifndef ONNXIFI_BACKENDS_CPU_INTEGER_USED_TILES_H_
#define ONNXIFI_BACKENDS_CPU_INTEGER_USED_TILES_H_

#include "backends/cpu/integer/tile_block.h"

namespace onnxifi::integer {

// Those of the processor; null where it has none, the system does not allow them, kernels must not
// use them (processor::HasByteTiles), or a first product by them had another result than it should.
// Threads: any.
const TileFunctions* ProcessorTiles();
// Those that ByteGemm uses: the processor's, unless a test gives others, which it does not do while
// a product is packed, bound or run.
const TileFunctions* UsedTiles();
void GiveTiles(const TileFunctions* tiles);

}  // namespace onnxifi::integer

#endif  // ONNXIFI_BACKENDS_CPU_INTEGER_USED_TILES_H_
