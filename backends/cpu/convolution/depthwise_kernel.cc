// SPDX-License-Identifier: Apache-2.0
//
// SelectDepthwise and its kernel: every channel has a kernel of its own. The threads divide the
// rows of the result, or parts of them where there are few.

#include <algorithm>
#include <string>
#include <utility>

#include "backends/cpu/convolution/depthwise.h"
#include "backends/cpu/convolution/kernel.h"
#include "backends/cpu/convolution/recipe.h"
#include "backends/cpu/processor/processor.h"

namespace onnxifi::convolution {
namespace {

using base::Code;
using base::Status;

class BoundDepthwise final : public device::BoundKernel {
 public:
  BoundDepthwise(const device::BoundStep& step, const Convolution& convolution,
                 TapPacking::Layout /*layout*/, runtime::PackedWeights weights,
                 runtime::Runtime& runtime)
      : pool_(runtime.pool()),
        convolution_(convolution),
        batch_(step.domain[0]),
        weights_(std::move(weights)),
        images_(step, convolution) {}

  // The weights are packed.
  bool ReadsAtRun(int read) const override { return read != 1; }

  Status Run(device::Addresses addresses) const override {
    const Images images = images_.At(addresses);
    const gemm::Epilogue epilogue = images_.EpilogueAt(addresses);
    const int64_t rows = batch_ * convolution_.out_height;
    // Parts of rows of which each has enough to do, and which are as many as threads may want.
    constexpr int64_t kManyParts = 32;
    const int64_t taps_per_pixel =
        convolution_.out_channels * convolution_.kernel_height * convolution_.kernel_width;
    const int64_t worth = kTapsWorthAThread / std::max<int64_t>(1, taps_per_pixel) + 1;
    const int64_t wanted =
        std::min(convolution_.out_width / worth, kManyParts / std::max<int64_t>(1, rows));
    const int64_t parts = std::max<int64_t>(1, wanted);
    const int64_t pixels = (convolution_.out_width + parts - 1) / parts;
    const int64_t grain = worth / std::max<int64_t>(1, pixels) + 1;
    const int64_t all_channels = convolution_.out_channels;
    pool_.For(rows * parts, grain, [&](int64_t begin, int64_t end) {
      DepthwiseRows of(convolution_, runtime::Floats(weights_));
      const int64_t together = end - begin > parts ? ChannelsTogether() : all_channels;
      for (int64_t channel = 0; channel < all_channels; channel += together) {
        const DepthwiseRows::Range channels = {channel, std::min(together, all_channels - channel)};
        for (int64_t part = begin; part < end; ++part) {
          const int64_t row = part / parts;
          const int64_t n = row / convolution_.out_height, y = row % convolution_.out_height;
          const int64_t first = std::min(part % parts * pixels, convolution_.out_width);
          const int64_t count = std::min(pixels, convolution_.out_width - first);
          of.Run(images.SourceOf(n, convolution_.in_height), y, {first, count}, channels,
                 images.EpilogueOf(epilogue, n, y),
                 images.result + images.result_strides.At(n, y, 0), images.result_strides.pixel);
        }
      }
    });
    return base::Ok();
  }

  std::string Detail() const override { return processor::VectorName(); }

 private:
  // Taps that take as long as another thread needs to begin.
  static constexpr int64_t kTapsWorthAThread = 49152;

  // With fewer, what is read of a pixel is too short to come ahead of its use.
  static constexpr int64_t kMinVectors = 4;

  // So many that the rows of the image that windows share stay in the L1 cache from one row of the
  // result to the next: whole vectors.
  int64_t ChannelsTogether() const {
    const int64_t pixels = (convolution_.kernel_height + 1) * convolution_.in_width;
    const int64_t vectors =
        processor::L1Floats() / 2 / (std::max<int64_t>(1, pixels) * ChannelsAtOnce());
    return std::max(kMinVectors, vectors) * ChannelsAtOnce();
  }

  threads::ThreadPool& pool_;
  const Convolution convolution_;
  const int64_t batch_;
  const runtime::PackedWeights weights_;
  const BoundImages images_;
};

// Of images that do not stay in the L2 cache, where oneDNN's kernel is faster than other ones:
// with few taps, the larger the images the less, and where vectors of channels are not full.
bool IsFastOfLargeImages(const Convolution& convolution, int64_t floats) {
  constexpr int64_t kManyTaps = 25;
  if (!HasFastRow(convolution.kernel_width, convolution.stride_x, convolution.dilation_x)) {
    return false;
  }
  return convolution.kernel_height * convolution.kernel_width >= kManyTaps ||
         (floats <= 16 * processor::L2Floats() && convolution.group % ChannelsAtOnce() == 0);
}

}  // namespace

runtime::RecipeResult SelectDepthwise(const ConvolutionQuery& described) {
  ONNXIFI_RETURN_IF_ERROR(described.nhwc_status);
  const Convolution& convolution = described.convolution;
  ONNXIFI_RETURN_IF_ERROR(CheckDepthwise(convolution));
  // oneDNN's kernels along one axis multiply matrices, and it does not take a kernel that reaches
  // over the whole of the images.
  const bool reaches_over =
      (convolution.kernel_height - 1) * convolution.dilation_y + 1 > convolution.in_height ||
      (convolution.kernel_width - 1) * convolution.dilation_x + 1 > convolution.in_width;
  if (!described.axes_status.ok() || reaches_over) {
    return MakeRecipe<BoundDepthwise, TapPacking>("depthwise", convolution);
  }
  const int64_t floats = convolution.batch * convolution.group *
                         (convolution.in_height * convolution.in_width +
                          convolution.out_height * convolution.out_width);
  if (floats > processor::L2Floats() / 2 && !IsFastOfLargeImages(convolution, floats)) {
    return Status(Code::kUnsupportedShape, "The images are more than half of an L2 cache (" +
                                               std::to_string(floats) + " floats of " +
                                               std::to_string(processor::L2Floats()) +
                                               "), where oneDNN is faster.");
  }
  return MakeRecipe<BoundDepthwise, TapPacking>("depthwise", convolution);
}

}  // namespace onnxifi::convolution
