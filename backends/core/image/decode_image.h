// SPDX-License-Identifier: Apache-2.0
//
// DecodeImage: an image file in memory -> its pixels, as ONNX's ImageDecoder wants them.

#ifndef ONNXIFI_BACKENDS_CORE_IMAGE_DECODE_IMAGE_H_
#define ONNXIFI_BACKENDS_CORE_IMAGE_DECODE_IMAGE_H_

#include "backends/core/image/decoders.h"

namespace onnxifi::image {

// uint8 [height, width, channels]: three channels, or one for kGrayscale. [0, 0, channels], which
// ONNX asks for, where the bytes are no image of a known format, are damaged or cut short, or are
// of a form of their format that is not known. UNSUPPORTED_SHAPE above `options.max_pixels`,
// NO_SYSTEM_RESOURCES where the library of the format is missing, NO_SYSTEM_MEMORY. Any thread.
base::Result<tensor::Tensor> DecodeImage(Bytes bytes, PixelFormat pixel_format,
                                         const Options& options = {});

}  // namespace onnxifi::image

#endif  // ONNXIFI_BACKENDS_CORE_IMAGE_DECODE_IMAGE_H_
