// SPDX-License-Identifier: Apache-2.0
//
// One function per image format. Each takes the bytes of a file that has the format's signature,
// and nothing else of which is known. The limits are checked before memory is taken. Any thread.

#ifndef ONNXIFI_BACKENDS_CORE_IMAGE_DECODERS_H_
#define ONNXIFI_BACKENDS_CORE_IMAGE_DECODERS_H_

#include "backends/core/image/image.h"

namespace onnxifi::image {

// Those of the system that decode, by the names with which they are opened: the versions whose
// headers this is compiled with. BMP and PNM need none.
struct LibraryNames {
  const char* jpeg;
  const char* jpeg_2000;
  const char* png;
  const char* tiff;
  const char* webp;
  const char* webp_animation;
};
extern const LibraryNames kSystemLibraries;

struct Options {
  int64_t max_pixels = kMaxPixels;
  LibraryNames libraries = kSystemLibraries;
};

// UNSUPPORTED_SHAPE, NO_SYSTEM_MEMORY as Image::Create. All but the first two: NO_SYSTEM_RESOURCES
// where the library is missing.
Decoded DecodeBmp(Bytes bytes, const Options& options);
Decoded DecodePnm(Bytes bytes, const Options& options);
Decoded DecodeJpeg(Bytes bytes, const Options& options);
Decoded DecodeJpeg2000(Bytes bytes, const Options& options);
Decoded DecodePng(Bytes bytes, const Options& options);
Decoded DecodeTiff(Bytes bytes, const Options& options);
Decoded DecodeWebp(Bytes bytes, const Options& options);

}  // namespace onnxifi::image

#endif  // ONNXIFI_BACKENDS_CORE_IMAGE_DECODERS_H_
