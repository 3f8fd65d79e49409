// SPDX-License-Identifier: Apache-2.0
//
// SelectDepthwise and its kernel: every channel has a kernel of its own. The threads divide the
// lines of the result.

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "backends/cpu/convolution/depthwise_line.h"
#include "backends/cpu/convolution/kernel.h"
#include "backends/cpu/convolution/recipe.h"
#include "backends/cpu/processor/processor.h"

namespace onnxifi::convolution {
namespace {

using base::Code;
using base::Status;

// Fewer channels leave most of a vector unused.
constexpr int64_t kLeastChannels = 8;

// From the taps of one place of the kernel to the next.
int64_t TapStride(const Convolution& convolution) {
  const int64_t at_once = ChannelsAtOnce();
  return (convolution.out_channels + at_once - 1) / at_once * at_once;
}

// Place by place of the kernel, channel by channel.
struct TapPacking {
  enum class Layout : uint8_t { kTaps };

  static Layout Choose(const Convolution& /*convolution*/, int64_t /*batch*/) {
    return Layout::kTaps;
  }
  static int64_t Size(const Convolution& convolution, Layout /*layout*/) {
    return convolution.kernel_height * convolution.kernel_width * TapStride(convolution);
  }
  static void Pack(const Convolution& convolution, Layout layout, const Weights& weights,
                   device::Parallel& /*parallel*/, float* packed) {
    std::fill_n(packed, Size(convolution, layout), 0.0F);
    const int64_t tap_stride = TapStride(convolution);
    for (int64_t y = 0; y < convolution.kernel_height; ++y) {
      for (int64_t x = 0; x < convolution.kernel_width; ++x) {
        const float* from = weights.data + y * weights.row_stride + x * weights.column_stride;
        for (int64_t c = 0; c < convolution.out_channels; ++c) {
          packed[c] = from[c * weights.out_stride];
        }
        packed += tap_stride;
      }
    }
  }
};

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
    const int64_t taps_per_line = convolution_.out_width * convolution_.out_channels *
                                  convolution_.kernel_height * convolution_.kernel_width;
    const int64_t grain = kTapsWorthAThread / std::max<int64_t>(1, taps_per_line) + 1;
    pool_.For(batch_ * convolution_.out_height, grain, [&](int64_t begin, int64_t end) {
      std::vector<DepthwiseLine::Row> rows;
      rows.reserve(static_cast<size_t>(convolution_.kernel_height));
      for (int64_t line = begin; line < end; ++line) RunLine(images, epilogue, line, rows);
    });
    return base::Ok();
  }

  std::string Detail() const override { return processor::VectorName(); }

 private:
  // A line of the result; `rows` has room for those of a window.
  void RunLine(const Images& images, gemm::Epilogue epilogue, int64_t line,
               std::vector<DepthwiseLine::Row>& rows) const {
    const int64_t n = line / convolution_.out_height;
    const int64_t y = line % convolution_.out_height;
    const int64_t tap_stride = TapStride(convolution_);
    rows.clear();
    for (int64_t k = 0; k < convolution_.kernel_height; ++k) {
      const int64_t in_y =
          y * convolution_.stride_y - convolution_.pad_top + k * convolution_.dilation_y;
      if (in_y < 0 || in_y >= convolution_.in_height) continue;
      rows.push_back({images.source + images.source_strides.At(n, in_y, 0),
                      runtime::Floats(weights_) + k * convolution_.kernel_width * tap_stride});
    }
    if (images.addend != nullptr) {
      epilogue.addend = images.addend + images.addend_strides.At(n, y, 0);
      epilogue.addend_stride = images.addend_strides.pixel;
    }
    ConvolveLine({rows, tap_stride, images.source_strides.pixel, convolution_.in_width,
                  convolution_.kernel_width, convolution_.stride_x, convolution_.dilation_x,
                  convolution_.pad_left, convolution_.out_channels,
                  images.result + images.result_strides.At(n, y, 0), images.result_strides.pixel,
                  convolution_.out_width},
                 epilogue);
  }

  // Taps that take as long as another thread needs to begin.
  static constexpr int64_t kTapsWorthAThread = 49152;

  threads::ThreadPool& pool_;
  const Convolution convolution_;
  const int64_t batch_;
  const runtime::PackedWeights weights_;
  const BoundImages images_;
};

}  // namespace

runtime::RecipeResult SelectDepthwise(const Described& described) {
  ONNXIFI_RETURN_IF_ERROR(described.as_pixels);
  const Convolution& convolution = described.convolution;
  if (convolution.group != convolution.in_channels ||
      convolution.group != convolution.out_channels) {
    return Status(Code::kUnsupportedShape, "The " + std::to_string(convolution.group) +
                                               " groups are not of one channel each, of " +
                                               std::to_string(convolution.in_channels) + " and " +
                                               std::to_string(convolution.out_channels) + ".");
  }
  if (convolution.group < kLeastChannels) {
    return Status(Code::kUnsupportedShape,
                  "There are " + std::to_string(convolution.group) + " channels; below " +
                      std::to_string(kLeastChannels) + " most of a vector would stay empty.");
  }
  const int64_t floats = convolution.batch * convolution.group *
                         (convolution.in_height * convolution.in_width +
                          convolution.out_height * convolution.out_width);
  if (floats > processor::L2Floats() / 2) {
    return Status(Code::kUnsupportedShape, "The images are more than half of an L2 cache (" +
                                               std::to_string(floats) + " floats of " +
                                               std::to_string(processor::L2Floats()) +
                                               "), where oneDNN is faster.");
  }
  return MakeRecipe<BoundDepthwise, TapPacking>("depthwise", convolution);
}

}  // namespace onnxifi::convolution
