// SPDX-License-Identifier: Apache-2.0
//
// Image.

#include "backends/core/image/image.h"

#include <string>

namespace onnxifi::image {

using base::Code;
using base::Result;
using base::Status;
using tensor::ElementType;
using tensor::Tensor;

Result<std::optional<Image>> Image::Create(int64_t width, int64_t height, int64_t max_pixels) {
  if (width <= 0 || height <= 0) return std::optional<Image>();
  const int64_t pixels = tensor::ElementCount(tensor::Extents{height, width});
  if (pixels > max_pixels) {
    return Status(Code::kUnsupportedShape, "The encoded image has " + std::to_string(width) +
                                               " x " + std::to_string(height) +
                                               " pixels; at most " + std::to_string(max_pixels) +
                                               " pixels are decoded.");
  }
  ONNXIFI_ASSIGN_OR_RETURN(Tensor tensor,
                           Tensor::Allocate(ElementType::kUint8, {height, width, 3}));
  return std::optional<Image>(Image(width, height, std::move(tensor)));
}

Result<Tensor> Image::Take(PixelFormat format) && {
  auto* pixel = reinterpret_cast<uint8_t*>(pixels_.mutable_data());
  const int64_t count = width_ * height_;
  if (format == PixelFormat::kRgb) return std::move(pixels_);
  if (format == PixelFormat::kBgr) {
    for (int64_t k = 0; k < count; ++k, pixel += 3) std::swap(pixel[0], pixel[2]);
    return std::move(pixels_);
  }
  ONNXIFI_ASSIGN_OR_RETURN(Tensor gray,
                           Tensor::Allocate(ElementType::kUint8, {height_, width_, 1}));
  auto* luma = reinterpret_cast<uint8_t*>(gray.mutable_data());
  for (int64_t k = 0; k < count; ++k, pixel += 3) {
    // 0.299, 0.587 and 0.114 in 16 bits, which make 1: gray stays what it is.
    luma[k] = static_cast<uint8_t>(
        (pixel[0] * 19595 + pixel[1] * 38470 + pixel[2] * 7471 + 0x8000) >> 16);
  }
  return gray;
}

}  // namespace onnxifi::image
