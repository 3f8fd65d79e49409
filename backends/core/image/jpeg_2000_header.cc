// SPDX-License-Identifier: Apache-2.0
//
// Headers of JPEG 2000 (ISO/IEC 15444-1, annexes A and I): the boxes of a file, and the marker
// segments of its codestream.

#include "backends/core/image/jpeg_2000_header.h"

#include <algorithm>
#include <string_view>

#include "backends/core/image/bytes.h"

namespace onnxifi::image {
namespace {

// Three colours and transparency, or four inks.
constexpr uint32_t kMaxComponents = 4;
// OpenJPEG takes 10 KiB for each tile and 1.6 KiB for each precinct. Encoders make none so small,
// but in images and resolutions that are small themselves.
constexpr int64_t kMinPixelsPerTile = 64 * 64;
constexpr int64_t kMaxTilesOfSmallImage = 64;
constexpr int64_t kMinPixelsPerPrecinct = 32 * 32;
constexpr int64_t kMaxPrecinctsOfSmallImage = 1024;
constexpr uint32_t kMaxLevels = 32;

enum Marker : uint32_t {
  kStartOfCodestream = 0xFF4F,
  kSize = 0xFF51,
  kCoding = 0xFF52,
  kCodingOfComponent = 0xFF53,
  kStartOfTilePart = 0xFF90,
  kStartOfData = 0xFF93,
  kEndOfCodestream = 0xFFD9,
};

// The other marker segments with a length that OpenJPEG knows. What it does not know it skips in a
// way of its own.
constexpr uint32_t kOtherMarkers[] = {0xFF50, 0xFF55, 0xFF57, 0xFF58, 0xFF59, 0xFF5C,
                                      0xFF5D, 0xFF5E, 0xFF5F, 0xFF60, 0xFF61, 0xFF63,
                                      0xFF64, 0xFF74, 0xFF75, 0xFF77, 0xFF78};

// Each box has its length and name before it: 0 for all that is left, 1 for a length of 64 bits
// behind the name. Empty if no box is a codestream, or if a palette before it has too many columns,
// each of which makes a component as large as the image.
Bytes FindCodestream(Bytes file) {
  while (file.size() >= 8) {
    const std::string_view name = Text(file.subspan(4, 4));
    const bool is_long = Big32(file, 0) == 1;
    const uint64_t size_bytes =
        is_long ? uint64_t{Big32(file, 8)} << 32 | Big32(file, 12) : uint64_t{Big32(file, 0)};
    const size_t header_bytes = is_long ? 16 : 8;
    if (file.size() < header_bytes) return {};
    if (name == "jp2c") return file.subspan(header_bytes);
    if (size_bytes < header_bytes || size_bytes > file.size()) return {};
    if (name == "jp2h") {
      // Wherever that name stands in it. Behind it: a number of 16 bits, and that of columns.
      const Bytes boxes = file.first(static_cast<size_t>(size_bytes));
      for (size_t at = Text(boxes).find("pclr"); at != std::string_view::npos;
           at = Text(boxes).find("pclr", at + 1)) {
        if (ByteAt(boxes, at + 6) > kMaxComponents) return {};
      }
    }
    file = file.subspan(static_cast<size_t>(size_bytes));
  }
  return {};
}

int64_t Product(int64_t a, int64_t b) { return tensor::ElementCount(tensor::Extents{a, b}); }

int64_t DivideUp(int64_t a, int64_t b) { return (a + b - 1) / b; }

// The segment behind the start of the codestream.
std::optional<Jpeg2000Header> ReadSize(Bytes codestream) {
  if (Big16(codestream, 0) != kStartOfCodestream || Big16(codestream, 2) != kSize) {
    return std::nullopt;
  }
  // The end of the image, its start, and the extents and the start of the first tile; each x, y.
  const auto number = [&](size_t index) { return int64_t{Big32(codestream, 8 + 4 * index)}; };
  const Jpeg2000Header header = {number(0) - number(2), number(1) - number(3)};
  const uint32_t components = Big16(codestream, 40);
  if (header.width <= 0 || header.height <= 0 || number(4) == 0 || number(5) == 0 ||
      number(6) > number(2) || number(7) > number(3) || components < 1 ||
      components > kMaxComponents) {
    return std::nullopt;
  }
  const int64_t tiles = Product(DivideUp(number(0) - number(6), number(4)),
                                DivideUp(number(1) - number(7), number(5)));
  if (tiles > kMaxTilesOfSmallImage + Product(header.width, header.height) / kMinPixelsPerTile) {
    return std::nullopt;
  }
  return header;
}

// `levels`: where the number of decompositions stands, 4 bytes and the sizes of precincts behind
// it.
bool HasFewPrecincts(Bytes codestream, size_t levels_at, const Jpeg2000Header& header) {
  const uint32_t levels = ByteAt(codestream, levels_at);
  if (levels > kMaxLevels) return false;
  int64_t count = 0;
  for (uint32_t resolution = 0; resolution <= levels; ++resolution) {
    const uint32_t exponents = ByteAt(codestream, levels_at + 5 + resolution);
    const auto along = [&](int64_t extent, uint32_t exponent) {
      return DivideUp(DivideUp(extent, int64_t{1} << (levels - resolution)),
                      int64_t{1} << exponent);
    };
    count += Product(along(header.width, exponents & 0xF), along(header.height, exponents >> 4));
    if (count >
        kMaxPrecinctsOfSmallImage + Product(header.width, header.height) / kMinPixelsPerPrecinct) {
      return false;
    }
  }
  return true;
}

// The headers of the image and of all parts of tiles, each of which may say how it is coded.
bool IsCodedSoundly(Bytes codestream, const Jpeg2000Header& header) {
  size_t tile_part = 0;
  for (size_t at = 2; at + 2 <= codestream.size();) {
    const uint32_t marker = Big16(codestream, at);
    if (marker == kEndOfCodestream) return true;
    if (marker == kStartOfData) {
      const uint64_t size_bytes = Big32(codestream, tile_part + 6);
      if (tile_part == 0) return false;
      // To the end of the file, or behind it.
      if (size_bytes == 0 || size_bytes > codestream.size() - tile_part) return true;
      if (tile_part + size_bytes < at + 2) return false;
      at = tile_part + static_cast<size_t>(size_bytes);
      if (at + 2 <= codestream.size() && Big16(codestream, at) != kStartOfTilePart &&
          Big16(codestream, at) != kEndOfCodestream) {
        return false;
      }
      continue;
    }
    const bool is_default = marker == kCoding;
    if (is_default || marker == kCodingOfComponent) {
      // Behind the flags: progression, layers and transform; or behind the number of the component.
      const uint32_t flags = ByteAt(codestream, at + (is_default ? 4 : 5));
      const size_t levels_at = at + (is_default ? 9 : 6);
      if ((flags & 1) != 0 && !HasFewPrecincts(codestream, levels_at, header)) return false;
    } else if (marker == kStartOfTilePart) {
      tile_part = at;
    } else if (marker != kSize && !std::ranges::count(kOtherMarkers, marker)) {
      return false;
    }
    const uint32_t size_bytes = Big16(codestream, at + 2);
    if (size_bytes < 2) return false;
    at += 2 + size_bytes;
  }
  return true;
}

}  // namespace

std::optional<Jpeg2000Header> ReadJpeg2000Header(Bytes file) {
  const Bytes codestream = IsJpeg2000Codestream(file) ? file : FindCodestream(file);
  const std::optional<Jpeg2000Header> header = ReadSize(codestream);
  if (!header || !IsCodedSoundly(codestream, *header)) return std::nullopt;
  return header;
}

}  // namespace onnxifi::image
