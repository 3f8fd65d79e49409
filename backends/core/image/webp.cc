// SPDX-License-Identifier: Apache-2.0
//
// WebP by libwebp, lossy and lossless, without transparency; of an animation the first frame on its
// canvas, by libwebpdemux.

#include <webp/decode.h>
#include <webp/demux.h>

#include <algorithm>
#include <cstdint>
#include <memory>

#include "backends/core/image/decoders.h"
#include "backends/core/image/library.h"

namespace onnxifi::image {
namespace {

using base::Result;

#define ONNXIFI_WEBP_FUNCTIONS(M) \
  M(WebPDecodeRGBInto)            \
  M(WebPGetFeaturesInternal)

#define ONNXIFI_WEBP_ANIMATION_FUNCTIONS(M) \
  M(WebPAnimDecoderDelete)                  \
  M(WebPAnimDecoderGetInfo)                 \
  M(WebPAnimDecoderGetNext)                 \
  M(WebPAnimDecoderNewInternal)

struct Functions {
  ONNXIFI_WEBP_FUNCTIONS(ONNXIFI_IMAGE_MEMBER)
};

struct AnimationFunctions {
  ONNXIFI_WEBP_ANIMATION_FUNCTIONS(ONNXIFI_IMAGE_MEMBER)
};

Result<Functions> Load(const char* name) {
  ONNXIFI_ASSIGN_OR_RETURN(const Library library, Library::Open(name, "WebP"));
  Functions table;
  ONNXIFI_WEBP_FUNCTIONS(ONNXIFI_IMAGE_LOOK_UP)
  return table;
}

Result<AnimationFunctions> LoadAnimation(const char* name) {
  ONNXIFI_ASSIGN_OR_RETURN(const Library library, Library::Open(name, "animated WebP"));
  AnimationFunctions table;
  ONNXIFI_WEBP_ANIMATION_FUNCTIONS(ONNXIFI_IMAGE_LOOK_UP)
  return table;
}

// Into the whole of `image`. False where the bytes are damaged.
Result<bool> DecodeFirstFrame(Bytes bytes, const Options& options, Image& image) {
  ONNXIFI_ASSIGN_OR_RETURN(const AnimationFunctions webp,
                           LoadAnimation(options.libraries.webp_animation));
  const WebPData data = {bytes.data(), bytes.size()};
  const std::unique_ptr<WebPAnimDecoder, decltype(webp.WebPAnimDecoderDelete)> decoder(
      webp.WebPAnimDecoderNewInternal(&data, nullptr, WEBP_DEMUX_ABI_VERSION),
      webp.WebPAnimDecoderDelete);
  WebPAnimInfo info = {};
  uint8_t* canvas = nullptr;
  int time_ms = 0;
  if (!decoder || webp.WebPAnimDecoderGetInfo(decoder.get(), &info) == 0 ||
      info.canvas_width != image.width() || info.canvas_height != image.height() ||
      webp.WebPAnimDecoderGetNext(decoder.get(), &canvas, &time_ms) == 0) {
    return false;
  }
  for (int64_t y = 0; y < image.height(); ++y) {
    uint8_t* rgb = image.Row(y);
    for (int64_t x = 0; x < image.width(); ++x, canvas += 4, rgb += 3) {
      std::copy_n(canvas, 3, rgb);
    }
  }
  return true;
}

}  // namespace

Decoded DecodeWebp(Bytes bytes, const Options& options) {
  ONNXIFI_ASSIGN_OR_RETURN(const Functions webp, Load(options.libraries.webp));
  WebPBitstreamFeatures features = {};
  if (webp.WebPGetFeaturesInternal(bytes.data(), bytes.size(), &features,
                                   WEBP_DECODER_ABI_VERSION) != VP8_STATUS_OK) {
    return std::optional<Image>();
  }
  ONNXIFI_ASSIGN_OR_RETURN(std::optional<Image> image,
                           Image::Create(features.width, features.height, options.max_pixels));
  if (!image) return image;
  if (features.has_animation != 0) {
    ONNXIFI_ASSIGN_OR_RETURN(const bool is_whole, DecodeFirstFrame(bytes, options, *image));
    if (!is_whole) image.reset();
    return image;
  }
  const int64_t stride = image->width() * 3;
  if (webp.WebPDecodeRGBInto(bytes.data(), bytes.size(), image->Row(0),
                             static_cast<size_t>(stride * image->height()),
                             static_cast<int>(stride)) == nullptr) {
    image.reset();
  }
  return image;
}

}  // namespace onnxifi::image
