// SPDX-License-Identifier: Apache-2.0
//
// Numbers at positions of bytes that nobody has checked; what lies beyond the end is 0.

#ifndef ONNXIFI_BACKENDS_CORE_IMAGE_BYTES_H_
#define ONNXIFI_BACKENDS_CORE_IMAGE_BYTES_H_

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "backends/core/image/image.h"

namespace onnxifi::image {

inline uint32_t ByteAt(Bytes bytes, size_t position) {
  return position < bytes.size() ? bytes[position] : 0;
}

inline uint32_t Little16(Bytes bytes, size_t position) {
  return ByteAt(bytes, position) | ByteAt(bytes, position + 1) << 8;
}

inline uint32_t Little32(Bytes bytes, size_t position) {
  return Little16(bytes, position) | Little16(bytes, position + 2) << 16;
}

inline uint32_t Big16(Bytes bytes, size_t position) {
  return ByteAt(bytes, position) << 8 | ByteAt(bytes, position + 1);
}

inline uint32_t Big32(Bytes bytes, size_t position) {
  return Big16(bytes, position) << 16 | Big16(bytes, position + 2);
}

inline std::string_view Text(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace onnxifi::image

#endif  // ONNXIFI_BACKENDS_CORE_IMAGE_BYTES_H_
