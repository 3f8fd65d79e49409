// SPDX-License-Identifier: Apache-2.0
//
// Image files.

#include "backends/core/host/image.h"

#include "backends/core/image/decode_image.h"

namespace onnxifi::host {
namespace {

image::PixelFormat PixelFormatOf(program::DecodeImage::Pixels pixels) {
  switch (pixels) {
    case program::DecodeImage::Pixels::kRgb:
      return image::PixelFormat::kRgb;
    case program::DecodeImage::Pixels::kBgr:
      return image::PixelFormat::kBgr;
    case program::DecodeImage::Pixels::kGrayscale:
      break;
  }
  return image::PixelFormat::kGrayscale;
}

}  // namespace

Outputs Run(const program::DecodeImage& attributes, Inputs inputs) {
  ONNXIFI_ASSIGN_OR_RETURN(const tensor::Tensor* encoded, TensorInput(inputs, 0));
  ONNXIFI_ASSIGN_OR_RETURN(
      tensor::Tensor pixels,
      image::DecodeImage(encoded->values<uint8_t>(), PixelFormatOf(attributes.pixels)));
  return One(std::move(pixels));
}

}  // namespace onnxifi::host
