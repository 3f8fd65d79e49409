// SPDX-License-Identifier: Apache-2.0
//
// Winograd: convolutions with kernels of 3 x 3 as products in another domain: F(4x4, 3x3), which
// has a quarter of the multiplications, and F(2x2, 3x3), with 4 of 9. Tiles of the input are
// transformed, multiplied with transformed weights per frequency, and transformed back.
// After Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks" (2015), with the points
// 0, +-sqrt(1/2), +-sqrt(2), infinity, whose rounding errors are smaller than those of 0, +-1, +-2.

#ifndef ONNXIFI_BACKENDS_CPU_CONVOLUTION_WINOGRAD_H_
#define ONNXIFI_BACKENDS_CPU_CONVOLUTION_WINOGRAD_H_

#include <cstdint>

#include "backends/core/device/parallel.h"
#include "backends/cpu/convolution/image.h"

namespace onnxifi::convolution {

// Extents of the tiles of the output, side by side.
enum class Tile : int64_t { k2x2 = 2, k4x4 = 4 };

// Products per tile and pair of channels: 16 or 36.
constexpr int64_t Frequencies(Tile tile) {
  const int64_t side = static_cast<int64_t>(tile) + 2;
  return side * side;
}

// A convolution of 3 x 3 with strides and dilations of 1.
struct WinogradShape {
  int64_t batch;
  int64_t in_channels, out_channels;
  int64_t in_height, in_width;
  int64_t out_height, out_width;
  int64_t pad_top, pad_left;
};

// Weights W[M, C, 3, 3] with any strides.
struct Weights {
  const float* data;
  int64_t out_stride, in_stride, row_stride, column_stride;
};

// Transformed weights: how many floats they take, and all of them from `weights`, in float64,
// rounded once.
int64_t TransformedSize(Tile tile, int64_t in_channels, int64_t out_channels);
void TransformWeights(Tile tile, const Weights& weights, int64_t in_channels, int64_t out_channels,
                      device::Parallel& parallel, float* transformed);

// How a convolution is cut into pieces of work. A function of its numbers alone.
struct WinogradPlan {
  Tile tile;
  int64_t tiles_down, tiles_across, tiles;  // tiles: of all images
  // Tiles that pass through the three phases together. Where `is_by_frequency`, all threads work on
  // one such chunk, each on its own frequencies, so that the weights are read once; else each
  // thread takes chunks of its own.
  int64_t chunk;
  bool is_by_frequency;
  // Of the transformed input and the products, in floats.
  int64_t in_stride, out_stride;                      // from tile to tile
  int64_t in_frequency_stride, out_frequency_stride;  // from frequency to frequency
  int64_t work_floats;                                // per chunk in progress
};
WinogradPlan MakePlan(Tile tile, const WinogradShape& shape, int threads);

// What the variant costs, in multiply-adds: the products, the transforms, and reading the weights
// once, counted as what a processor could compute meanwhile.
double WinogradCost(Tile tile, const WinogradShape& shape);
double DirectCost(const WinogradShape& shape);

// Chunks [first, end) of plan.tiles / plan.chunk on the calling thread. `work`: work_floats floats.
void RunChunks(const WinogradPlan& plan, const WinogradShape& shape, const float* transformed,
               const Images& images, const gemm::Epilogue& epilogue, int64_t first, int64_t end,
               float* work);
// The phases of one chunk, of which each thread takes a part; `count` is how many indices a phase
// has.
void TransformInput(const WinogradPlan& plan, const WinogradShape& shape, const Images& images,
                    int64_t chunk, int64_t first_tile, int64_t end_tile, float* work);
void MultiplyFrequencies(const WinogradPlan& plan, const WinogradShape& shape,
                         const float* transformed, int64_t chunk, int64_t first, int64_t end,
                         float* work);
void TransformOutput(const WinogradPlan& plan, const WinogradShape& shape, const Images& images,
                     const gemm::Epilogue& epilogue, int64_t chunk, int64_t first_tile,
                     int64_t end_tile, float* work);
// Tiles of a chunk: plan.chunk, or what is left.
int64_t TilesOf(const WinogradPlan& plan, int64_t chunk);

}  // namespace onnxifi::convolution

#endif  // ONNXIFI_BACKENDS_CPU_CONVOLUTION_WINOGRAD_H_
