// SPDX-License-Identifier: Apache-2.0
//
// Decoders against the pixels that were encoded, and against bytes that are no good. The forms of
// each format are cases of the conformance suite, with Pillow as oracle (tools/image_cases.py).

#include "backends/core/image/decode_image.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <random>
#include <string>

#include "backends/core/image/jpeg_2000_header.h"
#include "backends/core/image/testing/encode_image.h"

namespace onnxifi::image {
namespace {

using base::Code;
using base::Result;
using tensor::ElementType;
using tensor::Extents;
using tensor::Tensor;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int kWidth = 37;
constexpr int kHeight = 29;

TestPixels Pixels() { return MakeTestPixels(kWidth, kHeight, /*seed=*/1); }

Tensor Decode(const FileBytes& bytes, PixelFormat format = PixelFormat::kRgb,
              const Options& options = {}) {
  const Result<Tensor> decoded = DecodeImage(bytes, format, options);
  EXPECT_TRUE(decoded.ok()) << decoded.status().Text();
  return decoded.ok() ? *decoded : Tensor();
}

double MeanDistance(const Tensor& image, const std::vector<uint8_t>& rgb) {
  double sum = 0;
  for (size_t k = 0; k < rgb.size(); ++k) {
    sum += std::abs(int{image.values<uint8_t>()[k]} - int{rgb[k]});
  }
  return sum / static_cast<double>(rgb.size());
}

TEST(DecodeImageTest, EveryFormatGivesThePixelsBack) {
  const TestPixels pixels = Pixels();
  for (const TestFile& file : EncodeInAllFormats(pixels)) {
    const Tensor image = Decode(file.bytes);
    ASSERT_EQ(image.type(), ElementType::kUint8) << file.name;
    ASSERT_THAT(image.extents(), ElementsAre(kHeight, kWidth, 3)) << file.name;
    const double distance = MeanDistance(image, pixels.rgb);
    EXPECT_LE(distance, file.is_exact ? 0 : 6) << file.name;
  }
}

TEST(DecodeImageTest, PixelFormatsAreOrders) {
  const TestPixels pixels = Pixels();
  const FileBytes file = EncodeBmp(pixels);
  const Tensor bgr = Decode(file, PixelFormat::kBgr);
  const Tensor gray = Decode(file, PixelFormat::kGrayscale);
  ASSERT_THAT(bgr.extents(), ElementsAre(kHeight, kWidth, 3));
  ASSERT_THAT(gray.extents(), ElementsAre(kHeight, kWidth, 1));
  for (size_t k = 0; k < gray.values<uint8_t>().size(); ++k) {
    const uint8_t* rgb = pixels.rgb.data() + 3 * k;
    for (size_t c = 0; c < 3; ++c) ASSERT_EQ(bgr.values<uint8_t>()[3 * k + c], rgb[2 - c]);
    const double luma = 0.299 * rgb[0] + 0.587 * rgb[1] + 0.114 * rgb[2];
    ASSERT_NEAR(gray.values<uint8_t>()[k], luma, 0.51);
  }
}

TEST(DecodeImageTest, WhatIsNoImageHasNoPixels) {
  const std::string texts[] = {"", "B", "GIF89a", "P7\n1 1\n", "RIFF1234WAVE", "P6"};
  for (const std::string& text : texts) {
    const FileBytes bytes(text.begin(), text.end());
    EXPECT_THAT(Decode(bytes).extents(), ElementsAre(0, 0, 3)) << text;
    EXPECT_THAT(Decode(bytes, PixelFormat::kGrayscale).extents(), ElementsAre(0, 0, 1)) << text;
  }
}

TEST(DecodeImageTest, TheNumberOfPixelsIsLimited) {
  Options options;
  for (const TestFile& file : EncodeInAllFormats(Pixels())) {
    options.max_pixels = kWidth * kHeight;
    EXPECT_THAT(Decode(file.bytes, PixelFormat::kRgb, options).extents(),
                ElementsAre(kHeight, kWidth, 3))
        << file.name;
    options.max_pixels = kWidth * kHeight - 1;
    const Result<Tensor> refused = DecodeImage(file.bytes, PixelFormat::kRgb, options);
    ASSERT_EQ(refused.status().code(), Code::kUnsupportedShape) << file.name;
    EXPECT_EQ(refused.status().sentence(),
              "The encoded image has 37 x 29 pixels; at most 1072 pixels are decoded.")
        << file.name;
  }
}

TEST(DecodeImageTest, AMissingLibraryIsNamed) {
  Options options;
  options.libraries = {.jpeg = "libabsent-jpeg.so.1",
                       .jpeg_2000 = "libabsent-jpeg-2000.so.1",
                       .png = "libabsent-png.so.1",
                       .tiff = "libabsent-tiff.so.1",
                       .webp = "libabsent-webp.so.1",
                       .webp_animation = "libabsent-webpdemux.so.1"};
  const std::pair<std::string, std::string> expected[] = {
      {"PNG", "The encoded image is PNG, which libabsent-png.so.1 decodes; it cannot be opened: "},
      {"JPEG", "libabsent-jpeg.so.1"},
      {"JPEG 2000", "libabsent-jpeg-2000.so.1"},
      {"TIFF", "libabsent-tiff.so.1"},
      {"WebP", "libabsent-webp.so.1"},
  };
  int refused_count = 0;
  for (const TestFile& file : EncodeInAllFormats(Pixels())) {
    const Result<Tensor> decoded = DecodeImage(file.bytes, PixelFormat::kRgb, options);
    const bool needs_none = file.name == "BMP" || file.name == "PNM";
    EXPECT_EQ(decoded.status().code(), needs_none ? Code::kOk : Code::kNoSystemResources)
        << file.name;
    for (const auto& [name, words] : expected) {
      if (file.name != name) continue;
      EXPECT_THAT(std::string(decoded.status().sentence()), HasSubstr(words));
      ++refused_count;
    }
  }
  EXPECT_EQ(refused_count, 5);
}

// Of a file that ends too early all is lost; of one whose last bytes carry no pixels nothing.
TEST(DecodeImageTest, FilesCutShortGiveAllPixelsOrNone) {
  const TestPixels pixels = MakeTestPixels(19, 13, /*seed=*/2);
  for (const TestFile& file : EncodeInAllFormats(pixels)) {
    const Tensor whole = Decode(file.bytes);
    size_t whole_count = 0;
    for (size_t size_bytes = 0; size_bytes < file.bytes.size(); ++size_bytes) {
      // On the heap and of this size, so that sanitizers see what is read beyond it.
      const FileBytes cut(file.bytes.begin(),
                          file.bytes.begin() + static_cast<std::ptrdiff_t>(size_bytes));
      const Tensor image = Decode(cut);
      if (image.element_count() == 0) continue;
      ++whole_count;
      ASSERT_TRUE(std::ranges::equal(image.bytes(), whole.bytes()))
          << file.name << " of " << size_bytes << " bytes";
    }
    EXPECT_LT(whole_count, file.bytes.size() / 4) << file.name;
  }
}

TEST(DecodeImageTest, DamagedFilesGiveAnImageOrNone) {
  constexpr int64_t kMaxTestPixels = 1 << 16;
  const TestPixels pixels = MakeTestPixels(19, 13, /*seed=*/3);
  std::mt19937 random(4);
  Options options;
  options.max_pixels = kMaxTestPixels;
  for (const TestFile& file : EncodeInAllFormats(pixels)) {
    int undecoded_count = 0;
    for (int round = 0; round < 1500; ++round) {
      FileBytes bytes = file.bytes;
      // Most of it where headers are.
      const size_t reach = round % 3 == 0 ? bytes.size() : std::min<size_t>(bytes.size(), 200);
      for (unsigned flips = 1 + random() % 4; flips > 0; --flips) {
        bytes[random() % reach] = static_cast<uint8_t>(random());
      }
      const Result<Tensor> image = DecodeImage(bytes, PixelFormat::kRgb, options);
      if (!image.ok()) {
        ASSERT_EQ(image.status().code(), Code::kUnsupportedShape) << image.status().Text();
        ++undecoded_count;
        continue;
      }
      ASSERT_EQ(image->rank(), 3) << file.name;
      ASSERT_LE(image->element_count(), 3 * kMaxTestPixels) << file.name;
      undecoded_count += image->element_count() == 0 ? 1 : 0;
    }
    EXPECT_GT(undecoded_count, 10) << file.name;
  }
}

// Extents that the rest of the file cannot fill are refused before memory is taken for them.
TEST(DecodeImageTest, ExtentsWithoutBytesTakeNoMemory) {
  const auto cut_at = [](FileBytes bytes, size_t position, std::vector<uint8_t> values) {
    std::ranges::copy(values, bytes.begin() + static_cast<std::ptrdiff_t>(position));
    return bytes;
  };
  const std::vector<TestFile> files = EncodeInAllFormats(Pixels());
  // 10,000 x 10,000: a limit on pixels alone would let them pass.
  const FileBytes bmp = cut_at(files[0].bytes, 18, {0x10, 0x27, 0, 0, 0x10, 0x27, 0, 0});
  EXPECT_THAT(Decode(bmp).extents(), ElementsAre(0, 0, 3));
  const std::string text = "P6 10000 10000 255\n";
  EXPECT_THAT(Decode(FileBytes(text.begin(), text.end())).extents(), ElementsAre(0, 0, 3));
}

FileBytes RepeatLastScan(const FileBytes& file, int count) {
  constexpr uint8_t kScan[] = {0xFF, 0xDA};
  const auto scan = std::find_end(file.begin(), file.end(), std::begin(kScan), std::end(kScan));
  const auto end = file.end() - 2;  // of the marker behind the last scan
  FileBytes repeated(file.begin(), end);
  for (int k = 1; k < count; ++k) repeated.insert(repeated.end(), scan, end);
  repeated.insert(repeated.end(), end, file.end());
  return repeated;
}

TEST(DecodeImageTest, TheScansOfAProgressiveJpegAreLimited) {
  const FileBytes file = EncodeProgressiveJpeg(MakeTestPixels(16, 16, /*seed=*/5));
  EXPECT_THAT(Decode(RepeatLastScan(file, 400)).extents(), ElementsAre(16, 16, 3));
  EXPECT_THAT(Decode(RepeatLastScan(file, 510)).extents(), ElementsAre(0, 0, 3));
}

void AppendBig(FileBytes& bytes, uint32_t value, int size_bytes) {
  for (int k = size_bytes - 1; k >= 0; --k) {
    bytes.push_back(static_cast<uint8_t>(value >> (8 * k)));
  }
}

// A JP2 file of one component, with a palette of `columns` colours put into its header.
FileBytes WithPalette(FileBytes file, uint32_t columns) {
  constexpr uint8_t kHeader[] = {'j', 'p', '2', 'h'};
  const auto name = std::search(file.begin(), file.end(), std::begin(kHeader), std::end(kHeader));
  const auto box = name - 4 - file.begin();
  const uint32_t size_bytes = static_cast<uint32_t>(file[static_cast<size_t>(box) + 2]) << 8 |
                              file[static_cast<size_t>(box) + 3];
  FileBytes palette;
  AppendBig(palette, 8 + 3 + columns + 256 * columns, 4);
  for (const char c : {'p', 'c', 'l', 'r'}) palette.push_back(static_cast<uint8_t>(c));
  AppendBig(palette, 256, 2);
  AppendBig(palette, columns, 1);
  for (uint32_t k = 0; k < columns; ++k) AppendBig(palette, 7, 1);
  for (uint32_t index = 0; index < 256; ++index) {
    for (uint32_t k = 0; k < columns; ++k) AppendBig(palette, (index + 50 * k) % 256, 1);
  }
  AppendBig(palette, 8 + 4 * columns, 4);
  for (const char c : {'c', 'm', 'a', 'p'}) palette.push_back(static_cast<uint8_t>(c));
  for (uint32_t k = 0; k < columns; ++k) {
    AppendBig(palette, 0, 2);
    AppendBig(palette, 1, 1);
    AppendBig(palette, k, 1);
  }
  const auto grown = size_bytes + static_cast<uint32_t>(palette.size());
  file.insert(file.begin() + box + size_bytes, palette.begin(), palette.end());
  for (int k = 0; k < 4; ++k)
    file[static_cast<size_t>(box + k)] = static_cast<uint8_t>(grown >> (24 - 8 * k));
  return file;
}

TEST(DecodeImageTest, APaletteOfJpeg2000IsAppliedUpToFourColumns) {
  const TestPixels pixels = Pixels();
  FileBytes file = EncodeJpeg2000(pixels, /*components=*/1);
  // A palette is one of sRGB (16), no gray (17).
  constexpr uint8_t kGray[] = {0, 0, 0, 17};
  const auto space = std::search(file.begin(), file.end(), std::begin(kGray), std::end(kGray));
  ASSERT_NE(space, file.end());
  space[3] = 16;
  const Tensor image = Decode(WithPalette(file, 3));
  ASSERT_THAT(image.extents(), ElementsAre(kHeight, kWidth, 3));
  for (size_t k = 0; k < pixels.rgb.size() / 3; ++k) {
    for (size_t c = 0; c < 3; ++c) {
      ASSERT_EQ(image.values<uint8_t>()[3 * k + c], (pixels.rgb[3 * k] + 50 * c) % 256);
    }
  }
  EXPECT_THAT(Decode(WithPalette(file, 5)).extents(), ElementsAre(0, 0, 3));
}

// The codestream of a JP2 file.
FileBytes CodestreamOf(const FileBytes& file) {
  constexpr uint8_t kStart[] = {0xFF, 0x4F, 0xFF, 0x51};
  return {std::search(file.begin(), file.end(), std::begin(kStart), std::end(kStart)), file.end()};
}

void PutBig32(FileBytes& bytes, size_t position, uint32_t value) {
  for (size_t k = 0; k < 4; ++k) bytes[position + k] = static_cast<uint8_t>(value >> (24 - 8 * k));
}

// Each would take OpenJPEG gigabytes or minutes.
TEST(DecodeImageTest, HeadersOfJpeg2000ThatCostMoreThanTheirPixelsAreRefused) {
  const FileBytes file = CodestreamOf(EncodeJpeg2000(MakeTestPixels(64, 64, /*seed=*/6), 1));
  ASSERT_TRUE(ReadJpeg2000Header(file));
  // Where the numbers of the segment SIZ stand.
  constexpr size_t kExtents = 8;
  constexpr size_t kTileExtents = 24;
  constexpr size_t kComponents = 40;
  FileBytes tiles = file;
  PutBig32(tiles, kTileExtents, 1);
  PutBig32(tiles, kTileExtents + 4, 1);
  PutBig32(tiles, kExtents, 60000);
  EXPECT_FALSE(ReadJpeg2000Header(tiles));
  FileBytes components = file;
  components[kComponents] = 0x40;
  EXPECT_FALSE(ReadJpeg2000Header(components));

  // 2,048 x 2,048 pixels, of which only the segment of the coding is rewritten.
  constexpr uint8_t kCoding[] = {0xFF, 0x52};
  const auto coding = std::search(file.begin(), file.end(), std::begin(kCoding), std::end(kCoding));
  const auto with_precincts = [&](uint8_t exponents) {
    FileBytes bytes(file.begin(), coding);
    for (const size_t position : {size_t{0}, size_t{4}, size_t{16}, size_t{20}}) {
      PutBig32(bytes, kExtents + position, 2048);
    }
    const auto levels = coding[9];
    FileBytes segment(coding, coding + 14);
    segment[3] = static_cast<uint8_t>(segment[3] + levels + 1);
    segment[4] |= 1;
    segment.insert(segment.end(), levels + 1U, exponents);
    bytes.insert(bytes.end(), segment.begin(), segment.end());
    bytes.insert(bytes.end(), coding + 14, file.end());
    return bytes;
  };
  EXPECT_FALSE(ReadJpeg2000Header(with_precincts(0x11)));
  const auto header = ReadJpeg2000Header(with_precincts(0x77));
  ASSERT_TRUE(header);
  EXPECT_EQ(header->width, 2048);
  // In the header of a part of a tile, too.
  FileBytes part = with_precincts(0x77);
  constexpr uint8_t kData[] = {0xFF, 0x93};
  const auto data = std::search(part.begin(), part.end(), std::begin(kData), std::end(kData));
  FileBytes segment = {0xFF, 0x52, 0, 13, 1, 0, 0, 1, 0, 0, 4, 4, 0, 1, 0x11};
  part.insert(data, segment.begin(), segment.end());
  EXPECT_FALSE(ReadJpeg2000Header(part));
}

}  // namespace
}  // namespace onnxifi::image
