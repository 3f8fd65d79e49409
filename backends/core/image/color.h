// SPDX-License-Identifier: Apache-2.0
//
// Colours as files have them -> the 8-bit RGB of an Image, pixel by pixel.

#ifndef ONNXIFI_BACKENDS_CORE_IMAGE_COLOR_H_
#define ONNXIFI_BACKENDS_CORE_IMAGE_COLOR_H_

#include <algorithm>
#include <cstdint>

namespace onnxifi::image {

inline uint8_t Clamp8(int value) { return static_cast<uint8_t>(std::clamp(value, 0, 255)); }

inline void StoreGray(uint8_t gray, uint8_t* rgb) { rgb[0] = rgb[1] = rgb[2] = gray; }

// Ink: 255 is full coverage. (1 - C) (1 - K), rounded as Pillow does.
inline void StoreCmyk(int c, int m, int y, int k, uint8_t* rgb) {
  const int light = 255 - k;
  const auto shade = [light](int ink) {
    const int product = ink * light + 128;
    return Clamp8(light - (((product >> 8) + product) >> 8));
  };
  rgb[0] = shade(c);
  rgb[1] = shade(m);
  rgb[2] = shade(y);
}

// JFIF: all 256 values, chroma around 128.
inline void StoreYcc(int y, int cb, int cr, uint8_t* rgb) {
  // 1.402, 0.344136, 0.714136 and 1.772 in 16 bits.
  cb -= 128, cr -= 128;
  rgb[0] = Clamp8(y + ((91881 * cr + 0x8000) >> 16));
  rgb[1] = Clamp8(y + ((-22554 * cb - 46802 * cr + 0x8000) >> 16));
  rgb[2] = Clamp8(y + ((116130 * cb + 0x8000) >> 16));
}

}  // namespace onnxifi::image

#endif  // ONNXIFI_BACKENDS_CORE_IMAGE_COLOR_H_
