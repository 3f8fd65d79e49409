// SPDX-License-Identifier: Apache-2.0
//
// The decoder libraries of the system, by the names that belong to the headers.

#include "backends/core/image/decoders.h"

#include <tiffvers.h>

#include "backends/core/image/jpeg_api.h"

namespace onnxifi::image {

// libjpeg-turbo is built for one of two interfaces.
static_assert(JPEG_LIB_VERSION == 62 || JPEG_LIB_VERSION == 80);
// The first release of libtiff.so.6, whose error handlers belong to a file and not to the process.
static_assert(TIFFLIB_VERSION >= 20221213);

constinit const LibraryNames kSystemLibraries = {
    .jpeg = JPEG_LIB_VERSION == 80 ? "libjpeg.so.8" : "libjpeg.so.62",
    .jpeg_2000 = "libopenjp2.so.7",
    .png = "libpng16.so.16",
    .tiff = "libtiff.so.6",
    .webp = "libwebp.so.7",
    .webp_animation = "libwebpdemux.so.2",
};

}  // namespace onnxifi::image
