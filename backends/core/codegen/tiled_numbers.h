// SPDX-License-Identifier: Apache-2.0
//
// The numbers that the kernels of a TiledProduct are given. For tiled_product.cc, which finds them,
// and tiled_product_text.cc, which writes the kernels, alone.

#ifndef ONNXIFI_BACKENDS_CORE_CODEGEN_TILED_NUMBERS_H_
#define ONNXIFI_BACKENDS_CORE_CODEGEN_TILED_NUMBERS_H_

#include <cstdint>

namespace onnxifi::codegen {

// How many elements of the depth one item lays out.
inline constexpr int64_t kChunk = 32;

// Of LoopNest::given. Behind them: by batch axis the steps of rows (in matrices) and of columns (in
// elements), the extents of what is laid out of each; by column axis its pitch; of a convolution,
// by spatial axis extents and phases of the image; of a transposed one, then, how many q there are
// and the first.
enum GivenNumber : int {
  kRows,
  kRowTiles,
  kColumns,
  kColumnTiles,
  kLastStart,  // of a block's columns
  kChannels,   // inner loop of the sums
  kDepth,
  kStep,       // from one element of the depth to the next, in the columns
  kTilePitch,  // columns
  kPartPitch,  // columns
  kPhasePitch,
  kChunks,
  kItems,
  kRowItems,
  kColumnItems,
  kFixed,
};

}  // namespace onnxifi::codegen

#endif  // ONNXIFI_BACKENDS_CORE_CODEGEN_TILED_NUMBERS_H_
