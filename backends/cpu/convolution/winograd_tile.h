// SPDX-License-Identifier: Apache-2.0
//
// Winograd tile: the variants of Winograd's algorithm for kernels of 3 x 3.

#ifndef ONNXIFI_BACKENDS_CPU_CONVOLUTION_WINOGRAD_TILE_H_
#define ONNXIFI_BACKENDS_CPU_CONVOLUTION_WINOGRAD_TILE_H_

#include <cstdint>

namespace onnxifi::convolution {

// Extents of the tiles of the output, side by side.
enum class Tile : int64_t { k2x2 = 2, k4x4 = 4 };

// Products per tile and pair of channels: 16 or 36.
constexpr int64_t Frequencies(Tile tile) {
  const int64_t side = static_cast<int64_t>(tile) + 2;
  return side * side;
}

}  // namespace onnxifi::convolution

#endif  // ONNXIFI_BACKENDS_CPU_CONVOLUTION_WINOGRAD_TILE_H_
