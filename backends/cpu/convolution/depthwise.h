// SPDX-License-Identifier: Apache-2.0
//
// Depthwise: convolutions in which every channel has a kernel of its own: which they are, how their
// weights are packed, and a row of the result from rows of the image wherever these lie.

#ifndef ONNXIFI_BACKENDS_CPU_CONVOLUTION_DEPTHWISE_H_
#define ONNXIFI_BACKENDS_CPU_CONVOLUTION_DEPTHWISE_H_

#include <cstdint>
#include <vector>

#include "backends/core/base/status.h"
#include "backends/core/device/parallel.h"
#include "backends/cpu/convolution/depthwise_row.h"
#include "backends/cpu/convolution/facts.h"
#include "backends/cpu/convolution/image.h"
#include "backends/cpu/convolution/weights.h"
#include "backends/cpu/gemm/epilogue.h"

namespace onnxifi::convolution {

// UNSUPPORTED_SHAPE with the reason where it is none, or has few channels.
base::Status CheckDepthwise(const Convolution& convolution);

// The packing of a Kernel: place by place of the kernel, channel by channel.
struct TapPacking {
  enum class Layout : uint8_t { kTaps };

  static Layout Choose(const Convolution& /*convolution*/, int64_t /*batch*/) {
    return Layout::kTaps;
  }
  static int64_t Size(const Convolution& convolution, Layout layout);
  static void Pack(const Convolution& convolution, Layout layout, const Weights& weights,
                   device::Parallel& parallel, float* packed);
};

// Computes rows of one such convolution; one thread at a time.
class DepthwiseRows {
 public:
  // `taps` are packed by TapPacking. Both outlive it.
  DepthwiseRows(const Convolution& convolution, const float* taps);

  // Some pixels of a row, or some of their channels.
  struct Range {
    int64_t first;
    int64_t count;
  };
  // Row y of the result, whose first pixel is at `result`, from the rows of the image that its
  // windows see: those pixels and channels. The epilogue's addend is that of the row.
  void Run(const ImageRows<const float>& image, int64_t y, const Range& pixels,
           const Range& channels, const gemm::Epilogue& epilogue, float* result,
           int64_t result_pixel);
  // All of them.
  void Run(const ImageRows<const float>& image, int64_t y, const gemm::Epilogue& epilogue,
           float* result, int64_t result_pixel) {
    Run(image, y, {0, convolution_.out_width}, {0, convolution_.out_channels}, epilogue, result,
        result_pixel);
  }

 private:
  const Convolution& convolution_;
  const float* const taps_;
  std::vector<DepthwiseRow::Row> rows_;  // room for those of a window
};

}  // namespace onnxifi::convolution

#endif  // ONNXIFI_BACKENDS_CPU_CONVOLUTION_DEPTHWISE_H_
