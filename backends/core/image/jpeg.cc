// SPDX-License-Identifier: Apache-2.0
//
// JPEG by libjpeg: gray, YCbCr and RGB, and CMYK and YCCK as Adobe writes them, inverted. Chroma is
// upsampled as ONNX says, which is libjpeg's default. The orientation of Exif is not applied.

#include <algorithm>
#include <csetjmp>
#include <string>
#include <vector>

#include "backends/core/image/color.h"
#include "backends/core/image/decoders.h"
#include "backends/core/image/jpeg_api.h"
#include "backends/core/image/library.h"

namespace onnxifi::image {
namespace {

using base::Code;
using base::Result;
using base::Status;

// A progressive image whose scans never end takes time without limit: each goes over all pixels.
constexpr int kMaxScans = 500;

#define ONNXIFI_JPEG_FUNCTIONS(M) \
  M(jpeg_CreateDecompress)        \
  M(jpeg_destroy_decompress)      \
  M(jpeg_read_header)             \
  M(jpeg_read_scanlines)          \
  M(jpeg_resync_to_restart)       \
  M(jpeg_start_decompress)        \
  M(jpeg_std_error)

struct Functions {
  // NOLINTNEXTLINE(readability-identifier-naming): libjpeg's own names.
  ONNXIFI_JPEG_FUNCTIONS(ONNXIFI_IMAGE_MEMBER)
};

Result<Functions> Load(const char* name) {
  ONNXIFI_ASSIGN_OR_RETURN(const Library library, Library::Open(name, "JPEG"));
  Functions table;
  ONNXIFI_JPEG_FUNCTIONS(ONNXIFI_IMAGE_LOOK_UP)
  return table;
}

// Nothing with a destructor may live in a frame that libjpeg's errors jump out of.
struct Reading {
  explicit Reading(const Functions& functions) : jpeg(functions) {}
  ~Reading() { jpeg.jpeg_destroy_decompress(&info); }
  Reading(const Reading&) = delete;
  Reading& operator=(const Reading&) = delete;

  const Functions& jpeg;
  jpeg_decompress_struct info = {};
  jpeg_error_mgr errors = {};
  jpeg_source_mgr source = {};
  jpeg_progress_mgr progress = {};
  std::jmp_buf on_error = {};
};

[[noreturn]] void OnError(j_common_ptr info) {
  std::longjmp(static_cast<Reading*>(info->client_data)->on_error, 1);
}

void OnMessage(j_common_ptr /*info*/) {}

void OnProgress(j_common_ptr info) {
  if (reinterpret_cast<j_decompress_ptr>(info)->input_scan_number > kMaxScans) OnError(info);
}

void DoNothing(j_decompress_ptr /*info*/) {}

// All bytes are there from the start: what asks for more, reads a damaged image.
boolean HaveNoMore(j_decompress_ptr /*info*/) { return FALSE; }

void Skip(j_decompress_ptr info, long size_bytes) {
  jpeg_source_mgr& source = *info->src;
  const size_t skipped =
      std::min(static_cast<size_t>(std::max(size_bytes, 0L)), source.bytes_in_buffer);
  source.next_input_byte += skipped;
  source.bytes_in_buffer -= skipped;
}

bool Open(Reading& reading) {
  reading.info.err = reading.jpeg.jpeg_std_error(&reading.errors);
  reading.errors.error_exit = OnError;
  reading.errors.output_message = OnMessage;
  reading.info.client_data = &reading;
  if (setjmp(reading.on_error) != 0) return false;
  reading.jpeg.jpeg_CreateDecompress(&reading.info, JPEG_LIB_VERSION, sizeof(reading.info));
  return true;
}

bool ReadHeader(Reading& reading, Bytes bytes) {
  jpeg_decompress_struct& info = reading.info;
  if (setjmp(reading.on_error) != 0) return false;
  reading.source.init_source = DoNothing;
  reading.source.fill_input_buffer = HaveNoMore;
  reading.source.skip_input_data = Skip;
  reading.source.resync_to_restart = reading.jpeg.jpeg_resync_to_restart;
  reading.source.term_source = DoNothing;
  reading.source.next_input_byte = bytes.data();
  reading.source.bytes_in_buffer = bytes.size();
  info.src = &reading.source;
  reading.progress.progress_monitor = OnProgress;
  info.progress = &reading.progress;
  if (reading.jpeg.jpeg_read_header(&info, TRUE) != JPEG_HEADER_OK) return false;
  switch (info.num_components) {
    case 1:
      info.out_color_space = JCS_GRAYSCALE;
      return true;
    case 3:
      info.out_color_space = JCS_RGB;
      return true;
    case 4:
      info.out_color_space = JCS_CMYK;
      return true;
    default:
      return false;
  }
}

bool Start(Reading& reading) {
  if (setjmp(reading.on_error) != 0) return false;
  return reading.jpeg.jpeg_start_decompress(&reading.info) != FALSE;
}

bool ReadRow(Reading& reading, uint8_t* row) {
  if (setjmp(reading.on_error) != 0) return false;
  return reading.jpeg.jpeg_read_scanlines(&reading.info, &row, 1) == 1;
}

}  // namespace

Decoded DecodeJpeg(Bytes bytes, const Options& options) {
  ONNXIFI_ASSIGN_OR_RETURN(const Functions jpeg, Load(options.libraries.jpeg));
  Reading reading(jpeg);
  if (!Open(reading)) {
    return Status(Code::kNoSystemResources, std::string("The library ") + options.libraries.jpeg +
                                                " has no memory, or not the interface of version " +
                                                std::to_string(JPEG_LIB_VERSION) + ".");
  }
  if (!ReadHeader(reading, bytes)) return std::optional<Image>();
  ONNXIFI_ASSIGN_OR_RETURN(
      std::optional<Image> image,
      Image::Create(reading.info.image_width, reading.info.image_height, options.max_pixels));
  if (!image || !Start(reading)) return std::optional<Image>();
  const int components = reading.info.num_components;
  std::vector<uint8_t> row(static_cast<size_t>(image->width()) * 4);
  for (int64_t y = 0; y < image->height(); ++y) {
    uint8_t* rgb = image->Row(y);
    if (!ReadRow(reading, components == 3 ? rgb : row.data())) return std::optional<Image>();
    for (int64_t x = 0; x < image->width() && components != 3; ++x, rgb += 3) {
      if (components == 1) {
        StoreGray(row[static_cast<size_t>(x)], rgb);
      } else {
        const uint8_t* cmyk = row.data() + 4 * x;
        StoreCmyk(255 - cmyk[0], 255 - cmyk[1], 255 - cmyk[2], 255 - cmyk[3], rgb);
      }
    }
  }
  return image;
}

}  // namespace onnxifi::image
