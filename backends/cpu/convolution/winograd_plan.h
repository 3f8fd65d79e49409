// SPDX-License-Identifier: Apache-2.0
//
// Winograd plan: whether a convolution is worth Winograd's algorithm, in which variant, and in
// which pieces it is computed.

#ifndef ONNXIFI_BACKENDS_CPU_CONVOLUTION_WINOGRAD_PLAN_H_
#define ONNXIFI_BACKENDS_CPU_CONVOLUTION_WINOGRAD_PLAN_H_

#include <cstdint>
#include <optional>

#include "backends/cpu/convolution/winograd_tile.h"

namespace onnxifi::convolution {

// A convolution of 3 x 3 with strides and dilations of 1.
struct WinogradShape {
  int64_t batch;
  int64_t in_channels, out_channels;
  int64_t in_height, in_width;
  int64_t out_height, out_width;
  int64_t pad_top, pad_left;
  int64_t frame_taps = 1;  // images that each image of the result is a sum over
};

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

// The outermost axis of a convolution along three, whose other axes are those of a WinogradShape.
struct FrameAxis {
  int64_t in, out, kernel;
  int64_t stride, dilation, pad;

  // Taps [first, end) that see a frame of the input at a frame of the result.
  struct Taps {
    int64_t first, end;
    bool operator==(const Taps& other) const = default;
  };
  Taps TapsAt(int64_t frame) const {
    const int64_t at = frame * stride - pad;
    Taps taps = {0, kernel};
    while (taps.first < taps.end && at + taps.first * dilation < 0) ++taps.first;
    while (taps.end > taps.first && at + (taps.end - 1) * dilation >= in) --taps.end;
    return taps;
  }
  // What `count` frames of the result reach over.
  int64_t Reach(int64_t count) const { return (count - 1) * stride + (kernel - 1) * dilation + 1; }
};

// The same for a convolution along three axes. A chunk is some tiles of some frames: each frame of
// the input is transformed once and read by the products of all frames that see it. Work memory
// has, frequency by frequency, frame after frame of tiles.
struct FramePlan {
  WinogradPlan tiles;  // of one frame: `tiles`, `chunk` and `is_by_frequency` are of its tiles
  int64_t frames;      // of the result, in a chunk
  int64_t frame_chunks, tile_chunks;  // of one image
};
FramePlan MakeFramePlan(Tile tile, const WinogradShape& shape, const FrameAxis& axis, int threads);

// What the variant costs, in multiply-adds: the products, the transforms, and reading the weights
// once, counted as what a processor could compute meanwhile.
double WinogradCost(Tile tile, const WinogradShape& shape);
double DirectCost(const WinogradShape& shape);

// A variant has to promise so much of the direct algorithm's cost: above that it is not worth its
// memory, up to four times that of the weights, and the promise is no measurement.
inline constexpr double kWorthwhile = 0.75;
// The variant that promises most; none where neither promises enough.
std::optional<Tile> ChooseTile(const WinogradShape& shape);

// Tiles of a chunk: plan.chunk, or what is left.
int64_t TilesOf(const WinogradPlan& plan, int64_t chunk);

}  // namespace onnxifi::convolution

#endif  // ONNXIFI_BACKENDS_CPU_CONVOLUTION_WINOGRAD_PLAN_H_
