// SPDX-License-Identifier: Apache-2.0
//
// Taps: which taps of a sliding window fall on elements, along one spatial axis.

#ifndef ONNXIFI_BACKENDS_CPU_POOLING_TAPS_H_
#define ONNXIFI_BACKENDS_CPU_POOLING_TAPS_H_

#include <cstdint>
#include <vector>

namespace onnxifi::pooling {

struct Sliding {
  int64_t in = 1, out = 1;
  int64_t kernel = 1, stride = 1, dilation = 1;
  int64_t pad_begin = 0, pad_end = 0;
};

// Of the window at one output coordinate.
struct Taps {
  int64_t first = 0;    // coordinate of the first element that it sees; 0 if there is none
  int64_t count = 0;    // elements that it sees
  int64_t counted = 0;  // with those of the padding
};

// One per output coordinate.
std::vector<Taps> FindTaps(const Sliding& sliding);

}  // namespace onnxifi::pooling

#endif  // ONNXIFI_BACKENDS_CPU_POOLING_TAPS_H_
