// SPDX-License-Identifier: Apache-2.0
//
// Sliding: out = floor((in + begin + end - reach) / stride) + 1 with reach = (kernel - 1) *
// dilation + 1. The least `end` with that out is (out - 1) * stride + reach - in - begin; up to
// stride - 1 more change nothing.

#include "backends/cpu/onednn/sliding.h"

#include <algorithm>
#include <limits>
#include <string>

namespace onnxifi::onednn {

base::Result<Sliding> MakeSliding(const SlidingRequest& request) {
  // Keeps the products below far from overflow.
  constexpr int64_t kMax = std::numeric_limits<int32_t>::max();
  Sliding sliding{request.kernel, request.strides, {}, request.pads_begin, {}};
  for (size_t axis = 0; axis < request.kernel.size(); ++axis) {
    for (const int64_t number :
         {request.in[axis], request.out[axis], request.kernel[axis], request.strides[axis],
          request.dilations[axis], request.pads_begin[axis] + 1}) {
      if (number < 1 || number > kMax) {
        return base::Status(base::Code::kUnsupportedShape,
                            "A number of the sliding window (" + std::to_string(number) +
                                ") is outside [1, " + std::to_string(kMax) + "].");
      }
    }
    const int64_t reach = (request.kernel[axis] - 1) * request.dilations[axis] + 1;
    const int64_t least = (request.out[axis] - 1) * request.strides[axis] + reach -
                          request.in[axis] - request.pads_begin[axis];
    const int64_t end = std::max<int64_t>(0, least);
    if (end > least + request.strides[axis] - 1) {
      return base::Status(base::Code::kUnsupportedShape,
                          "The output's extent (" + std::to_string(request.out[axis]) +
                              ") is less than the input and its padding give.");
    }
    sliding.gaps.push_back(request.dilations[axis] - 1);
    sliding.pads_end.push_back(end);
  }
  return sliding;
}

base::Status CheckSpatialRank(size_t rank) {
  if (rank >= 1 && rank <= 3) return base::Ok();
  return base::Status(base::Code::kUnsupportedShape,
                      "The number of spatial axes (" + std::to_string(rank) +
                          ") is outside what oneDNN takes (1 to 3).");
}

}  // namespace onnxifi::onednn
