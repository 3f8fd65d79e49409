// SPDX-License-Identifier: Apache-2.0
//
// Sliding: how a kernel moves over the spatial axes, in oneDNN's numbers: dilations count the gaps,
// and the padding at the end is the one that gives the output's extents.

#ifndef ONNXIFI_BACKENDS_CPU_ONEDNN_SLIDING_H_
#define ONNXIFI_BACKENDS_CPU_ONEDNN_SLIDING_H_

#include "backends/core/base/result.h"
#include "backends/cpu/onednn/layout.h"

namespace onnxifi::onednn {

// Per spatial axis. `in` and `out` of a transposed convolution are those of the convolution that it
// transposes.
struct SlidingRequest {
  Extents in, out, kernel, strides, dilations, pads_begin;
};

struct Sliding {
  Extents kernel, strides, gaps, pads_begin, pads_end;
};

// UNSUPPORTED_SHAPE where no padding at the end, 0 or more, gives the output's extents.
base::Result<Sliding> MakeSliding(const SlidingRequest& request);

// UNSUPPORTED_SHAPE unless oneDNN has convolutions and poolings over so many spatial axes (1 to 3).
base::Status CheckSpatialRank(size_t rank);

}  // namespace onnxifi::onednn

#endif  // ONNXIFI_BACKENDS_CPU_ONEDNN_SLIDING_H_
