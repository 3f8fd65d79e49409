// SPDX-License-Identifier: Apache-2.0
//
// Grouped: convolutions of bytes in groups of less than a vector of outputs, several groups at a
// time: a lane is an output, and a permutation of the pixel's bytes gives each the quad of inputs
// of its group.

#ifndef ONNXIFI_BACKENDS_CPU_INTEGER_GROUPED_H_
#define ONNXIFI_BACKENDS_CPU_INTEGER_GROUPED_H_

#include <cstdint>

#include "backends/cpu/integer/columns.h"
#include "backends/cpu/integer/rows.h"

namespace onnxifi::integer {

// Channels of each group.
struct GroupSizes {
  int64_t inputs = 0, outputs = 0;
};

// Whether the processor at hand walks kernels of signed bytes along such an axis, the last one, of
// which `out`, `in` and `pad` are not looked at.
bool WalksGroups(const GroupSizes& sizes, int64_t outputs, const WindowAxis& x);

// Numbers that the kernels take: the sum of each output, then what is multiplied. `kernels` has a
// column per output, and a depth of taps and inputs.
int64_t GroupedWeightCount(const GroupSizes& sizes, int64_t outputs, int64_t taps);
void PackGroupedWeights(const GroupSizes& sizes, const Columns& kernels, const uint8_t* b,
                        int32_t* weights);

// Windows of an image whose channels, all axes.channels of them, lie side by side.
struct GroupedImage {
  WindowAxes axes;
  GroupSizes sizes;
  int64_t outputs;
  bool is_signed;
  const uint8_t* data;
  const uint8_t* fill;  // what windows have outside of the image: `channels` bytes
  const int32_t* weights;
};

// sums[row][o] = start[o] + the window's products, of rows [first_row, first_row + rows) and
// outputs [first_output, first_output + outputs), the first a multiple of kGroupedLanes. `start` is
// of all outputs.
inline constexpr int64_t kGroupedLanes = 16;
void SumGroupedWindows(const GroupedImage& image, const int32_t* start, int64_t first_row,
                       int64_t rows, int64_t first_output, int64_t outputs, int32_t* sums);

}  // namespace onnxifi::integer

#endif  // ONNXIFI_BACKENDS_CPU_INTEGER_GROUPED_H_
