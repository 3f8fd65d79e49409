// SPDX-License-Identifier: Apache-2.0
//
// Windows bitmaps: a palette of 1, 4 or 8 bits, plain or in runs, or 16, 24 and 32 bits per pixel
// with any masks. Headers of Windows from version 2 on and of OS/2 version 1.

#include <array>
#include <bit>
#include <cstdint>
#include <vector>

#include "backends/core/image/bytes.h"
#include "backends/core/image/decoders.h"

namespace onnxifi::image {
namespace {

constexpr size_t kFileHeaderBytes = 14;

enum Compression : uint32_t { kPlain = 0, kRuns8 = 1, kRuns4 = 2, kMasks = 3 };

// The bits of one colour in a pixel.
struct Mask {
  uint32_t bits = 0;

  bool is_contiguous() const {
    const uint32_t low = bits == 0 ? 0 : bits >> std::countr_zero(bits);
    return (low & (low + 1)) == 0;
  }
  // Scaled to 0..255; 0 where the mask has no bits.
  uint8_t Of(uint32_t pixel) const {
    if (bits == 0) return 0;
    const int shift = std::countr_zero(bits);
    const uint64_t most = bits >> shift;
    return static_cast<uint8_t>(uint64_t{(pixel & bits) >> shift} * 255 / most);
  }
};

struct Header {
  int64_t width = 0;
  int64_t height = 0;
  bool is_top_down = false;
  uint32_t bits = 0;
  uint32_t compression = kPlain;
  std::array<Mask, 3> masks;
  size_t palette_begin = 0;
  size_t palette_entry_bytes = 4;
  uint32_t palette_count = 0;
  size_t pixels_begin = 0;
};

std::optional<Header> ReadHeader(Bytes bytes) {
  Header header;
  const uint32_t size_bytes = Little32(bytes, kFileHeaderBytes);
  const Bytes info = bytes.subspan(std::min(kFileHeaderBytes, bytes.size()));
  size_t colors = 0;
  if (size_bytes == 12) {
    header.width = Little16(info, 4);
    header.height = Little16(info, 6);
    header.bits = Little16(info, 10);
    header.palette_entry_bytes = 3;
  } else if (size_bytes == 40 || size_bytes == 52 || size_bytes == 56 || size_bytes == 64 ||
             size_bytes == 108 || size_bytes == 124) {
    header.width = static_cast<int32_t>(Little32(info, 4));
    header.height = static_cast<int32_t>(Little32(info, 8));
    header.is_top_down = header.height < 0;
    if (header.is_top_down) header.height = -header.height;
    header.bits = Little16(info, 14);
    header.compression = Little32(info, 16);
    colors = Little32(info, 32);
  } else {
    return std::nullopt;
  }
  const bool has_palette = header.bits <= 8;
  header.palette_begin = kFileHeaderBytes + size_bytes;
  switch (header.compression) {
    case kPlain:
      break;
    case kRuns8:
      if (header.bits != 8) return std::nullopt;
      break;
    case kRuns4:
      if (header.bits != 4) return std::nullopt;
      break;
    case kMasks:
      // OS/2 has another compression of that number.
      if (has_palette || size_bytes == 64) return std::nullopt;
      // In later headers, else behind the header.
      for (size_t k = 0; k < 3; ++k) header.masks[k].bits = Little32(info, 40 + 4 * k);
      if (size_bytes == 40) header.palette_begin += 12;
      break;
    default:
      return std::nullopt;
  }
  if (header.masks[0].bits == 0 && header.masks[1].bits == 0 && header.masks[2].bits == 0) {
    header.masks = header.bits == 16 ? std::array{Mask{0x7C00}, Mask{0x3E0}, Mask{0x1F}}
                                     : std::array{Mask{0xFF0000}, Mask{0xFF00}, Mask{0xFF}};
  }
  for (const Mask& mask : header.masks) {
    if (!mask.is_contiguous()) return std::nullopt;
  }
  switch (header.bits) {
    case 1:
    case 4:
    case 8:
      header.palette_count = 1U << header.bits;
      if (colors != 0 && colors < header.palette_count) {
        header.palette_count = static_cast<uint32_t>(colors);
      }
      break;
    case 16:
    case 24:
    case 32:
      break;
    default:
      return std::nullopt;
  }
  const size_t palette_end =
      header.palette_begin + header.palette_count * header.palette_entry_bytes;
  header.pixels_begin = Little32(bytes, 10);
  // Some writers forget the palette when they tell where pixels begin.
  if (header.pixels_begin <= header.palette_begin) header.pixels_begin = palette_end;
  if (palette_end > bytes.size() || header.pixels_begin > bytes.size()) return std::nullopt;
  return header;
}

// Runs -> a palette index per pixel, rows from the bottom. What no run covers is index 0.
class RunReader {
 public:
  RunReader(const Header& header, Bytes bytes, std::vector<uint8_t>& indices)
      : is_nibbles_(header.compression == kRuns4),
        width_(header.width),
        height_(header.height),
        bytes_(bytes),
        indices_(indices) {}

  // Whether the end of the bitmap or of its last row was reached.
  bool Read() {
    while (y_ < height_) {
      if (bytes_.size() - position_ < 2) return false;
      const uint8_t count = Next();
      const uint8_t second = Next();
      if (count > 0) {
        for (int k = 0; k < count; ++k) Put(Half(second, k));
      } else if (second == 0) {
        x_ = 0, ++y_;
      } else if (second == 1) {
        return true;
      } else if (second == 2) {
        if (bytes_.size() - position_ < 2) return false;
        x_ += Next();
        y_ += Next();
      } else {
        const size_t size_bytes = is_nibbles_ ? (second + 1U) / 2 : second;
        if (bytes_.size() - position_ < size_bytes) return false;
        for (int k = 0; k < second; ++k) {
          Put(Half(bytes_[position_ + static_cast<size_t>(is_nibbles_ ? k / 2 : k)], k));
        }
        // Runs begin at even bytes.
        position_ = std::min(position_ + (size_bytes + 1) / 2 * 2, bytes_.size());
      }
    }
    return true;
  }

 private:
  uint8_t Next() { return bytes_[position_++]; }
  uint8_t Half(uint8_t byte, int k) const {
    if (!is_nibbles_) return byte;
    return k % 2 == 0 ? byte >> 4 : byte & 0xF;
  }
  void Put(uint8_t index) {
    if (x_ < width_ && y_ < height_) indices_[static_cast<size_t>(y_ * width_ + x_)] = index;
    ++x_;
  }

  bool is_nibbles_;
  int64_t width_;
  int64_t height_;
  Bytes bytes_;
  std::vector<uint8_t>& indices_;
  size_t position_ = 0;
  int64_t x_ = 0;
  int64_t y_ = 0;  // from the bottom
};

class Palette {
 public:
  Palette(const Header& header, Bytes bytes)
      : entries_(bytes.subspan(header.palette_begin)),
        entry_bytes_(header.palette_entry_bytes),
        count_(header.palette_count) {}

  // Black beyond the last entry.
  void Store(uint32_t index, uint8_t* rgb) const {
    for (size_t k = 0; k < 3; ++k) {
      rgb[k] = index < count_ ? entries_[index * entry_bytes_ + 2 - k] : 0;
    }
  }

 private:
  Bytes entries_;
  size_t entry_bytes_;
  uint32_t count_;
};

void StoreRow(const Header& header, const Palette& palette, const uint8_t* row, uint8_t* rgb) {
  const uint32_t bits = header.bits;
  for (int64_t x = 0; x < header.width; ++x, rgb += 3) {
    if (bits <= 8) {
      const int64_t first = x * bits;
      const uint32_t index = row[first / 8] >> (8 - bits - first % 8);
      palette.Store(index & ((1U << bits) - 1), rgb);
      continue;
    }
    const size_t size_bytes = bits / 8;
    uint32_t pixel = 0;
    for (size_t k = 0; k < size_bytes; ++k) {
      pixel |= uint32_t{row[static_cast<size_t>(x) * size_bytes + k]} << (8 * k);
    }
    for (size_t k = 0; k < 3; ++k) rgb[k] = header.masks[k].Of(pixel);
  }
}

}  // namespace

Decoded DecodeBmp(Bytes bytes, const Options& options) {
  const std::optional<Header> header = ReadHeader(bytes);
  if (!header || header->width <= 0 || header->height <= 0) return std::optional<Image>();
  const Bytes data = bytes.subspan(header->pixels_begin);
  const bool is_runs = header->compression == kRuns8 || header->compression == kRuns4;
  const int64_t row_bits = header->width * header->bits;
  const int64_t stride = (row_bits + 31) / 32 * 4;
  // Before memory is taken for what is not there: extents are 31 bits.
  if (!is_runs &&
      ((header->height - 1) > static_cast<int64_t>(data.size()) / stride ||
       (header->height - 1) * stride + (row_bits + 7) / 8 > static_cast<int64_t>(data.size()))) {
    return std::optional<Image>();
  }
  ONNXIFI_ASSIGN_OR_RETURN(std::optional<Image> image,
                           Image::Create(header->width, header->height, options.max_pixels));
  if (!image) return image;
  const Palette palette(*header, bytes);
  const auto from_top = [&](int64_t y) { return header->is_top_down ? y : header->height - 1 - y; };
  if (is_runs) {
    std::vector<uint8_t> indices(static_cast<size_t>(header->width * header->height));
    if (!RunReader(*header, data, indices).Read()) return std::optional<Image>();
    const uint8_t* index = indices.data();
    for (int64_t y = 0; y < header->height; ++y) {
      uint8_t* rgb = image->Row(from_top(y));
      for (int64_t x = 0; x < header->width; ++x) palette.Store(*index++, rgb + 3 * x);
    }
    return image;
  }
  for (int64_t y = 0; y < header->height; ++y) {
    StoreRow(*header, palette, data.data() + y * stride, image->Row(from_top(y)));
  }
  return image;
}

}  // namespace onnxifi::image
