// SPDX-License-Identifier: Apache-2.0
//
// Image: what every decoder of this folder makes: rows of 8-bit RGB, and its form as ONNX's
// ImageDecoder gives it.

#ifndef ONNXIFI_BACKENDS_CORE_IMAGE_IMAGE_H_
#define ONNXIFI_BACKENDS_CORE_IMAGE_IMAGE_H_

#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include "backends/core/base/result.h"
#include "backends/core/tensor/tensor.h"

namespace onnxifi::image {

using Bytes = std::span<const uint8_t>;

// An image of 512 MiB; Pillow refuses the same. Decoders of some formats need several times that.
inline constexpr int64_t kMaxPixels = (int64_t{1} << 29) / 3;

enum class PixelFormat : uint8_t { kRgb, kBgr, kGrayscale };

class Image {
 public:
  // Black. Nothing where an extent is 0 or negative; UNSUPPORTED_SHAPE where there are more than
  // `max_pixels`, before memory is taken; NO_SYSTEM_MEMORY.
  static base::Result<std::optional<Image>> Create(int64_t width, int64_t height,
                                                   int64_t max_pixels);

  int64_t width() const { return width_; }
  int64_t height() const { return height_; }
  // Row `y` from the top: R, G, B of each pixel.
  uint8_t* Row(int64_t y) {
    return reinterpret_cast<uint8_t*>(pixels_.mutable_data()) + y * width_ * 3;
  }

  // uint8 [height, width, 3], or 1 for kGrayscale: ITU-R 601-2, rounded to nearest.
  // NO_SYSTEM_MEMORY.
  base::Result<tensor::Tensor> Take(PixelFormat format) &&;

 private:
  Image(int64_t width, int64_t height, tensor::Tensor pixels)
      : width_(width), height_(height), pixels_(std::move(pixels)) {}

  int64_t width_;
  int64_t height_;
  tensor::Tensor pixels_;
};

// Nothing where the bytes are damaged or of a form that the decoder does not know.
using Decoded = base::Result<std::optional<Image>>;

}  // namespace onnxifi::image

#endif  // ONNXIFI_BACKENDS_CORE_IMAGE_IMAGE_H_
