// SPDX-License-Identifier: Apache-2.0
//
// Image files for tests. Encoders never fail here but for faults of the test, which then crashes.

#include "backends/core/image/testing/encode_image.h"

#include <openjpeg.h>
#include <png.h>
#include <tiffio.h>
#include <webp/encode.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <random>

#include "backends/core/image/jpeg_api.h"

namespace onnxifi::image {
namespace {

void Require(bool is_done) {
  if (!is_done) std::abort();
}

void Append(FileBytes& bytes, uint32_t value, int size_bytes) {
  for (int k = 0; k < size_bytes; ++k) bytes.push_back(static_cast<uint8_t>(value >> (8 * k)));
}

FileBytes EncodePnm(const TestPixels& pixels) {
  const std::string header =
      "P6\n" + std::to_string(pixels.width) + " " + std::to_string(pixels.height) + "\n255\n";
  FileBytes bytes(header.begin(), header.end());
  bytes.insert(bytes.end(), pixels.rgb.begin(), pixels.rgb.end());
  return bytes;
}

FileBytes EncodePng(const TestPixels& pixels) {
  png_image image = {};
  image.version = PNG_IMAGE_VERSION;
  image.width = static_cast<png_uint_32>(pixels.width);
  image.height = static_cast<png_uint_32>(pixels.height);
  image.format = PNG_FORMAT_RGB;
  png_alloc_size_t size_bytes = PNG_IMAGE_PNG_SIZE_MAX(image);
  FileBytes bytes(size_bytes);
  Require(png_image_write_to_memory(&image, bytes.data(), &size_bytes, /*convert_to_8_bit=*/0,
                                    pixels.rgb.data(), /*row_stride=*/0,
                                    /*colormap=*/nullptr) != 0);
  bytes.resize(size_bytes);
  return bytes;
}

FileBytes EncodeJpeg(const TestPixels& pixels, bool is_progressive) {
  jpeg_compress_struct info = {};
  jpeg_error_mgr errors = {};
  info.err = jpeg_std_error(&errors);
  jpeg_create_compress(&info);
  unsigned char* target = nullptr;
  unsigned long size_bytes = 0;
  jpeg_mem_dest(&info, &target, &size_bytes);
  info.image_width = static_cast<JDIMENSION>(pixels.width);
  info.image_height = static_cast<JDIMENSION>(pixels.height);
  info.input_components = 3;
  info.in_color_space = JCS_RGB;
  jpeg_set_defaults(&info);
  if (is_progressive) jpeg_simple_progression(&info);
  jpeg_start_compress(&info, TRUE);
  for (int y = 0; y < pixels.height; ++y) {
    JSAMPROW row = const_cast<uint8_t*>(pixels.rgb.data()) + 3 * y * pixels.width;
    Require(jpeg_write_scanlines(&info, &row, 1) == 1);
  }
  jpeg_finish_compress(&info);
  jpeg_destroy_compress(&info);
  FileBytes bytes(target, target + size_bytes);
  std::free(target);
  return bytes;
}

FileBytes EncodeWebp(const TestPixels& pixels, bool is_lossless) {
  uint8_t* target = nullptr;
  const int stride = 3 * pixels.width;
  const size_t size_bytes =
      is_lossless
          ? WebPEncodeLosslessRGB(pixels.rgb.data(), pixels.width, pixels.height, stride, &target)
          : WebPEncodeRGB(pixels.rgb.data(), pixels.width, pixels.height, stride, 80, &target);
  Require(size_bytes > 0);
  FileBytes bytes(target, target + size_bytes);
  WebPFree(target);
  return bytes;
}

// A file in memory, as TIFFClientOpen and OpenJPEG's streams use it.
struct MemoryFile {
  FileBytes bytes;
  size_t position = 0;

  size_t Read(void* target, size_t size_bytes) {
    const size_t count = std::min(size_bytes, bytes.size() - std::min(position, bytes.size()));
    if (count > 0) std::memcpy(target, bytes.data() + position, count);
    position += count;
    return count;
  }
  size_t Write(const void* source, size_t size_bytes) {
    bytes.resize(std::max(bytes.size(), position + size_bytes));
    std::memcpy(bytes.data() + position, source, size_bytes);
    position += size_bytes;
    return size_bytes;
  }
};

MemoryFile& FileOf(void* handle) { return *static_cast<MemoryFile*>(handle); }

FileBytes EncodeTiff(const TestPixels& pixels, uint16_t compression, bool is_tiled) {
  MemoryFile target;
  TIFF* const file = TIFFClientOpen(
      "test", "wm", &target,
      [](thandle_t handle, void* bytes, tmsize_t size) {
        return static_cast<tmsize_t>(FileOf(handle).Read(bytes, static_cast<size_t>(size)));
      },
      [](thandle_t handle, void* bytes, tmsize_t size) {
        return static_cast<tmsize_t>(FileOf(handle).Write(bytes, static_cast<size_t>(size)));
      },
      [](thandle_t handle, toff_t offset, int origin) {
        MemoryFile& memory = FileOf(handle);
        const size_t from = origin == SEEK_CUR   ? memory.position
                            : origin == SEEK_END ? memory.bytes.size()
                                                 : 0;
        memory.position = from + offset;
        return static_cast<toff_t>(memory.position);
      },
      [](thandle_t /*handle*/) { return 0; },
      [](thandle_t handle) { return static_cast<toff_t>(FileOf(handle).bytes.size()); }, nullptr,
      nullptr);
  Require(file != nullptr);
  TIFFSetField(file, TIFFTAG_IMAGEWIDTH, pixels.width);
  TIFFSetField(file, TIFFTAG_IMAGELENGTH, pixels.height);
  TIFFSetField(file, TIFFTAG_BITSPERSAMPLE, 8);
  TIFFSetField(file, TIFFTAG_SAMPLESPERPIXEL, 3);
  TIFFSetField(file, TIFFTAG_PHOTOMETRIC, PHOTOMETRIC_RGB);
  TIFFSetField(file, TIFFTAG_PLANARCONFIG, PLANARCONFIG_CONTIG);
  TIFFSetField(file, TIFFTAG_COMPRESSION, compression);
  constexpr int kTile = 16;
  if (is_tiled) {
    TIFFSetField(file, TIFFTAG_TILEWIDTH, kTile);
    TIFFSetField(file, TIFFTAG_TILELENGTH, kTile);
    for (int y = 0; y < pixels.height; y += kTile) {
      for (int x = 0; x < pixels.width; x += kTile) {
        FileBytes tile(3 * kTile * kTile);
        for (int row = 0; row < std::min(kTile, pixels.height - y); ++row) {
          std::copy_n(pixels.rgb.data() + 3 * ((y + row) * pixels.width + x),
                      3 * std::min(kTile, pixels.width - x), tile.data() + 3 * kTile * row);
        }
        Require(TIFFWriteTile(file, tile.data(), static_cast<uint32_t>(x), static_cast<uint32_t>(y),
                              0, 0) > 0);
      }
    }
  } else {
    TIFFSetField(file, TIFFTAG_ROWSPERSTRIP, 8);
    for (int y = 0; y < pixels.height; ++y) {
      FileBytes row(pixels.rgb.begin() + 3 * y * pixels.width,
                    pixels.rgb.begin() + 3 * (y + 1) * pixels.width);
      Require(TIFFWriteScanline(file, row.data(), static_cast<uint32_t>(y), 0) == 1);
    }
  }
  TIFFClose(file);
  return target.bytes;
}

}  // namespace

TestPixels MakeTestPixels(int width, int height, uint32_t seed) {
  TestPixels pixels{width, height, {}};
  std::mt19937 random(seed);
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      for (int c = 0; c < 3; ++c) {
        const auto noise = static_cast<int>(random() % 16);
        pixels.rgb.push_back(static_cast<uint8_t>((2 * x + 2 * y + 40 * c + noise) % 256));
      }
    }
  }
  return pixels;
}

FileBytes EncodeBmp(const TestPixels& pixels) {
  const int stride = (3 * pixels.width + 3) / 4 * 4;
  FileBytes bytes = {'B', 'M'};
  Append(bytes, static_cast<uint32_t>(54 + stride * pixels.height), 4);
  Append(bytes, 0, 4);
  Append(bytes, 54, 4);
  Append(bytes, 40, 4);
  Append(bytes, static_cast<uint32_t>(pixels.width), 4);
  Append(bytes, static_cast<uint32_t>(pixels.height), 4);
  Append(bytes, 1, 2);
  Append(bytes, 24, 2);
  bytes.resize(54);
  for (int y = pixels.height - 1; y >= 0; --y) {
    for (int x = 0; x < pixels.width; ++x) {
      const uint8_t* rgb = pixels.rgb.data() + 3 * (y * pixels.width + x);
      bytes.insert(bytes.end(), {rgb[2], rgb[1], rgb[0]});
    }
    bytes.resize(bytes.size() + static_cast<size_t>(stride - 3 * pixels.width));
  }
  return bytes;
}

FileBytes EncodeProgressiveJpeg(const TestPixels& pixels) { return EncodeJpeg(pixels, true); }

FileBytes EncodeJpeg2000(const TestPixels& pixels, int components) {
  opj_cparameters_t parameters;
  opj_set_default_encoder_parameters(&parameters);
  parameters.tcp_numlayers = 1;
  parameters.cp_disto_alloc = 1;
  parameters.numresolution = 3;
  parameters.tcp_mct = components == 3 ? 1 : 0;
  std::vector<opj_image_cmptparm_t> shapes(static_cast<size_t>(components));
  for (opj_image_cmptparm_t& shape : shapes) {
    shape = {};
    shape.dx = shape.dy = 1;
    shape.w = static_cast<OPJ_UINT32>(pixels.width);
    shape.h = static_cast<OPJ_UINT32>(pixels.height);
    shape.prec = 8;
  }
  opj_image_t* const image = opj_image_create(static_cast<OPJ_UINT32>(components), shapes.data(),
                                              components == 3 ? OPJ_CLRSPC_SRGB : OPJ_CLRSPC_GRAY);
  Require(image != nullptr);
  image->x1 = static_cast<OPJ_UINT32>(pixels.width);
  image->y1 = static_cast<OPJ_UINT32>(pixels.height);
  for (int c = 0; c < components; ++c) {
    for (int k = 0; k < pixels.width * pixels.height; ++k) {
      image->comps[c].data[k] = pixels.rgb.data()[3 * k + c];
    }
  }
  MemoryFile target;
  opj_stream_t* const stream = opj_stream_create(1 << 16, OPJ_FALSE);
  opj_stream_set_user_data(stream, &target, nullptr);
  opj_stream_set_write_function(stream, [](void* bytes, OPJ_SIZE_T size_bytes, void* handle) {
    return FileOf(handle).Write(bytes, size_bytes);
  });
  opj_stream_set_skip_function(stream, [](OPJ_OFF_T size_bytes, void* handle) {
    FileOf(handle).position += static_cast<size_t>(size_bytes);
    return size_bytes;
  });
  opj_stream_set_seek_function(stream, [](OPJ_OFF_T position, void* handle) -> OPJ_BOOL {
    FileOf(handle).position = static_cast<size_t>(position);
    return OPJ_TRUE;
  });
  opj_codec_t* const codec = opj_create_compress(OPJ_CODEC_JP2);
  Require(opj_setup_encoder(codec, &parameters, image) != OPJ_FALSE);
  Require(opj_start_compress(codec, image, stream) != OPJ_FALSE);
  Require(opj_encode(codec, stream) != OPJ_FALSE);
  Require(opj_end_compress(codec, stream) != OPJ_FALSE);
  opj_stream_destroy(stream);
  opj_destroy_codec(codec);
  opj_image_destroy(image);
  return target.bytes;
}

std::vector<TestFile> EncodeInAllFormats(const TestPixels& pixels) {
  return {
      {"BMP", EncodeBmp(pixels)},
      {"PNM", EncodePnm(pixels)},
      {"PNG", EncodePng(pixels)},
      {"JPEG", EncodeJpeg(pixels, /*is_progressive=*/false), /*is_exact=*/false},
      {"progressive JPEG", EncodeProgressiveJpeg(pixels), /*is_exact=*/false},
      {"JPEG 2000", EncodeJpeg2000(pixels, 3)},
      {"TIFF", EncodeTiff(pixels, COMPRESSION_NONE, /*is_tiled=*/false)},
      {"packed TIFF", EncodeTiff(pixels, COMPRESSION_LZW, /*is_tiled=*/false)},
      {"tiled TIFF", EncodeTiff(pixels, COMPRESSION_PACKBITS, /*is_tiled=*/true)},
      {"WebP", EncodeWebp(pixels, /*is_lossless=*/false), /*is_exact=*/false},
      {"lossless WebP", EncodeWebp(pixels, /*is_lossless=*/true)},
  };
}

}  // namespace onnxifi::image
