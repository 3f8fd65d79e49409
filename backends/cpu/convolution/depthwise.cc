// SPDX-License-Identifier: Apache-2.0
//
// Depthwise: the rows of a window that lie in the padding are left out.

#include "backends/cpu/convolution/depthwise.h"

#include <algorithm>
#include <string>

namespace onnxifi::convolution {
namespace {

using base::Code;
using base::Status;

// Fewer channels leave most of a vector unused.
constexpr int64_t kMinChannels = 8;

// From the taps of one place of the kernel to the next.
int64_t TapStride(const Convolution& convolution) {
  const int64_t at_once = ChannelsAtOnce();
  return (convolution.out_channels + at_once - 1) / at_once * at_once;
}

}  // namespace

Status CheckDepthwise(const Convolution& convolution) {
  if (convolution.group != convolution.in_channels ||
      convolution.group != convolution.out_channels) {
    return Status(Code::kUnsupportedShape, "The " + std::to_string(convolution.group) +
                                               " groups are not of one channel each, of " +
                                               std::to_string(convolution.in_channels) + " and " +
                                               std::to_string(convolution.out_channels) + ".");
  }
  if (convolution.group < kMinChannels) {
    return Status(Code::kUnsupportedShape, "There are " + std::to_string(convolution.group) +
                                               " channels; below " + std::to_string(kMinChannels) +
                                               " most of a vector would stay empty.");
  }
  return base::Ok();
}

int64_t TapPacking::Size(const Convolution& convolution, Layout /*layout*/) {
  return convolution.kernel_height * convolution.kernel_width * TapStride(convolution);
}

void TapPacking::Pack(const Convolution& convolution, Layout layout, const Weights& weights,
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

DepthwiseRows::DepthwiseRows(const Convolution& convolution, const float* taps)
    : convolution_(convolution), taps_(taps) {
  rows_.reserve(static_cast<size_t>(convolution.kernel_height));
}

void DepthwiseRows::Run(const ImageRows<const float>& image, int64_t y, const Range& pixels,
                        const Range& channels, const gemm::Epilogue& epilogue, float* result,
                        int64_t result_pixel) {
  if (pixels.count <= 0) return;
  const int64_t tap_stride = TapStride(convolution_);
  rows_.clear();
  for (int64_t k = 0; k < convolution_.kernel_height; ++k) {
    const int64_t in_y =
        y * convolution_.stride_y - convolution_.pad_top + k * convolution_.dilation_y;
    if (in_y < 0 || in_y >= convolution_.in_height) continue;
    rows_.push_back({image.At(in_y) + channels.first,
                     taps_ + k * convolution_.kernel_width * tap_stride + channels.first});
  }
  // A row that begins at the first of them.
  gemm::Epilogue own = epilogue;
  if (own.bias != nullptr) own.bias += channels.first;
  if (own.addend != nullptr) own.addend += pixels.first * own.addend_stride + channels.first;
  ConvolveRow({rows_, tap_stride, image.pixel, convolution_.in_width, convolution_.kernel_width,
               convolution_.stride_x, convolution_.dilation_x,
               convolution_.pad_left - pixels.first * convolution_.stride_x, channels.count,
               result + pixels.first * result_pixel + channels.first, result_pixel, pixels.count},
              own);
}

}  // namespace onnxifi::convolution
