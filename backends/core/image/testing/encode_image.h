// SPDX-License-Identifier: Apache-2.0
//
// Image files for the tests of decoders: the same pixels in every format, by the encoders of the
// libraries that decode, and by hand where there is none.

#ifndef ONNXIFI_BACKENDS_CORE_IMAGE_TESTING_ENCODE_IMAGE_H_
#define ONNXIFI_BACKENDS_CORE_IMAGE_TESTING_ENCODE_IMAGE_H_

#include <cstdint>
#include <string>
#include <vector>

namespace onnxifi::image {

struct TestPixels {
  int width = 0;
  int height = 0;
  std::vector<uint8_t> rgb;
};

// Slopes with noise.
TestPixels MakeTestPixels(int width, int height, uint32_t seed);

using FileBytes = std::vector<uint8_t>;

struct TestFile {
  std::string name;
  FileBytes bytes;
  bool is_exact = true;  // the pixels come back bit by bit
};

FileBytes EncodeBmp(const TestPixels& pixels);
FileBytes EncodeProgressiveJpeg(const TestPixels& pixels);
// JP2 of the red samples alone, or of all.
FileBytes EncodeJpeg2000(const TestPixels& pixels, int components);

// One of each format that ImageDecoder knows, and of some in more than one form.
std::vector<TestFile> EncodeInAllFormats(const TestPixels& pixels);

}  // namespace onnxifi::image

#endif  // ONNXIFI_BACKENDS_CORE_IMAGE_TESTING_ENCODE_IMAGE_H_
