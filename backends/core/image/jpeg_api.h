// SPDX-License-Identifier: Apache-2.0
//
// libjpeg's header, which uses what <cstdio> declares and does not include it.

#ifndef ONNXIFI_BACKENDS_CORE_IMAGE_JPEG_API_H_
#define ONNXIFI_BACKENDS_CORE_IMAGE_JPEG_API_H_

// clang-format off
#include <cstdio>

#include <jpeglib.h>
// clang-format on

#endif  // ONNXIFI_BACKENDS_CORE_IMAGE_JPEG_API_H_
