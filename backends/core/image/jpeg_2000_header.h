// SPDX-License-Identifier: Apache-2.0
//
// What the headers of a JPEG 2000 file say, read before OpenJPEG reads them: it takes memory for
// tiles, precincts and components by the word of the file.

#ifndef ONNXIFI_BACKENDS_CORE_IMAGE_JPEG_2000_HEADER_H_
#define ONNXIFI_BACKENDS_CORE_IMAGE_JPEG_2000_HEADER_H_

#include <cstdint>
#include <optional>

#include "backends/core/image/image.h"

namespace onnxifi::image {

struct Jpeg2000Header {
  int64_t width = 0;  // never 0
  int64_t height = 0;
};

inline bool IsJpeg2000Codestream(Bytes file) { return !file.empty() && file[0] == 0xFF; }

// Of a codestream or of a file with one. Nothing where the headers are damaged, where there are
// more than four components or columns of a palette, or more tiles or precincts than their pixels
// are worth: files of a few hundred bytes would take gigabytes.
std::optional<Jpeg2000Header> ReadJpeg2000Header(Bytes file);

}  // namespace onnxifi::image

#endif  // ONNXIFI_BACKENDS_CORE_IMAGE_JPEG_2000_HEADER_H_
