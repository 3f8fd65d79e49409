// SPDX-License-Identifier: Apache-2.0
//
// Depthwise: convolutions of bytes with a kernel per channel, in vectors of neighbouring channels.

#ifndef ONNXIFI_BACKENDS_CPU_INTEGER_DEPTHWISE_H_
#define ONNXIFI_BACKENDS_CPU_INTEGER_DEPTHWISE_H_

#include <cstdint>

#include "backends/cpu/integer/columns.h"
#include "backends/cpu/integer/rows.h"

namespace onnxifi::integer {

// Of 31 x 31, the largest kernels of published networks, and some more.
inline constexpr int64_t kMaxTaps = 1024;

// The kernels of all channels: rows of `channels` numbers, one row per two taps, whose weights are
// the low and the high 16 bits, then the sums of all. `kernels` has a column per channel and a
// depth of taps.
int64_t TapCount(const WindowAxes& axes);
int64_t PairCount(const WindowAxes& axes);
void UnpackTaps(const Columns& kernels, const uint8_t* b, bool is_signed, int32_t* weights);
// Kernels of signed bytes that SumWindows walks along rows of the image with: numbers per channel
// that its other form of them is followed by; 0 where it does not.
int64_t WalkedQuads(const WindowAxes& axes);
void PackWalkedQuads(const WindowAxes& axes, const Columns& kernels, const uint8_t* b,
                     int32_t* quads);
// The same less a number per channel.
void SubtractFromTaps(const int32_t* weights, int64_t taps, int64_t channels,
                      const int32_t* subtracted, int32_t* result);

// Windows of an image whose channels lie side by side, which axes.channels counts.
struct DepthwiseImage {
  WindowAxes axes;
  bool is_signed;
  const uint8_t* data;
  // What windows have outside of the image: `channels` bytes.
  const uint8_t* fill;
  const int32_t* weights;
  const int32_t* quads;  // null: kernels are no signed bytes, or windows are not walked
};

// Per row of the kernel: pixel 0 of the row of the image at `data` that windows along a row of the
// result see, of which `first_row` is one, and how far its pixels lie apart. Outside it is `fill`.
void PlaceRows(const WindowAxes& axes, const uint8_t* data, const uint8_t* fill, int64_t first_row,
               const uint8_t** pixels, int64_t* pixel_strides);

// sums[row][c] = start[c] + the window's products, of rows [first_row, first_row + rows) and
// channels [first_channel, first_channel + channels). `start` is of all channels.
void SumWindows(const DepthwiseImage& image, const int32_t* start, int64_t first_row, int64_t rows,
                int64_t first_channel, int64_t channels, int32_t* sums);

}  // namespace onnxifi::integer

#endif  // ONNXIFI_BACKENDS_CPU_INTEGER_DEPTHWISE_H_
