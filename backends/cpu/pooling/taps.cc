// SPDX-License-Identifier: Apache-2.0
//
// Taps: tap k of the window at output o lies at o * stride - pad_begin + k * dilation. Those on
// elements, 0 <= position < in, follow one another. The padding ends at in + pad_end; only rounding
// the output's extent up leads beyond it.

#include "backends/cpu/pooling/taps.h"

#include <algorithm>

namespace onnxifi::pooling {
namespace {

// Wide enough for any product and sum of the numbers of a model.
using Wide = __int128;

// How many k >= 0 have start + k * step < end.
Wide CountBefore(Wide start, Wide step, Wide end) {
  return start >= end ? 0 : (end - start + step - 1) / step;
}

}  // namespace

std::vector<Taps> FindTaps(const Sliding& sliding) {
  std::vector<Taps> taps(static_cast<size_t>(sliding.out));
  const Wide kernel = sliding.kernel;
  const Wide in = sliding.in;
  const Wide end = std::max<Wide>(in, in + sliding.pad_end);
  for (int64_t out = 0; out < sliding.out; ++out) {
    const Wide start = static_cast<Wide>(out) * sliding.stride - sliding.pad_begin;
    auto before = [&](Wide limit) {
      return std::min(kernel, CountBefore(start, sliding.dilation, limit));
    };
    const Wide skipped = before(0);
    const Wide count = before(in) - skipped;
    Taps& at = taps[static_cast<size_t>(out)];
    at.first = count > 0 ? static_cast<int64_t>(start + skipped * sliding.dilation) : 0;
    at.count = static_cast<int64_t>(count);
    at.counted = static_cast<int64_t>(before(end));
  }
  return taps;
}

}  // namespace onnxifi::pooling
