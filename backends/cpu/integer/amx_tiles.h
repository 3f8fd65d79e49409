// SPDX-License-Identifier: Apache-2.0
//
// AmxTiles: TileFunctions by the instructions of AMX. To be called on processors that have them
// only: amx_tiles.cc is compiled for these, and defines nothing that other files define as well.

#ifndef ONNXIFI_BACKENDS_CPU_INTEGER_AMX_TILES_H_
#define ONNXIFI_BACKENDS_CPU_INTEGER_AMX_TILES_H_

#include "backends/cpu/integer/tile_block.h"

namespace onnxifi::integer {

// Null where the library is built for processors of another kind. Threads: any.
const TileFunctions* AmxTiles();

}  // namespace onnxifi::integer

#endif  // ONNXIFI_BACKENDS_CPU_INTEGER_AMX_TILES_H_
