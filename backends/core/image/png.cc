// SPDX-License-Identifier: Apache-2.0
//
// PNG by libpng: every colour type and depth, interlaced or not; the first picture of an animated
// one. Transparency, gamma and profiles are left out of account; of 16 bits the upper 8 remain.

#include <png.h>

#include <algorithm>
#include <csetjmp>
#include <string>

#include "backends/core/image/decoders.h"
#include "backends/core/image/library.h"

namespace onnxifi::image {
namespace {

using base::Code;
using base::Result;
using base::Status;

#define ONNXIFI_PNG_FUNCTIONS(M) \
  M(png_create_info_struct)      \
  M(png_create_read_struct)      \
  M(png_destroy_read_struct)     \
  M(png_get_bit_depth)           \
  M(png_get_channels)            \
  M(png_get_error_ptr)           \
  M(png_get_image_height)        \
  M(png_get_image_width)         \
  M(png_get_rowbytes)            \
  M(png_read_info)               \
  M(png_read_row)                \
  M(png_read_update_info)        \
  M(png_set_expand)              \
  M(png_set_gray_to_rgb)         \
  M(png_set_interlace_handling)  \
  M(png_set_read_fn)             \
  M(png_set_strip_16)            \
  M(png_set_strip_alpha)         \
  M(png_set_user_limits)

struct Functions {
  ONNXIFI_PNG_FUNCTIONS(ONNXIFI_IMAGE_MEMBER)
};

Result<Functions> Load(const char* name) {
  ONNXIFI_ASSIGN_OR_RETURN(const Library library, Library::Open(name, "PNG"));
  Functions table;
  ONNXIFI_PNG_FUNCTIONS(ONNXIFI_IMAGE_LOOK_UP)
  return table;
}

// Nothing with a destructor may live in a frame that libpng's errors jump out of or into.
struct Reading {
  explicit Reading(const Functions& functions, Bytes from) : png(functions), bytes(from) {}
  ~Reading() {
    if (file != nullptr) png.png_destroy_read_struct(&file, &info, nullptr);
  }
  Reading(const Reading&) = delete;
  Reading& operator=(const Reading&) = delete;

  const Functions& png;
  Bytes bytes;
  size_t position = 0;
  png_structp file = nullptr;
  png_infop info = nullptr;
  std::jmp_buf on_error = {};
};

Reading& ReadingOf(png_const_structp file) {
  // Of the library that calls: no other is ever loaded.
  static const auto get_error_ptr = [] {
    const Result<Functions> functions = Load(kSystemLibraries.png);
    return functions.ok() ? functions->png_get_error_ptr : nullptr;
  }();
  return *static_cast<Reading*>(get_error_ptr(file));
}

[[noreturn]] void OnError(png_structp file, png_const_charp /*message*/) {
  std::longjmp(ReadingOf(file).on_error, 1);
}

void OnWarning(png_structp /*file*/, png_const_charp /*message*/) {}

void ReadBytes(png_structp file, png_bytep target, size_t size_bytes) {
  Reading& reading = ReadingOf(file);
  if (size_bytes > reading.bytes.size() - reading.position) OnError(file, "");
  std::copy_n(reading.bytes.data() + reading.position, size_bytes, target);
  reading.position += size_bytes;
}

bool Open(Reading& reading) {
  const Functions& png = reading.png;
  if (setjmp(reading.on_error) != 0) return false;
  reading.file = png.png_create_read_struct(PNG_LIBPNG_VER_STRING, &reading, OnError, OnWarning);
  if (reading.file == nullptr) return false;
  reading.info = png.png_create_info_struct(reading.file);
  return reading.info != nullptr;
}

bool ReadHeader(Reading& reading) {
  const Functions& png = reading.png;
  if (setjmp(reading.on_error) != 0) return false;
  png.png_set_read_fn(reading.file, nullptr, ReadBytes);
  // The number of pixels is what is limited.
  png.png_set_user_limits(reading.file, PNG_UINT_31_MAX, PNG_UINT_31_MAX);
  png.png_read_info(reading.file, reading.info);
  return true;
}

// Deflate makes at most 1032 bytes of one.
bool HasBytesForPixels(const Reading& reading) {
  const uint64_t row_bytes = reading.png.png_get_rowbytes(reading.file, reading.info);
  const uint64_t height = reading.png.png_get_image_height(reading.file, reading.info);
  return row_bytes > 0 && height <= uint64_t{reading.bytes.size()} * 1032 / row_bytes;
}

bool ReadPixels(Reading& reading, Image& image) {
  const Functions& png = reading.png;
  if (setjmp(reading.on_error) != 0) return false;
  png.png_set_strip_16(reading.file);
  png.png_set_expand(reading.file);
  png.png_set_gray_to_rgb(reading.file);
  png.png_set_strip_alpha(reading.file);
  const int passes = png.png_set_interlace_handling(reading.file);
  png.png_read_update_info(reading.file, reading.info);
  if (png.png_get_channels(reading.file, reading.info) != 3 ||
      png.png_get_bit_depth(reading.file, reading.info) != 8) {
    return false;
  }
  for (int pass = 0; pass < passes; ++pass) {
    for (int64_t y = 0; y < image.height(); ++y) {
      png.png_read_row(reading.file, image.Row(y), nullptr);
    }
  }
  return true;
}

}  // namespace

Decoded DecodePng(Bytes bytes, const Options& options) {
  ONNXIFI_ASSIGN_OR_RETURN(const Functions png, Load(options.libraries.png));
  Reading reading(png, bytes);
  if (!Open(reading)) {
    return Status(Code::kNoSystemResources,
                  std::string("The library ") + options.libraries.png +
                      " has no memory, or is not of version " PNG_LIBPNG_VER_STRING ".");
  }
  if (!ReadHeader(reading) || !HasBytesForPixels(reading)) return std::optional<Image>();
  ONNXIFI_ASSIGN_OR_RETURN(
      std::optional<Image> image,
      Image::Create(png.png_get_image_width(reading.file, reading.info),
                    png.png_get_image_height(reading.file, reading.info), options.max_pixels));
  if (image && !ReadPixels(reading, *image)) image.reset();
  return image;
}

}  // namespace onnxifi::image
