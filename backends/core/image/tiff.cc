// SPDX-License-Identifier: Apache-2.0
//
// The first image of a TIFF file, by libtiff: gray and palettes of 1 to 8 bits, gray, RGB and CMYK
// of 8 and 16 (of which the upper 8 remain), YCbCr and CIE Lab, in strips or tiles, compressed as
// the library knows it. The orientation is applied, transparency dropped.

#include <tiffio.h>

#include <algorithm>
#include <array>
#include <cstdarg>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "backends/core/image/color.h"
#include "backends/core/image/decoders.h"
#include "backends/core/image/library.h"

namespace onnxifi::image {
namespace {

using base::Code;
using base::Result;
using base::Status;

// Of what libtiff allocates at once by the word of the file.
constexpr tmsize_t kMaxAllocationBytes = tmsize_t{1} << 30;
// Colours or inks, transparency, and what else programs of printers add.
constexpr int kMaxSamples = 8;

#define ONNXIFI_TIFF_FUNCTIONS(M)         \
  M(TIFFClientOpenExt)                    \
  M(TIFFClose)                            \
  M(TIFFComputeStrip)                     \
  M(TIFFComputeTile)                      \
  M(TIFFGetField)                         \
  M(TIFFGetFieldDefaulted)                \
  M(TIFFIsTiled)                          \
  M(TIFFOpenOptionsAlloc)                 \
  M(TIFFOpenOptionsFree)                  \
  M(TIFFOpenOptionsSetErrorHandlerExtR)   \
  M(TIFFOpenOptionsSetMaxSingleMemAlloc)  \
  M(TIFFOpenOptionsSetWarningHandlerExtR) \
  M(TIFFReadEncodedStrip)                 \
  M(TIFFReadEncodedTile)                  \
  M(TIFFReadRGBAImageOriented)            \
  M(TIFFScanlineSize64)                   \
  M(TIFFSetField)                         \
  M(TIFFStripSize64)                      \
  M(TIFFTileRowSize64)                    \
  M(TIFFTileSize64)

struct Functions {
  ONNXIFI_TIFF_FUNCTIONS(ONNXIFI_IMAGE_MEMBER)
};

Result<Functions> Load(const char* name) {
  ONNXIFI_ASSIGN_OR_RETURN(const Library library, Library::Open(name, "TIFF"));
  Functions table;
  ONNXIFI_TIFF_FUNCTIONS(ONNXIFI_IMAGE_LOOK_UP)
  return table;
}

struct Source {
  Bytes bytes;
  uint64_t position = 0;
};

tmsize_t Read(thandle_t handle, void* target, tmsize_t size_bytes) {
  Source& source = *static_cast<Source*>(handle);
  if (size_bytes <= 0 || source.position >= source.bytes.size()) return 0;
  const size_t count = std::min(static_cast<size_t>(size_bytes),
                                source.bytes.size() - static_cast<size_t>(source.position));
  std::memcpy(target, source.bytes.data() + source.position, count);
  source.position += count;
  return static_cast<tmsize_t>(count);
}

tmsize_t Write(thandle_t /*handle*/, void* /*bytes*/, tmsize_t /*size_bytes*/) { return 0; }

toff_t Seek(thandle_t handle, toff_t offset, int origin) {
  Source& source = *static_cast<Source*>(handle);
  const uint64_t from = origin == SEEK_CUR   ? source.position
                        : origin == SEEK_END ? source.bytes.size()
                                             : 0;
  source.position = from + offset;
  return source.position;
}

int Close(thandle_t /*handle*/) { return 0; }

toff_t Size(thandle_t handle) { return static_cast<Source*>(handle)->bytes.size(); }

// Tells libtiff that nobody else need know.
int OnMessage(TIFF* /*file*/, void* /*data*/, const char* /*module*/, const char* /*format*/,
              va_list /*values*/) {
  return 1;
}

using File = std::unique_ptr<TIFF, decltype(&TIFFClose)>;

File Open(const Functions& tiff, Source& source) {
  const std::unique_ptr<TIFFOpenOptions, decltype(&TIFFOpenOptionsFree)> options(
      tiff.TIFFOpenOptionsAlloc(), tiff.TIFFOpenOptionsFree);
  if (!options) return File(nullptr, tiff.TIFFClose);
  tiff.TIFFOpenOptionsSetErrorHandlerExtR(options.get(), OnMessage, nullptr);
  tiff.TIFFOpenOptionsSetWarningHandlerExtR(options.get(), OnMessage, nullptr);
  tiff.TIFFOpenOptionsSetMaxSingleMemAlloc(options.get(), kMaxAllocationBytes);
  // Read, not mapped.
  return File(tiff.TIFFClientOpenExt("image", "rm", &source, Read, Write, Seek, Close, Size,
                                     /*map=*/nullptr, /*unmap=*/nullptr, options.get()),
              tiff.TIFFClose);
}

// What the tags say. Blocks are strips or tiles; each holds all samples of its pixels, or one of
// them if `is_separate`.
struct Layout {
  uint32_t width = 0;
  uint32_t height = 0;
  uint16_t bits = 1;
  uint16_t samples = 1;
  uint16_t photometric = PHOTOMETRIC_MINISWHITE;
  uint16_t compression = COMPRESSION_NONE;
  uint16_t orientation = ORIENTATION_TOPLEFT;
  bool is_separate = false;
  bool is_tiled = false;
  bool is_premultiplied = false;  // of the sample behind the colours
  std::array<const uint16_t*, 3> palette = {};

  int colors() const {
    return photometric == PHOTOMETRIC_RGB ? 3 : photometric == PHOTOMETRIC_SEPARATED ? 4 : 1;
  }
};

std::optional<Layout> ReadLayout(const Functions& tiff, TIFF* file) {
  Layout layout;
  const auto get = [&](uint32_t tag, auto& value) {
    return tiff.TIFFGetFieldDefaulted(file, tag, &value) != 0;
  };
  uint16_t planes = PLANARCONFIG_CONTIG;
  uint16_t format = SAMPLEFORMAT_UINT;
  uint16_t inks = INKSET_CMYK;
  if (!get(TIFFTAG_IMAGEWIDTH, layout.width) || !get(TIFFTAG_IMAGELENGTH, layout.height)) {
    return std::nullopt;
  }
  get(TIFFTAG_BITSPERSAMPLE, layout.bits);
  get(TIFFTAG_SAMPLESPERPIXEL, layout.samples);
  get(TIFFTAG_PHOTOMETRIC, layout.photometric);
  get(TIFFTAG_COMPRESSION, layout.compression);
  get(TIFFTAG_ORIENTATION, layout.orientation);
  get(TIFFTAG_PLANARCONFIG, planes);
  get(TIFFTAG_SAMPLEFORMAT, format);
  get(TIFFTAG_INKSET, inks);
  layout.is_separate = planes == PLANARCONFIG_SEPARATE && layout.samples > 1;
  layout.is_tiled = tiff.TIFFIsTiled(file) != 0;
  if ((format != SAMPLEFORMAT_UINT && format != SAMPLEFORMAT_VOID) || layout.samples < 1 ||
      layout.samples > kMaxSamples || layout.compression == COMPRESSION_OJPEG) {
    return std::nullopt;
  }
  if (layout.photometric == PHOTOMETRIC_YCBCR && layout.compression == COMPRESSION_JPEG &&
      !layout.is_separate && layout.samples == 3) {
    // libjpeg makes RGB of it.
    if (tiff.TIFFSetField(file, TIFFTAG_JPEGCOLORMODE, JPEGCOLORMODE_RGB) == 0) return std::nullopt;
    layout.photometric = PHOTOMETRIC_RGB;
  }
  uint16_t extra_count = 0;
  const uint16_t* extras = nullptr;
  if (tiff.TIFFGetFieldDefaulted(file, TIFFTAG_EXTRASAMPLES, &extra_count, &extras) != 0 &&
      extra_count > 0) {
    layout.is_premultiplied =
        extras[0] == EXTRASAMPLE_ASSOCALPHA && layout.samples > layout.colors();
  }
  const bool is_byte = layout.bits == 8;
  const bool is_wide = layout.bits == 16;
  const bool is_narrow =
      (layout.bits == 1 || layout.bits == 2 || layout.bits == 4) && layout.samples == 1;
  switch (layout.photometric) {
    case PHOTOMETRIC_MINISWHITE:
    case PHOTOMETRIC_MINISBLACK:
      return is_byte || is_wide || is_narrow ? std::optional(layout) : std::nullopt;
    case PHOTOMETRIC_PALETTE: {
      auto& [red, green, blue] = layout.palette;
      if (tiff.TIFFGetField(file, TIFFTAG_COLORMAP, &red, &green, &blue) == 0) return std::nullopt;
      return is_byte || is_narrow ? std::optional(layout) : std::nullopt;
    }
    case PHOTOMETRIC_SEPARATED:
      if (inks != INKSET_CMYK) return std::nullopt;
      [[fallthrough]];
    case PHOTOMETRIC_RGB:
      return (is_byte || is_wide) && layout.samples >= layout.colors() ? std::optional(layout)
                                                                       : std::nullopt;
    case PHOTOMETRIC_YCBCR:
    case PHOTOMETRIC_CIELAB:
      return is_byte && layout.samples == 3 ? std::optional(layout) : std::nullopt;
    default:
      return std::nullopt;
  }
}

// `count` samples of `bits` each, the first at `first` and then every `step`, in 8 bits: of 16 the
// upper ones, fewer scaled if `is_scaled`.
void Unpack(const uint8_t* row, const Layout& layout, size_t first, size_t step, size_t count,
            bool is_scaled, uint8_t* values) {
  for (size_t x = 0; x < count; ++x) {
    const size_t at = first + x * step;
    if (layout.bits == 16) {
      uint16_t sample = 0;  // in the order of this machine
      std::memcpy(&sample, row + 2 * at, sizeof(sample));
      values[x] = static_cast<uint8_t>(sample >> 8);
    } else if (layout.bits == 8) {
      values[x] = row[at];
    } else {
      const unsigned most = (1U << layout.bits) - 1;
      const size_t bit = at * layout.bits;
      const unsigned sample = row[bit / 8] >> (8 - layout.bits - bit % 8) & most;
      values[x] = static_cast<uint8_t>(is_scaled ? sample * 255 / most : sample);
    }
  }
}

// The samples of a row, each kind in a row of its own -> RGB.
void StorePixels(const Layout& layout, const std::vector<std::vector<uint8_t>>& samples,
                 size_t count, uint8_t* rgb) {
  for (size_t x = 0; x < count; ++x, rgb += 3) {
    std::array<uint8_t, 4> values = {};
    const auto colors = static_cast<size_t>(layout.colors());
    for (size_t k = 0; k < colors; ++k) values[k] = samples[k][x];
    if (layout.is_premultiplied) {
      const int alpha = samples[colors][x];
      for (uint8_t& value : values) value = alpha == 0 ? 0 : Clamp8(value * 255 / alpha);
    }
    switch (layout.photometric) {
      case PHOTOMETRIC_MINISWHITE:
        StoreGray(static_cast<uint8_t>(255 - values[0]), rgb);
        break;
      case PHOTOMETRIC_PALETTE:
        for (size_t k = 0; k < 3; ++k) {
          rgb[k] = static_cast<uint8_t>(layout.palette[k][values[0]] >> 8);
        }
        break;
      case PHOTOMETRIC_SEPARATED:
        StoreCmyk(values[0], values[1], values[2], values[3], rgb);
        break;
      case PHOTOMETRIC_RGB:
        std::copy_n(values.data(), 3, rgb);
        break;
      default:
        StoreGray(values[0], rgb);
        break;
    }
  }
}

// How the file is cut.
struct Blocks {
  uint32_t width = 0;
  uint32_t height = 0;
  uint64_t row_bytes = 0;
  uint64_t size_bytes = 0;
};

std::optional<Blocks> ReadBlocks(const Functions& tiff, TIFF* file, const Layout& layout) {
  Blocks blocks;
  if (layout.is_tiled) {
    if (tiff.TIFFGetField(file, TIFFTAG_TILEWIDTH, &blocks.width) == 0 ||
        tiff.TIFFGetField(file, TIFFTAG_TILELENGTH, &blocks.height) == 0) {
      return std::nullopt;
    }
    blocks.row_bytes = tiff.TIFFTileRowSize64(file);
    blocks.size_bytes = tiff.TIFFTileSize64(file);
  } else {
    blocks.width = layout.width;
    tiff.TIFFGetFieldDefaulted(file, TIFFTAG_ROWSPERSTRIP, &blocks.height);
    blocks.height = std::min(blocks.height, layout.height);
    blocks.row_bytes = tiff.TIFFScanlineSize64(file);
    blocks.size_bytes = tiff.TIFFStripSize64(file);
  }
  if (blocks.width == 0 || blocks.height == 0) return std::nullopt;
  // By the arithmetic of this file, on which what reads the samples rests.
  const uint64_t samples = layout.is_separate ? 1 : layout.samples;
  const uint64_t row_bytes = (uint64_t{blocks.width} * samples * layout.bits + 7) / 8;
  if (blocks.row_bytes != row_bytes || blocks.size_bytes != row_bytes * blocks.height) {
    return std::nullopt;
  }
  return blocks;
}

class BlockReader {
 public:
  BlockReader(const Functions& tiff, TIFF* file, const Layout& layout, const Blocks& blocks)
      : tiff_(tiff),
        file_(file),
        layout_(layout),
        blocks_(blocks),
        needed_(layout.colors() + (layout.is_premultiplied ? 1 : 0)),
        bytes_(blocks.size_bytes * (layout.is_separate ? static_cast<size_t>(needed_) : 1)),
        samples_(static_cast<size_t>(needed_)) {
    for (std::vector<uint8_t>& row : samples_) row.resize(blocks.width);
  }

  // All of the image. False where the bytes are damaged.
  bool Read(Image& image) {
    for (uint32_t y = 0; y < layout_.height; y += blocks_.height) {
      for (uint32_t x = 0; x < layout_.width; x += blocks_.width) {
        if (!ReadBlock(y, x)) return false;
        Store(y, x, image);
        if (layout_.width - x <= blocks_.width) break;
      }
      if (layout_.height - y <= blocks_.height) break;
    }
    return true;
  }

 private:
  uint32_t RowsAt(uint32_t y) const { return std::min(blocks_.height, layout_.height - y); }

  bool ReadBlock(uint32_t y, uint32_t x) {
    const int planes = layout_.is_separate ? needed_ : 1;
    // A tile is whole, the last strip ends with the image.
    const uint64_t expected_bytes =
        layout_.is_tiled ? blocks_.size_bytes : blocks_.row_bytes * RowsAt(y);
    for (int plane = 0; plane < planes; ++plane) {
      uint8_t* target = bytes_.data() + static_cast<size_t>(plane) * blocks_.size_bytes;
      const auto size_bytes = static_cast<tmsize_t>(blocks_.size_bytes);
      const auto sample = static_cast<uint16_t>(plane);
      const tmsize_t read_bytes =
          layout_.is_tiled
              ? tiff_.TIFFReadEncodedTile(file_, tiff_.TIFFComputeTile(file_, x, y, 0, sample),
                                          target, size_bytes)
              : tiff_.TIFFReadEncodedStrip(file_, tiff_.TIFFComputeStrip(file_, y, sample), target,
                                           size_bytes);
      if (read_bytes < 0 || static_cast<uint64_t>(read_bytes) < expected_bytes) return false;
    }
    return true;
  }

  void Store(uint32_t y, uint32_t x, Image& image) {
    const uint32_t count = std::min(blocks_.width, layout_.width - x);
    const bool is_scaled = layout_.photometric != PHOTOMETRIC_PALETTE;
    for (uint32_t row = 0; row < RowsAt(y); ++row) {
      for (size_t k = 0; k < samples_.size(); ++k) {
        const size_t plane = layout_.is_separate ? k : 0;
        const uint8_t* bytes = bytes_.data() + plane * blocks_.size_bytes + row * blocks_.row_bytes;
        Unpack(bytes, layout_, layout_.is_separate ? 0 : k,
               layout_.is_separate ? 1 : layout_.samples, count, is_scaled, samples_[k].data());
      }
      StorePixels(layout_, samples_, count, image.Row(y + row) + 3 * size_t{x});
    }
  }

  const Functions& tiff_;
  TIFF* file_;
  const Layout& layout_;
  const Blocks& blocks_;
  int needed_;  // the samples that are read of each pixel
  std::vector<uint8_t> bytes_;
  std::vector<std::vector<uint8_t>> samples_;
};

// Colours that libtiff converts by itself.
bool ReadConverted(const Functions& tiff, TIFF* file, const Layout& layout, Image& image) {
  std::vector<uint32_t> pixels(size_t{layout.width} * layout.height);
  // In the orientation that the file has: it turns no image, but would mirror it.
  if (tiff.TIFFReadRGBAImageOriented(file, layout.width, layout.height, pixels.data(),
                                     layout.orientation, /*stop=*/1) == 0) {
    return false;
  }
  const uint32_t* pixel = pixels.data();
  for (int64_t y = 0; y < image.height(); ++y) {
    uint8_t* rgb = image.Row(y);
    for (int64_t x = 0; x < image.width(); ++x, ++pixel, rgb += 3) {
      rgb[0] = static_cast<uint8_t>(TIFFGetR(*pixel));
      rgb[1] = static_cast<uint8_t>(TIFFGetG(*pixel));
      rgb[2] = static_cast<uint8_t>(TIFFGetB(*pixel));
    }
  }
  return true;
}

// Row 0 and column 0 as the file has them -> as they are looked at.
Decoded Turn(Image image, uint16_t orientation, int64_t max_pixels) {
  if (orientation <= ORIENTATION_TOPLEFT || orientation > ORIENTATION_LEFTBOT) {
    return std::optional<Image>(std::move(image));
  }
  const bool swaps = orientation >= ORIENTATION_LEFTTOP;
  const bool from_right = orientation == ORIENTATION_TOPRIGHT ||
                          orientation == ORIENTATION_BOTRIGHT ||
                          orientation == ORIENTATION_RIGHTBOT || orientation == ORIENTATION_LEFTBOT;
  const bool from_bottom =
      orientation == ORIENTATION_BOTRIGHT || orientation == ORIENTATION_BOTLEFT ||
      orientation == ORIENTATION_RIGHTTOP || orientation == ORIENTATION_RIGHTBOT;
  ONNXIFI_ASSIGN_OR_RETURN(std::optional<Image> turned,
                           swaps ? Image::Create(image.height(), image.width(), max_pixels)
                                 : Image::Create(image.width(), image.height(), max_pixels));
  if (!turned) return turned;
  for (int64_t y = 0; y < image.height(); ++y) {
    for (int64_t x = 0; x < image.width(); ++x) {
      const int64_t row = from_bottom ? image.height() - 1 - y : y;
      const int64_t column = from_right ? image.width() - 1 - x : x;
      std::copy_n(image.Row(y) + 3 * x, 3,
                  swaps ? turned->Row(column) + 3 * row : turned->Row(row) + 3 * column);
    }
  }
  return turned;
}

}  // namespace

Decoded DecodeTiff(Bytes bytes, const Options& options) {
  ONNXIFI_ASSIGN_OR_RETURN(const Functions tiff, Load(options.libraries.tiff));
  Source source{bytes};
  const File file = Open(tiff, source);
  if (!file) return std::optional<Image>();
  const std::optional<Layout> layout = ReadLayout(tiff, file.get());
  if (!layout) return std::optional<Image>();
  ONNXIFI_ASSIGN_OR_RETURN(std::optional<Image> image,
                           Image::Create(layout->width, layout->height, options.max_pixels));
  if (!image) return image;
  if (layout->photometric == PHOTOMETRIC_YCBCR || layout->photometric == PHOTOMETRIC_CIELAB) {
    if (!ReadConverted(tiff, file.get(), *layout, *image)) return std::optional<Image>();
  } else {
    const std::optional<Blocks> blocks = ReadBlocks(tiff, file.get(), *layout);
    if (!blocks) return std::optional<Image>();
    // A tile may be larger than the image.
    if (int64_t{blocks->width} > options.max_pixels / blocks->height) {
      return Status(Code::kUnsupportedShape,
                    "A tile of the encoded image has " + std::to_string(blocks->width) + " x " +
                        std::to_string(blocks->height) + " pixels; at most " +
                        std::to_string(options.max_pixels) + " pixels are decoded.");
    }
    if (!BlockReader(tiff, file.get(), *layout, *blocks).Read(*image)) {
      return std::optional<Image>();
    }
  }
  return Turn(*std::move(image), layout->orientation, options.max_pixels);
}

}  // namespace onnxifi::image
