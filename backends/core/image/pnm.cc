// SPDX-License-Identifier: Apache-2.0
//
// Portable any maps: P1 to P6, that is bitmaps, graymaps and pixmaps, as digits or as bytes, with
// samples of up to 16 bits.

#include <cmath>
#include <cstdint>

#include "backends/core/image/bytes.h"
#include "backends/core/image/color.h"
#include "backends/core/image/decoders.h"

namespace onnxifi::image {
namespace {

constexpr int64_t kMaxSample = 65535;
constexpr int64_t kMaxExtent = INT32_MAX;

class TextReader {
 public:
  explicit TextReader(Bytes bytes) : bytes_(bytes) {}

  // A number of digits alone behind white space and comments, at most `limit`; nothing else.
  std::optional<int64_t> Number(int64_t limit) {
    SkipSpace();
    int64_t value = -1;
    for (; position_ < bytes_.size() && IsDigit(); ++position_) {
      value = (value < 0 ? 0 : value * 10) + (bytes_[position_] - '0');
      if (value > limit) return std::nullopt;
    }
    if (value < 0 || (position_ < bytes_.size() && !IsSpace() && bytes_[position_] != '#')) {
      return std::nullopt;
    }
    return value;
  }

  // One digit, 0 or 1, which need not stand apart.
  std::optional<int64_t> Bit() {
    SkipSpace();
    if (position_ >= bytes_.size()) return std::nullopt;
    const uint8_t digit = bytes_[position_++];
    if (digit != '0' && digit != '1') return std::nullopt;
    return digit - '0';
  }

  // What lies behind the one white space that ends a header.
  Bytes Rest() const { return bytes_.subspan(std::min(position_ + 1, bytes_.size())); }
  size_t left_bytes() const { return bytes_.size() - position_; }

 private:
  bool IsDigit() const { return bytes_[position_] >= '0' && bytes_[position_] <= '9'; }
  bool IsSpace() const {
    const uint8_t byte = bytes_[position_];
    return byte == ' ' || (byte >= '\t' && byte <= '\r');
  }
  void SkipSpace() {
    for (; position_ < bytes_.size(); ++position_) {
      if (bytes_[position_] == '#') {
        while (position_ < bytes_.size() && bytes_[position_] != '\n' &&
               bytes_[position_] != '\r') {
          ++position_;
        }
        if (position_ == bytes_.size()) return;
      } else if (!IsSpace()) {
        return;
      }
    }
  }

  Bytes bytes_;
  size_t position_ = 2;  // behind the signature
};

// As Pillow computes it, ties to even.
uint8_t Scale(int64_t sample, int64_t maximum) {
  const double scaled = static_cast<double>(sample) / static_cast<double>(maximum) * 255;
  return static_cast<uint8_t>(std::min(std::nearbyint(scaled), 255.0));
}

}  // namespace

Decoded DecodePnm(Bytes bytes, const Options& options) {
  const int kind = static_cast<int>(ByteAt(bytes, 1)) - '0';
  const bool is_text = kind <= 3;
  const bool is_bitmap = kind == 1 || kind == 4;
  const int channels = kind == 3 || kind == 6 ? 3 : 1;
  TextReader reader(bytes);
  const std::optional<int64_t> width = reader.Number(kMaxExtent);
  const std::optional<int64_t> height = width ? reader.Number(kMaxExtent) : std::nullopt;
  if (!height || *width == 0 || *height == 0) return std::optional<Image>();
  const std::optional<int64_t> maximum = is_bitmap ? 1 : reader.Number(kMaxSample);
  if (!maximum || *maximum == 0) return std::optional<Image>();

  const int64_t sample_bytes = *maximum > 255 ? 2 : 1;
  const int64_t samples = *width * channels;
  const int64_t row_bytes = is_bitmap ? (*width + 7) / 8 : samples * sample_bytes;
  const Bytes data = reader.Rest();
  // Before memory is taken for what is not there. A digit of a bitmap takes a byte, a number two.
  const bool is_there = is_text ? *height <= static_cast<int64_t>(reader.left_bytes()) / samples &&
                                      *height * samples * (is_bitmap ? 1 : 2) <=
                                          static_cast<int64_t>(reader.left_bytes())
                                : *height <= static_cast<int64_t>(data.size()) / row_bytes;
  if (!is_there) return std::optional<Image>();
  ONNXIFI_ASSIGN_OR_RETURN(std::optional<Image> image,
                           Image::Create(*width, *height, options.max_pixels));
  if (!image) return image;

  for (int64_t y = 0; y < *height; ++y) {
    uint8_t* rgb = image->Row(y);
    const uint8_t* row = is_text ? nullptr : data.data() + y * row_bytes;
    for (int64_t k = 0; k < samples; ++k) {
      uint8_t value = 0;
      if (is_text) {
        const std::optional<int64_t> sample = is_bitmap ? reader.Bit() : reader.Number(*maximum);
        if (!sample) return std::optional<Image>();
        value = Scale(is_bitmap ? 1 - *sample : *sample, *maximum);
      } else if (is_bitmap) {
        // 1 is black.
        value = (row[k / 8] >> (7 - k % 8) & 1) != 0 ? 0 : 255;
      } else if (sample_bytes == 2) {
        value = Scale(int64_t{row[2 * k]} << 8 | row[2 * k + 1], *maximum);
      } else {
        value = *maximum == 255 ? row[k] : Scale(row[k], *maximum);
      }
      if (channels == 3) {
        rgb[k] = value;
      } else {
        StoreGray(value, rgb + 3 * k);
      }
    }
  }
  return image;
}

}  // namespace onnxifi::image
