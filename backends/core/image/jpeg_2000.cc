// SPDX-License-Identifier: Apache-2.0
//
// JPEG 2000 by OpenJPEG, as a file (JP2) or a bare codestream: gray, RGB, YCC and CMYK, each with
// or without transparency, which is dropped. Samples of other widths are scaled to 8 bits, and
// subsampled ones repeated.

#include <openjpeg.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>

#include "backends/core/image/color.h"
#include "backends/core/image/decoders.h"
#include "backends/core/image/jpeg_2000_header.h"
#include "backends/core/image/library.h"

namespace onnxifi::image {
namespace {

using base::Code;
using base::Result;
using base::Status;

#define ONNXIFI_OPENJPEG_FUNCTIONS(M)   \
  M(opj_create_decompress)              \
  M(opj_decode)                         \
  M(opj_destroy_codec)                  \
  M(opj_image_destroy)                  \
  M(opj_read_header)                    \
  M(opj_set_default_decoder_parameters) \
  M(opj_setup_decoder)                  \
  M(opj_stream_create)                  \
  M(opj_stream_destroy)                 \
  M(opj_stream_set_read_function)       \
  M(opj_stream_set_seek_function)       \
  M(opj_stream_set_skip_function)       \
  M(opj_stream_set_user_data)           \
  M(opj_stream_set_user_data_length)

struct Functions {
  ONNXIFI_OPENJPEG_FUNCTIONS(ONNXIFI_IMAGE_MEMBER)
};

Result<Functions> Load(const char* name) {
  ONNXIFI_ASSIGN_OR_RETURN(const Library library, Library::Open(name, "JPEG 2000"));
  Functions table;
  ONNXIFI_OPENJPEG_FUNCTIONS(ONNXIFI_IMAGE_LOOK_UP)
  return table;
}

struct Source {
  Bytes bytes;
  size_t position = 0;
};

OPJ_SIZE_T Read(void* target, OPJ_SIZE_T size_bytes, void* user_data) {
  Source& source = *static_cast<Source*>(user_data);
  const size_t count = std::min(size_bytes, source.bytes.size() - source.position);
  if (count == 0) return static_cast<OPJ_SIZE_T>(-1);
  std::memcpy(target, source.bytes.data() + source.position, count);
  source.position += count;
  return count;
}

OPJ_OFF_T Skip(OPJ_OFF_T size_bytes, void* user_data) {
  Source& source = *static_cast<Source*>(user_data);
  if (size_bytes < 0) return -1;
  const size_t count =
      std::min(static_cast<size_t>(size_bytes), source.bytes.size() - source.position);
  source.position += count;
  return count == 0 && size_bytes > 0 ? -1 : static_cast<OPJ_OFF_T>(count);
}

OPJ_BOOL Seek(OPJ_OFF_T position, void* user_data) {
  Source& source = *static_cast<Source*>(user_data);
  if (position < 0 || static_cast<size_t>(position) > source.bytes.size()) return OPJ_FALSE;
  source.position = static_cast<size_t>(position);
  return OPJ_TRUE;
}

// A component at the resolution of the image, in 8 bits.
class Samples {
 public:
  Samples(const opj_image_t& image, const opj_image_comp_t& component)
      : component_(component),
        offset_(component.sgnd != 0 ? int64_t{1} << (component.prec - 1) : 0),
        most_((int64_t{1} << component.prec) - 1),
        x_(image.x0),
        y_(image.y0) {}

  static bool IsSound(const opj_image_comp_t& component) {
    return component.data != nullptr && component.w > 0 && component.h > 0 && component.dx > 0 &&
           component.dy > 0 && component.prec >= 1 && component.prec <= 31;
  }

  uint8_t At(int64_t y, int64_t x) const {
    const int64_t row =
        std::min<int64_t>((y_ + y) / component_.dy - y_ / component_.dy, component_.h - 1);
    const int64_t column =
        std::min<int64_t>((x_ + x) / component_.dx - x_ / component_.dx, component_.w - 1);
    const int64_t sample =
        std::clamp<int64_t>(component_.data[row * component_.w + column] + offset_, 0, most_);
    // As other formats: the upper bits of many, and white for the most of few.
    if (component_.prec >= 8) return static_cast<uint8_t>(sample >> (component_.prec - 8));
    return static_cast<uint8_t>(sample * 255 / most_);
  }

 private:
  const opj_image_comp_t& component_;
  int64_t offset_;
  int64_t most_;
  int64_t x_;
  int64_t y_;
};

enum class Colors : uint8_t { kGray, kRgb, kYcc, kCmyk };

std::optional<Colors> ColorsOf(const opj_image_t& image) {
  const auto is_subsampled = [&](uint32_t k) {
    return image.comps[k].dx != 1 || image.comps[k].dy != 1;
  };
  switch (image.color_space) {
    case OPJ_CLRSPC_UNKNOWN:
    case OPJ_CLRSPC_UNSPECIFIED:
      if (image.numcomps < 3) return Colors::kGray;
      // Only chroma is stored at a lower resolution than the rest.
      return !is_subsampled(0) && (is_subsampled(1) || is_subsampled(2)) ? Colors::kYcc
                                                                         : Colors::kRgb;
    case OPJ_CLRSPC_SRGB:
      return image.numcomps < 3 ? Colors::kGray : Colors::kRgb;
    case OPJ_CLRSPC_GRAY:
      return Colors::kGray;
    case OPJ_CLRSPC_SYCC:
      return image.numcomps < 3 ? Colors::kGray : Colors::kYcc;
    case OPJ_CLRSPC_CMYK:
      if (image.numcomps < 4) return std::nullopt;
      return Colors::kCmyk;
    default:
      return std::nullopt;
  }
}

void Convert(const opj_image_t& decoded, Colors colors, Image& image) {
  const size_t count = colors == Colors::kGray ? 1 : colors == Colors::kCmyk ? 4 : 3;
  const auto samples_of = [&](size_t k) {
    return Samples(decoded, decoded.comps[std::min(k, count - 1)]);
  };
  const std::array samples = {samples_of(0), samples_of(1), samples_of(2), samples_of(3)};
  for (int64_t y = 0; y < image.height(); ++y) {
    uint8_t* rgb = image.Row(y);
    for (int64_t x = 0; x < image.width(); ++x, rgb += 3) {
      std::array<uint8_t, 4> values = {};
      for (size_t k = 0; k < count; ++k) values[k] = samples[k].At(y, x);
      switch (colors) {
        case Colors::kGray:
          StoreGray(values[0], rgb);
          break;
        case Colors::kRgb:
          std::copy_n(values.data(), 3, rgb);
          break;
        case Colors::kYcc:
          StoreYcc(values[0], values[1], values[2], rgb);
          break;
        case Colors::kCmyk:
          StoreCmyk(values[0], values[1], values[2], values[3], rgb);
          break;
      }
    }
  }
}

}  // namespace

Decoded DecodeJpeg2000(Bytes bytes, const Options& options) {
  ONNXIFI_ASSIGN_OR_RETURN(const Functions opj, Load(options.libraries.jpeg_2000));
  const std::optional<Jpeg2000Header> header = ReadJpeg2000Header(bytes);
  if (!header) return std::optional<Image>();
  ONNXIFI_ASSIGN_OR_RETURN(std::optional<Image> image,
                           Image::Create(header->width, header->height, options.max_pixels));
  Source source{bytes};
  const std::unique_ptr<opj_stream_t, decltype(opj.opj_stream_destroy)> stream(
      opj.opj_stream_create(OPJ_J2K_STREAM_CHUNK_SIZE, OPJ_TRUE), opj.opj_stream_destroy);
  const std::unique_ptr<opj_codec_t, decltype(opj.opj_destroy_codec)> codec(
      opj.opj_create_decompress(IsJpeg2000Codestream(bytes) ? OPJ_CODEC_J2K : OPJ_CODEC_JP2),
      opj.opj_destroy_codec);
  if (!stream || !codec) {
    return Status(Code::kNoSystemMemory, std::string("The library ") + options.libraries.jpeg_2000 +
                                             " has no memory for a decoder.");
  }
  opj.opj_stream_set_read_function(stream.get(), Read);
  opj.opj_stream_set_skip_function(stream.get(), Skip);
  opj.opj_stream_set_seek_function(stream.get(), Seek);
  opj.opj_stream_set_user_data(stream.get(), &source, nullptr);
  opj.opj_stream_set_user_data_length(stream.get(), bytes.size());
  opj_dparameters_t parameters = {};
  opj.opj_set_default_decoder_parameters(&parameters);
  opj_image_t* described = nullptr;
  const bool is_read = opj.opj_setup_decoder(codec.get(), &parameters) != OPJ_FALSE &&
                       opj.opj_read_header(stream.get(), codec.get(), &described) != OPJ_FALSE &&
                       described != nullptr;
  const std::unique_ptr<opj_image_t, decltype(opj.opj_image_destroy)> decoded(
      described, opj.opj_image_destroy);
  if (!is_read || int64_t{decoded->x1} - decoded->x0 != header->width ||
      int64_t{decoded->y1} - decoded->y0 != header->height ||
      opj.opj_decode(codec.get(), stream.get(), decoded.get()) == OPJ_FALSE) {
    return std::optional<Image>();
  }
  const std::optional<Colors> colors = ColorsOf(*decoded);
  if (!colors ||
      !std::all_of(decoded->comps, decoded->comps + decoded->numcomps, Samples::IsSound)) {
    return std::optional<Image>();
  }
  Convert(*decoded, *colors, *image);
  return image;
}

}  // namespace onnxifi::image
